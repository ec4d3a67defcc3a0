"""Matrices inside kernels, against NumPy."""

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.func
def put(y, at, m):
    for i in qp.static(range(m.n)):
        for j in qp.static(range(m.m)):
            y[at, i, j] = m[i, j]


@qp.kernel
def products(a: qp.types.matrix(2, 3, qp.f64), b: qp.types.matrix(3, 2, qp.f64), y: A(qp.f64, 3), z: A(qp.f64, 1)):
    put(y, 0, a @ b)
    put(y, 1, b @ a)
    put(y, 2, a.transpose() * 2 + b)
    put(y, 3, b.transpose())
    v = a @ qp.Vector([1.0, 2.0, 3.0])
    w = qp.Vector([1.0, 2.0]) @ a
    z[0], z[1] = v
    z[2], z[3], z[4] = w
    z[5] = (a @ b).trace()
    z[6] = a.sum()
    z[7] = a.frobenius_inner(b.transpose())
    z[8] = a.max() - a.min()


def test_products():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 3)).astype(float), rng.integers(-9, 9, (3, 2)).astype(float)
    y, z = np.zeros((4, 3, 3)), np.zeros(9)
    products(a, b, y, z)
    np.testing.assert_array_equal(y[0, :2, :2], a @ b)
    np.testing.assert_array_equal(y[1], b @ a)
    np.testing.assert_array_equal(y[2, :, :2], a.T * 2 + b)
    np.testing.assert_array_equal(y[3, :2], b.T)
    want = [*(a @ [1, 2, 3]), *([1, 2] @ a), np.trace(a @ b), a.sum(), (a * b.T).sum(), a.max() - a.min()]
    np.testing.assert_array_equal(z, want)


def square(n):  # its kernel's annotation names a local: so this module has no ``from __future__ import annotations``
    matrix = qp.types.matrix(n, n, qp.f64)

    @qp.kernel
    def kernel(m: matrix, y: A(qp.f64, 3)) -> qp.f64:
        inverse = m.inverse()
        put(y, 0, inverse)
        put(y, 1, inverse @ m)
        return m.determinant()

    return kernel


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_inverse_and_determinant(n):
    m = np.random.default_rng(n).random((n, n)) + np.eye(n)
    y = np.zeros((2, n, n))
    assert square(n)(m, y) == pytest.approx(np.linalg.det(m), rel=1e-13)
    np.testing.assert_allclose(y[0], np.linalg.inv(m), rtol=1e-12)
    np.testing.assert_allclose(y[1], np.eye(n), atol=1e-13)


@qp.kernel
def components(k: qp.i32, y: A(qp.i32, 1)):
    m = qp.Matrix([[1, 2, 3], [4, 5, 6]])
    y[0] = m[1, 2]
    y[1] = m[k, k + 1]
    m[k, 0] = 40
    m[0, 1] += 5
    y[2] = m.sum()
    y[3] = m[1].sum()
    y[4] = m[k].sum()
    y[5] = m[0, :].sum()
    y[6] = m[:, 1].sum()
    y[7] = m[0:2, 1:3].sum()
    m[0] = [7, 8, 9]
    y[8] = m[0, 0] * 100 + m[0, 2]
    y[9] = m.n * 10 + m.m
    r = qp.Matrix.rows([qp.Vector([1, 2]), qp.Vector([3, 4])])
    c = qp.Matrix.cols([qp.Vector([1, 2]), qp.Vector([3, 4])])
    y[10] = r[0, 1] * 10 + c[0, 1]


@pytest.mark.parametrize("k", [0, 1])
def test_components_rows_and_slices(k):
    y = np.zeros(11, np.int32)
    components(k, y)
    m = np.array([[1, 2, 3], [4, 5, 6]])
    want = [6, m[k, k + 1]]
    m[k, 0] = 40
    m[0, 1] += 5
    want += [m.sum(), m[1].sum(), m[k].sum(), m[0].sum(), m[:, 1].sum(), m[:2, 1:3].sum(), 709, 23, 23]
    assert y.tolist() == want


@qp.kernel
def constants(y: A(qp.f32, 3)):
    put(y, 0, qp.Matrix.identity(qp.f32, 3))
    put(y, 1, qp.Matrix.zero(qp.f32, 3, 2))
    put(y, 2, qp.Matrix.diag(3, 2.5))
    v = qp.Vector.unit(3, 1, qp.f32) + qp.Vector.one(qp.f32, 3)
    y[1, 0, 2], y[1, 1, 2], y[1, 2, 2] = v


def test_constant_matrices():
    y = np.full((3, 3, 3), -1, np.float32)
    constants(y)
    np.testing.assert_array_equal(y, [np.eye(3), [[0, 0, 1], [0, 0, 2], [0, 0, 1]], 2.5 * np.eye(3)])


@qp.kernel
def singular(y: A(qp.f32, 3)):
    put(y, 0, qp.Matrix([[1.0, 2.0], [2.0, 4.0]]).inverse())


def test_the_inverse_of_a_singular_matrix_is_not_finite():
    y = np.zeros((1, 2, 2), np.float32)
    singular(y)
    assert not np.isfinite(y).any()


@pytest.mark.parametrize(("n", "dtype"), [(5, qp.f64), (6, qp.f32), (9, qp.f64), (12, qp.f32)])
def test_inverses_of_larger_matrices(n, dtype):
    numbers = np.random.default_rng(n).standard_normal((3, n, n))
    numbers[1] = np.eye(n)[::-1] * 2  # every pivot is elsewhere
    x = numbers.astype(np.float64 if dtype is qp.f64 else np.float32)

    @qp.kernel
    def invert(x: qp.types.NDArray[qp.types.matrix(n, n, dtype), 1]):
        for i in x:
            x[i] = x[i].inverse()

    invert(x)
    found = x @ numbers
    error = 1e-3 if dtype is qp.f32 else 1e-11
    np.testing.assert_allclose(found, np.broadcast_to(np.eye(n), found.shape), atol=error)


def test_inverses_of_integers_and_of_singular_larger_matrices():
    @qp.kernel
    def invert(y: A(qp.f32, 3)):
        put(y, 0, (qp.Matrix.identity(qp.i32, 5) * 4).inverse())
        put(y, 1, qp.Matrix.one(qp.f32, 5, 5).inverse())

    y = np.zeros((2, 5, 5), np.float32)
    invert(y)
    np.testing.assert_array_equal(y[0], np.eye(5) / 4)
    assert not np.isfinite(y[1]).any()


def test_matrices_that_are_too_large_to_invert():
    @qp.kernel
    def invert():
        m = qp.Matrix.identity(qp.f32, 13).inverse()  # noqa: F841

    with pytest.raises(qp.KernelTypeError, match="inverse takes up to 12 x 12, not 13 x 13"):
        invert()
