"""Derivatives by scalar arguments, and of what kernels return."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

F64 = qp.Array1D[qp.f64]


pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def waves(x: F64, k: qp.f64, y: F64) -> None:
    for i in x:
        y[i] = qp.sin(k * x[i])


@qp.kernel
def energy(x: F64, k: qp.f32) -> qp.f64:
    total = 0.0
    for i in x:
        total += k * x[i] ** 2
    return total


@qp.kernel
def add_up(a: F64, total: qp.Array0D[qp.f64]) -> None:
    for i in a:
        total[None] += a[i]


def array(*numbers, needs_grad=True):
    x = qp.ndarray(qp.f64, len(numbers), needs_grad=needs_grad)
    x.from_numpy(np.array(numbers, float))
    return x


def test_scalar_arguments():
    numbers = np.array([1.0, 2.0, 3.0])
    for needs_grad in (True, False):
        x, y, loss = array(1, 2, 3, needs_grad=needs_grad), array(0, 0, 0), qp.ndarray(qp.f64, (), needs_grad=True)
        k = qp.ad.Number(0.3)
        with qp.ad.Tape(loss):
            waves(x, k, y)
            add_up(y, loss)
            waves(x, 0.3, y)
        assert k.grad[None] == pytest.approx(np.sum(numbers * np.cos(0.3 * numbers)))
        if needs_grad:
            assert x.grad.to_numpy() == pytest.approx(0.3 * np.cos(0.3 * numbers))


def test_one_number_for_several_calls_and_in_a_graph():
    x, y, loss, k = array(1, 2), array(0, 0), qp.ndarray(qp.f64, (), needs_grad=True), qp.ad.Number(0.5)

    def step():
        loss.fill(0)
        with qp.ad.Tape(loss):
            for _ in range(2):
                waves(x, k, y)
                add_up(y, loss)

    step()
    expected = 2 * (np.cos(0.5) + 2 * np.cos(1.0))
    assert k.grad[None] == pytest.approx(expected)
    with qp.graph.capture() as graph:
        step()
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()
        assert k.grad[None] == pytest.approx(expected)


def test_returned_numbers():
    x = array(1, 2, 3)
    with qp.ad.Tape() as tape:
        tape.loss = energy(x, 0.5)
    assert tape.loss == 7
    assert x.grad.to_numpy().tolist() == [1, 2, 3]


def test_returned_numbers_as_arguments():
    """d/dx of y = sum(k x²) with k = sum(x²) / 2, which a kernel returns."""
    x, numbers = array(1, 2, 3), np.array([1.0, 2.0, 3.0])
    value, (gradient,) = qp.ad.value_and_grad(lambda a: energy(a, energy(a, 0.5)))(x)
    assert value == 7 * 14
    assert gradient.to_numpy() == pytest.approx(numbers * 14 + 2 * 7 * numbers)


def test_without_a_tape_it_is_a_number():
    assert type(energy(array(1, 2), 1.0)) is float
    with qp.ad.Tape(qp.ad.Number()), qp.ad.no_grad():
        assert type(energy(array(1, 2), 1.0)) is float


def test_arithmetic_of_python_is_refused():
    k = qp.ad.Number(2)
    for lost in (lambda: k * 2, lambda: 1 - k, lambda: k**2, lambda: -k):
        with pytest.raises(qp.ArgumentError, match="Python would lose"):
            lost()
    assert float(k) * 2 == 4
    assert type(float(k)) is float
    assert k > 1
    assert repr(k) == "Number(2.0)"


def test_what_is_refused():
    x = array(1, 2)

    @qp.kernel
    def two(a: F64) -> tuple[qp.f64, qp.f64]:
        return a[0], a[1]

    with qp.ad.Tape(qp.ad.Number()), pytest.raises(qp.KernelTypeError, match="returns a value"):
        two(x)
    with pytest.raises(qp.ArgumentError, match="is called by hand"):
        energy.grad(x, 1.0)
    with pytest.raises(qp.ArgumentError, match="without a loss"), qp.ad.Tape():
        pass
    with qp.ad.Tape() as tape:
        with pytest.raises(qp.ArgumentError, match="the loss of a tape"):
            tape.loss = 3.0
        tape.loss = qp.ad.Number()


def test_integers_may_be_returned():
    x = array(1, 2)

    @qp.kernel
    def count(a: F64) -> qp.i32:
        n = 0
        for i in a:
            a[i] *= 2.0
            n += 1
        return n

    loss = qp.ndarray(qp.f64, (), needs_grad=True)
    with qp.ad.Tape(loss):
        assert count(x) == 2
        add_up(x, loss)
    assert x.grad.to_numpy().tolist() == [2, 2]
