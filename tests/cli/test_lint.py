"""``quadpy lint``: races inside parallel loops, on the command line and in Python."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import racy_loops
from racy_loops import line_of

from quadpy.cli import main
from quadpy.errors import ArgumentError
from quadpy.hazards import lint

PROGRAM = racy_loops.__file__


def test_definite_races_are_printed_with_both_lines_and_what_mends_them(capsys):
    assert main(["lint", f"{PROGRAM}:shifts"]) == 1
    shown, line = capsys.readouterr().out, line_of(racy_loops.shifts, 2)
    assert f"{PROGRAM}:{line}: iteration i=0 of shifts writes x[1]" in shown
    assert f"{PROGRAM}:{line}: iteration i=1 of shifts reads x[1]" in shown
    assert "two or more iterations over i" in shown
    assert "double buffer" in shown
    assert shown.endswith("1 definite race, 0 unknown, 0 proved free of races\n")


@pytest.mark.parametrize(
    ("kernel", "place", "fix"),
    [("keeps_last", "writes last", "qp.atomic_max(last, value)"), ("keeps_best", "writes best[None]", "qp.atomic_add(best[None], value)")],
)  # fmt: skip
def test_variables_and_fields_have_the_names_of_the_source(capsys, kernel, place, fix):
    assert main(["lint", f"{PROGRAM}:{kernel}"]) == 1
    shown = capsys.readouterr().out
    assert place in shown
    assert fix in shown


def test_a_clean_kernel_succeeds(capsys):
    assert main(["lint", f"{PROGRAM}:scales", "--all"]) == 0
    assert "x is proved free of races" in capsys.readouterr().out


def test_what_is_unknown_is_no_failure(capsys):
    assert main(["lint", f"{PROGRAM}:scatters"]) == 0
    line = line_of(racy_loops.scatters, 2)
    assert f"scatters: x may race: line {line} writes elements that were not shown" in capsys.readouterr().out


def test_a_whole_file_is_checked_and_says_what_was_not(capsys):
    assert main(["lint", PROGRAM]) == 1
    shown = capsys.readouterr().out
    assert "of_any_array was not checked" in shown
    assert shown.endswith("4 definite races, 3 unknown, 4 proved free of races; 1 kernel not checked\n")


def test_a_kernel_that_could_not_be_checked_is_a_status_of_its_own(capsys):
    assert main(["lint", f"{PROGRAM}:of_any_array"]) == 3
    assert "of_any_array was not checked" in capsys.readouterr().out
    assert main(["lint", f"{PROGRAM}:of_any_array", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], [each["kernel"] for each in found["skipped"]]) == ("unchecked", ["of_any_array"])


def test_a_file_that_cannot_be_run_was_not_checked(capsys, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("import quadpy as qp\nraise OSError('no data')\n")
    assert main(["lint", str(broken)]) == 3
    shown = capsys.readouterr()
    assert (shown.out, "no data" in shown.err) == ("", True)


@pytest.mark.parametrize(
    "words",
    [["no_such_file.py"], ["no.such.module"], [f"{PROGRAM}:no_such_kernel"], [f"{PROGRAM}:scales", "--arg", "y=f32[1]"]],
    ids=["file", "module", "kernel", "argument"],
)  # fmt: skip
def test_a_wrong_command_line_is_a_status_of_its_own(capsys, words):
    assert main(["lint", *words, "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("quadpy: ")


def test_an_unknown_option_is_a_wrong_command_line_too(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["lint", PROGRAM, "--no-such-option"])
    assert ended.value.code == 2


def test_the_help_says_what_the_exit_statuses_mean():
    done = subprocess.run(
        [sys.executable, "-m", "quadpy", "lint", "--help"], capture_output=True, text=True, check=True
    )
    assert "exit status: 0" in done.stdout


def test_a_type_that_is_given_makes_a_kernel_checkable(capsys):
    assert main(["lint", f"{PROGRAM}:of_any_array", "--arg", "x=f32[1]"]) == 1
    assert "writes x[0]" in capsys.readouterr().out


def test_json_has_every_array(capsys):
    assert main(["lint", PROGRAM, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == "races"
    outcomes = {(each["kernel"], each["array"]): each["outcome"] for each in found["checked"]}
    assert outcomes["shifts", "x"] == "definite"
    assert outcomes["scatters", "x"] == "unknown"
    assert outcomes["scales", "x"] == "proved"
    assert outcomes["keeps_best", "best"] == "definite"
    (race,) = [each["race"] for each in found["checked"] if each["kernel"] == "shifts"]
    assert race["first"]["location"] == race["second"]["location"] == f"{PROGRAM}:{line_of(racy_loops.shifts, 2)}"
    assert race["kind"] == "read after write"
    assert race["second"]["iteration"] == "i=1"
    assert [each["kernel"] for each in found["skipped"]] == ["of_any_array"]


def test_a_module_and_a_kernel_are_checked_from_python():
    assert [race.second.array for race in lint(racy_loops).races] == ["x", "x", "last", "best"]
    assert lint(racy_loops.scales).races == ()
    assert lint(racy_loops.scales).outcome == "clean"
    (race,) = lint(racy_loops.of_any_array, x=racy_loops.I1).races
    assert race.second.location == f"{PROGRAM}:{line_of(racy_loops.of_any_array, 2)}"
    with pytest.raises(ArgumentError, match="lint takes a kernel or a module"):
        lint(3)
