"""Shared memory: forward mode goes through it; a tape refuses it, at the first access, and takes a derivative of one's own."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

F64 = qp.Array1D[qp.f64]
block = qp.simt.block
B, N = 8, 32

pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def stencil(x: F64, y: F64):
    qp.loop_config(block_dim=B)
    for i in x:
        tile = block.SharedArray(B + 2, qp.f64)
        t = block.thread_idx()
        tile[t + 1] = x[i] * x[i]
        if t == 0:
            tile[0] = x[(i + N - 1) % N]
        if t == B - 1:
            tile[B + 1] = x[(i + 1) % N]
        block.sync()
        y[i] += tile[t] * tile[t + 2] - tile[t + 1]


@qp.kernel
def reduction(x: F64, y: F64):
    qp.loop_config(block_dim=B)
    for i in x:
        tile = block.SharedArray(B, qp.f64)
        t = block.thread_idx()
        tile[t] = qp.sin(x[i])
        block.sync()
        half = B // 2
        while half > 0:
            if t < half:
                tile[t] += tile[t + half]
            block.sync()
            half //= 2
        if t == 0:
            y[block.block_idx()] += tile[0] ** 2


def arrays(**options):
    x, y = (qp.ndarray(qp.f64, N, **options) for _ in range(2))
    x.from_numpy(np.sin(np.arange(N) + 1.0))
    return x, y


def written(kernel, numbers):
    x, y = arrays()
    x.from_numpy(numbers)
    kernel(x, y)
    return y.to_numpy()


@pytest.mark.parametrize("kernel", [stencil, reduction])
def test_forward_mode(kernel):
    x, y = arrays(needs_dual=True)
    way, start = np.cos(np.arange(N) * 2.0), x.to_numpy()
    with qp.ad.FwdMode(y, x, seed=way):
        kernel(x, y)
    differences = (written(kernel, start + 1e-6 * way) - written(kernel, start - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose(y.dual.to_numpy(), differences, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("kernel", "line"), [(stencil, 6), (reduction, 6)])
def test_a_tape_says_where(kernel, line):
    x, y = arrays(needs_grad=True)
    with (
        pytest.raises(qp.KernelTypeError, match="no adjoint of shared memory") as error,
        qp.ad.Tape(y, seed=np.ones(N)),
    ):
        kernel(x, y)
    assert error.value.span.line == kernel.source.span.line + line
    assert "qp.ad.custom" in str(error.value)


def test_a_derivative_of_ones_own():
    """The same sums, without blocks, are taken back in place of those with blocks."""
    x, y = arrays(needs_grad=True)
    loss = qp.ndarray(qp.f64, (), needs_grad=True)

    @qp.kernel
    def back(x: F64, y: F64):
        for i in x:
            total = qp.f64(0.0)
            for k in range(B):
                total += qp.sin(x[i // B * B + k])
            x.grad[i] += 2.0 * y.grad[i // B] * total * qp.cos(x[i])

    @qp.kernel
    def add_up(y: F64, loss: qp.Array0D[qp.f64]):
        for i in y:
            loss[None] += (i + 1) * y[i]

    sums = qp.ad.custom(reduction)
    sums.backward(back)
    for check in qp.ad.gradcheck(lambda x: (y.fill(0), loss.fill(0), sums(x, y), add_up(y, loss)), (x,), loss):
        assert check.error < 1e-7
