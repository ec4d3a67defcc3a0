"""Tensors of torch that require gradients, passed to kernels on a tape."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import quadpy as qp

torch = pytest.importorskip("torch")

F64 = qp.Array1D[qp.f64]


@pytest.fixture(autouse=True)
def on_cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def bend(x: F64, w: F64, y: F64):
    for i in x:
        y[i] = qp.sin(x[i]) * w[i]


@qp.kernel
def add_up(y: F64, loss: qp.Array0D[qp.f64]):
    for i in y:
        loss[None] += y[i] ** 2


@dataclasses.dataclass
class Pair:
    x: F64
    w: F64


def tensors(*sizes):
    torch.manual_seed(0)
    return [torch.randn(n, dtype=torch.float64).requires_grad_() for n in sizes]


def expected(x, w):
    x, w = (each.detach().clone().requires_grad_() for each in (x, w))
    ((torch.sin(x) * w) ** 2).sum().backward()
    return x.grad, w.grad


def test_gradients_of_tensors_beside_arrays():
    x, w = tensors(4, 4)
    y, loss = qp.ndarray(qp.f64, 4, needs_grad=True), qp.ndarray(qp.f64, (), needs_grad=True)
    before = x.detach().clone()
    for _ in range(2):  # the tape clears gradients, as those of arrays
        loss.fill(0)
        with qp.ad.Tape(loss):
            bend(x, w, y)
            add_up(y, loss)
        for found, known in zip((x.grad, w.grad), expected(x, w), strict=True):
            torch.testing.assert_close(found, known, rtol=1e-14, atol=0)
    assert torch.equal(x.detach(), before)
    kept, place = x.grad.clone(), x.grad
    with qp.ad.Tape(loss, clear_gradients=False):
        bend(x, w, y)
        add_up(y, loss)
    assert x.grad is place
    assert torch.all(x.grad.abs() > kept.abs())


def test_tensors_alone_overwritten_and_with_torch_around():
    """A step of gradient descent with torch's optimiser; the loss is a tensor, and y is overwritten on the tape."""
    x, w = tensors(3, 3)
    y, loss = (
        torch.zeros(3, dtype=torch.float64, requires_grad=True),
        torch.zeros((), dtype=torch.float64, requires_grad=True),
    )

    def run(x, w):
        bend(w, x, y)
        bend(x, w, y)
        add_up(y, loss)
        return loss

    value, (by_x, by_w) = qp.ad.value_and_grad(run)(x, w)
    for found, known in zip((by_x, by_w), expected(x, w), strict=True):
        torch.testing.assert_close(found, known, rtol=1e-14, atol=0)
    assert value == pytest.approx(float(((torch.sin(x) * w) ** 2).sum().detach()))
    before = x.detach().clone()
    torch.optim.SGD([x], lr=0.5).step()
    torch.testing.assert_close(x.detach(), before - 0.5 * by_x)


def test_vectors_in_place_and_parts_of_the_block():
    @qp.kernel
    def square(p: qp.Array1D[qp.types.vector(2, qp.f32)], loss: qp.Array0D[qp.f64]):
        for i in p:
            p[i] = p[i] * p[i]
            loss[None] += p[i].x + 2.0 * p[i].y

    p = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    loss = qp.ndarray(qp.f64, (), needs_grad=True)
    with qp.ad.Tape(loss), qp.hazards.check() as found:
        square(p, loss)
    assert not found.certain
    assert loss[None] == 10 + 40
    assert p.grad.tolist() == [[2, 8], [6, 16]]  # by what was there before
    q = p.detach().clone().requires_grad_()
    with qp.ad.Tape(loss), qp.ad.no_grad():
        square(q, loss)
    assert q.grad.tolist() == [[0, 0], [0, 0]]


def test_what_is_refused():
    x, w = tensors(3, 3)
    y, loss = (qp.ndarray(qp.f64, shape, needs_grad=True, needs_dual=True) for shape in (3, ()))
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="computed from others"):
        bend(x * 2, w, y)

    def change():
        with qp.ad.Tape(loss), torch.no_grad():
            bend(x, w, y)
            x.add_(1)

    with pytest.raises(qp.ArgumentError, match="torch has changed a tensor of shape"):
        change()
    assert x.grad is None
    other = x.detach()[1:].requires_grad_()
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="two tensors on a tape share memory"):
        bend(x, other, y)
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="needs contiguous memory") as refused:
        bend(torch.zeros(3, 2, dtype=torch.float64)[:, 0].requires_grad_(), w, y)
    assert "x.detach().contiguous()" in refused.value.hint
    with qp.graph.capture(), qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="a graph records"):
        bend(x, w, y)
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="requires grad"):
        qp.ad.checkpoint(lambda _: bend(x, w, y), 2, slots=1)

    @qp.kernel
    def member(p: Pair, y: F64):
        for i in y:
            y[i] = p.x[i]

    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="inside another argument"):
        member(Pair(x, w), y)
    with qp.ad.FwdMode(y, y, np.ones(3)), pytest.raises(qp.ArgumentError, match="requires grad"):
        bend(x, w, y)
    with pytest.raises(qp.ArgumentError, match="requires grad"):
        bend(x, w, y)
