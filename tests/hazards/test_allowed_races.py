"""``with qp.hazards.allow(x, reason=…):`` in a kernel: races that its author has looked at."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import KernelRaceError, KernelSyntaxError, KernelTypeError, RaceWarning
from quadpy.hazards import lint

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)
best = qp.field(qp.i32, shape=())
ANY = "any of them will do"


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, cpu_max_num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RaceWarning)
        yield


@qp.kernel
def definite(y: I1) -> qp.i32:
    last = 0
    with qp.hazards.allow(best, reason=ANY), qp.hazards.allow(last, reason="so will this"):
        for i in y:
            best[None] = y[i]
            last = y[i]
    return last


def test_definite_races_are_not_warned_of_but_listed():
    y = np.arange(4, dtype=np.int32)
    with qp.hazards.check() as found:
        assert definite(y) == 3
    assert best[None] == 3
    assert not found.certain
    assert not found.possible
    assert {(race.second.array, race.certain, race.allowed) for race in found.allowed} == {
        ("best", True, ANY), ("last", True, "so will this"),
    }  # fmt: skip
    (race,) = [race for race in found.allowed if race.second.array == "best"]
    assert race.second.line == definite.source.span.line + 5
    assert f"allowed: {ANY}" in str(found)
    assert '"allowed": "so will this"' in found.to_json()


@qp.kernel(debug=True)
def scattered(x: I1, z: I1, k: I1):
    with qp.hazards.allow(x, reason=ANY):
        for i in k:
            x[k[i]] = i
    for i in k:
        z[k[i]] = i


def test_debug_does_not_look_for_them_but_for_others():
    x, z, same = np.zeros(4, np.int32), np.zeros(4, np.int32), np.array([2, 2, 2], np.int32)
    with qp.hazards.check() as found, pytest.raises(KernelRaceError, match=r"writes z\[2\]"):
        scattered(x, z, same)
    assert x[2] == 2
    (race,) = found.allowed
    assert (race.second.array, race.certain, race.allowed) == ("x", False, ANY)
    assert "may touch the same element of x" in str(race)


def test_lint_lists_them_and_succeeds():
    report = lint(definite)
    assert (report.outcome, report.races) == ("clean", ())
    assert {(race.second.array, race.allowed) for race in report.allowed} == {("best", ANY), ("last", "so will this")}
    assert report.summary == "0 definite races, 0 unknown, 1 proved free of races, 2 allowed"
    outcomes = {(each["array"], each["outcome"]) for each in lint(scattered).to_json()["checked"]}
    assert outcomes == {("x", "allowed"), ("z", "unknown"), ("k", "proved")}


@qp.func
def chaotic(x):
    with qp.hazards.allow(x, reason="the limit is the same"):
        for i in range(x.shape[0] - 1):
            x[i] = x[i + 1]


@qp.data_oriented
class Grid:
    def __init__(self):
        self.v = qp.field(qp.i32, shape=8)

    @qp.kernel
    def relax(self, y: I1):
        chaotic(self.v)
        with qp.stream_parallel():  # noqa: SIM117 - it stands alone in its statement
            with qp.hazards.allow(y, reason=ANY):
                for i in range(7):
                    y[i + 1] = y[i]
        with qp.stream_parallel():
            for i in self.v:
                self.v[i] += 1


def test_functions_methods_and_sections_have_them_too():
    with qp.hazards.check() as found:
        Grid().relax(np.zeros(8, np.int32))
    assert {(race.second.array, race.allowed) for race in found.allowed} == {
        ("self.v", "the limit is the same"), ("y", ANY),
    }  # fmt: skip


@qp.kernel
def only_inside(x: I1):
    with qp.hazards.allow(x, reason=ANY):
        for i in range(7):
            x[i + 1] = x[i]
    for i in range(6):
        x[i + 1] = x[i]


def test_a_loop_outside_of_the_block_is_warned_of():
    with pytest.raises(RaceWarning) as found:
        only_inside(np.zeros(8, np.int32))
    assert found.value.hazard.second.line == only_inside.source.span.line + 6


PROGRAM = """
import sys
import numpy as np
import quadpy as qp

qp.init(arch=qp.cpu, offline_cache_file_path=sys.argv[1], hazards=True)
I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def shifts(x: I1):
    with qp.hazards.allow(x, reason="a test"):
        for i in range(x.shape[0] - 1):
            x[i + 1] = x[i]


x = qp.ndarray(qp.i32, 8)
shifts(x)
print([(race.second.location, race.allowed) for race in qp.hazards.report().allowed])
"""


def test_they_are_listed_where_the_code_comes_from_the_disk(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    for _ in range(2):
        command = [sys.executable, "-W", "error", str(path), str(tmp_path / "cache")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"[('{path}:14', 'a test')]\n"


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_gpus_have_no_shadow_memory_for_them(target):
    @qp.kernel(debug=True)
    def scatter(x: I1, k: I1):
        with qp.hazards.allow(x, reason=ANY):
            for i in k:
                x[k[i]] = i

    code = scatter.compile(target)
    assert code.shadow is None
    assert "KernelRaceError" not in {site.error for site in code.sites}


def test_the_python_backend_runs_it():
    qp.init(arch=qp.python)
    assert definite(np.arange(3, dtype=np.int32)) == 2
    qp.init(arch=qp.cpu)


# ------------------------------------------------------------- mistakes


@qp.kernel
def inside_a_loop(x: I1):
    for i in x:
        with qp.hazards.allow(x, reason=ANY):
            x[0] = i


@qp.kernel
def without_a_reason(x: I1):
    with qp.hazards.allow(x):
        for i in x:
            x[0] = i


@qp.kernel
def empty_reason(x: I1):
    with qp.hazards.allow(x, reason=" "):
        for i in x:
            x[0] = i


@qp.kernel
def an_element(x: I1):
    with qp.hazards.allow(x[0], reason=ANY):
        for i in x:
            x[0] = i


@qp.kernel
def bound_by_as(x: I1):
    with qp.hazards.allow(x, reason=ANY) as found:  # noqa: F841 - a mistake that must be found
        for i in x:
            x[0] = i


@qp.kernel
def not_called(x: I1):
    with qp.hazards.allow:
        for i in x:
            x[0] = i


@qp.kernel
def no_variable_of_the_loop(x: I1, n: qp.i32):
    with qp.hazards.allow(n, reason=ANY):
        for _ in x:
            x[0] = n


@pytest.mark.parametrize(
    ("kernel", "error", "said"),
    [
        (inside_a_loop, KernelSyntaxError, "must enclose parallel loops"),
        (without_a_reason, KernelSyntaxError, "takes an array and a reason"),
        (empty_reason, KernelTypeError, "takes the reason as a string, not ' '"),
        (an_element, KernelTypeError, "takes an array, a field or a variable that a loop assigns"),
        (bound_by_as, KernelSyntaxError, "without as"),
        (not_called, KernelSyntaxError, "takes an array and a reason"),
        (no_variable_of_the_loop, KernelTypeError, "takes an array, a field or a variable that a loop assigns"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_mistakes_are_named_with_their_line(kernel, error, said):
    with pytest.raises(error, match=said) as found:
        kernel.compile("gfx1100")
    assert found.value.span.line - kernel.source.span.line in (2, 3)
    assert found.value.hint
