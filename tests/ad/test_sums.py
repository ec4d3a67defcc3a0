"""Gradients whose sums do not depend on the order of iterations: on every backend, with any number of threads, as a graph."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends

import quadpy as qp


@pytest.fixture(autouse=True)
def _cpu():
    yield
    qp.init(arch=qp.cpu)


def stencil():
    @qp.kernel
    def k(x: qp.Array2D[qp.f32], y: qp.Array2D[qp.f32]) -> None:
        for i, j in x:
            n, m = x.shape[0], x.shape[1]
            near = x[(i + 1) % n, j] * x[(i - 1) % n, j] + qp.sin(x[i, min(j + 1, m - 1)])
            y[i, j] = near * x[i, j] if j % 3 else x[i, max(j - 2, 0)]

    return k


def scatter():
    @qp.kernel
    def k(x: qp.Array2D[qp.f32], y: qp.Array2D[qp.f32], at: qp.Array2D[qp.i32]) -> None:
        for i, j in y:
            for a in range(2):
                y[i, j] += x[at[i, j], (j + a) % 3] * x[i, j]

    return k


def gradient(kernel, arch, *, again=1, seed=0, **options):
    """The gradient of x, after ``again`` runs as a graph, or one call."""
    qp.init(arch=arch, **options)
    random = np.random.default_rng(seed)
    x, y = (qp.ndarray(qp.f32, (61, 67), needs_grad=True) for _ in range(2))
    x.from_numpy(random.standard_normal(x.shape).astype(np.float32))
    weights = random.standard_normal(x.shape).astype(np.float32) * np.float32(10) ** random.integers(-6, 6, x.shape)
    args = [x, y]
    if kernel.__name__ == "scatter":
        at = qp.ndarray(qp.i32, x.shape)
        at.from_numpy(random.integers(0, 61, x.shape).astype(np.int32))
        args.append(at)
    k = kernel()
    seeds = qp.ndarray(qp.f32, x.shape)
    seeds.from_numpy(weights.astype(np.float32))
    if again == 1:
        y.grad.copy_from(seeds)
        k.grad(*args)
        return x.grad.to_numpy()
    with qp.graph.capture() as graph:
        x.grad.fill(0)
        y.grad.copy_from(seeds)
        k.grad(*args)
    run = graph.instantiate()
    for _ in range(again):
        run.launch()
    run.synchronize()
    return x.grad.to_numpy()


KERNELS = [stencil, scatter]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("arch", backends())
def test_the_same_bits_everywhere(kernel, arch):
    expected = gradient(kernel, "cpu", cpu_max_num_threads=1)
    assert np.isfinite(expected).all()
    assert np.any(expected)
    for options in ({}, {"debug": True}, {"again": 3}) + (
        ({"cpu_max_num_threads": 2},) * 4 if arch == "cpu" else ({},)
    ):
        np.testing.assert_array_equal(gradient(kernel, arch, **options), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_close_to_atomics_in_double_precision(kernel):
    found, atomics = gradient(kernel, "cpu"), gradient(kernel, "cpu", fast_math=True)
    np.testing.assert_allclose(found, atomics, rtol=1e-3, atol=1e-3 * np.abs(atomics).max())


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90", "cpu"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_compiled_for_any_target(kernel, target):
    assert kernel().grad.compile(target).image


def test_fields_of_vectors_on_a_tape():
    qp.init(arch=qp.cpu)
    x = qp.Vector.field(2, qp.f32, 50, needs_grad=True)
    loss = qp.field(qp.f32, (), needs_grad=True)

    @qp.kernel
    def k():
        for i in range(1, 49):
            d = x[i + 1] - x[i - 1]
            loss[None] += d.dot(d) * 0.5

    given = np.random.default_rng(0).standard_normal((50, 2)).astype(np.float32)
    x.from_numpy(given)
    with qp.ad.Tape(loss):
        k()
    expected = np.zeros((50, 2))
    d = given[2:] - given[:-2]
    expected[2:] += d
    expected[:-2] -= d
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-5, atol=1e-6)


def test_one_array_passed_twice():
    qp.init(arch=qp.cpu)

    @qp.kernel
    def k(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64], y: qp.Array1D[qp.f64]) -> None:
        for i in range(1, 9):
            y[i] = a[i - 1] * b[i + 1]

    x, y = (qp.ndarray(qp.f64, 10, needs_grad=True) for _ in range(2))
    x.from_numpy(given := np.random.default_rng(0).standard_normal(10))
    y.grad.fill(1)
    k.grad(x, x, y)
    expected = np.zeros(10)
    expected[:8] += given[2:]
    expected[2:] += given[:8]
    assert x.grad.to_numpy() == pytest.approx(expected, rel=1e-14)
    with pytest.raises(qp.KernelTypeError, match="do not touch the same element"):
        k.grad(x, y, y)


def test_half_precision_is_summed_in_single():
    qp.init(arch=qp.cpu)

    @qp.kernel
    def k(x: qp.Array1D[qp.f16], y: qp.Array1D[qp.f16], at: qp.Array1D[qp.i32]) -> None:
        for i in y:
            y[i] = x[at[i]] + x[i % 4]

    x, y = qp.ndarray(qp.f16, 4, needs_grad=True), qp.ndarray(qp.f16, 8000, needs_grad=True)
    at = qp.ndarray(qp.i32, 8000)
    at.from_numpy((np.arange(8000) % 4).astype(np.int32))
    y.grad.fill(0.25)
    k.grad(x, y, at)  # one by one, sums in half precision stop growing at 512
    assert x.grad.to_numpy().tolist() == [1000.0] * 4
