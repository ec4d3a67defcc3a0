"""The programs on the pages of the documentation."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)```python\b[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)


def program(page: str) -> str:
    """The blocks of ``page``, each on the lines where the page has it, so that errors point into the page."""
    lines: list[str] = []
    for block in FENCE.finditer(page):
        lines += [""] * (page.count("\n", 0, block.start("code")) - len(lines))
        lines += textwrap.dedent(block["code"]).splitlines()
    return "\n".join(lines) + "\n" if lines else ""


CONSOLE = re.compile(r"^```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)^```", re.MULTILINE | re.DOTALL)


def console_blocks() -> list[tuple[Path, str, str]]:
    """Each command that a page shows, as the page, the command, and what it prints, perhaps among other lines."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [(page, *block.groups()) for page in pages for block in CONSOLE.finditer(page.read_text(encoding="utf-8"))]


def pages_with_code() -> list[Path]:
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [page for page in pages if program(page.read_text(encoding="utf-8"))]
