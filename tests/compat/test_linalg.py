"""``ti.linalg``: kernels assemble sparse matrices, and SciPy solves."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy.compat.taichi as ti
from quadpy.errors import ArgumentError, KernelSyntaxError, QuadpyError

pytest.importorskip("scipy.sparse", reason="sparse matrices need SciPy")


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu)


@ti.kernel
def laplacian(k: ti.types.sparse_matrix_builder(), n: ti.i32, shift: ti.f32):
    for i in range(n):
        k[i, i] += 1.0 + shift
        k[i, i] += 1.0
        if i > 0:
            k[i, i - 1] -= 1.0
            k[i - 1, i] -= 1


def assembled(n, shift=0.0, **options):
    builder = ti.linalg.SparseMatrixBuilder(n, n, max_num_triplets=4 * n, **options)
    laplacian(builder, n, shift)
    return builder


def dense(n, shift=0.0):
    return (2 + shift) * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_what_kernels_add_is_summed(dtype):
    matrix = assembled(9, 0.5, dtype=dtype).build()
    assert matrix.shape == (9, 9)
    assert matrix.matrix.toarray().tolist() == dense(9, 0.5).tolist()
    assert matrix[0, 0] == 2.5


def test_a_builder_is_empty_after_it_has_built():
    builder = assembled(4)
    builder.build()
    assert builder.build().matrix.nnz == 0
    laplacian(builder, 4, 1.0)
    assert builder.build().matrix.toarray().tolist() == dense(4, 1.0).tolist()


def test_sums_do_not_depend_on_the_order_of_threads():
    @ti.kernel
    def add(k: ti.types.sparse_matrix_builder(), x: ti.types.ndarray(ndim=1)):
        for i in x:
            k[i % 3, 0] += x[i]

    values = np.random.default_rng(1).normal(size=3000).astype(np.float32)
    sums = set()
    for part in range(3):
        builder = ti.linalg.SparseMatrixBuilder(3, 1, max_num_triplets=3000)
        add(builder, values[3 * part :])
        add(builder, values[: 3 * part])
        sums.add(builder.build().matrix.toarray().tobytes())
    assert len(sums) == 1


def test_a_class_has_builders_as_members():
    @ti.data_oriented
    class Model:
        def __init__(self):
            self.n = 5
            self.K = ti.linalg.SparseMatrixBuilder(5, max_num_triplets=20)

        @ti.func
        def put(self, i, x):
            self.K[i, i] += x

        @ti.kernel
        def fill(self):
            for i in range(self.n):
                self.put(i, 2.0 * i)

    model = Model()
    model.fill()
    assert model.K.build().matrix.diagonal().tolist() == [0, 2, 4, 6, 8]


def test_arithmetic():
    a, b = assembled(5).build(), assembled(5, 3.0).build()
    A, B, v = dense(5), dense(5, 3.0), np.arange(5, dtype=np.float32)
    for found, expected in [
        (a + b, A + B), (a - b, A - B), (2.0 * a, 2 * A), (a * 2, 2 * A), (a * b, A * B), (a @ b, A @ B),
        ((a @ b).transpose(), (A @ B).T),
    ]:  # fmt: skip
        assert found.matrix.toarray().tolist() == expected.tolist()
    assert (a @ v).tolist() == (A @ v).tolist()
    x = ti.ndarray(ti.f32, 5)
    x.from_numpy(v)
    assert (a @ x).to_numpy().tolist() == (A @ v).tolist()
    a[0, 4] = 7.0
    assert a[0, 4] == 7.0


@pytest.mark.parametrize(("kind", "shift"), [("LLT", 0.1), ("LDLT", -1.03), ("LU", 0.1)])
def test_solvers(kind, shift):
    solver = ti.linalg.SparseSolver(ti.f64, solver_type=kind)
    matrix = assembled(30, shift, dtype=ti.f64).build()
    solver.analyze_pattern(matrix)
    solver.factorize(matrix)
    assert solver.info()
    b = np.random.default_rng(0).normal(size=30)
    expected = np.linalg.solve(matrix.matrix.toarray(), b)
    np.testing.assert_allclose(solver.solve(b), expected, rtol=1e-8)
    field = ti.field(ti.f64, 30)
    field.from_numpy(b)
    np.testing.assert_allclose(solver.solve(field).to_numpy(), expected, rtol=1e-8)


@pytest.mark.parametrize(("kind", "shift"), [("LLT", -1.03), ("LU", -2.0), ("LLT", -4.5)])
def test_a_matrix_that_the_solver_cannot_factorise(kind, shift):
    """An indefinite one for LLT, a negative definite one, and a singular one (of odd size) for LU."""
    solver = ti.linalg.SparseSolver(solver_type=kind).compute(assembled(31, shift).build())
    assert not solver.info()
    with pytest.raises(QuadpyError, match=f"no {kind} factorisation"):
        solver.solve(np.zeros(31, np.float32))


def test_too_many_values_and_places_outside():
    builder = ti.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=3)
    laplacian(builder, 4, 0.0)
    with pytest.raises(QuadpyError, match="added 14 values to a builder with room for 3"):
        builder.build()
    builder = ti.linalg.SparseMatrixBuilder(3, 4, max_num_triplets=30)
    laplacian(builder, 4, 0.0)
    with pytest.raises(ArgumentError, match=r"element \(3, 2\) of a matrix of shape \(3, 4\)"):
        builder.build()


def test_only_sums_can_be_collected():
    @ti.kernel
    def scale(k: ti.types.sparse_matrix_builder()):
        for i in range(3):
            k[i, i] *= 2.0

    with pytest.raises(KernelSyntaxError, match=r"a SparseMatrixBuilder only takes \+= and -="):
        scale(ti.linalg.SparseMatrixBuilder(3, 3, max_num_triplets=3))


def test_bad_input():
    with pytest.raises(ArgumentError, match="f32 or f64, not i32"):
        ti.linalg.SparseMatrixBuilder(2, 2, 2, dtype=ti.i32)
    with pytest.raises(ArgumentError, match="'QR' is not a solver"):
        ti.linalg.SparseSolver(solver_type="QR")


def test_a_file_and_triplets_from_an_array(tmp_path):
    matrix = ti.linalg.SparseMatrix(2, 3)
    matrix.build_from_ndarray(np.array([0, 1, 2.5, 1, 2, -1.0, 0, 1, 1.0], np.float32))
    assert matrix.matrix.toarray().tolist() == [[0, 3.5, 0], [0, 0, -1]]
    matrix.mmwrite(str(tmp_path / "a.mtx"))
    assert "2 3 2" in (tmp_path / "a.mtx").read_text()
