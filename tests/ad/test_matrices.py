"""Jacobians and Hessians of sparse structure."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import quadpy as qp
from quadpy.ad.matrices import SparsityError, coloured
from quadpy.errors import ArgumentError

N = 24


pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def diffuse(x: qp.Array1D[qp.f64], y: qp.Array1D[qp.f64]) -> None:
    for i in x:
        left = x[i - 1] if i > 0 else 0.0
        right = x[i + 1] if i < x.shape[0] - 1 else 0.0
        y[i] += left * right - 2 * x[i] ** 3


@qp.kernel
def bonds(x: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]) -> None:
    for i in range(x.shape[0] - 1):
        loss[None] += qp.sin(x[i]) * x[i + 1] ** 2


def given(ways):
    x, y = (qp.ndarray(qp.f64, N, needs_grad=True, needs_dual=ways) for _ in range(2))
    x.from_numpy(np.linspace(-1, 2, N))
    return x, y, qp.ndarray(qp.f64, (), needs_grad=True, needs_dual=ways)


def band(width):
    return np.abs(np.subtract.outer(np.arange(N), np.arange(N))) <= width


@pytest.mark.parametrize("ways", [True, 2, 4, 9])
def test_a_jacobian_by_colours_is_the_dense_one(ways):
    scipy = pytest.importorskip("scipy.sparse")
    x, y, _ = given(ways)
    y.fill(0.5)
    dense = qp.ad.jacobian(diffuse, (x, y), x, y)
    sparse = qp.ad.jacobian(diffuse, (x, y), x, y, sparsity=scipy.csr_matrix(band(1)))
    assert isinstance(sparse, scipy.csr_array)
    assert sparse.nnz == 3 * N - 2
    assert sparse.toarray().tolist() == dense.tolist()
    numbers = np.linspace(-1, 2, N)
    assert np.diag(dense) == pytest.approx(-6 * numbers**2, abs=1e-12)
    assert np.diag(dense, 1)[1:] == pytest.approx(numbers[:-2], abs=1e-12)
    assert (y.to_numpy().tolist(), x.to_numpy().tolist()) == ([0.5] * N, numbers.tolist())


@pytest.mark.parametrize("ways", [True, 4])
def test_a_hessian_by_colours_is_the_dense_one(ways):
    pytest.importorskip("scipy.sparse")
    x, _, loss = given(ways)
    dense = qp.ad.hessian(bonds, (x, loss), x, loss)
    sparse = qp.ad.hessian(bonds, (x, loss), x, loss, sparsity=band(1))
    assert sparse.toarray() == pytest.approx(dense, rel=1e-14)
    assert dense == pytest.approx(dense.T, rel=1e-14)
    a = np.linspace(-1, 2, N)
    assert np.diag(dense, 1) == pytest.approx(2 * np.cos(a[:-1]) * a[1:])
    assert not dense[~band(1)].any()


def test_a_pattern_that_lacks_elements_is_an_error():
    x, y, loss = given(4)
    with pytest.raises(SparsityError, match="sparsity lacks elements of row"):
        qp.ad.jacobian(diffuse, (x, y), x, y, sparsity=band(0))
    one = band(1)
    one[7, 8] = False
    with pytest.raises(SparsityError, match="row 7"):
        qp.ad.jacobian(diffuse, (x, y), x, y, sparsity=one)
    with pytest.raises(SparsityError):
        qp.ad.hessian(bonds, (x, loss), x, loss, sparsity=band(0))
    assert x.to_numpy().tolist() == np.linspace(-1, 2, N).tolist()


def test_without_scipy(monkeypatch):
    x, y, _ = given(4)
    expected = qp.ad.jacobian(diffuse, (x, y), x, y)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    data, indices, indptr = qp.ad.jacobian(diffuse, (x, y), x, y, sparsity=band(2))
    found = np.zeros((N, N))
    for row in range(N):
        found[row, indices[indptr[row] : indptr[row + 1]]] = data[indptr[row] : indptr[row + 1]]
    assert found.tolist() == expected.tolist()


def test_what_does_not_fit():
    x, y, _ = given(4)
    with pytest.raises(ArgumentError, match="sparsity has the shape"):
        qp.ad.jacobian(diffuse, (x, y), x, y, sparsity=np.ones((3, N)))
    with pytest.raises(ArgumentError, match="has no dual"):
        qp.ad.jacobian(diffuse, (x, y), x, qp.ndarray(qp.f64, N))


def test_colours():
    random = np.random.default_rng(3)
    for _ in range(20):
        pattern = random.random((15, 22)) < 0.15
        rows, columns = pattern.nonzero()
        colours = coloured(rows, columns, pattern.shape)
        assert colours.min() >= 0
        for row in pattern:
            used = colours[row]
            assert len(set(used)) == len(used)
    arrow = np.eye(12, dtype=bool)
    arrow[:, 0] = True
    rows, columns = arrow.nonzero()
    assert coloured(rows, columns, arrow.shape).max() == 1  # two colours for an arrow of columns
