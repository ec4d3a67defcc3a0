"""The names that users of Taichi know, the command, and what other profilers are told."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

import quadpy as qp
from quadpy.cli import main
from quadpy.profiler import ranges
from quadpy.runtime.launch.capturing import CAPTURES

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def halve(x: F32):
    for i in x:
        x[i] *= 0.5
    for i in x:
        x[i] += 1.0


@pytest.fixture
def profiled():
    """As programs for Taichi begin."""
    qp.init(arch=qp.cpu, kernel_profiler=True)
    yield
    qp.init(arch=qp.cpu)
    assert CAPTURES.observer is None


@pytest.mark.usefixtures("profiled")
def test_counts_and_times_of_kernels(capsys):
    x = qp.ndarray(qp.f32, 1000)
    halve(x)
    qp.profiler.clear_kernel_profiler_info()
    for _ in range(3):
        halve(x)
    found = qp.profiler.query_kernel_profiler_info("halve")
    assert found.counter == 3
    assert 0 < found.min <= found.avg <= found.max
    assert qp.profiler.query_kernel_profiler_info("nothing") == (0, 0, 0, 0)
    assert qp.profiler.get_kernel_profiler_total_time() == pytest.approx(3 * found.avg / 1e3)
    qp.profiler.print_kernel_profiler_info()
    assert "halve #1" in capsys.readouterr().out
    qp.profiler.print_kernel_profiler_info("trace")
    assert capsys.readouterr().out.count("halve #0") == 3
    with pytest.raises(qp.ArgumentError, match="'count' or 'trace'"):
        qp.profiler.print_kernel_profiler_info("trce")
    qp.profiler.clear_kernel_profiler_info()
    assert qp.profiler.get_kernel_profiler_total_time() == 0
    assert qp.profiler.set_kernel_profiler_toolkit()
    assert not qp.profiler.set_kernel_profiler_toolkit("cupti")


@pytest.mark.usefixtures("profiled")
def test_ranges_and_memory_are_printed(capsys):
    with qp.profiler.range("step"), qp.profiler.range("part"):
        pass
    qp.profiler.print_scoped_profiler_info()
    step, part = capsys.readouterr().out.splitlines()
    assert step.endswith("1 times  step")
    assert part.endswith("1 times    part")
    qp.profiler.clear_scoped_profiler_info()
    qp.profiler.print_scoped_profiler_info()
    assert capsys.readouterr().out == ""
    qp.profiler.print_memory_profiler_info()
    assert "<cpu:0" in capsys.readouterr().out


@pytest.mark.usefixtures("profiled")
def test_another_init_begins_again_and_a_profile_may_be_within():
    x = qp.ndarray(qp.f32, 10)
    halve(x)
    with qp.profile() as p:
        halve(x)
    assert qp.profiler.query_kernel_profiler_info("halve").counter == 2
    assert len([record for record in p.records if record.kind == "kernel"]) == 2
    qp.init(arch=qp.cpu, kernel_profiler=True)
    assert qp.profiler.query_kernel_profiler_info("halve").counter == 0


def test_a_profiler_that_is_off_says_how_to_turn_it_on(monkeypatch):
    monkeypatch.setattr("quadpy.profiler.kernel_profiler._Process.profile", None)
    with pytest.warns(RuntimeWarning, match=r"qp.init\(kernel_profiler=True\)"):
        qp.profiler.print_kernel_profiler_info()


def test_taichi_programs_find_it():
    import quadpy.compat.taichi as ti

    assert all(getattr(ti.profiler, name) is getattr(qp.profiler, name) for name in qp.profiler.__all__)


def test_ranges_are_passed_on_to_other_profilers(monkeypatch):
    calls = []
    one = ranges.Markers(lambda name: calls.append(("push", name)), lambda: calls.append("pop"))
    monkeypatch.setattr(ranges, "markers", lambda: (one,))
    with qp.profiler.range("größer"), pytest.raises(KeyError), qp.profiler.range("b"):
        raise KeyError
    assert calls == [("push", "größer".encode()), ("push", b"b"), "pop", "pop"]


def test_libraries_that_are_missing_are_not_asked():
    ranges.markers.cache_clear()
    assert isinstance(ranges.markers(), tuple)


PROGRAM = """
    import sys
    import quadpy as qp

    qp.init(arch=qp.cpu)
    F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)

    @qp.kernel
    def double(x: F32):
        for i in x:
            x[i] *= 2.0

    if __name__ == "__main__":
        x = qp.ndarray(qp.f32, 100)
        for _ in range(int(sys.argv[1])):
            double(x)
        if len(sys.argv) > 2:
            raise {error}
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["quadpy"])
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(error="SystemExit(3)"):
        file = tmp_path / "program.py"
        file.write_text(textwrap.dedent(PROGRAM.format(error=error)))
        return str(file)

    return write


def test_the_command_profiles_a_program(program, tmp_path, capsys):
    assert main(["profile", "--trace", str(tmp_path / "t.json"), program(), "4"]) == 0
    out = capsys.readouterr().out
    assert "double" in out
    assert "program.py:10" in out
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert main(["profile", "--json", program(), "4"]) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out) if row["label"] == "double"]
    assert row["calls"] == 4
    assert row["total"] >= row["max"] >= row["min"] > 0


def test_json_is_all_that_the_command_prints(tmp_path):
    """What the program prints, from Python, from a child or to the file itself, is on stderr."""
    file = tmp_path / "talks.py"
    file.write_text(
        "import os, subprocess, sys\n"
        "print('from Python')\n"
        "subprocess.run([sys.executable, '-c', 'print(\"from a child\")'], check=True)\n"
        "os.write(1, b'from below\\n')\n" + textwrap.dedent(PROGRAM).format(error="KeyError")
    )
    command = [sys.executable, "-m", "quadpy", "profile", "--json", str(file), "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [row["calls"] for row in json.loads(done.stdout) if row["label"] == "double"] == [2]
    assert all(f"from {where}" in done.stderr for where in ("Python", "a child", "below"))


def test_the_command_has_the_status_of_the_program(program, capsys):
    assert main(["profile", program(), "1", "fail"]) == 3
    assert "double" in capsys.readouterr().out
    assert main(["profile", program("ValueError('mine')"), "1", "fail"]) == 1
    captured = capsys.readouterr()
    assert "double" in captured.out
    assert "ValueError: mine" in captured.err
    assert "runpy" not in captured.err
    assert main(["profile", "no_such_file.py"]) == 1
    assert "there is no file no_such_file.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--trace", "no_such_folder/t.json"], "no_such_folder/t.json is in a folder"), (["--limit", "-1"], "--limit -1")],
)
def test_what_cannot_be_written_or_shown_is_refused_before_the_program_runs(program, capsys, options, message):
    assert main(["profile", *options, program(), "1"]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_timelines_by_the_names_of_taichi(tmp_path):
    qp.init(arch=qp.cpu, timeline=True)
    x = qp.ndarray(qp.f32, 10)
    halve(x)
    qp.profiler.timeline_save(tmp_path / "before.json")
    qp.profiler.timeline_clear()
    qp.profiler.timeline_save(tmp_path / "after.json")
    before, after = ((tmp_path / f"{when}.json").read_text() for when in ("before", "after"))
    assert "halve" in before
    assert "halve" not in after
    json.loads(before)
    qp.init(arch=qp.cpu)
    assert CAPTURES.observer is None
