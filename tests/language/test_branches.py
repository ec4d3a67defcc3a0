"""Functions with a rare case that is a branch where nothing is vectorised, and selections where something is."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.core.target import parse_target
from quadpy.jit.offline import trace_for

A = qp.types.ndarray


@qp.kernel
def straight(x: A(qp.f32, 1), d: A(qp.f64, 1), y: A(qp.f32, 2), z: A(qp.f64, 2)):
    for i in x:
        y[i, 0] = qp.sin(x[i])
        y[i, 1] = qp.cos(x[i])
        y[i, 2] = qp.tan(x[i])
        z[i, 0] = qp.sin(d[i])
        z[i, 1] = qp.cos(d[i])
        z[i, 2] = qp.tan(d[i])


@qp.kernel
def turns(x: A(qp.f32, 1), d: A(qp.f64, 1), y: A(qp.f32, 2), z: A(qp.f64, 2)):
    for i in x:
        k = 0
        while k < 1:
            y[i, 0] = qp.sin(x[i])
            y[i, 1] = qp.cos(x[i])
            y[i, 2] = qp.tan(x[i])
            z[i, 0] = qp.sin(d[i])
            z[i, 1] = qp.cos(d[i])
            z[i, 2] = qp.tan(d[i])
            k += 1


def test_both_forms_have_the_same_bits():
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.normal(size=300) * 10.0 ** rng.integers(-30, 38, 300), [0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    x, d = x.astype(np.float32), x
    found = []
    for kernel in (straight, turns):
        y, z = np.zeros((len(x), 3), np.float32), np.zeros((len(x), 3))
        kernel(x, d, y, z)
        for results in (y, z):
            results[np.isnan(results)] = np.nan  # all NaNs are one
        found.append((y.tobytes(), z.tobytes()))
    assert found[0] == found[1]


@qp.func
def wave(x: qp.f32) -> qp.f32:
    return qp.sin(x)


@qp.kernel
def carried(x: A(qp.f32, 2), y: A(qp.f32, 1)):
    for i in y:
        total = 0.0
        for k in range(i):
            total = total * 0.5 + wave(x[i, k])
        y[i] = total


@qp.kernel
def inner(x: A(qp.f32, 2)):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            x[i, k] = qp.sin(x[i, k])


@qp.kernel
def side_by_side(x: A(qp.f32, 2), y: A(qp.f32, 1)):
    for i in y:
        total = 0.0
        for k in range(x.shape[0]):
            total += qp.sin(x[k, i])
        y[i] = total


@pytest.mark.parametrize(
    ("kernel", "branches"), [(straight, False), (turns, True), (carried, True), (inner, False), (side_by_side, False)]
)
def test_where_branches_stay(kernel, branches):
    target = parse_target("cpu")
    text = lower(trace_for(kernel, {}, target).kernel, target)
    called = [line for line in text.splitlines() if "call" in line and "@fn.sin." in line]
    assert called
    assert all(("branching" in line) == branches for line in called)


@qp.kernel
def nearest(x: A(qp.f32, 2), y: A(qp.f32, 2)):
    """The loop carries two numbers that no reduction makes."""
    for i in range(y.shape[0]):
        best, where = 2.0, 0.0
        for k in range(x.shape[1]):
            v = qp.sin(x[i, k])
            if v < best:
                best = v
                where = qp.f32(k)
        y[i, 0], y[i, 1] = best, where


@qp.kernel
def sums(x: A(qp.f32, 2), y: A(qp.f32, 2)):
    for i in range(y.shape[0]):
        total, product, least, most = 0.0, 1.0, 2.0, -2.0
        for k in range(x.shape[1]):
            v = qp.sin(x[i, k])
            total += v
            product *= 1.0 + v
            least = qp.min(v, least)
            if v > most:  # noqa: PLR1730
                most = v
        y[i, 0], y[i, 1], y[i, 2], y[i, 3] = total, product, least, most


@qp.kernel
def decaying(x: A(qp.f32, 2), y: A(qp.f32, 2)):
    for i in range(y.shape[0]):
        total, seen = 0.0, 0.0
        for k in range(x.shape[1]):
            total += qp.sin(x[i, k])
            seen += total  # reads the sum itself
        y[i, 0], y[i, 1] = total, seen


@pytest.mark.parametrize(("kernel", "branches"), [(nearest, True), (sums, False), (decaying, True), (carried, True)])
def test_under_fast_math_loops_that_llvm_reduces_have_selections(kernel, branches, init):
    init(fast_math=True)
    target = parse_target("cpu")
    text = lower(trace_for(kernel, {}, target).kernel, target)
    called = [line for line in text.splitlines() if "call" in line and "@fn.fast_sin." in line]
    assert called
    assert all(("branching" in line) == branches for line in called)


@pytest.mark.parametrize("fast_math", [False, True])
def test_results_of_these_loops(fast_math, init):
    init(fast_math=fast_math)
    x = np.random.default_rng(7).uniform(-99, 99, (5, 70)).astype(np.float32)
    y, z, d = np.zeros((5, 2), np.float32), np.zeros((5, 4), np.float32), np.zeros((5, 2), np.float32)
    nearest(x, y)
    sums(x, z)
    decaying(x, d)
    s = np.sin(x.astype(np.float64))
    np.testing.assert_allclose(y.T, [s.min(1), s.argmin(1)], rtol=1e-5)
    np.testing.assert_allclose(z.T, [s.sum(1), (1 + s).prod(1), s.min(1), s.max(1)], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(d.T, [s.sum(1), s.cumsum(1).sum(1)], rtol=1e-4, atol=1e-4)
