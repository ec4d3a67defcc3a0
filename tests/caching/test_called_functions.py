"""Python functions that run while compiling: a warm start calls each once, as a trace would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import itertools, sys
    import quadpy as qp
    from quadpy.jit import compiler

    CALLS = []
    {setup}

    @qp.kernel
    def run() -> qp.i32:
        total = 0
        {body}
        return total

    qp.init(arch=qp.cpu)
    traces, trace = [], compiler.trace_kernel
    compiler.trace_kernel = lambda *args, **kwargs: traces.append(1) or trace(*args, **kwargs)
    print(run(), len(traces), *CALLS)
"""


@pytest.fixture
def start(tmp_path):
    """Runs the program, each time in a new process, with arguments that may differ; what it printed, or its error."""

    def start(setup, body, *arguments):
        text = textwrap.dedent(PROGRAM).replace("{setup}", textwrap.dedent(setup))
        text = text.replace("{body}", textwrap.indent(textwrap.dedent(body), "    ").strip())
        (tmp_path / "program.py").write_text(text)
        environment = os.environ | {"QUADPY_CACHE_DIR": str(tmp_path / "cache"), "QUADPY_COMPILE_STEPS": "10000"}
        done = subprocess.run([sys.executable, "program.py", *map(str, arguments)], cwd=tmp_path, env=environment,
                              capture_output=True, text=True, check=False, timeout=120)  # fmt: skip
        return done.stdout.split() or done.stderr

    return start


NOTED = """
def first():
    CALLS.append("first")
    return 1

def second():
    CALLS.append("second")
    return int(sys.argv[1])

def third():
    CALLS.append("third")
    return 3
"""
SUM = "total += qp.static(first()) + qp.static(second()) + qp.static(third())"


def test_each_call_is_made_once_whether_the_code_is_found_or_not(start):
    calls = ["first", "second", "third"]
    assert start(NOTED, SUM, 2) == ["6", "1", *calls]
    assert start(NOTED, SUM, 2) == ["6", "0", *calls]
    assert start(NOTED, SUM, 5) == ["9", "1", *calls]  # second() gives something else: third() is called by the trace
    assert start(NOTED, SUM, 6) == ["10", "1", *calls]  # the search sees both records
    assert start(NOTED, SUM, 5) == ["9", "0", *calls]


def test_a_trace_that_starts_again_does_not_call_again(start):
    """A name that turns out to be a variable is found by a first trace, which is abandoned."""
    body = (
        "total += qp.static(first())\nhighest = 0\nfor i in range(3):\n    qp.atomic_max(highest, i)\ntotal += highest"
    )
    assert start(NOTED, body) == ["3", "1", "first"]
    assert start(NOTED, body) == ["3", "0", "first"]


def test_a_function_that_fails_when_it_is_called_again_fails_with_its_line(start):
    setup = "def f():\n    return 1 // int(sys.argv[1])\n"
    body = "total += qp.static(f())"
    assert start(setup, body, 1) == ["1", "1"]
    error = start(setup, body, 0)
    assert "ZeroDivisionError" in error
    assert "total += qp.static(f())" in error
    assert start(setup, body, 1) == ["1", "0"]


def test_a_generator_that_no_longer_ends_is_an_error(start):
    setup = "def f():\n    return iter(range(3)) if sys.argv[1] == 'few' else itertools.count()\n"
    body = "for n in qp.static(f()):\n    total += n"
    assert start(setup, body, "few") == ["3", "1"]
    assert "more than the limit of 10,000 steps" in start(setup, body, "many")
    assert start(setup, body, "few") == ["3", "0"]


def test_a_handler_of_a_signal_is_heard_during_the_search(start):
    setup = """
    import signal

    class Stopped(Exception):
        pass

    def stop(number, frame):
        raise Stopped

    signal.signal(signal.SIGINT, stop)

    def f():
        if sys.argv[1] == "stop":
            signal.raise_signal(signal.SIGINT)
        return 1
    """
    body = "total += qp.static(f())"
    assert start(setup, body, "go") == ["1", "1"]
    assert start(setup, body, "stop").strip().endswith("Stopped")
    assert start(setup, body, "go") == ["1", "0"]


def test_code_that_is_compiled_later_has_the_first_results(tmp_path):
    program = """
        import numpy as np
        import quadpy as qp
        F64 = qp.types.ndarray(dtype=qp.f64, ndim=1)
        n = 0

        def f():
            global n
            n += 1
            return n

        @qp.kernel
        def k(x: F64, y: F64):
            for i in x:
                x[i] = qp.static(f()) + 0 * y[i] + qp.static(f())

        qp.init(arch=qp.cpu)
        x, y = np.zeros(1), np.zeros(1)
        k(x, y)
        k(y, y)  # overlapping arrays need other code
        print(x[0], y[0], n)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    environment = os.environ | {"QUADPY_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, check=False, timeout=120)  # fmt: skip
        assert done.stdout.split() == ["3.0", "3.0", "2"], done.stderr
