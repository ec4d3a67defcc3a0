"""The report in the documentation is what the command shown with it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from quadpy.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "report.md"
SHOWN = re.compile(
    r"^\$ quadpy (?P<command>report .+)\n```\n\n<!-- report -->\n```text\n(?P<report>(?:.*\n)*?)```$", re.MULTILINE
)


def test_the_page_shows_what_the_command_prints(request, capsys):
    page = PAGE.read_text(encoding="utf-8")
    shown = SHOWN.search(page)
    assert main(shlex.split(shown["command"])) == 0
    printed = capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page[: shown.start("report")] + printed + page[shown.end("report") :], encoding="utf-8")
    elif shown["report"] != printed:
        pytest.fail(f"{printed}\n(pytest --update-golden puts this on the page)", pytrace=False)
