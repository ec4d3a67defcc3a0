"""Branches and logic: what is evaluated, how often, and in which order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.func
def noted(log, mark, value):
    """``value``, and ``mark`` appended to the log: slot 0 holds how many there are."""
    n = qp.atomic_add(log[0], 1)
    log[n + 1] = mark
    return value


@qp.kernel
def both(a: qp.i32, b: qp.i32, c: qp.i32, log: A(qp.i32, 1)) -> bool:
    return noted(log, 1, a) > 0 and noted(log, 2, b) > 0 and noted(log, 3, c) > 0


@qp.kernel
def either(a: qp.i32, b: qp.i32, c: qp.i32, log: A(qp.i32, 1)) -> bool:
    return noted(log, 1, a) > 0 or noted(log, 2, b) > 0 or noted(log, 3, c) > 0


@qp.kernel
def mixed(a: qp.i32, b: qp.i32, c: qp.i32, log: A(qp.i32, 1)) -> bool:
    return not (noted(log, 1, a) > 0 and noted(log, 2, b) > 0) or noted(log, 3, c) > 0


@qp.kernel
def chain(a: qp.i32, b: qp.i32, c: qp.i32, log: A(qp.i32, 1)) -> bool:
    return noted(log, 1, a) < noted(log, 2, b) <= noted(log, 3, c) != 5


@qp.kernel
def ternary(a: qp.i32, b: qp.i32, c: qp.i32, log: A(qp.i32, 1)) -> int:
    return noted(log, 2, b) if noted(log, 1, a) > 0 else noted(log, 3, c)


@qp.kernel
def nested(a: qp.i32, b: qp.i32, c: qp.i32, log: A(qp.i32, 1)) -> int:
    return (noted(log, 1, 7) if b else noted(log, 2, 8)) if a and (b or noted(log, 3, c)) else noted(log, 4, 9)


def python_noted(log, mark, value):
    log[0] += 1
    log[log[0]] = mark
    return value


@pytest.mark.parametrize("kernel", [both, either, mixed, chain, ternary, nested], ids=lambda k: k.__name__)
def test_side_effects_happen_in_pythons_order(kernel):
    scope = {"noted": python_noted}
    python = kernel.__wrapped__
    function = type(python)(python.__code__, scope)
    for a, b, c in itertools.product((0, 1, 2), repeat=3):
        got, want = np.zeros(8, np.int32), np.zeros(8, np.int32)
        assert kernel(a, b, c, got) == function(a, b, c, want)
        np.testing.assert_array_equal(got, want)


@qp.kernel
def guarded(x: A(qp.i32, 1), i: qp.i32) -> int:
    return x[i] if 0 <= i < x.shape[0] and x[i] > 0 else -1


def test_a_guard_keeps_the_access_from_happening():
    x = np.array([5, -5], np.int32)
    assert [guarded(x, i) for i in (-(2**30), -1, 0, 1, 2, 2**30)] == [-1, -1, 5, -1, -1, -1]


@qp.kernel
def ladder(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    for i in x:
        v = x[i]
        if v < 0:
            y[i] = -1
        elif v == 0:
            y[i] = 0
        elif v < 10:
            if v % 2:
                y[i] = 1
            else:
                y[i] = 2
        else:
            y[i] = 3


def test_if_elif_else():
    x = np.arange(-5, 20, dtype=np.int32)
    y = np.full(25, 99, np.int32)
    ladder(x, y)
    assert y.tolist() == [-1 if v < 0 else 0 if v == 0 else 3 if v >= 10 else 1 if v % 2 else 2 for v in x]


@qp.kernel
def truths(f: qp.f32, i: qp.i32, b: qp.u1, y: A(qp.i32, 1)):
    if f:
        y[0] = 1
    if not i:
        y[1] = 1
    y[2] = 1 if b else 2
    y[3] = f and i
    y[4] = not f
    y[5] = b == True  # noqa: E712  (what users write)
    while i:
        i -= 1
        y[6] += 1


@pytest.mark.parametrize(("f", "i", "b"), [(0.0, 0, False), (0.5, 3, True), (float("nan"), 1, False), (-0.0, 2, True)])
def test_numbers_as_conditions(f, i, b):
    y = np.zeros(7, np.int32)
    truths(f, i, b, y)
    assert y.tolist() == [bool(f), not i, 1 if b else 2, bool(f and i), not f, b, i]


@qp.kernel
def vector_ternary(c: qp.i32) -> qp.types.vector(2, qp.f32):
    v = qp.Vector([1.0, 2.0])
    w = qp.Vector([3.0, 4.0])
    return v * 2.0 if c > 0 else w + v


@qp.kernel
def selected(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in x:
        y[i] = qp.select(x[i] > 0, qp.sqrt(x[i]), 0)


@qp.kernel
def select_vectors(y: A(qp.i32, 1)):
    v, w = qp.Vector([1, 5, 3]), qp.Vector([4, 2, 6])
    low = qp.select(v < w, v, w)
    for k in qp.static(range(3)):
        y[k] = low[k]


def test_ternary_and_select():
    assert vector_ternary(1).to_list() == [2.0, 4.0]
    assert vector_ternary(0).to_list() == [4.0, 6.0]
    x, y, z = np.array([-4, 4, 0], np.float32), np.zeros(3, np.float32), np.zeros(3, np.int32)
    selected(x, y)
    select_vectors(z)
    assert y.tolist() == [0, 2, 0]
    assert z.tolist() == [1, 2, 3]


@qp.kernel
def meets(c: qp.i32, y: A(qp.f64, 1)):
    y[0] = 1 if c else 2.5
    x = 7 if c else qp.f64(0.1)
    y[1] = x


def test_branches_of_a_ternary_meet_in_one_type():
    y = np.zeros(2)
    meets(1, y)
    assert y.tolist() == [1.0, 7.0]
    meets(0, y)
    assert y.tolist() == [2.5, 0.1]
