"""Backward errors, exact properties and corner cases of small linear algebra, over matrices that break naive formulas."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
TYPES = {np.float32: qp.f32, np.float64: qp.f64}
SMALL = 100
"""Matrices of each kind."""


@qp.kernel
def symmetric(a: A(), values: A(), vectors: A(), nearest: A(), factor: A()):
    for i in a:
        values[i], vectors[i] = qp.sym_eig(a[i])
        nearest[i] = qp.make_spd(a[i])
        factor[i] = qp.cholesky(a[i])


@qp.kernel
def general(a: A(), b: A(), q: A(), r: A(), x: A(), inverse: A(), determinant: A()):
    for i in a:
        q[i], r[i] = qp.qr(a[i])
        x[i] = qp.solve(a[i], b[i])
        inverse[i] = a[i].inverse()
        determinant[i] = a[i].determinant()


@qp.kernel
def factors(a: A(), q: A(), r: A()):
    for i in a:
        q[i], r[i] = qp.qr(a[i])


@qp.kernel
def angles(a: A(), u: A(), s: A(), v: A(), rotation: A(), stretch: A()):
    for i in a:
        u[i], s[i], v[i] = qp.svd(a[i])
        rotation[i], stretch[i] = qp.polar_decompose(a[i])


def random_orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((SMALL, n, n)))[0]


def extremes(a, dtype):
    """The same at the ends of the range of the type, where squares overflow and underflow."""
    some, info = a[::7], np.finfo(dtype)
    size = np.abs(some).max(axis=(1, 2), keepdims=True)
    some = some / np.where(size > 0, size, 1)
    return np.concatenate([a, some * 2.0 ** (info.maxexp - 3), some * 2.0 ** (info.minexp + 2)]).astype(dtype)


@functools.cache
def all_kinds(n, dtype):
    """Random, graded by rows and by columns, nearly singular, singular, equal singular values, of small integers, special."""
    rng, eps = np.random.default_rng(n), np.finfo(dtype).eps
    u, v = random_orthogonal(rng, n), random_orthogonal(rng, n)
    spread = u * 10.0 ** rng.uniform(-12, 0, (SMALL, 1, n)) @ v
    near = u * np.where(np.arange(n) == n - 1, eps, rng.uniform(0.5, 2, (SMALL, 1, n))) @ v
    kinds = [
        rng.standard_normal((SMALL, n, n)),
        rng.standard_normal((SMALL, n, n)) * 10.0 ** rng.uniform(-10, 0, (SMALL, n, 1)),
        rng.standard_normal((SMALL, n, n)) * 10.0 ** rng.uniform(-10, 0, (SMALL, 1, n)),
        spread, near, u, u + 10.0 ** rng.uniform(-9, -3, (SMALL, 1, 1)) * v,
        rng.standard_normal((SMALL, n, 1)) @ rng.standard_normal((SMALL, 1, n)),
        rng.integers(-1, 2, (SMALL, n, n)).astype(float),
        np.array([np.zeros((n, n)), np.eye(n), -np.eye(n), np.ones((n, n)), np.diag(np.arange(n)), np.eye(n)[::-1],
                  np.triu(np.ones((n, n))), np.eye(n, k=1)]),
    ]  # fmt: skip
    return extremes(np.concatenate(kinds), dtype)


@functools.cache
def symmetric_kinds(n, dtype):
    """Random, clustered and repeated eigenvalues, graded, of low rank, tridiagonal, of small integers, special."""
    rng = np.random.default_rng(10 + n)
    q = random_orthogonal(rng, n)

    def spectrum(values):
        return (q * values[:, None, :]) @ q.transpose(0, 2, 1)

    integers = rng.integers(-1, 2, (SMALL, n, n)).astype(float)
    grades = 10.0 ** rng.uniform(-8, 0, (SMALL, n))
    random = rng.standard_normal((SMALL, n, n))
    kinds = [
        random, spectrum(10.0 ** rng.uniform(-12, 0, (SMALL, n))), spectrum(rng.integers(-1, 2, (SMALL, n)) * 1.0),
        spectrum(1 + 1e-4 * rng.standard_normal((SMALL, n))), spectrum(1 + 10.0 ** rng.uniform(-16, -1, (SMALL, n))),
        random * grades[:, :, None] * grades[:, None, :], integers, np.triu(random, -1) * np.tri(n, k=1),
        np.array([np.zeros((n, n)), np.eye(n), -np.eye(n), np.ones((n, n)), np.diag(np.arange(n)), np.eye(n)[::-1]]),
    ]  # fmt: skip
    a = np.concatenate(kinds)
    return extremes(np.triu(a) + np.triu(a, 1).transpose(0, 2, 1), dtype)


def array(shape, dtype, count):
    """An array of elements of a shape: numbers, vectors or matrices."""
    element = {0: lambda: TYPES[dtype], 1: lambda: qp.types.vector(*shape, TYPES[dtype]),
               2: lambda: qp.types.matrix(*shape, TYPES[dtype])}[len(shape)]()  # fmt: skip
    return qp.ndarray(element, count)


def run(kernel, given, shapes, dtype):
    """What ``kernel`` makes of arrays of matrices and vectors, in the given type."""
    held = [array(x.shape[1:], dtype, len(x)) for x in given]
    for h, x in zip(held, given, strict=True):
        h.from_numpy(x)
    made = [array(shape, dtype, len(given[0])) for shape in shapes]
    kernel(*held, *made)
    return [m.to_numpy() for m in made]


def greatest(a):
    return abs(a).max(axis=tuple(range(1, a.ndim)))


def units(difference, size, dtype):
    """The greatest difference in units of rounding of ``size``."""
    return float((greatest(difference) / np.maximum(size, np.longdouble("1e-4000"))).max() / np.finfo(dtype).eps)


def wide(*arrays):
    """In a type in which nothing overflows or is rounded much."""
    return [np.asarray(a).astype(np.longdouble) for a in arrays]


def product(a, b):
    return np.einsum("kij,kjl->kil", a, b)


def turned(a):
    return a.transpose(0, 2, 1)


def orthogonality(q, dtype):
    return units(product(turned(q), q) - np.eye(q.shape[2]), 1, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_symmetric_matrices(n, dtype, init):
    a = symmetric_kinds(n, dtype)
    values, vectors, nearest, factor = run(symmetric, [a], [(n,), (n, n), (n, n), (n, n)], dtype)
    assert np.isfinite(values).all()
    assert (np.diff(values) <= 0).all(), "the greatest first"
    assert (nearest == turned(nearest)).all(), "exactly symmetric"
    x, w, v, p = wide(a, values, vectors, nearest)
    size = greatest(x)
    assert units(product(x, v) - v * w[:, None, :], size, dtype) < 30
    assert orthogonality(v, dtype) < 30
    expected = product(v * np.maximum(w, 0)[:, None, :], turned(v))
    assert units(p - expected, size, dtype) < 30
    definite = np.isfinite(factor).all(axis=(1, 2))
    assert (np.isnan(factor).all(axis=(1, 2)) | definite).all(), "a factor, or NaN throughout"
    small = w[:, -1] / np.maximum(size, np.longdouble("1e-4000"))
    assert (small[definite] > -30 * np.finfo(dtype).eps).all()
    assert definite[small > 60 * np.finfo(dtype).eps].all()
    lower, whole = wide(factor[definite], a[definite])
    assert (np.triu(lower, 1) == 0).all()
    assert units(product(lower, turned(lower)) - whole, greatest(whole), dtype) < 20


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_factors_and_systems(n, dtype, init):
    a = all_kinds(n, dtype)
    b = np.random.default_rng(n).standard_normal((len(a), n, 2)).astype(dtype)
    q, r, x, inverse, determinant = run(general, [a, b], [(n, n), (n, n), (n, 2), (n, n), ()], dtype)
    m, right, q, r, solved, inverted, det = wide(a, b, q, r, x, inverse, determinant)
    assert (np.tril(r, -1) == 0).all()
    assert (np.diagonal(r, axis1=1, axis2=2) >= 0).all()
    assert units(product(q, r) - m, greatest(m), dtype) < 20
    assert orthogonality(q, dtype) < 20

    solvable = np.isfinite(solved).all(axis=(1, 2)) & (greatest(m) > 2.0**-90) & (greatest(m) < 2.0**90)
    m, right, solved, inverted, det = (x[solvable] for x in (m, right, solved, inverted, det))
    assert len(m) > len(a) / 2
    assert units(product(m, solved) - right, greatest(m) * greatest(solved) + greatest(right), dtype) < 20

    assert units(product(m, inverted) - np.eye(n), greatest(m) * greatest(inverted), dtype) < 20

    # The determinant of a matrix whose entries differ by units of rounding: a cofactor is an entry's part in it.
    m, det = m[greatest(m) > 2.0**-20], det[greatest(m) > 2.0**-20]
    unit = np.finfo(dtype).eps * greatest(m)
    error = unit * abs_cofactors(m) + unit**2 * greatest(m) ** max(n - 2, 0)
    assert (abs(det - det_by_minors(m)) < 40 * error + 1e-18 * greatest(m) ** n + 100 * np.finfo(dtype).tiny).all()


def det_by_minors(m):
    if m.shape[1] == 1:
        return m[:, 0, 0]
    return sum((-1) ** j * m[:, 0, j] * det_by_minors(np.delete(m[:, 1:], j, 2)) for j in range(m.shape[1]))


def abs_cofactors(m):
    """The sum of the sizes of all cofactors."""
    n = m.shape[1]
    if n == 1:
        return np.ones(len(m), m.dtype)
    return sum(abs(det_by_minors(np.delete(np.delete(m, i, 1), j, 2))) for i in range(n) for j in range(n))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_singular_values_and_rotations(n, dtype, init):
    a = all_kinds(n, dtype)
    u, s, v, rotation, stretch = run(angles, [a], [(n, n)] * 5, dtype)
    assert np.count_nonzero(s) == np.count_nonzero(np.diagonal(s, axis1=1, axis2=2))
    assert (stretch == turned(stretch)).all(), "exactly symmetric"
    m, u, s, v, rotation, stretch = wide(a, u, s, v, rotation, stretch)
    sigma = np.diagonal(s, axis1=1, axis2=2)
    assert (sigma[:, :-1] >= 0).all()
    if n == 2:
        assert (abs(sigma[:, 1]) <= sigma[:, 0]).all()
    assert units(product(product(u, s), turned(v)) - m, greatest(m), dtype) < 20
    assert units(product(rotation, stretch) - m, greatest(m), dtype) < 30
    for q in (u, v, rotation):
        assert orthogonality(q, dtype) < 20
        assert abs(det_by_minors(q) - 1).max() < 60 * np.finfo(dtype).eps
    least = np.linalg.eigvalsh((stretch / np.maximum(greatest(m), 1e-300)[:, None, None]).astype(float))[:, 0]
    assert (least[det_by_minors(m) >= 0] > -20 * np.finfo(dtype).eps).all()


@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (6, 3), (6, 5), (1, 1)])
def test_factors_of_tall_matrices(shape, init):
    a = np.random.default_rng(1).standard_normal((50, *shape))
    a[0], a[1] = 0, 1
    q, r = run(factors, [a], [shape, (shape[1], shape[1])], np.float64)
    assert units(product(q, r) - a, greatest(a), np.float64) < 20
    assert orthogonality(q, np.float64) < 20
    assert (np.tril(r, -1) == 0).all()


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_what_is_not_finite_reaches_all_numbers(n, value, init):
    places = [(i, j) for i in range(n) for j in range(i, n)]
    base = np.random.default_rng(n).standard_normal((2 * len(places), n, n))
    base[: len(places)] = np.eye(n)  # nothing to rotate: the rest of the matrix does not meet the entry
    for k, (i, j) in enumerate(2 * places):
        base[k, i, j] = base[k, j, i] = value
    a = base.astype(np.float32)
    for found in run(symmetric, [a], [(n,), (n, n), (n, n), (n, n)], np.float32):
        assert np.isnan(found).all()
    for found in run(factors, [a], [(n, n), (n, n)], np.float32):
        assert np.isnan(found).all()
    if n <= 3:
        u, s, v, rotation, stretch = run(angles, [a], [(n, n)] * 5, np.float32)
        assert np.isnan(np.diagonal(s, axis1=1, axis2=2)).all()
        for found in (u, v, rotation, stretch):
            assert np.isnan(found).all()
    b = np.ones((len(a), n, 1), np.float32)
    for found in run(general, [a, b], [(n, n), (n, n), (n, 1), (n, n), ()], np.float32)[2:]:
        lost = np.isfinite(found).reshape(len(a), -1).all(axis=1)
        assert not lost.any() if np.isnan(value) else True


def test_the_factor_of_a_matrix_that_is_not_definite_is_nan(init):
    a = np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]], [[1, 2], [2, 1]], [[-1, 0], [0, 1]], [[4, 2], [2, 1]]], float)
    _, _, _, factor = run(symmetric, [a], [(2,), (2, 2), (2, 2), (2, 2)], np.float64)
    assert np.isnan(factor).all()


def test_singular_systems_have_no_finite_solution(init):
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (40, 4, 4)).astype(np.float32)
    a[:20, 2] = a[:20, 0]  # equal rows: elimination gives a pivot of exactly 0
    a[20:, :, 1] = 0
    b = np.ones((40, 4, 1), np.float32)
    _, _, x, inverse, determinant = run(general, [a, b], [(4, 4), (4, 4), (4, 1), (4, 4), ()], np.float32)
    assert not np.isfinite(x).any()
    assert not np.isfinite(inverse).any()
    assert (determinant == 0).all()


@qp.kernel
def determinants(a: A(), y: A()):
    for i in a:
        y[i] = a[i].determinant()


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_determinants_of_integers_are_exact_and_wrap(n, init):
    rng = np.random.default_rng(n)
    a = rng.integers(-9, 10, (30, n, n)).astype(np.int32)
    a[20:] = rng.integers(-(2**31), 2**31, (10, n, n))
    held, y = qp.ndarray(qp.types.matrix(n, n, qp.i32), 30), qp.ndarray(qp.i32, 30)
    held.from_numpy(a)
    determinants(held, y)
    exact = [int(det_by_minors(m[None].astype(object))[0]) for m in a]
    wrapped = [(x + 2**31) % 2**32 - 2**31 for x in exact]
    assert y.to_numpy().tolist() == wrapped
    assert [qp.Matrix(m).determinant() for m in a] == wrapped, "on the host"


@pytest.mark.parametrize("dtype", [np.float16, *TYPES])
def test_the_host_gives_the_bits_of_a_kernel(dtype, init):
    init(arch=qp.cpu)
    types = {np.float16: qp.f16, **TYPES}
    for n in (1, 2, 3, 6) if dtype is not np.float16 else (2, 4):
        a = np.random.default_rng(n).standard_normal((4, n, n)).astype(dtype)
        b = np.ones((4, n, 2), dtype)
        a[0] = np.eye(n)[::-1]
        if dtype is np.float16:
            held, y = qp.ndarray(qp.types.matrix(n, n, types[dtype]), 4), qp.ndarray(types[dtype], 4)
            held.from_numpy(a)
            determinants(held, y)
            determinant, inverse = y.to_numpy(), None
        else:
            q, r, x, inverse, determinant = run(general, [a, b], [(n, n), (n, n), (n, 2), (n, n), ()], dtype)
        for i in range(4):
            m = qp.Matrix(a[i])
            assert m.determinant() == determinant[i]
            if inverse is None:
                continue
            np.testing.assert_array_equal(m.inverse().to_numpy(), inverse[i])
            np.testing.assert_array_equal(m.solve(qp.Matrix(b[i])).to_numpy(), x[i])
            found = (*qp.qr(m), qp.solve(m, qp.Matrix(b[i])), qp.math.inverse(m))
            for ours, kernels in zip(found, (q[i], r[i], x[i], inverse[i]), strict=True):
                np.testing.assert_array_equal(ours.to_numpy(), kernels)
                assert ours.to_numpy().dtype == dtype


def test_vectors_that_kernels_return_have_the_type_of_their_numbers():
    @qp.kernel
    def k() -> qp.types.vector(2, qp.f32):
        return qp.Vector([0.1, 0.2])

    assert k().to_numpy().dtype == np.float32


def test_a_system_has_a_vector_or_several_columns(init):
    a, b = np.array([[2.0, 1], [1, 3]]), np.array([[1.0, 0], [0, 1]])
    m = qp.Matrix(a, qp.f64)
    np.testing.assert_allclose(qp.solve(m, qp.Matrix(b, qp.f64)).to_numpy(), np.linalg.inv(a), rtol=1e-15)
    one = qp.solve(m, qp.Vector([1.0, 2.0], qp.f64))
    np.testing.assert_allclose(one.to_numpy(), [0.2, 0.6], rtol=1e-15)
    assert qp.solve(qp.Matrix([[49.0]]), qp.Vector([49.0])).to_list() == [1.0]
    assert qp.Matrix([[49]]).solve(qp.Vector([49])).to_list() == [1.0]
    for wrong in (qp.Vector([1.0, 2.0, 3.0]), 2.0):
        with pytest.raises(qp.ArgumentError, match="solve needs a vector or matrix of 2 rows"):
            m.solve(wrong)


def test_the_type_of_a_matrix_is_known_at_compile_time(init):
    @qp.kernel
    def k() -> qp.i32:
        bits = 0
        if qp.static(qp.Matrix([[1.0, 2.0]]).dtype == qp.f32):
            bits += 1
        if qp.static(qp.Vector([qp.f64(1), 2]).dtype == qp.f64):
            bits += 2
        return bits

    assert k() == 3


ERRORS = {
    "qp.svd(qp.Matrix.identity(qp.f32, 4))": "svd takes a matrix of 2 x 2 or 3 x 3",
    "qp.polar_decompose(m)": "polar_decompose takes a matrix of 2 x 2 or 3 x 3",
    "qp.sym_eig(qp.Matrix.identity(qp.f32, 7))": "sym_eig takes a matrix of 2 x 2 to 6 x 6",
    "qp.make_spd(m)": "make_spd takes a matrix of 2 x 2 to 6 x 6",
    "qp.eig(qp.Matrix.identity(qp.f32, 3))": "eig takes a matrix of 2 x 2",
    "qp.cholesky(m)": "cholesky takes a square matrix of up to 6 x 6",
    "qp.cholesky(qp.Matrix.identity(qp.f32, 7))": "cholesky takes a square matrix of up to 6 x 6",
    "qp.qr(m)": "qr takes a matrix of up to 6 rows, and as many columns or fewer",
    "qp.qr(qp.Matrix.identity(qp.f32, 7))": "qr takes a matrix of up to 6 rows",
    "qp.solve(m, v)": "solve needs a square matrix",
    "qp.solve(qp.Matrix.identity(qp.f32, 3), v)": "solve needs 3 rows on the right-hand side",
    "qp.solve(qp.Matrix.identity(qp.f32, 13), v)": "solve takes up to 12 rows, not 13",
    "qp.Matrix.identity(qp.f32, 7).determinant()": "determinant takes up to 6 x 6, not 7 x 7",
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_name_the_line_of_the_call(call, load):
    text = f"""
        @qp.kernel
        def k():
            m = qp.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            v = qp.Vector([1.0, 2.0])
            r = {call}
    """
    with pytest.raises(qp.CompilationError) as caught:
        load(text).k()
    assert ERRORS[call] in caught.value.message
    assert f"r = {call}" in str(caught.value)


def test_half_precision_computes_in_f32(init):
    @qp.kernel
    def k() -> (qp.math.vec2, qp.math.vec2):
        half = qp.Matrix([[2.0, 1.0], [1.0, 3.0]], qp.f16)
        single = qp.Matrix([[2.0, 1.0], [1.0, 3.0]])
        return qp.sym_eig(half)[0], qp.sym_eig(single)[0]

    half, single = k()
    assert half.to_list() == single.to_list()


ANGLES = qp.types.matrix(3, 3, qp.f32)


@qp.kernel
def outside_of_loops(a: ANGLES) -> tuple[ANGLES, ANGLES, ANGLES, ANGLES]:
    u, _sizes, v = qp.svd(a)
    _values, vectors = qp.sym_eig(a @ a.transpose())
    return u, v, vectors, qp.make_spd(a + a.transpose())


@qp.kernel
def inside_a_loop(a: A(ANGLES, 1), result: A(ANGLES, 2)):
    for i in a:
        u, _sizes, v = qp.svd(a[i])
        _values, vectors = qp.sym_eig(a[i] @ a[i].transpose())
        result[i, 0], result[i, 1], result[i, 2], result[i, 3] = u, v, vectors, qp.make_spd(a[i] + a[i].transpose())


def test_decompositions_outside_of_loops_run_their_steps_in_order(init):
    """The sweeps of Jacobi's method are no parallel loop."""
    a = np.array([[[2.0, 1.0, 0.3], [-1.0, 3.0, 0.5], [0.25, 4.5, 1.0]]], np.float32)
    wanted = np.zeros((1, 4, 3, 3), np.float32)
    inside_a_loop(a, wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error", qp.RaceWarning)
        found = outside_of_loops(a[0])
    np.testing.assert_array_equal([matrix.to_numpy() for matrix in found], wanted[0])


@pytest.mark.parametrize("target", ["gfx1100", "sm_90"])
def test_code_for_gpus(target, init):
    """Every function at its largest size compiles, to code that is bounded, and without a stack in memory."""
    largest = A(dtype=qp.types.matrix(6, 6, qp.f32), ndim=1)
    triple = A(dtype=qp.types.matrix(3, 3, qp.f64), ndim=1)
    vectors, numbers = A(dtype=qp.types.vector(6, qp.f32), ndim=1), A(dtype=qp.f32, ndim=1)
    given = dict.fromkeys(("a", "b", "q", "r", "x", "inverse", "vectors", "nearest", "factor"), largest)
    for kernel, types in [
        (symmetric, {**given, "values": vectors}),
        (general, {**given, "determinant": numbers}),
        (angles, dict.fromkeys(("a", "u", "s", "v", "rotation", "stretch"), triple)),
    ]:
        names = kernel.source.fn.__code__.co_varnames[: kernel.source.fn.__code__.co_argcount]
        code = kernel.compile(target, **{name: types[name] for name in names})
        assert 0 < len(code.image) < 600_000
