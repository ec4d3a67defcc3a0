"""The page on lessons of other runtimes and the tests that hold them name the same numbers, in the same files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs/explanation/lessons.md"

IN_NAMES = re.compile(r"_([sgxh]\d+)(?=_|$)")
IN_TEXT = re.compile(r'(?:"""|# *|;)[^"\n]*?\b([SGXH]\d{1,2})\b')


def named(text: str) -> set[str]:
    """The numbers that a test module names: in names of tests, first in a docstring, or in a comment."""
    names = re.findall(r"^\s*def (test_\w+)", text, re.MULTILINE)
    return {number.upper() for name in names for number in IN_NAMES.findall(name)} | set(IN_TEXT.findall(text))


def in_tests() -> set[tuple[str, str]]:
    files = [file for file in TESTS.rglob("test_*.py") if file != Path(__file__)]
    found = {file.relative_to(TESTS).as_posix(): named(file.read_text(encoding="utf-8")) for file in files}
    return {(number, file) for file, numbers in found.items() for number in numbers}


def on_page() -> set[tuple[str, str]]:
    rows = re.findall(r"^\| ([SGXH]\d+) \|.*\| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(number, file) for number, files in rows for file in re.findall(r"`([^`]+)`", files)}


def test_the_page_and_the_tests_name_the_same_lessons():
    assert in_tests() - on_page() == set(), "the page lacks these"
    assert on_page() - in_tests() == set(), "the page names these, and no test does"


def test_each_number_has_one_row():
    numbers = re.findall(r"^\| ([SGXH]\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(numbers) == sorted(set(numbers))
    assert len(numbers) > 40


def test_numbers_are_found_in_names_docstrings_and_comments():
    text = 'def test_s5_s6_streams():\n    pass\ndef test_graphs_x8(here):\n    """H3: why"""\n    # G1\n    x1_y = 2\n'
    assert named(text) == {"S5", "S6", "X8", "H3", "G1"}
