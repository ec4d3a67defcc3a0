"""The rows of the guide's table that no other test has."""

from __future__ import annotations

import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)


def field(shape=()):
    return qp.field(qp.f64, shape, needs_grad=True, needs_dual=True)


def both(x, run):
    """The messages of the two modes."""
    messages = []
    for mode in (qp.ad.Tape(x), qp.ad.FwdMode(x, x)):
        with mode, pytest.raises(qp.QuadpyError) as caught:
            run()
        messages.append(str(caught.value))
    return messages


def test_integers():
    x, n = field(), qp.field(qp.i32, ())

    @qp.kernel
    def cut() -> None:
        n[None] = qp.cast(x[None], qp.i32)

    assert all("conversion to an integer" in said for said in both(x, cut))


def test_algorithms():
    x = qp.field(qp.f64, 4, needs_grad=True, needs_dual=True)
    loss = field()
    for mode in (qp.ad.Tape(loss), qp.ad.FwdMode(loss, x, seed=[1, 0, 0, 0])):
        with mode, pytest.raises(qp.ArgumentError, match="of quadpy's own"):
            qp.algorithms.inclusive_scan(x, "add")


def test_checkpoints():
    x, flag = field(), qp.ndarray(qp.i32, ())

    @qp.kernel(graph=True, checkpoints=True)
    def pause(stop: qp.Array0D[qp.i32]) -> None:
        with qp.checkpoint(1, yield_on=stop):
            for _ in range(1):
                x[None] += 1.0

    assert all("checkpoints" in said for said in both(x, lambda: pause(flag)))


def test_methods_and_while():
    @qp.data_oriented
    class Halving:
        def __init__(self) -> None:
            self.x, self.y = field(), field()

        @qp.kernel
        def run(self) -> None:
            for _ in range(1):
                v = self.x[None]
                while v > 1:
                    v *= 0.5
                self.y[None] = v

    halving = Halving()
    halving.x[None] = 6.0
    with qp.ad.FwdMode(halving.y, halving.x):
        halving.run()
    with qp.ad.Tape(halving.y):
        halving.run()
    assert halving.y.dual[None] == halving.x.grad[None] == 0.125


def test_taichis_names():
    import quadpy.compat.quadrants as qd
    import quadpy.compat.taichi as ti

    for package in (ti, qd):
        assert package.ad.Tape is qp.ad.Tape
        assert package.ad.grad_for is qp.ad.grad_for


def test_fields_of_grids():
    """A kernel that names one is refused by name; one without derivatives runs, and what it may overwrite is kept."""
    grid = qp.dist.Grid(4)
    u, x = grid.field(qp.f64), qp.ndarray(qp.f64, 4, needs_grad=True)
    loss, other = (qp.ndarray(qp.f64, (), needs_grad=True) for _ in range(2))
    weights = qp.ndarray(qp.f64, 4)

    @qp.kernel
    def total(loss: qp.Array0D[qp.f64]):
        for i in u:
            loss[None] += u[i]

    @qp.kernel
    def weighted(x: qp.Array1D[qp.f64], w: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]):
        for i in x:
            loss[None] += w[i] * x[i]

    @qp.kernel
    def reset(w: qp.Array1D[qp.f64]):
        for i in u:
            u[i] = 2.0
        for i in range(4):
            w[i] = 5.0

    with pytest.raises(qp.KernelTypeError, match="is distributed"), qp.ad.Tape(other):
        total(other)
    weights.fill(3.0)
    with qp.ad.Tape(loss):
        weighted(x, weights, loss)
        reset(weights)
    assert x.grad.to_numpy().tolist() == [3.0] * 4
    assert weights.to_numpy().tolist() == [5.0] * 4
