"""Ctrl-C at every place of the compiler: the same kernel compiles at the next call, and so do others.

``--interrupts=0`` tries every place, not a sample.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import quadpy as qp

from ..support.interrupts import COMPILER, interrupt, places_of, sample  # noqa: TID252 - shared by several folders

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
numbers = itertools.count()
TOGETHER = 5
"""Interrupts of one kernel, one after another, before it is called to the end."""

TEXT = """
    table = np.arange(4, dtype=np.float32)
    F = qp.types.ndarray(dtype=qp.f32, ndim=1)

    @qp.func
    def curve(a, b: qp.f32) -> qp.f32:
        if a > b:
            return qp.sin(a) * {number}
        return a - b

    @qp.kernel
    def k(x: F, sums: qp.types.ndarray(dtype=qp.types.matrix(2, 3, qp.f32), ndim=1), n: qp.i32, t: qp.template()) -> qp.i32:
        count = 0
        for i in x:
            v = qp.Vector([x[i], 1.0, t])
            for j in qp.static(range(3)):
                v[j] += table[j] + curve(v[j], 0.5)
            m = 0
            while m < n and x[i] > 0:
                m += 1
                if m == 2:
                    continue
            sums[0] += qp.Vector([1.0, m]).outer_product(v)
            count += m
        for i in range(n):
            qp.atomic_max(x[0], x[i] if i % 2 == 0 else 1.0)
        return count
"""


@pytest.fixture
def fresh(load):
    """A call of a kernel that was never compiled, on arrays of its own; it gives its result and the arrays."""

    def make():
        # Each text is another one, so that no cache has its code.
        k = load(TEXT.format(number=f"1.0 + {next(numbers)} * 0.0")).k

        def call():
            x, sums = np.linspace(-1, 3, 100, dtype=np.float32), np.zeros((1, 2, 3), np.float32)
            return k(x, sums, 5, 2.5), x.tolist(), sums.tolist()

        return call

    return make


@pytest.mark.quadpy_hazards(off="with the checker on, other places are passed, many of them once")
def test_ctrl_c_at_every_place_of_the_compiler(fresh, request):
    expected = fresh()()
    places = places_of(fresh(), COMPILER)
    assert len(places) > 5_000
    chosen, came, wrong = sample(places, request.config.getoption("--interrupts"), 0), 0, []
    for first in range(0, len(chosen), TOGETHER):
        call, some = fresh(), chosen[first : first + TOGETHER]
        try:
            came += sum(interrupt(call, place) for place in some)
            found = call()
        except Exception as error:  # noqa: BLE001 - it fails the test with all others
            found = f"{type(error).__name__}: {error}"
        if found != expected:
            wrong.append(f"after {', '.join(map(str, some))}: {found}")
    assert not wrong, "\n".join(wrong)
    assert came >= len(chosen) // 3


def signalled(call, delay):
    """Whether ``call`` ends by the Ctrl-C that comes ``delay`` seconds after it began."""
    main = threading.main_thread().ident
    timer = threading.Timer(delay, lambda: signal.pthread_kill(main, signal.SIGINT))
    done = False
    try:
        timer.start()
        call()
        done = True
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        timer.join()
    return not done


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal as POSIX does")
# Python drops what a signal's handler raises in a finalizer, and warns; llvmlite's objects have such.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_signals_while_a_kernel_compiles(fresh):
    """In native code of LLVM, too: what comes in there is seen after it."""
    expected = fresh()()
    call, began = fresh(), time.perf_counter()
    assert call() == expected
    length, seen = time.perf_counter() - began, 0
    for part in range(8):
        call = fresh()
        seen += signalled(call, length * part / 10)
        assert call() == expected
    assert seen


def test_kernels_of_all_kinds_compile_after_interrupts(fresh, load):
    """What the compiler remembers between kernels is whole: later kernels with other types and options are right."""
    places = places_of(fresh(), COMPILER)
    for place in sample(places, 5, 1):
        interrupt(fresh(), place)
    k = load("""
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.i64, ndim=2)) -> qp.i64:
            total = qp.i64(0)
            for i, j in x:
                x[i, j] += i * j
                total += x[i, j]
            return total
    """).k
    x = np.ones((30, 40), np.int64)
    assert k(x) == (1 + np.multiply.outer(np.arange(30), np.arange(40))).sum()
    for target in ("gfx942", "sm_90"):
        assert k.compile(target).image
    qp.sync()


class LateError(Exception):
    pass


class Limit:
    def __call__(self, *_):
        raise LateError

    def method(self, *_):
        raise LateError


def limit(*_):
    raise LateError


@pytest.mark.parametrize(
    "handler", [limit, Limit(), Limit().method, partial(limit, 1)], ids=["function", "object", "method", "partial"]
)
def test_what_a_handler_of_a_signal_raises_is_no_error_of_the_kernel(handler):
    def slow():
        signal.raise_signal(signal.SIGUSR2)
        return 1

    @qp.kernel
    def k(x: F32):
        for i in x:
            x[i] = qp.static(slow())

    before = signal.signal(signal.SIGUSR2, handler)
    try:
        with pytest.raises(LateError):
            k(np.zeros(3, np.float32))
    finally:
        signal.signal(signal.SIGUSR2, before)
    with pytest.raises(qp.CompilationError, match="LateError"):
        raises(np.zeros(3, np.float32))


def fails_itself():
    raise LateError


@qp.kernel
def raises(x: F32):
    for i in x:
        x[i] = qp.static(fails_itself())
