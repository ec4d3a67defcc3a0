"""Derivatives of fields in sparse trees, whose topology is constant."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends

import quadpy as qp


@pytest.fixture(params=[*backends(), "python"], autouse=True)
def _arch(request):
    qp.init(arch=request.param, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def placed(kind, *, together=True):
    x = qp.field(qp.f64, needs_grad=True, needs_dual=True)
    if kind == "dynamic":
        node = qp.root.dynamic(qp.i, 16)
    elif kind == "dense":
        node = qp.root.dense(qp.i, 16)
    else:
        node = getattr(qp.root, kind)(qp.i, 4).dense(qp.i, 4)
    if together:
        node.place(x, x.grad, x.dual)
    else:
        node.place(x)
    return x


KINDS = ["pointer", "bitmasked", "dynamic", "dense"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("together", [True, False])
def test_loops_over_active_cells(kind, together):
    x, y = placed(kind, together=together), placed(kind, together=together)
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)

    @qp.kernel
    def fill():
        for i in range(6):
            x[i] = i + 1.0

    @qp.kernel
    def spread():
        for i in x:
            y[(i * 7) % 8] += x[i] ** 2

    @qp.kernel
    def total():
        for i in y:
            loss[None] += y[i] * (i + 1)

    fill()
    if not together and kind in ("pointer", "bitmasked"):
        with qp.ad.Tape(loss), pytest.raises(qp.KernelTypeError, match=r"place x and x\.grad together"):
            spread()
        return
    with qp.ad.Tape(loss):
        spread()
        total()
    expected = [2.0 * (i + 1) * ((i * 7) % 8 + 1) if i < 6 else 0.0 for i in range(8)]
    assert x.grad.to_numpy()[:8].tolist() == expected
    with qp.ad.FwdMode(loss, x, seed=np.eye(16)[1]):
        spread()
        total()
    assert loss.dual[None] == expected[1]


def test_cells_that_later_calls_switch_on_or_off():
    block = qp.root.pointer(qp.i, 4)
    x, loss = qp.field(qp.f64, needs_grad=True), qp.field(qp.f64, (), needs_grad=True)
    block.dense(qp.i, 4).place(x, x.grad)

    @qp.kernel
    def count():
        for i in x:
            loss[None] += x[i] * x[i] + 1.0

    @qp.kernel
    def grow():
        x[13] = 7.0

    @qp.kernel
    def forget():
        for b in range(4):
            qp.deactivate(block, [b])

    x[1], x[9] = 3.0, 5.0
    with qp.ad.Tape(loss):
        count()
        grow()
        count()
        with pytest.raises(qp.KernelTypeError):  # it sets what is in the cells to 0
            forget()
    assert loss[None] == (8 + 34) + (12 + 34 + 49)
    assert x.grad.to_numpy()[[1, 9, 13]].tolist() == [12, 20, 0]


def test_gradients_between_the_numbers_of_their_field():
    """Interleaved in memory, neither is restored with the other."""
    x, loss = placed("dense"), qp.field(qp.f64, (), needs_grad=True)

    @qp.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    @qp.kernel
    def move():
        for i in x:
            x[i] += 1.0

    x.fill(3.0)
    with qp.ad.Tape(loss):
        for _ in range(2):
            total()
            move()
    assert x.grad.to_numpy().tolist() == [14.0] * 16
    assert x.to_numpy().tolist() == [5.0] * 16
