"""Several implementations of one function: which one a call runs, and what decides."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit import perf_dispatch as module

array = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def by_one(x: array, step: qp.i32):
    for i in x:
        x[i] += step


@qp.kernel
def twice(x: array, step: qp.i32):
    for i in x:
        x[i] += step + step


def made(**options):
    options = {"get_geometry_hash": lambda x, step: x.shape} | options

    @qp.perf_dispatch(**options)
    def grow(x, step): ...

    return grow


class Clock:
    """Time that passes as ``takes`` says of the function that runs."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    monotonic = perf_counter


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def slow_and_fast(grow, clock, ran):
    def implementation(name, seconds, kernel):
        def run(x, step):
            ran.append(name)
            clock.now += seconds[0]
            kernel(x, step)

        run.__name__ = name
        return grow.register(run), seconds

    slow, fast = [2.0], [1.0]
    implementation("slow", slow, by_one)
    implementation("fast", fast, by_one)
    return slow, fast


def test_each_call_runs_one_implementation_once_and_the_fastest_stays(clock):
    ran, x = [], np.zeros(5, np.int32)
    grow = made(first_warmup=1, active=2)
    slow_and_fast(grow, clock, ran)
    for calls in range(1, 11):
        grow(x, step=3)
        assert x.tolist() == [3 * calls] * 5
    assert ran == ["slow"] * 3 + ["fast"] * 7
    assert grow.decisions() == {"(5,)": "fast"}
    grow(np.zeros(6, np.int32), 1)
    assert ran[-1] == "slow", "another geometry is measured on its own"


def test_it_is_measured_again(clock):
    ran, x = [], np.zeros(2, np.int32)
    grow = made(first_warmup=0, warmup=1, repeat_after_count=2)
    slow, _ = slow_and_fast(grow, clock, ran)
    for _ in range(4):
        grow(x, 1)
    slow[0] = 0.5
    for _ in range(6):
        grow(x, 1)
    assert ran == ["slow", "fast", "fast", "fast", "slow", "slow", "fast", "fast", "slow", "slow"]
    late = made(first_warmup=0, repeat_after_seconds=10.0)
    ran.clear()
    slow_and_fast(late, clock, ran)
    for _ in range(3):
        late(x, 1)
    clock.now += 11.0
    late(x, 1)
    assert ran == ["slow", "fast", "fast", "slow"]


def test_it_is_not_measured_again_after_0_calls_or_seconds(clock):
    ran, x = [], np.zeros(2, np.int32)
    grow = made(first_warmup=0, repeat_after_count=0, repeat_after_seconds=0)
    slow_and_fast(grow, clock, ran)
    for _ in range(6):
        grow(x, 1)
    assert ran == ["slow", *["fast"] * 5]


def test_where_one_fits_nothing_is_measured(clock, monkeypatch):
    x, waits = np.zeros(2, np.int32), []
    grow = made(get_geometry_hash=lambda x, step: waits.append(x))
    monkeypatch.setattr(module, "current_device", lambda: waits.append(1))
    grow.register(is_compatible=lambda x, step: len(x) < 3)(by_one)
    grow.register(is_compatible=lambda x, step: len(x) > 3)(twice)
    for _ in range(4):
        grow(x, step=1)
    assert x.tolist() == [4, 4]
    assert not waits
    assert grow.decisions() == {}


def test_kernels_are_implementations_and_some_fit_some_arguments_only():
    grow = made(first_warmup=0)
    assert grow.register(is_compatible=lambda x, step: len(x) > 3)(by_one) is by_one
    stream = qp.create_stream()
    with pytest.raises(qp.ArgumentError, match="no implementation that is compatible"):
        grow(np.zeros(3, np.int32), 1)
    x = np.zeros(4, np.int32)
    grow(x, 2, stream=stream)
    stream.synchronize()
    assert x.tolist() == [2] * 4
    grow.register(twice, is_compatible=lambda x, step: len(x) > 10)
    grow(x, 2)
    assert x.tolist() == [4] * 4


def test_decisions_are_kept_in_a_file(tmp_path, clock):
    file, ran, x = tmp_path / "decisions.json", [], np.zeros(2, np.int32)
    grow = made(file=file, first_warmup=0)
    slow_and_fast(grow, clock, ran)
    for _ in range(3):
        grow(x, 1)
    assert json.loads(file.read_text()) == {"(2,)": "fast"}
    ran.clear()
    later = made(file=file)
    slow_and_fast(later, clock, ran)
    later(x, 1)
    assert ran == ["fast"]
    assert later.decisions() == {"(2,)": "fast"}
    file.write_text('{"(2,)": "fastest"}')
    gone = made(file=file)
    slow_and_fast(gone, clock, ran)
    with pytest.raises(qp.ArgumentError, match="names 'fastest' for \\(2,\\)"):
        gone(x, 1)
    file.write_text("[]")
    with pytest.raises(qp.ArgumentError, match="has no decisions"):
        made(file=file)
    file.write_text("{")
    with pytest.raises(qp.ArgumentError, match="cannot be read"):
        made(file=file)


def test_nothing_is_measured_while_calls_are_captured():
    qp.init(arch=qp.cpu)
    grow, x = made(first_warmup=0), qp.ndarray(qp.i32, 3)
    grow.register(by_one)
    grow.register(twice)
    with qp.graph.capture() as graph:
        for _ in range(5):
            grow(x, 1)
    graph.instantiate().launch()
    qp.sync()
    assert x.to_numpy().tolist() == [5] * 3, "each captured call took the first one"
    assert grow.decisions() == {}


def test_threads_share_the_decision():
    grow, x = made(active=3), [np.zeros(100, np.int32) for _ in range(4)]
    grow.register(by_one)

    @grow.register
    def by_hand(x, step):
        x += step

    threads = [threading.Thread(target=lambda k=k: [grow(x[k], 1) for _ in range(50)]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each.tolist() == [50] * 100 for each in x)
    assert grow.decisions().keys() == {"(100,)"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"active": 0}, "active must be a number of calls, of at least 1, not 0"),
        ({"warmup": -1}, "warmup must be a number of calls, of at least 0, not -1"),
        ({"get_geometry_hash": 3}, "get_geometry_hash is 3, which cannot be called"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(qp.ArgumentError, match=text):
        made(**options)


def test_wrong_implementations():
    grow = made()
    with pytest.raises(qp.ArgumentError, match="no implementation that is registered"):
        grow(np.zeros(1, np.int32), 1)

    @qp.kernel
    def other(y: array):
        y[0] = 1

    with pytest.raises(qp.ArgumentError, match="other takes y, and grow x, step"):
        grow.register(other)
    grow.register(by_one)
    with pytest.raises(qp.ArgumentError, match="already has an implementation 'by_one'"):
        grow.register(by_one)
