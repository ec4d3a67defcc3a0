"""Random numbers on tapes: the backward pass draws those of the forward pass again."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends

import quadpy as qp


@pytest.fixture(autouse=True, params=backends())
def backend(request):
    qp.init(arch=request.param, random_seed=7, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def field(shape=()):
    return qp.field(qp.f64, shape, needs_grad=True)


def test_the_same_numbers_in_loops_and_on_streams():
    x, y, loss = field(64), [field(64) for _ in range(4)], field()

    @qp.kernel
    def noisy(turns: qp.i32, to: qp.template()):
        for i in x:
            s = 0.0
            for _ in range(turns):
                if qp.random(qp.f64) < 0.5:
                    s += qp.random(qp.f64) * x[i]
                else:
                    s += qp.randn(qp.f64) * qp.sin(x[i])
            to[i] = s

    @qp.kernel
    def add(to: qp.template()):
        for i in x:
            loss[None] += to[i]

    x.fill(1e-5)  # there sin(x) is x, and the gradient the sum of what was drawn
    with qp.create_stream() as stream, qp.ad.Tape(loss):
        for k, to in enumerate(y):
            noisy(3 + k, to, **({"stream": stream} if k % 2 else {}))
            qp.sync()
        for to in y:
            add(to)
    found = x.grad.to_numpy()
    assert np.unique(found).size == 64
    expected = sum(to.to_numpy() for to in y) / 1e-5
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_linear_in_what_was_drawn():
    x, y, loss = field(100), field(100), field()

    @qp.kernel
    def scale():
        for i in x:
            y[i] = x[i] * qp.random(qp.f64) + x[(i + 1) % 100] * qp.randn(qp.f64)

    @qp.kernel
    def add():
        for i in y:
            loss[None] += y[i]

    x.from_numpy(np.random.default_rng(0).standard_normal(100))
    for _ in range(3):
        with qp.ad.Tape(loss):
            scale()
            add()
            scale()  # what it draws plays no part: y is not read again
        np.testing.assert_allclose(x.grad.to_numpy() @ x.to_numpy(), loss[None], rtol=1e-12)
        loss[None] = 0.0


def test_forward_and_later_calls_go_on():
    def numbers(*, taped):
        qp.init(arch=qp.cpu, random_seed=3, default_fp=qp.f64)
        x, y, loss = field(4), field(4), field()

        @qp.kernel
        def draw():
            for i in x:
                y[i] = x[i] + qp.random(qp.f64)

        found = []
        for _ in range(2):
            if taped:
                with qp.ad.Tape(loss):
                    draw()
            else:
                draw()
            found.append(y.to_numpy())
        draw()
        return np.array([*found, y.to_numpy()])

    np.testing.assert_array_equal(numbers(taped=True), numbers(taped=False))


def test_by_hand_it_is_refused():
    x, y = field(4), field(4)

    @qp.kernel
    def draw():
        for i in x:
            y[i] = x[i] * qp.random(qp.f64)

    draw()
    with pytest.raises(qp.ArgumentError, match="only a tape knows"):
        draw.grad()
    with pytest.raises(qp.ArgumentError, match="only a tape knows"), qp.graph.capture():
        draw.grad()
