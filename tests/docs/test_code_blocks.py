"""The documentation's blocks run: ``python`` in order, one program per page, and commands, in folders of their own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from pages import ROOT, console_blocks, pages_with_code, program


@pytest.mark.parametrize("page", pages_with_code(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page, tmp_path):
    file = tmp_path / f"{page.stem}.py"
    file.write_text(program(page.read_text(encoding="utf-8")), encoding="utf-8")
    child = subprocess.run(
        [sys.executable, "-W", "error", file.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "QUADPY_HAZARDS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr


def test_blocks_keep_their_lines_and_lose_their_indentation():
    page = "# Page\n```python\na = 1\n```\ntext\n\n    ```python\n    if a:\n        b = 2\n    ```\n```text\nno\n```\n"
    assert program(page) == "\n\na = 1\n\n\n\n\nif a:\n    b = 2\n"


@pytest.mark.parametrize(("page", "command", "output"), console_blocks(), ids=[block[1] for block in console_blocks()])
def test_a_command_prints_what_its_page_shows(page, command, output, tmp_path):
    """A file that the command names is the program of the page."""
    for word in shlex.split(command):
        name, dot, _ = word.partition(".py:")
        if dot:
            (tmp_path / f"{name}.py").write_text(program(page.read_text(encoding="utf-8")), encoding="utf-8")
    executable, *words = shlex.split(command)
    assert executable == "quadpy"
    child = subprocess.run(
        [sys.executable, "-m", executable, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert output in child.stdout
