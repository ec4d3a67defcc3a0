"""Derivatives through solvers: from the equation, whatever the solver does."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.ad.implicit import gmres

F64, F64x2 = qp.Array1D[qp.f64], qp.Array2D[qp.f64]


pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def linear(r: F64, x: F64, a: F64x2, b: F64) -> None:
    for i in r:
        total = -b[i]
        for j in range(x.shape[0]):
            total += a[i, j] * x[j]
        r[i] = total


@qp.kernel
def cubes(r: F64, x: F64, b: F64) -> None:
    for i in r:
        r[i] = x[i] ** 3 + x[i] - b[i]


@qp.kernel
def weigh(x: F64, total: qp.Array0D[qp.f64]) -> None:
    for i in x:
        total[None] += (i + 1) * x[i]


def array(numbers):
    made = qp.ndarray(qp.f64, np.shape(numbers), needs_grad=True)
    made.from_numpy(np.array(numbers, float))
    return made


@pytest.mark.parametrize("n", [1, 5, 80])
def test_a_linear_system(n):
    random = np.random.default_rng(n)
    matrix, right = random.standard_normal((n, n)) + 3 * np.sqrt(n) * np.eye(n), random.standard_normal(n)
    a, b, x, loss = array(matrix), array(right), array(np.zeros(n)), array(0.0)
    solver = qp.ad.implicit(linear, lambda x, a, b: x.from_numpy(np.linalg.solve(a.to_numpy(), b.to_numpy())))
    with qp.ad.Tape(loss):
        solver(x, a, b)
        weigh(x, loss)
    y = np.linalg.solve(matrix.T, np.arange(1.0, n + 1))
    assert b.grad.to_numpy() == pytest.approx(y, rel=1e-8)
    assert a.grad.to_numpy() == pytest.approx(-np.outer(y, np.linalg.solve(matrix, right)), rel=1e-7, abs=1e-12)
    assert not x.grad.to_numpy().any()


def test_newton_with_a_loop_that_the_data_end():
    b, x, loss = array([2.0, 10.0, 30.0]), array([1.0, 1.0, 1.0]), array(0.0)

    @qp.kernel
    def newton(x: F64, b: F64) -> None:
        for i in x:
            while abs(x[i] ** 3 + x[i] - b[i]) > 1e-13:
                x[i] -= (x[i] ** 3 + x[i] - b[i]) / (3 * x[i] ** 2 + 1)

    solver = qp.ad.implicit(cubes, newton)
    with qp.ad.Tape(loss):
        solver(x, b)
        weigh(x, loss)
        b.fill(0)  # what the derivative needs is kept
    root = x.to_numpy()
    assert root == pytest.approx([1, 2, 3], abs=0.2)
    assert b.grad.to_numpy() == pytest.approx(np.arange(1, 4) / (3 * root**2 + 1), rel=1e-9)


def test_a_solve_in_the_middle_of_a_program():
    """b = c², x³ + x = b, loss = weights x: with a gradient of c from elsewhere, too."""
    c, b, x, loss = array([1.5, 2.0]), array([0.0, 0.0]), array([1.0, 1.0]), array(0.0)

    @qp.kernel
    def square(c: F64, b: F64) -> None:
        for i in c:
            b[i] = c[i] ** 2

    def by_bisection(x, b):
        found = [np.roots([1, 0, 1, -each]) for each in b.to_numpy()]
        x.from_numpy(np.array([float(each[np.isreal(each)].real[0]) for each in found]))

    solver = qp.ad.implicit(cubes, by_bisection)
    with qp.ad.Tape(loss):
        weigh(c, loss)
        square(c, b)
        solver(x, b)
        weigh(x, loss)
    weights = np.array([1.0, 2.0])
    expected = weights + weights * 2 * c.to_numpy() / (3 * x.to_numpy() ** 2 + 1)
    assert c.grad.to_numpy() == pytest.approx(expected, rel=1e-9)


def test_a_singular_system_is_an_error():
    a, b, x, loss = array(np.ones((3, 3))), array(np.ones(3)), array(np.zeros(3)), array(0.0)
    solver = qp.ad.implicit(linear, lambda x, a, b: x.fill(1 / 3))

    def run():
        with qp.ad.Tape(loss):
            solver(x, a, b)
            weigh(x, loss)

    with pytest.raises(qp.QuadpyError, match="implicit derivative is solved to"):
        run()


def test_without_a_tape_it_is_the_solver():
    b, x = array([2.0]), array([0.0])
    solver = qp.ad.implicit(cubes, lambda x, b: x.fill(1) or "done")
    assert solver(x, b) == "done"
    assert x[0] == 1
    with qp.ad.Tape(array(0.0)), pytest.raises(qp.ArgumentError, match="has no gradient"):
        solver(qp.ndarray(qp.f64, 1), b)


def test_gmres():
    random = np.random.default_rng(3)
    for n in (1, 4, 200):
        matrix, b = random.standard_normal((n, n)) + 2 * np.sqrt(n) * np.eye(n), random.standard_normal(n)
        x, left = gmres(lambda v, matrix=matrix: matrix @ v, b, 1e-12)
        assert left <= 1e-12
        assert x == pytest.approx(np.linalg.solve(matrix, b), rel=1e-8)
    assert gmres(lambda v: v, np.zeros(3), 1e-12)[1] == 0
