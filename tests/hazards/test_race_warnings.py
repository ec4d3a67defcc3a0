"""The warning of a definite race when a kernel compiles."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from racy_loops import line_of, one_element, shifts

import quadpy as qp
from quadpy.errors import HazardWarning, RaceWarning

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, cpu_max_num_threads=2)


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [each for each in found if issubclass(each.category, RaceWarning)]


def test_a_definite_race_is_warned_of_once():
    x = np.arange(8, dtype=np.int32)
    (warning,) = caught(lambda: shifts(x))
    race = warning.message.hazard
    file, line = shifts.source.span.file, line_of(shifts, 2)
    assert issubclass(RaceWarning, HazardWarning)
    assert (warning.filename, warning.lineno) == (file, line)
    assert race.first.location == race.second.location == f"{file}:{line}"
    assert (race.kind, race.certain) == ("read after write", True)
    assert "iteration i=0 of shifts writes x[1]" in str(warning.message)
    assert not caught(lambda: shifts(x))
    assert not caught(lambda: shifts(x[2:])), "other code of the same kernel"


@qp.kernel
def adds(x: I1, y: I1):
    for i in y:
        x[0] += y[i]
        y[i] = 2 * y[i]


@qp.kernel
def assigns_its_own(x: I1):
    best = 1
    for i in x:
        own = best
        if x[i] > 3:
            own = x[i]
        x[i] = own


def test_kernels_without_races_are_quiet():
    x, y = np.zeros(4, np.int32), np.ones(4, np.int32)
    assert not caught(lambda: (adds(x, y), assigns_its_own(x)))


def test_a_filter_makes_it_an_error_at_every_call():
    x = np.zeros(4, np.int32)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RaceWarning)
            with pytest.raises(RaceWarning, match=r"touch x\[0\]"):
                one_element(x)


@qp.kernel
def serial(x: I1):
    qp.loop_config(serialize=True)
    for i in range(x.shape[0] - 1):
        x[i + 1] = x[i]


def test_the_line_that_mends_it_does():
    x = np.arange(1, 9, dtype=np.int32)
    assert not caught(lambda: serial(x))
    assert set(x.tolist()) == {1}


PROGRAM = """
import sys
import numpy as np
import quadpy as qp

qp.init(arch=qp.cpu, offline_cache_file_path=sys.argv[1])
I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def shifts(x: I1):
    for i in range(x.shape[0] - 1):
        x[i + 1] = x[i]


if len(sys.argv) > 2:  # nothing may be traced
    import quadpy.jit.compiler
    del quadpy.jit.compiler.trace_kernel
shifts(np.arange(8, dtype=np.int32))
"""


def test_it_comes_again_where_the_code_comes_from_the_disk(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    for more in ([], ["again"]):
        found = subprocess.run(
            [sys.executable, str(path), str(tmp_path / "cache"), *more], capture_output=True, text=True, check=True
        )
        assert f"{path}:13: RaceWarning: two iterations" in found.stderr


@qp.kernel(debug=True)
def marks(x: I1, y: I1):
    for i in x:
        x[i] = 1
        y[0] = i


def test_the_accesses_of_the_program_are_named_when_a_kernel_checks_itself():
    def call():
        with contextlib.suppress(qp.KernelRaceError):
            marks(np.zeros(4, np.int32), np.zeros(4, np.int32))

    (warning,) = caught(call)
    race = warning.message.hazard
    assert [race.first.verb, race.second.verb] == ["writes", "writes"], "not what looks for the race"
    (linted,) = qp.hazards.lint(marks).races
    assert (linted.first.verb, linted.second.verb) == ("writes", "writes")
