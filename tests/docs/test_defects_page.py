"""The page on defects names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs/explanation/defects.md"
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]


def named(row: str) -> list[tuple[str, str]]:
    return [(file, test) for file, test in re.findall(r"`([\w/]+): (\w+)`", row.rpartition(" | ")[2])]


def test_every_row_names_a_test():
    rows = [row for row in ROWS if not row.startswith(("| ---", "| What happened", "| Means"))]
    assert len(rows) > 50
    assert [row for row in rows if not named(row)] == []


def test_the_tests_are_there():
    pairs = {pair for row in ROWS for pair in named(row)}
    missing = []
    for file, test in sorted(pairs):
        folder, _, name = file.rpartition("/")
        path = TESTS / folder / f"test_{name}.py"
        if not path.is_file() or not re.search(rf"def test_{test}\(", path.read_text(encoding="utf-8")):
            missing.append(f"{file}: {test}")
    assert missing == []
