"""Derivatives by vectors, matrices and structs that are passed by value, and of all such values in forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields

import quadpy as qp

pytestmark = pytest.mark.usefixtures("each_backend")

F64 = qp.Array1D[qp.f64]
vec3 = qp.types.vector(3, qp.f64)
mat2 = qp.types.matrix(2, 2, qp.f32)
Inner = qp.types.struct(way=qp.types.vector(2, qp.f64), count=qp.i32)
Spring = qp.types.struct(stiffness=qp.f64, inner=Inner, rest=qp.f32)


@qp.kernel
def pulled(x: F64, v: vec3, m: mat2, s: Spring, k: qp.f64, y: F64):
    for i in x:
        y[i] = (
            v[0] ** 2 * x[i] * v[2]
            + m[0, 1] * m[1, 1] * x[i]
            + k * s.stiffness * s.inner.way[0] * s.inner.count
            + s.rest * x[i]
        )
    y[0] += v[1] * s.inner.way[1]


X = np.array([0.3, -0.7, 1.1])
V, M = np.array([0.4, -1.2, 0.9]), np.array([[1.0, 2.0], [3.0, 0.5]])
SPRING = {"stiffness": 1.5, "inner": {"way": [0.6, -0.8], "count": 3}, "rest": 0.25}
KNOWN = {
    "v": [2 * V[0] * X.sum() * V[2], -0.8, V[0] ** 2 * X.sum()],
    "m": [[0, 0.5 * X.sum()], [0, 2 * X.sum()]],
    "s": (9 * 0.7 * 0.6, [9 * 0.7 * 1.5, -1.2], X.sum()),
    "k": 9 * 1.5 * 0.6,
}


def arrays(**needs):
    x, y = (qp.ndarray(qp.f64, 3, **needs) for _ in range(2))
    x.from_numpy(X)
    return x, y


def values(**needs):
    given = qp.Vector(V, dt=qp.f64), qp.Matrix(M, dt=qp.f32)
    return *(qp.ad.Value(each, **needs) for each in given), Spring(SPRING), qp.ad.Number(0.7, **needs)


def check(v, m, s, k):
    assert v.grad[None].to_numpy() == pytest.approx(KNOWN["v"])
    assert m.grad[None].to_numpy() == pytest.approx(np.array(KNOWN["m"]))
    assert k.grad[None] == pytest.approx(KNOWN["k"])
    found = s.grad[None]
    assert (found.stiffness, found.rest) == pytest.approx((KNOWN["s"][0], KNOWN["s"][2]))
    assert found.inner.way.to_numpy() == pytest.approx(KNOWN["s"][1])
    assert found.inner.count == 0


def bits_of(*arrays):
    return [repack_fields(each.grad.to_numpy()).tobytes() for each in arrays]  # without what lies between members


def test_gradients_called_replayed_on_a_stream_and_of_bare_values():
    x, y = arrays(needs_grad=True)
    v, m, s, k = values()
    s = qp.ad.Value(s)

    def step():
        with qp.ad.Tape([y], seed=[np.ones(3)]):
            pulled(x, v, m, s, k, y)

    with qp.hazards.check() as found:
        step()
    assert not found.certain
    assert not found.possible
    check(v, m, s, k)
    bits = bits_of(x, v, m, s, k)
    replayed = qp.graph.replay(step)
    for _ in range(2):
        v.grad.fill(7)
        replayed()
        check(v, m, s, k)
    with qp.use_stream(qp.create_stream()):
        step()
    qp.sync()
    assert bits == bits_of(x, v, m, s, k)
    with qp.ad.Tape([y], seed=[np.ones(3)]):
        pulled(x, v.bare, m, s.bare, float(k), y)
    assert v.grad[None].to_numpy().tolist() == [0, 0, 0]
    assert m.grad[None][0, 1] == pytest.approx(KNOWN["m"][0][1])


@qp.kernel
def bent(v: vec3, k: qp.f64, y: F64):
    y[0] = v[0] ** 2 * v[2] * k
    y[1] = v[1]


def test_forward_mode_second_order_and_several_adjoints():
    (_, y), (v, _, _, k) = arrays(needs_grad=True, needs_dual=2), values(needs_dual=2)
    with qp.ad.FwdMode(y, [v, k], [[[1, 0, 0], [0, 0, 1]], [0, 1]]), qp.ad.Tape([y], seed=[np.ones(3)]):
        bent(v, k, y)
    by_0, by_2, by_k = 2 * 0.4 * 0.9 * 0.7, 0.4**2 * 0.7, 0.4**2 * 0.9
    assert y.dual.to_numpy()[:, 0] == pytest.approx([by_0, by_2 + by_k])
    assert v.grad[None].to_numpy() == pytest.approx([by_0, 1, by_2])
    assert k.grad[None] == pytest.approx(by_k)
    assert v.grad.dual[0].to_numpy() == pytest.approx([2 * 0.9 * 0.7, 0, 2 * 0.4 * 0.7])
    assert v.grad.dual[1].to_numpy() == pytest.approx([2 * 0.4 * 0.7 + 2 * 0.4 * 0.9, 0, 0.4**2])
    assert k.grad.dual.to_numpy() == pytest.approx([2 * 0.4 * 0.9, 0.4**2])
    qp.ad.vjp(bent, (v, k, y), [[[1, 0, 0], [0, 2, 0]]], y, several=2)
    assert k.grad.dual.to_numpy() == pytest.approx([by_k, 0])
    assert v.grad.dual.to_numpy() == pytest.approx(np.array([[by_0, 0, by_2], [0, 2, 0]]))


def test_beside_reads_that_are_gathered():
    @qp.kernel
    def stencil(x: F64, k: qp.f64, y: F64):
        for i in x:
            y[i] = qp.sin(k * x[i] + x[qp.min(i, 1)])

    (x, y), k = arrays(needs_grad=True), qp.ad.Number(0.7)
    with qp.ad.Tape([y], seed=[np.ones(3)]):
        stencil(x, k, y)
    assert k.grad[None] == pytest.approx(np.sum(np.cos(0.7 * X + X[[0, 1, 1]]) * X))


def test_functions_of_values():
    @qp.kernel
    def length(v: vec3, k: qp.f64) -> qp.f64:
        return k * v.norm()

    v, k = qp.ad.Value(qp.Vector([2.0, 3.0, 6.0])), qp.ad.Number(2)
    found, (by_v, by_k) = qp.ad.value_and_grad(length)(v, k)
    assert (found, by_k[None]) == (14, 7)
    assert by_v[None].to_numpy() == pytest.approx(np.array([2, 3, 6]) * 2 / 7)


def test_what_would_lose_a_derivative_is_refused():
    x, y = arrays(needs_grad=True)
    v, m, s, k = values()
    for lost in (lambda: v + 1, lambda: v.bare * v, lambda: 2 * v, lambda: np.sin(v), lambda: np.dot(v, v)):
        with pytest.raises(qp.ArgumentError, match="Python would lose"):
            lost()
    for inside in (lambda: qp.Vector([k, k]), lambda: Spring(stiffness=k)):
        with pytest.raises(qp.ArgumentError, match="would lose"):
            inside()
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        v.x = 3.0  # of the value, not of the vector
    with pytest.raises(qp.ArgumentError, match="not a vector, matrix or struct of floats"):
        qp.ad.Value(qp.Vector([1, 2]))

    @qp.kernel
    def chosen(x: F64, k: qp.template(), y: F64):
        for i in x:
            y[i] = k * x[i]

    @qp.kernel
    def named(x: F64, y: F64):
        for i in x:
            y[i] = k * x[i]

    with qp.ad.Tape([y], seed=[np.ones(3)]):
        for call in (lambda: chosen(x, k, y), lambda: named(x, y)):
            with pytest.raises(qp.KernelTypeError, match="its derivative would be lost"):
                call()
        pulled(x, v, m, s, k, y)
    x, y = arrays(needs_grad=True, needs_dual=2)
    with qp.ad.Tape([y], seed=[np.ones((2, 3))], several=2):
        with pytest.raises(qp.ArgumentError, match=r"has no grad\.dual in 2 directions"):
            pulled(x, v, m, s, k, y)
        pulled(x, v.bare, m.bare, s, float(k), y)
