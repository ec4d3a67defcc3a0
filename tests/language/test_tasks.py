"""Kernels of several tasks: loops, statements between them, and what passes from one to the next."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.kernel
def pipeline(x: A(qp.f64, 1), y: A(qp.f64, 1)) -> qp.f64:
    for i in x:
        x[i] = x[i] + 1.0
    x[0] = 100.0
    for i in x:
        y[i] = x[i] * 2.0
    y[1] = y[0] + x[0]
    return y[1] + 1.0


def test_tasks_run_in_order():
    x, y = np.arange(1000, dtype=np.float64), np.zeros(1000)
    assert pipeline(x, y) == 301.0
    want = 2 * (np.arange(1000) + 1.0)
    want[:2] = 200, 300
    np.testing.assert_array_equal(y, want)


@qp.kernel
def mean_and_spread(x: A(qp.f64, 1)) -> (qp.f64, qp.f64):
    n = x.shape[0]
    total = qp.f64(0)
    for i in x:
        total += x[i]
    mean = total / n
    spread = qp.f64(0)
    for i in x:
        spread += (x[i] - mean) ** 2
    return mean, spread / n


@pytest.mark.parametrize("n", [1, 7, 4096, 100_000])
def test_local_variables_cross_tasks(n):
    x = np.random.default_rng(n).random(n)
    np.testing.assert_allclose(mean_and_spread(x), (x.mean(), x.var()), rtol=1e-12, atol=1e-30)


@qp.kernel
def extremes(x: A(qp.i32, 1)) -> qp.types.vector(3, qp.i32):
    low, high, bits = 2**31 - 1, -(2**31), 0
    for i in x:
        qp.atomic_min(low, x[i])
        qp.atomic_max(high, x[i])
        bits |= x[i]
    return qp.Vector([low, high, bits])


def test_local_variables_of_other_operations():
    x = np.random.default_rng(0).integers(0, 2**30, 50_000).astype(np.int32)
    low, high, bits = extremes(x)
    assert (low, high, bits) == (x.min(), x.max(), np.bitwise_or.reduce(x))


@qp.kernel
def vector_across(x: A(qp.f32, 2), y: A(qp.f32, 1)):
    centre = qp.Vector([0.0, 0.0])
    for i in range(x.shape[0]):
        centre += qp.Vector([x[i, 0], x[i, 1]])
    centre /= x.shape[0]
    for i in range(x.shape[0]):
        y[i] = (qp.Vector([x[i, 0], x[i, 1]]) - centre).norm_sqr()


def test_vectors_cross_tasks():
    x = np.random.default_rng(1).integers(0, 8, (256, 2)).astype(np.float32)
    y = np.zeros(256, np.float32)
    vector_across(x, y)
    np.testing.assert_allclose(y, ((x - x.mean(0)) ** 2).sum(1), rtol=1e-6)


@qp.kernel
def bounds_from_memory(ends: A(qp.i32, 1), hits: A(qp.i32, 1)):
    for i in range(ends[0], ends[1]):
        hits[i] += 1
    ends[1] = ends[1] + 5
    for i in range(ends[0], ends[1]):
        hits[i] += 10


def test_bounds_that_depend_on_memory():
    ends, hits = np.array([3, 6], np.int32), np.zeros(16, np.int32)
    bounds_from_memory(ends, hits)
    np.testing.assert_array_equal(hits, [0, 0, 0, 11, 11, 11, 10, 10, 10, 10, 10, 0, 0, 0, 0, 0])


@qp.kernel
def bound_counted(x: A(qp.i32, 1), y: A(qp.i32, 1)) -> int:
    n = 0
    for i in x:
        if x[i] > 0:
            n += 1
    for i in range(n):
        y[i] = n
    return n


def test_a_bound_that_a_loop_counted():
    x = np.random.default_rng(2).integers(-5, 5, 10_000).astype(np.int32)
    y = np.zeros(10_000, np.int32)
    n = int((x > 0).sum())
    assert bound_counted(x, y) == n
    np.testing.assert_array_equal(y, np.where(np.arange(10_000) < n, n, 0))


@qp.kernel
def branch_between(x: A(qp.i32, 1), flag: qp.i32):
    step = 1
    if flag > 0:
        step = 10
        x[0] += 5
    for i in x:
        x[i] += step
    while step < 50:
        step *= 2
    for i in x:
        x[i] += step


@pytest.mark.parametrize(("flag", "want"), [(0, [65] * 4), (1, [95, 90, 90, 90])])
def test_branches_and_loops_between_tasks(flag, want):
    x = np.zeros(4, np.int32)
    branch_between(x, flag)
    assert x.tolist() == want


@qp.kernel
def loop_in_a_branch(x: A(qp.i32, 1), flag: qp.i32):
    if flag == 1:
        for i in x:
            x[i] = i
    elif flag == 2:
        for i in range(2):
            x[i] = 7


@pytest.mark.parametrize(("flag", "want"), [(0, [0, 0, 0]), (1, [0, 1, 2]), (2, [7, 7, 0])])
def test_a_loop_inside_a_branch_is_sequential(flag, want):
    x = np.zeros(3, np.int32)
    loop_in_a_branch(x, flag)
    assert x.tolist() == want


@qp.kernel
def sweeps(x: A(qp.i32, 1), n: qp.i32):
    for _ in qp.static(range(3)):
        for i in x:
            x[i] += 1
        x[0] *= 2


def test_tasks_unrolled_by_a_static_loop():
    x = np.zeros(500, np.int32)
    sweeps(x, 0)
    assert x[0] == ((1 * 2 + 1) * 2 + 1) * 2
    assert (x[1:] == 3).all()


@qp.kernel
def nothing():
    pass


@qp.kernel
def only_a_docstring(x: qp.i32):
    """Does nothing."""


def test_empty_kernels():
    assert nothing() is None
    assert only_a_docstring(3) is None


@qp.kernel
def last_value(x: A(qp.i32, 1)) -> int:
    found = -1
    for i in x:
        if x[i] == 42:
            found = i
    return found


def test_a_loop_that_assigns_an_outer_variable():
    x = np.zeros(10_000, np.int32)
    assert last_value(x) == -1
    x[7777] = 42
    assert last_value(x) == 7777
