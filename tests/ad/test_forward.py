"""Forward mode: duals beside values, over calls of kernels."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

pytestmark = pytest.mark.usefixtures("each_backend")


def duals(shape=(), dtype=qp.f64):
    return qp.field(dtype, shape, needs_dual=True)


def test_a_loop_over_a_field():
    x, y = duals(3), duals()

    @qp.kernel
    def cubes() -> None:
        for i in x:
            y[None] += x[i] ** 3

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    with qp.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.0, 2.0]):
        cubes()
    assert y[None] == 36
    assert y.dual[None] == 57
    assert x.dual.to_numpy().tolist() == [1, 0, 2]


def test_several_kernels_and_a_loop_of_run_time_length():
    x, z, y = duals(), duals(), duals()

    @qp.kernel
    def power(n: qp.i32) -> None:
        for _ in range(1):
            r = x[None]
            for _ in range(n - 1):
                r *= x[None]
            z[None] = r

    @qp.kernel
    def wave() -> None:
        y[None] = qp.sin(z[None])

    x[None] = 1.1
    with qp.ad.FwdMode(y, x):
        power(5)
        wave()
    assert y.dual[None] == pytest.approx(np.cos(1.1**5) * 5 * 1.1**4, rel=1e-14)


def test_an_update_in_place_happens_once():
    x = duals()

    @qp.kernel
    def square() -> None:
        x[None] *= x[None]

    x[None] = 3.0
    with qp.ad.FwdMode(x, x):
        square()
        square()
    assert x[None] == 81
    assert x.dual[None] == 4 * 27


def test_vectors_and_a_matrix():
    v, y = duals(2, qp.types.vector(2, qp.f64)), duals()

    @qp.kernel
    def areas() -> None:
        for i in v:
            y[None] += v[i].norm_sqr()

    v.from_numpy(np.array([[1.0, 2.0], [3.0, 4.0]]))
    with qp.ad.FwdMode(y, v, seed=[[0, 1], [1, 0]]):
        areas()
    assert y.dual[None] == 4 + 6


def test_what_the_host_writes_is_constant():
    x, z, y = duals(), duals(), duals()

    @qp.kernel
    def copy() -> None:
        z[None] = x[None]

    @qp.kernel
    def double() -> None:
        y[None] = 2 * z[None]

    with qp.ad.FwdMode(y, x):
        copy()
        z[None] = 5.0
        double()
    assert y[None] == 10
    assert y.dual[None] == 0


def test_kernels_without_duals_run_as_usual():
    count, x = qp.field(qp.i32, ()), duals()

    @qp.kernel
    def tick() -> qp.i32:
        count[None] += 1
        return count[None]

    with qp.ad.FwdMode(x, x):
        assert tick() == 1
    assert tick() == 2


def test_methods():
    @qp.data_oriented
    class Spring:
        def __init__(self) -> None:
            self.x, self.energy, self.k = duals(), duals(), 3.0

        @qp.kernel
        def run(self, factor: qp.f64) -> None:
            self.energy[None] += factor * self.k * self.x[None] ** 2

    spring = Spring()
    spring.x[None] = 2.0
    with qp.ad.FwdMode(spring.energy, spring.x):
        spring.run(0.5)
    assert spring.energy.dual[None] == 6


def test_a_value_that_is_lost_is_an_error():
    x, z, y = duals(), qp.field(qp.f64, ()), duals()

    @qp.kernel
    def hide() -> None:
        z[None] = x[None]

    @qp.kernel
    def use() -> None:
        y[None] = z[None]

    line = hide.source.span.line + 2
    with qp.ad.FwdMode(y, x):
        hide()
        with pytest.raises(qp.ArgumentError, match=f"z, which has no dual.*:{line}"):
            use()


def test_a_returned_float_is_an_error():
    x = duals()

    @qp.kernel
    def read() -> qp.f64:
        return x[None]

    with qp.ad.FwdMode(x, x), pytest.raises(qp.KernelTypeError, match="returns a value"):
        read()


def test_copies_between_fields_are_refused():
    x, y = duals(), duals()
    with qp.ad.FwdMode(y, x), pytest.raises(qp.ArgumentError, match="copied in forward mode"):
        y.copy_from(x)


def test_arguments_that_do_not_fit():
    x, plain = duals(2), qp.field(qp.f64, ())
    with pytest.raises(qp.ArgumentError, match="seed is missing"):
        qp.ad.FwdMode(x, x)
    with pytest.raises(qp.ArgumentError, match="seed has 3 numbers"):
        qp.ad.FwdMode(x, x, seed=[1, 2, 3])
    with pytest.raises(qp.ArgumentError, match="has no dual"):
        qp.ad.FwdMode(plain, x, seed=[1, 2])
    with (
        qp.ad.FwdMode(x, x, seed=[1, 2]),
        pytest.raises(qp.ArgumentError, match="already"),
        qp.ad.FwdMode(x, x, seed=[1, 2]),
    ):
        pass


def test_after_an_error_everything_is_as_before():
    x = duals()

    @qp.kernel
    def double() -> None:
        x[None] *= 2

    def broken() -> None:
        with qp.ad.FwdMode(x, x):
            double()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    before = x.dual[None]
    double()
    assert x.dual[None] == before


def test_ndarrays_have_duals():
    @qp.kernel
    def weigh(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64], total: qp.Array0D[qp.f64]) -> None:
        for i in a:
            total[None] += a[i] * b[i]

    a, b = (qp.ndarray(qp.f64, 3, needs_dual=True) for _ in range(2))
    constant, total = qp.ndarray(qp.f64, 3), qp.ndarray(qp.f64, (), needs_dual=True)
    for each in (a, b, constant):
        each.from_numpy(np.array([1.0, 2.0, 3.0]))
    for one, other, dual in ((a, b, 2.0), (a, constant, 2.0), (constant, b, 0.0), (a, a, 4.0)):
        with qp.ad.FwdMode(total, a, seed=[0, 1, 0]):
            weigh(one, other, total)
        assert total.dual[None] == dual
        total.fill(0)
    with qp.ad.FwdMode(total, a, seed=[0, 1, 0]):
        a[1] = 5.0  # a constant
        weigh(a, b, total)
    assert total.dual[None] == 0
    with pytest.raises(qp.ArgumentError, match="no dual"):
        qp.ndarray(qp.i32, 3, needs_dual=True)
    with pytest.raises(qp.ArgumentError, match="has no dual"):
        qp.ad.FwdMode(total, constant, seed=[1, 0, 0])


def test_parts_of_arrays_are_refused():
    @qp.kernel
    def total(x: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]):
        for i in x:
            loss[None] += x[i]

    x, loss = (qp.ndarray(qp.f64, shape, needs_dual=True) for shape in (4, ()))
    with qp.ad.FwdMode(loss, x, seed=[1, 1, 1, 1]):
        for part in (x[::2], x[1:]):
            with pytest.raises(qp.ArgumentError, match=r"gets a part of .* without the dual"):
                total(part, loss)
        with pytest.raises(qp.ArgumentError, match="copied in forward mode"):
            total(x[::-1], loss)


def test_stop():
    x, y = (qp.field(qp.f64, (), needs_grad=True, needs_dual=True) for _ in range(2))

    @qp.kernel
    def scale() -> None:
        w = qp.ad.stop(qp.math.vec2(x[None], 2.0))
        y[None] = x[None] * w.x + qp.cast(qp.ad.stop(x[None]), qp.i32)

    x[None] = 3.0
    with qp.ad.FwdMode(y, x):
        scale()
    assert (y[None], y.dual[None]) == (12, 3)
    with qp.ad.Tape(y):
        scale()
    assert x.grad[None] == 3
    assert type(qp.ad.stop(qp.ad.Number(2))) is float
