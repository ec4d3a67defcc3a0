"""``qp.types.ndarray(element_dim=1)``: the last axes of another library's array are its elements."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def copy(rows: qp.types.ndarray(element_dim=1), to: qp.types.ndarray(element_dim=1)):
    for i in range(rows.shape[0]):
        to[i] = 2 * rows[i]


@qp.kernel
def traces(m: qp.types.ndarray(element_dim=2), v: qp.types.ndarray(element_dim=1, ndim=2), to: qp.types.ndarray()):
    for i, j in m:
        to[i, j] = m[i, j].trace() + v[i, j].sum()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_rows_are_vectors(dtype):
    rows = np.arange(12).reshape(4, 3).astype(dtype)
    to, vectors = np.zeros_like(rows), qp.Vector.ndarray(3, qp.f32 if dtype is np.float32 else qp.i64, 4)
    copy(rows, to)
    copy(rows, vectors)
    assert (to == 2 * rows).all()
    assert (vectors.to_numpy() == to).all()
    wide, strided = np.ones((2, 7), dtype), np.zeros((2, 2, 7), dtype)[:, 0]
    copy(wide, strided)
    assert (strided == 2).all()


def test_the_last_two_axes_are_matrices():
    m, v = np.random.default_rng(1).random((2, 3, 4, 4)), np.ones((2, 3, 5), np.float32)
    to = np.zeros((2, 3))
    traces(m, v, to)
    np.testing.assert_allclose(to, np.trace(m, axis1=2, axis2=3) + 5)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    rows, to = torch.ones(4, 2), torch.zeros(4, 2)
    copy(rows, to)
    assert (to == 2).all()


def test_elements_of_another_rank_are_refused():
    with pytest.raises(qp.ArgumentError, match="rows takes a field or an array of vectors, not one of f32"):
        copy(np.ones((), np.float32), np.ones((1, 2), np.float32))
    with pytest.raises(qp.ArgumentError, match="rows takes a field or an array of vectors, not one of f32"):
        copy(qp.ndarray(qp.f32, (2, 2)), np.ones((1, 2), np.float32))
