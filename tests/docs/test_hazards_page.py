"""The guide to hazards: each of its programs has the report that it promises, and none when it is fixed."""

from __future__ import annotations

import pytest
from pages import ROOT

from tools.docs import hazards

PROMISED = {
    "offload": ("HazardError: read after write of weights", ["from_numpy(", "multiply(weights, x)"]),
    "stash": ("HazardError: use after free", ["add_memcpy(", "add_free("]),
    "count": ("HazardError: read after write", ["run.launch(", "from_numpy("]),
    "plasma": ("HazardWarning: possible write after read of field", ["field[cell]", "field[i] = "]),
    "waterwave": ("RaceWarning: ", ["height[i, j] = ", "pull = "]),
}
"""How the report begins, or what it says, and the two lines that it names."""


@pytest.mark.parametrize("name", PROMISED)
def test_the_report_names_both_lines(name):
    shown = hazards.print_hazard(name)
    program, report = shown.split("```text\n")
    kind, lines = PROMISED[name]
    assert kind in report
    numbers = {number for number, line in enumerate(program.splitlines()) for part in lines if part in line}
    for number in numbers:
        assert f"{name}.py:{number}" in report


@pytest.mark.parametrize("name", PROMISED)
def test_fixed_it_is_clean(name):
    assert hazards.report_of(hazards.fixed(name), name) == ""


def test_the_guide_shows_each_program():
    text = (ROOT / "docs/guides/hazards.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if "print: hazard" in line] == [
        f"<!-- print: hazard {name} -->" for name in PROMISED
    ]
