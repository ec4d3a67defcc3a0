"""Calls on the CPU with many arrays: the arrays of the last call are known again, and all else is a new call."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit.dispatcher import Dispatcher

COUNT = 20
NAMES = [f"x{k}" for k in range(COUNT)]


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@pytest.fixture
def resolved(monkeypatch):
    """Counts the calls that were resolved step by step."""
    count, original = [], Dispatcher.resolve
    monkeypatch.setattr(Dispatcher, "resolve", lambda *args: count.append(1) or original(*args))
    return count


@pytest.fixture
def add(load):
    """Adds ``scale`` to the first element of each array, and returns the sum of these."""
    adds = "".join(f"            s.x{k}[0] += scale\n            total += s.x{k}[0]\n" for k in range(COUNT))
    return load(f"""
        import dataclasses

        @dataclasses.dataclass(frozen=True)
        class Many:
{"".join(f"            {name}: qp.Tensor{chr(10)}" for name in NAMES)}

        @qp.kernel
        def add(s: Many, scale: qp.f32, extra: qp.Array1D[qp.f32]) -> qp.f32:
            total = extra[0]
{adds}
            return total
    """)


def made(cls, start=0.0):
    arrays = [qp.ndarray(qp.f32, 1) for _ in NAMES]
    for array in arrays:
        array.fill(start)
    return cls(*arrays)


def test_the_same_arrays_are_known_again(add, resolved):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    assert add.add(many, 1.0, extra) == 20.0
    resolved.clear()
    results = [add.add(many, scale, extra) for scale in (1.0, 2, np.float32(0.5))]
    assert results == [40.0, 80.0, 90.0]
    assert add.add(extra=extra, s=many, scale=1.0) == 110.0
    assert not resolved
    assert many.x3[0] == 5.5


def test_other_arrays_are_another_call(add, resolved):
    first, second, extra = made(add.Many), made(add.Many, 100.0), qp.ndarray(qp.f32, 1)
    add.add(first, 0.0, extra)
    resolved.clear()
    for step in range(1, 4):
        assert add.add(first, 1.0, extra) == 20.0 * step
        assert add.add(second, 1.0, extra) == 20.0 * (100 + step)
    mixed = dataclasses.replace(first, x7=second.x7)
    assert add.add(mixed, 0.0, extra) == 19 * 3 + 103
    view = np.full(1, 5, np.float32)  # another library's array is described each time
    for step in range(1, 3):
        assert add.add(dataclasses.replace(first, x7=view), 1.0, extra) == 19 * (3 + step) + 5 + step
    assert len(resolved) == 8


def test_arrays_that_overlap_have_their_own_code(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    twice = dataclasses.replace(many, x1=many.x0)
    for step in (1, 2, 3):
        total = add.add(twice, 1.0, extra)
        assert total == 18 * step + (2 * step - 1) + 2 * step
    assert add.add(many, 0.0, extra) == 18 * 3 + 6


def test_no_array_is_kept_alive(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    add.add(many, 1.0, extra)
    add.add(many, 1.0, extra)
    gone = weakref.ref(many.x5)
    del many
    gc.collect()
    assert gone() is None
    assert add.add(made(add.Many), 1.0, extra) == 20.0


def test_wrong_numbers_are_reported(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    add.add(many, 1.0, extra)
    with pytest.raises(qp.ArgumentError, match="scale takes a number"):
        add.add(many, "one", extra)
    with pytest.raises(qp.ArgumentError, match="extra"):
        add.add(many, 1.0)
    assert add.add(many, 1.0, extra) == 40.0


def test_another_configuration_is_another_call(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    add.add(many, 1.0, extra)
    add.add(many, 1.0, extra)
    qp.init(arch=qp.python)
    assert add.add(many, 1.0, extra) == 60.0
    qp.init(arch=qp.cpu, debug=True)
    assert add.add(many, 1.0, extra) == 80.0


def test_captured_calls_are_recorded(load):
    arrays = "".join(f"x{k}: qp.Array1D[qp.i32], " for k in range(COUNT))
    kernel = load(f"""
        @qp.kernel
        def count({arrays}):
            for i in x0:
                {"; ".join(f"x{k}[i] += 1" for k in range(COUNT))}
    """).count
    xs = [qp.ndarray(qp.i32, 4) for _ in range(COUNT)]
    kernel(*xs)
    kernel(*xs)
    with qp.graph.capture() as graph:
        kernel(*xs)
    assert xs[3][0] == 2
    run = graph.instantiate()
    run.launch()
    qp.sync()
    kernel(*xs)
    assert [x.to_numpy().tolist() for x in (xs[0], xs[-1])] == [[4] * 4] * 2


def test_arrays_that_change_with_each_call_are_not_remembered_for_ever(add, resolved):
    extra, pair = qp.ndarray(qp.f32, 1), (made(add.Many), made(add.Many))
    add.add(pair[0], 0.0, extra)
    resolved.clear()
    for step in range(30):
        assert add.add(pair[step % 2], 1.0, extra) == 20.0 * (step // 2 + 1)
    assert len(resolved) == 29
    for _ in range(3):
        add.add(pair[1], 0.0, extra)
    assert len(resolved) == 32
