"""Graph kernels whose loop the device ends, on a tape."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.ad.copies import Meter

F64 = qp.Array1D[qp.f64]
COUNT = qp.Array1D[qp.i32]


@qp.kernel(graph=True)
def relax(x: F64, w: F64, left: COUNT):
    while qp.graph.do_while(left):
        for i in x:
            x[i] = x[i] * x[i] * w[i] + 0.1 * w[i]
        for _ in range(1):
            if x[0] < 0.2:
                left[0] -= 1


@qp.kernel
def add_up(x: F64, loss: qp.Array0D[qp.f64]):
    for i in x:
        loss[None] += x[i] ** 2


def made():
    x, w = (qp.ndarray(qp.f64, 3, needs_grad=True) for _ in range(2))
    left, loss = qp.ndarray(qp.i32, 1), qp.ndarray(qp.f64, (), needs_grad=True)
    return x, w, left, loss


def fill(x, w, left, loss):
    x.from_numpy(np.array([0.9, 0.5, -0.4]))
    w.from_numpy(np.array([0.7, 1.1, 0.3]))
    left[0] = 9
    loss.fill(0)


@pytest.mark.usefixtures("each_backend")
def test_the_turns_that_ran_are_taken_back():
    x, w, left, loss = given = made()
    numbers, weights, left_here = np.array([0.9, 0.5, -0.4]), np.array([0.7, 1.1, 0.3]), 9
    by_x, by_w, turns = np.ones(3), np.zeros(3), 0  # forward mode by hand
    while left_here:
        by_x, by_w = 2 * numbers * weights * by_x, numbers**2 + 2 * numbers * weights * by_w + 0.1
        numbers = numbers**2 * weights + 0.1 * weights
        left_here, turns = left_here - int(numbers[0] < 0.2), turns + 1
    assert turns == 11

    def run():
        fill(*given)
        with qp.ad.Tape(loss):
            relax(x, w, left)
            add_up(x, loss)

    fill(*given)
    relax(x, w, left)
    plain = x.to_numpy()
    with qp.hazards.check() as found:
        run()
    assert not found.certain
    assert x.to_numpy().tolist() == plain.tolist()
    assert left[0] == 0
    assert x.grad.to_numpy() == pytest.approx(2 * numbers * by_x, rel=1e-13)
    assert w.grad.to_numpy() == pytest.approx(2 * numbers * by_w, rel=1e-13)
    bits = w.grad.to_numpy().tobytes()
    v, u, ended, z = (
        qp.ndarray(t, n, needs_dual=t == qp.f64) for t, n in ((qp.f64, 3), (qp.f64, 3), (qp.i32, 1), (qp.f64, ()))
    )
    fill(v, u, ended, z)
    with qp.ad.FwdMode(v, v, np.ones(3)):
        relax(v, u, ended)
    assert v.dual.to_numpy() == pytest.approx(by_x, rel=1e-13)
    with qp.use_stream(qp.create_stream()):
        run()
    qp.sync()
    assert w.grad.to_numpy().tobytes() == bits


def test_turns_print_once(capsys):
    @qp.kernel(graph=True)
    def counted(x: F64, left: COUNT):
        while qp.graph.do_while(left):
            for _ in range(1):
                left[0] -= 1
                print("left", left[0])
            for i in x:
                x[i] *= x[i]

    x, _, left, loss = given = made()
    fill(*given)
    left[0] = 5
    with qp.ad.Tape(loss):
        counted(x, left)
        add_up(x, loss)
    qp.sync()
    assert capsys.readouterr().out.splitlines() == [f"left {k}" for k in (4, 3, 2, 1, 0)]
    assert x.grad[1] == 2 * 0.5**32 * 32 * 0.5**31


def test_few_states_are_kept():
    x, w, left, loss = made()

    fill(x, w, left, loss)
    left[0] = 100
    meter = Meter()
    Meter.of_thread.meter = meter
    try:
        with qp.ad.Tape(loss):
            relax(x, w, left)
            add_up(x, loss)
    finally:
        Meter.of_thread.meter = None
    assert np.isfinite(w.grad.to_numpy()).all()
    assert meter.most < 20 * (24 + 4)  # of 102 turns, with about 11 states


def test_what_is_refused():
    x, w, left, loss = made()

    @qp.kernel(graph=True)
    def more(x: F64, left: COUNT):
        for i in x:
            x[i] += 1.0
        while qp.graph.do_while(left):
            for i in x:
                x[i] *= 0.5
            left[0] -= 1

    @qp.kernel(graph=True)
    def random(x: F64, left: COUNT):
        while qp.graph.do_while(left):
            for i in x:
                x[i] *= qp.random(qp.f64)
            left[0] -= 1

    @qp.kernel(graph=True)
    def nested(x: F64, left: COUNT, inner: COUNT):
        while qp.graph.do_while(left):
            while qp.graph.do_while(inner):
                for i in x:
                    x[i] *= 0.5
                inner[0] -= 1
            left[0] -= 1

    @qp.kernel(graph=True)
    def once(x: F64, left: COUNT):
        while qp.graph.do_while(left):
            for i in x:
                x[i] *= 0.5

    fill(x, w, left, loss)
    inner = qp.ndarray(qp.i32, 1)
    with qp.ad.Tape(loss):
        with pytest.raises(qp.ArgumentError, match="a do-while loop and another one"):
            nested(x, left, inner)
        with pytest.raises(qp.ArgumentError, match="never changes its condition"):
            once(x, left)
        with pytest.raises(qp.KernelTypeError, match="beside other statements"):
            more(x, left)
        with pytest.raises(qp.ArgumentError, match="draws random numbers"):
            random(x, left)
    u, total = (qp.ndarray(qp.f64, n, needs_grad=True, needs_dual=True) for n in (3, ()))
    second = pytest.raises(qp.ArgumentError, match="do-while loop and is on a tape in forward mode")
    with qp.ad.FwdMode(total, u, [1, 1, 1]), qp.ad.Tape(total), second:
        relax(u, u, left)
    with qp.graph.capture(), qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="a graph records"):
        relax(x, w, left)
    with qp.graph.capture() as graph:
        relax(x, w, left)
    with graph.instantiate() as run, qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="outside of graphs"):
        run.launch()
