"""Branches that store to the same places on both sides: the same results with one store, and loops that are vectorised."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.plans.stores import select_stores
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
VEC = qp.types.ndarray(dtype=qp.math.vec2, ndim=1)


@qp.kernel
def both(x: F32, y: F32, z: F32):
    for i in x:
        if x[i] < 0.0:
            y[i] = -x[i]
            z[i] = 1.0
        else:
            z[i] = x[i] * 2.0
            y[i] = z[i] + 1.0


@qp.kernel
def chain(x: F32, y: F32, v: VEC):
    for i in x:
        last = 5.0
        if x[i] < -1.0:
            y[i] = -1.0
            v[i] = [1.0, x[i]]
            last = x[i]
        elif x[i] < 1.0:
            v[i] = [2.0, 0.0]
            y[i] = x[i] * last
        else:
            y[i] = 1.0
            y[i] += x[i]
            v[i] = [3.0, y[i]]
            last += y[i]
        y[i] += last


@qp.kernel
def updates(x: F32, y: F32, z: F32):
    for i in x:
        if x[i] > 0.0:
            y[i] += x[i]
        else:
            y[i] = y[i] * 0.5


@qp.kernel
def one_side(x: F32, y: F32, z: F32):
    for i in x:
        if x[i] > 0.0:
            y[i] = 1.0
            z[i] = 2.0
        else:
            y[i] = 3.0


@qp.kernel
def elsewhere(x: F32, y: F32, z: F32):
    for i in x:
        if x[i] > 0.0:
            y[i] = 1.0
        elif i + 1 < x.shape[0]:
            y[i] = x[i + 1]
        else:
            y[i] = 0.0


@qp.kernel
def scattered(x: F32, y: F32, z: F32):
    for i in x:
        k = x.shape[0] - 1 - i
        if x[i] > 0.0:
            y[k] = 1.0
        else:
            y[k] = 2.0


@qp.kernel
def uneven(x: F32, y: F32, z: F32):
    for i in x:
        if x[i] > 0.0:
            y[i] = 1.0
        else:
            y[i] = qp.erf(qp.pow(x[i], x[i]))


@qp.real_func
def halvings(x: qp.f32) -> qp.f32:
    count = 0.0
    while x != 1.0:  # ends for powers of two only
        x *= 0.5
        count += 1.0
    return count


@qp.kernel
def loops_in_functions(x: F32, y: F32, z: F32):
    for i in x:
        if x[i] == 8.0:
            y[i] = halvings(x[i])
        else:
            y[i] = -1.0


def branches_with_stores(kernel):
    made = select_stores(trace_for(kernel, {}).kernel)
    inner = [n for branch in walk(made) if isinstance(branch, ir.If) for n in walk(branch)]
    return sum(isinstance(n, ir.Store) for n in inner)


@pytest.mark.parametrize("kernel", [both, chain, updates])
def test_each_place_is_stored_once(kernel):
    assert branches_with_stores(kernel) == 0


@pytest.mark.parametrize("kernel", [one_side, elsewhere, scattered, uneven, loops_in_functions])
def test_a_branch_stays_where_memory_differs_or_selection_costs_too_much(kernel):
    assert branches_with_stores(kernel) > 0


def test_branches_stay_where_a_check_may_fail():
    @qp.kernel(debug=True)
    def checked(x: F32, y: F32):
        for i in x:
            if x[i] > 0.0:
                y[i] = 1.0
            else:
                y[i] = 2.0

    assert branches_with_stores(checked) > 0


def numbers(n=1003):
    x = np.random.default_rng(0).uniform(-3, 3, n).astype(np.float32)
    x[:4] = np.nan, np.inf, -np.inf, -0.0
    return x


def test_results(init):
    x = numbers()
    y, z, v = np.full_like(x, 7), np.full_like(x, 8), np.zeros((len(x), 2), np.float32)
    both(x, y, z)
    np.testing.assert_array_equal(z, np.where(x < 0, 1, x * 2))
    np.testing.assert_array_equal(y, np.where(x < 0, -x, x * 2 + 1))
    chain(x, y, v)
    low, middle = x < -1, (x < 1) & ~(x < -1)
    stored = np.select([low, middle], [np.float32(-1), x * 5], 1 + x)
    last = np.select([low, middle], [x, np.float32(5)], 5 + stored)
    np.testing.assert_array_equal(y, stored + last)
    np.testing.assert_array_equal(v[:, 0], np.select([low, middle], [1, 2], 3))
    np.testing.assert_array_equal(v[:, 1], np.select([low, middle], [x, np.float32(0)], stored))
    y[:] = 4
    updates(x, y, z)
    np.testing.assert_array_equal(y, np.where(x > 0, 4 + x, 2))
    elsewhere(x, y, z)
    np.testing.assert_array_equal(y, np.where(x > 0, 1, np.append(x[1:], np.float32(0))))


def test_arrays_that_are_the_same_memory(init):
    """The order of the stores then matters: the last one wins, on each side."""
    x = numbers()
    x[np.isnan(x)] = 2
    y = np.zeros_like(x)
    both(x, y, y)
    np.testing.assert_array_equal(y, np.where(x < 0, 1, x * 2 + 1))


def test_a_loop_that_ends_on_one_side_only(init):
    x = np.array([8, 0, 3, 8], np.float32)
    y = np.zeros_like(x)
    loops_in_functions(x, y, y)
    assert y.tolist() == [3, -1, -1, 3]
