"""Vectors inside kernels: arithmetic, components, swizzles, slices, products."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
STEPS = [1, 2, 3]
vec3 = qp.types.vector(3, qp.f64)


@qp.kernel
def arithmetic(a: vec3, b: vec3, s: qp.f64, y: A(qp.f64, 2)):
    rows = qp.static([0])
    results = [a + b, a - b, a * b, a / b, a // b, a % b, -a, a + s, s - a, a * s, s / a, a**2, abs(a), min(a, b),
               max(a, s), a + STEPS, qp.floor(a), qp.sqrt(abs(a))]  # fmt: skip
    for row in qp.static(range(len(results))):
        for k in qp.static(range(3)):
            y[row, k] = results[row][k] + rows[0]


def test_arithmetic_goes_component_by_component():
    a, b, s = np.array([1.5, -2.0, 7.25]), np.array([0.5, 4.0, -3.0]), 2.5
    y = np.zeros((18, 3))
    arithmetic(a, b, s, y)
    want = [a + b, a - b, a * b, a / b, a // b, a % b, -a, a + s, s - a, a * s, s / a, a**2, abs(a), np.minimum(a, b),
            np.maximum(a, s), a + STEPS, np.floor(a), np.sqrt(abs(a))]  # fmt: skip
    np.testing.assert_array_equal(y, want)


@qp.kernel
def comparisons(a: vec3, b: vec3, y: A(qp.i32, 1)):
    low = a < b
    y[0] = low.sum()
    y[1] = low.any()
    y[2] = low.all()
    y[3] = (a == b).any()
    y[4] = (a <= a).all()
    y[5] = any(a != b)


def test_comparisons():
    y = np.zeros(6, np.int32)
    comparisons([1, 5, 3], [2, 4, 6], y)
    assert y.tolist() == [2, 1, 0, 0, 1, 1]


@qp.kernel
def products(a: vec3, b: vec3, y: A(qp.f64, 1)):
    y[0] = a.dot(b)
    y[1] = a @ b
    y[2] = a.norm()
    y[3] = a.norm_sqr()
    y[4] = a.norm_inv()
    y[5] = a.normalized().norm()
    y[6] = a.cross(b).x
    y[7] = a.cross(b).y
    y[8] = a.cross(b).z
    y[9] = a.xy.cross(b.xy)
    y[10] = a.sum()
    y[11] = a.max()
    y[12] = a.min()
    y[13] = a.outer_product(b)[1, 2]
    y[14] = a.norm(eps=3.0)


def test_products_norms_and_reductions():
    a, b = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0, -1.5])
    y = np.zeros(15)
    products(a, b, y)
    plane = a[0] * b[1] - a[1] * b[0]
    norm = np.sqrt(14.0)
    want = [a @ b, a @ b, norm, 14.0, 1 / norm, 1, *np.cross(a, b), plane, 2, 3, -2, a[1] * b[2], np.sqrt(17.0)]
    np.testing.assert_allclose(y, want, rtol=1e-15)


@qp.kernel
def swizzles(y: A(qp.i32, 2)):
    v = qp.Vector([1, 2, 3, 4])
    y[0, 0], y[0, 1], y[0, 2], y[0, 3] = v.wzyx
    y[1, 0], y[1, 1] = v.rg
    y[1, 2], y[1, 3] = v.pq
    v.xz = v.yw
    for k in qp.static(range(4)):
        y[2, k] = v[k]
    v.wx = [10, 20]
    v.y += 5
    v.zz.x  # noqa: B018  (an expression without effect)
    for k in qp.static(range(4)):
        y[3, k] = v[k]
    v.xy = v.yx
    v.zw *= 3
    for k in qp.static(range(4)):
        y[4, k] = v[k]


def test_swizzles_are_read_and_set():
    y = np.zeros((5, 4), np.int32)
    swizzles(y)
    assert y.tolist() == [[4, 3, 2, 1], [1, 2, 3, 4], [2, 2, 4, 4], [20, 7, 4, 10], [7, 20, 12, 30]]


@qp.kernel
def run_time_index(k: qp.i32, y: A(qp.i32, 1)):
    v = qp.Vector([10, 20, 30, 40])
    y[0] = v[k]
    v[k] = 5
    v[(k + 1) % 4] += 7
    for i in range(4):
        y[1 + i] = v[i]
    y[5] = v[-1]


@pytest.mark.parametrize("k", range(4))
def test_an_index_known_at_run_time(k):
    y = np.zeros(6, np.int32)
    run_time_index(k, y)
    v = [10, 20, 30, 40]
    v[k] = 5
    v[(k + 1) % 4] += 7
    assert y.tolist() == [10 * (k + 1), *v, v[-1]]


@qp.kernel
def slices(y: A(qp.i32, 1)):
    v = qp.Vector([1, 2, 3, 4, 5])
    y[0] = v[1:3].sum()
    y[1] = v[::2].sum()
    y[2] = v[::-1][0]
    y[3] = len(v[2:])
    y[4] = v.n


def test_slices():
    y = np.zeros(5, np.int32)
    slices(y)
    assert y.tolist() == [5, 9, 5, 3, 5]


@qp.kernel
def types(y: A(qp.f64, 1)):
    v = qp.Vector([1, 2.5])
    w = qp.Vector([1, 2], dt=qp.i8)
    y[0] = v.x / 4
    y[1] = (w * 100).y
    y[2] = (w * qp.i8(100)).y
    y[3] = v.cast(qp.i32).y
    y[4] = qp.i32(v).y
    u = vec3(7)
    u = u + qp.types.vector(3, qp.f64)(1, 2, 3)
    y[5], y[6], y[7] = u
    z = qp.zero(v) + qp.one(v)
    y[8] = z.sum()


def test_types_of_components():
    y = np.zeros(9)
    types(y)
    assert y.tolist() == [0.25, 200, -56, 2, 2, 8, 9, 10, 2]


@qp.kernel
def augmented_self(y: A(qp.i32, 1)):
    v = qp.Vector([1, 2, 3])
    v += v.zxy
    v = v.yzx
    v[0], v[1] = v[1], v[0]
    y[0], y[1], y[2] = v.x, v.y, v.z


def test_a_vector_changed_out_of_itself():
    y = np.zeros(3, np.int32)
    augmented_self(y)
    v = np.array([1 + 3, 2 + 1, 3 + 2])
    v = v[[1, 2, 0]]
    assert y.tolist() == [v[1], v[0], v[2]]


@qp.kernel
def methods_of_the_class() -> qp.types.vector(6, qp.f32):
    v, w = qp.Vector([1.0, 2.0]), qp.Vector([3.0, 4.0])
    m = qp.Matrix([[1.0, 2.0], [3.0, 4.0]])
    return qp.Vector(
        [
            qp.Vector.dot(v, w), qp.Vector.norm(v, eps=4.0), qp.Matrix.trace(m), qp.Matrix.transpose(m)[0, 1],
            qp.Matrix.sum(m), qp.Vector.cross(v, w),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}], ids=["plain", "debug", "python"])
def test_methods_taken_from_the_class(options, init):
    init(**options)
    np.testing.assert_allclose(list(methods_of_the_class()), [11, 3, 5, 3, 10, -2])


def test_methods_of_the_class_say_what_is_missing():
    @qp.kernel
    def k():
        v = qp.Vector([1.0, 2.0])
        v = qp.Vector.dot(v)

    with pytest.raises(qp.KernelTypeError, match="dot: an argument is missing"):
        k()
