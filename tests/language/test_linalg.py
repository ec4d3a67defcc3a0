"""Decompositions of small matrices, and small linear systems, against NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
PAIRS = A(dtype=qp.types.matrix(2, 2, qp.f32), ndim=1)
TYPES = {np.float32: qp.f32, np.float64: qp.f64}
COUNT = 4000


@qp.kernel
def decompose(a: A(), u: A(), s: A(), v: A(), rotation: A(), stretch: A(), values: A(), vectors: A()):
    for i in a:
        u[i], s[i], v[i] = qp.svd(a[i])
        rotation[i], stretch[i] = qp.polar_decompose(a[i])
        values[i], vectors[i] = qp.sym_eig(a[i] + a[i].transpose())


@qp.kernel
def systems(a: A(), b: A(), x: A()):
    for i in a:
        x[i] = qp.solve(a[i], b[i])


@qp.kernel
def eigenvalues(a: PAIRS, values: PAIRS, vectors: A(dtype=qp.types.matrix(4, 2, qp.f32), ndim=1)):
    for i in a:
        values[i], vectors[i] = qp.eig(a[i])


def matrices(n, dtype, rng):
    """Well and badly conditioned, singular, of all sizes, with equal singular values."""
    a = rng.standard_normal((COUNT, n, n))
    most = np.finfo(dtype).maxexp // 4
    a[:800] *= 2.0 ** rng.integers(-most, most, (800, 1, 1))
    a[800:1200] *= 10.0 ** rng.uniform(-10, 0, (400, n, 1))
    a[1200:1600] *= 10.0 ** rng.uniform(-10, 0, (400, 1, n))
    a[1600:2000] = rng.standard_normal((400, n, 1)) @ rng.standard_normal((400, 1, n))
    a[2000:2400] = rng.integers(-1, 2, (400, n, n))
    a[2400:2800] = np.linalg.qr(a[2400:2800])[0] * (1 + 10.0 ** rng.uniform(-12, -2, (400, 1, n)))
    a[2800], a[2801], a[2802], a[2803] = 0, np.eye(n), -np.eye(n), 1
    return a.astype(dtype)


def arrays(n, dtype):
    def values(*element):
        return qp.ndarray(qp.types.matrix(*element, TYPES[dtype]) if len(element) == 2 else
                          qp.types.vector(*element, TYPES[dtype]), COUNT)  # fmt: skip

    return values


def errors(difference, size, dtype):
    """The greatest error of a matrix, in units of rounding of its greatest entry."""
    return (abs(difference).max(axis=(1, 2)) / np.maximum(size, 1e-300)).max() / np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_decompositions_are_backward_stable(n, dtype, init):
    a, made = matrices(n, dtype, np.random.default_rng(n)), arrays(n, dtype)
    held, square = made(n, n), [made(n, n) for _ in range(6)]
    values = made(n)
    held.from_numpy(a)
    u, s, v, rotation, stretch, vectors = square
    decompose(held, u, s, v, rotation, stretch, values, vectors)
    u, s, v, rotation, stretch, vectors = (x.to_numpy().astype(float) for x in square)
    values, a = values.to_numpy().astype(float), a.astype(float)
    size, one = abs(a).max(axis=(1, 2)), np.ones(COUNT)
    turned = (x.transpose(0, 2, 1) for x in (v, stretch, u, vectors))
    vt, stretch_t, ut, vectors_t = turned

    assert errors(u @ s @ vt - a, size, dtype) < 20
    for q, qt in ((u, ut), (v, vt), (vectors, vectors_t)):
        assert errors(q @ qt - np.eye(n), one, dtype) < 20
        assert abs(np.linalg.det(q) - 1).max() < 100 * np.finfo(dtype).eps, "a rotation"
    sigma = np.diagonal(s, axis1=1, axis2=2)
    expected = np.linalg.svd(a, compute_uv=False)
    assert (abs(abs(sigma) - expected).max(axis=1) / np.maximum(size, 1e-300)).max() < 20 * np.finfo(dtype).eps
    assert (np.diff(abs(sigma)) <= 8 * np.finfo(dtype).eps * size[:, None]).all()
    assert (sigma[:, :-1] >= 0).all()
    assert np.count_nonzero(s) == np.count_nonzero(sigma)

    assert errors(rotation @ stretch - a, size, dtype) < 30
    assert errors(stretch - stretch_t, size, dtype) < 10

    y = a + a.transpose(0, 2, 1)
    assert errors(y @ vectors - vectors * values[:, None, :], abs(y).max(axis=(1, 2)), dtype) < 30
    assert (np.diff(values) <= 0).all()


def test_what_holds_a_nan_gives_nan(init):
    made = arrays(3, np.float32)
    held, square, values = made(3, 3), [made(3, 3) for _ in range(6)], made(3)
    a = np.tile(np.eye(3, dtype=np.float32), (COUNT, 1, 1))
    a[0, 1, 2], a[1, 0, 0] = np.nan, np.inf
    held.from_numpy(a)
    decompose(held, *square[:5], values, square[5])
    for x in (square[0], square[2], square[3], square[5]):
        assert np.isnan(x.to_numpy()[:2]).any(axis=(1, 2)).all()
        assert np.isfinite(x.to_numpy()[2:]).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_linear_systems(n, dtype, init):
    rng, made = np.random.default_rng(n), arrays(n, dtype)
    a, b = rng.standard_normal((COUNT, n, n)).astype(dtype), rng.standard_normal((COUNT, n)).astype(dtype)
    a[:, 0, 0] = 0 if n > 1 else 1  # only with pivoting
    held, right, x = made(n, n), made(n), made(n)
    held.from_numpy(a)
    right.from_numpy(b)
    systems(held, right, x)
    found = x.to_numpy().astype(float)
    residual = abs(np.einsum("kij,kj->ki", a.astype(float), found) - b).max(axis=1)
    scale = abs(a).max(axis=(1, 2)) * abs(found).max(axis=1) + abs(b).max(axis=1)
    assert (residual / scale).max() < 20 * np.finfo(dtype).eps


def test_a_singular_system_is_not_finite(init):
    @qp.kernel
    def singular() -> qp.math.vec2:
        return qp.solve(qp.math.mat2(1.0, 2.0, 2.0, 4.0), qp.math.vec2(1.0, 1.0))

    assert not np.isfinite(singular().to_numpy()).any()


def test_eigenvalues_of_matrices_that_are_not_symmetric(init):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((COUNT, 2, 2)).astype(np.float32)
    a[:6] = [np.eye(2), [[0, -1], [1, 0]], [[1, 1], [0, 1]], np.zeros((2, 2)), np.diag([2, 3]), [[0, 5], [0, 0]]]
    values, vectors = np.zeros((COUNT, 2, 2), np.float32), np.zeros((COUNT, 4, 2), np.float32)
    eigenvalues(a, values, vectors)
    numbers = values[..., 0] + 1j * values[..., 1]
    columns = vectors[:, 0::2] + 1j * vectors[:, 1::2]
    assert abs(a @ columns - columns * numbers[:, None]).max() < 2e-6
    assert abs(np.linalg.norm(columns, axis=1) - 1).max() < 1e-6
    assert columns[0].tolist() == [[1, 0], [0, 1]]


def test_the_type_to_compute_in(init):
    @qp.kernel
    def in_double() -> qp.f64:
        _, sigma, _ = qp.svd(qp.math.mat2(1.0, 2.0, 3.0, 4.0), qp.f64)
        return sigma[0, 0]

    assert in_double() == pytest.approx(np.linalg.svd([[1, 2], [3, 4]], compute_uv=False)[0], rel=1e-15)


@pytest.mark.parametrize("name", ["svd", "polar_decompose", "eig"])
def test_what_these_functions_do_not_take(name, load):
    text = f"@qp.kernel\ndef k():\n    m = qp.Matrix([[1.0, 2.0, 3.0, 4.0]] * 4)\n    r = qp.{name}(m)\n"
    with pytest.raises(qp.CompilationError, match="takes a matrix of 2 x 2"):
        load(text).k()


@qp.kernel
def scaled(a: PAIRS, values: PAIRS, vectors: A(dtype=qp.types.matrix(4, 2, qp.f32), ndim=1), real: A(), columns: PAIRS):
    for i in a:
        values[i], vectors[i] = qp.eig(a[i])
        real[i], columns[i] = qp.sym_eig(a[i])


def test_the_size_of_the_entries_does_not_matter(init):
    plain = np.array([[[1, 2], [3, 4]], [[2, 2.5], [2.5, -2]]], np.float32)
    results = []
    for exponent in (0, -80, 100):
        values, vectors, columns = (np.zeros((2, n, 2), np.float32) for n in (2, 4, 2))
        real_held = qp.ndarray(qp.math.vec2, 2)
        scaled(plain * np.float32(2.0**exponent), values, vectors, real_held, columns)
        results.append([values / 2.0**exponent, vectors, real_held.to_numpy() / 2.0**exponent, columns])
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_infinite_matrices_give_nan_throughout(init):
    held = qp.ndarray(qp.math.vec2, 1)
    values, vectors, columns = (np.zeros((1, n, 2), np.float32) for n in (2, 4, 2))
    for a in ([[np.inf, 0], [0, 1]], [[1, np.inf], [0, 2]], [[1, 0], [np.nan, 2]]):
        scaled(np.array([a], np.float32), values, vectors, held, columns)
        assert np.isnan(values).all()


def test_integers_and_mixed_types_meet_in_floats(init):
    @qp.kernel
    def k() -> (qp.math.vec2, qp.types.vector(2, qp.f64), qp.math.vec2):
        whole = qp.solve(qp.Matrix([[2, 1], [1, 3]]), qp.Vector([1, 2]))
        mixed = qp.solve(qp.Matrix([[1.0, 0.0], [0.0, 1.0]]), qp.Vector([qp.f64(0.1), qp.f64(0.2)]))
        values, _ = qp.sym_eig(qp.Matrix([[2, 0], [0, 3]]))
        return whole, mixed, values

    whole, mixed, values = k()
    np.testing.assert_allclose(whole.to_numpy(), [0.2, 0.6], rtol=1e-6)
    assert mixed.to_list() == [0.1, 0.2]
    assert values.to_list() == [3.0, 2.0]
