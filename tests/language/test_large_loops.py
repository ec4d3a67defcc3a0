"""Loops that GPUs run in another shape than one iteration a thread: sums, histograms, and those of many iterations."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

F1, F2 = qp.types.ndarray(dtype=qp.f32, ndim=1), qp.types.ndarray(dtype=qp.f32, ndim=2)
I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def shift(x: F1, y: F1):
    for i in range(1, x.shape[0], 2):
        y[i] = 2.0 * x[i - 1] + 1.0


@qp.kernel
def blur(a: F2, b: F2):
    for i, j in qp.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@qp.kernel
def planes(a: qp.types.ndarray(dtype=qp.i32, ndim=3)):
    for i, j, k in qp.ndrange(a.shape[0], a.shape[1], a.shape[2]):
        a[i, j, k] = 10000 * i + 100 * j + k + a[i, j, k]


@qp.kernel
def histogram(x: I1, bins: I1):
    for i in range(x.shape[0]):
        bins[x[i]] += 1


@qp.kernel
def extremes(x: I1, keys: I1, low: I1, high: I1):
    for i in range(x.shape[0]):
        qp.atomic_min(low[keys[i]], x[i])
        qp.atomic_max(high[keys[i]], x[i])


@qp.kernel
def branches(a: F2, b: F2, skipped: qp.i32):
    for i, j in a:
        largest, above = a[i, j], 0
        if i == skipped:
            continue
        if i > 0:
            above += 1
            largest = max(largest, a[i - 1, j])
        if j < a.shape[1] - 1:
            largest = qp.max(largest, a[i, j + 1])
        else:
            above += 10
        b[i, j] = largest + above


@pytest.fixture
def tiled(monkeypatch):
    """Launches take several iterations a thread from a few blocks on, as they do from some millions of iterations."""
    monkeypatch.setattr("quadpy.jit.gpu_launch.MANY_ITERATIONS", 0)


@pytest.mark.parametrize("n", [1, 255, 1023, 1024, 1025, 4096, 9001])
def test_loops_over_one_axis(tiled, n):
    x, y = qp.ndarray(qp.f32, (n,)), qp.ndarray(qp.f32, (n,))
    given = np.arange(n, dtype=np.float32)
    x.from_numpy(given)
    y.fill(-1)
    shift(x, y)
    want = np.full(n, -1, np.float32)
    want[1::2] = 2 * given[0 : n - 1 : 2] + 1
    np.testing.assert_array_equal(y.to_numpy(), want)


@pytest.mark.parametrize("shape", [(3, 3), (40, 60), (9, 258), (10, 259), (7, 1030), (300, 5), (9, 1100)])
def test_loops_over_two_axes(tiled, shape):
    given = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    a, b = qp.ndarray(qp.f32, shape), qp.ndarray(qp.f32, shape)
    a.from_numpy(given)
    b.fill(0)
    blur(a, b)
    want = np.zeros_like(given)
    want[1:-1, 1:-1] = np.float32(0.25) * (given[:-2, 1:-1] + given[2:, 1:-1] + given[1:-1, :-2] + given[1:-1, 2:])
    np.testing.assert_array_equal(b.to_numpy(), want)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (40, 60), (9, 258), (7, 1030), (300, 5), (9, 1100)])
def test_loops_with_branches(tiled, shape):
    """A thread runs its iterations one after the other, each with variables of its own."""
    given = np.random.default_rng(1).integers(0, 50, shape).astype(np.float32)
    a, b = qp.ndarray(qp.f32, shape), qp.ndarray(qp.f32, shape)
    a.from_numpy(given)
    b.fill(-1)
    branches(a, b, 2)
    want = given.copy()
    want[1:] = np.maximum(want[1:], given[:-1])
    want[:, :-1] = np.maximum(want[:, :-1], given[:, 1:])
    want[1:] += 1
    want[:, -1] += 10
    want[2:3] = -1
    np.testing.assert_array_equal(b.to_numpy(), want)


@pytest.mark.parametrize("shape", [(3, 2, 256), (3, 2, 257), (5, 1, 300), (2, 70, 30), (1, 1, 5000)])
def test_carries_go_through_three_axes(tiled, shape):
    a = qp.ndarray(qp.i32, shape)
    a.fill(1)
    planes(a)
    i, j, k = np.indices(shape)
    np.testing.assert_array_equal(a.to_numpy(), 10000 * i + 100 * j + k + 1)


@pytest.mark.parametrize(("n", "bins"), [(0, 4), (5, 4), (5000, 7), (9001, 256), (9001, 3000), (40_000, 2048)])
def test_histograms(n, bins):
    """Few or many bins for the iterations: copies where they pay, the array itself where they do not."""
    given = np.random.default_rng(2).integers(0, bins, n, dtype=np.int32)
    x, found = qp.ndarray(qp.i32, (n,)), qp.ndarray(qp.i32, (bins,))
    x.from_numpy(given)
    found.fill(3)
    histogram(x, found)
    np.testing.assert_array_equal(found.to_numpy(), 3 + np.bincount(given, minlength=bins))


def test_minima_and_maxima_by_key():
    n, keys = 9001, 12
    rng = np.random.default_rng(3)
    values, groups = rng.integers(-1000, 1000, n, dtype=np.int32), rng.integers(0, keys, n, dtype=np.int32)
    x, k, low, high = (qp.ndarray(qp.i32, (m,)) for m in (n, n, keys, keys))
    x.from_numpy(values)
    k.from_numpy(groups)
    low.fill(5)
    high.fill(-5)
    extremes(x, k, low, high)
    np.testing.assert_array_equal(low.to_numpy(), [min(5, values[groups == g].min()) for g in range(keys)])
    np.testing.assert_array_equal(high.to_numpy(), [max(-5, values[groups == g].max()) for g in range(keys)])
