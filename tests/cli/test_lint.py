"""``quadpy lint``: races inside parallel loops, on the command line and in Python."""

from __future__ import annotations

import json
import sys
import textwrap
import types

import pytest

from quadpy.cli import main
from quadpy.errors import ArgumentError
from quadpy.hazards import lint

PROGRAM = """
import quadpy as qp

F1 = qp.types.ndarray(dtype=qp.f32, ndim=1)
best = qp.field(qp.f32, shape=())


@qp.kernel
def shift(x: F1):
    for i in range(x.shape[0] - 1):
        x[i + 1] = x[i]


@qp.kernel
def keep_last(y: F1) -> qp.f32:
    last = 0.0
    for i in y:
        last = y[i]
    return last


@qp.kernel
def keep_best(y: F1):
    for i in y:
        best[None] = y[i]


@qp.kernel
def scatter(x: F1, k: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in k:
        x[k[i]] = i


@qp.kernel
def scale(x: F1):
    for i in x:
        x[i] *= 2.0


@qp.kernel
def opened(x: qp.types.ndarray()):
    for i in x:
        x[0] = i
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def test_definite_races_are_printed_with_both_lines_and_what_mends_them(program, capsys):
    assert main(["lint", f"{program}:shift"]) == 1
    shown = capsys.readouterr().out
    assert f"{program}:11: iteration i=0 of shift writes x[1]" in shown
    assert f"{program}:11: iteration i=1 of shift reads x[1]" in shown
    assert "two or more iterations over i" in shown
    assert "double buffer" in shown
    assert shown.endswith("1 definite race, 0 unknown, 0 proved free of races\n")


@pytest.mark.parametrize(
    ("kernel", "place", "mend"),
    [("keep_last", "writes last", "qp.atomic_max(last, value)"), ("keep_best", "writes best[None]", "qp.atomic_add(best[None], value)")],
)  # fmt: skip
def test_variables_and_fields_have_the_names_of_the_source(program, capsys, kernel, place, mend):
    assert main(["lint", f"{program}:{kernel}"]) == 1
    shown = capsys.readouterr().out
    assert place in shown
    assert mend in shown


def test_a_clean_kernel_succeeds(program, capsys):
    assert main(["lint", f"{program}:scale", "--all"]) == 0
    assert "x is proved free of races" in capsys.readouterr().out


def test_what_is_unknown_is_no_failure(program, capsys):
    assert main(["lint", f"{program}:scatter"]) == 0
    assert "scatter: x may race: line 31 writes elements that were not shown" in capsys.readouterr().out


def test_a_whole_file_is_checked_and_says_what_was_not(program, capsys):
    assert main(["lint", str(program)]) == 1
    shown = capsys.readouterr().out
    assert "opened was not checked" in shown
    assert shown.endswith("3 definite races, 1 unknown, 4 proved free of races; 1 kernel not checked\n")


def test_a_type_that_is_given_makes_a_kernel_checkable(program, capsys):
    assert main(["lint", f"{program}:opened", "--arg", "x=f32[1]"]) == 1
    assert "writes x[0]" in capsys.readouterr().out


def test_json_has_every_array(program, capsys):
    assert main(["lint", str(program), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    outcomes = {(each["kernel"], each["array"]): each["outcome"] for each in found["checked"]}
    assert outcomes["shift", "x"] == "definite"
    assert outcomes["scatter", "x"] == "unknown"
    assert outcomes["scale", "x"] == "proved"
    (race,) = [each["race"] for each in found["checked"] if each["kernel"] == "shift"]
    assert race["first"]["location"] == race["second"]["location"] == f"{program}:11"
    assert race["kind"] == "read after write"
    assert race["second"]["iteration"] == "i=1"
    assert [each["kernel"] for each in found["skipped"]] == ["opened"]


def test_a_module_and_a_kernel_are_checked_from_python(program, monkeypatch):
    module = types.ModuleType("program_of_races")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(program.read_text(), str(program), "exec"), vars(module))
    assert [race.second.array for race in lint(module).races] == ["x", "last", "best"]
    assert lint(module.scale).races == ()
    (race,) = lint(module.opened, x=module.F1).races
    assert race.second.location == f"{program}:43"
    with pytest.raises(ArgumentError, match="lint takes a kernel or a module"):
        lint(3)
