"""Vectors and matrices of the host together with NumPy's arrays and numbers."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

V = qp.Vector([1.0, 2.0, 3.0])
A = np.array([4.0, 5.0, 6.0], np.float32)
M = qp.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

MIXED = {
    "a + v": (lambda: A + V, [5, 7, 9]),
    "v + a": (lambda: V + A, [5, 7, 9]),
    "a - v": (lambda: A - V, [3, 3, 3]),
    "list - v": (lambda: [1, 2, 3] - -V, [2, 4, 6]),
    "tuple * v": (lambda: (1, 2, 3) * V, [1, 4, 9]),
    "np.float32 * v": (lambda: np.float32(2) * V, [2, 4, 6]),
    "v * np.float32": (lambda: V * np.float32(2), [2, 4, 6]),
    "2 ** v": (lambda: 2**V, [2, 4, 8]),
    "m @ a": (lambda: M @ A, [32, 77]),
    "a @ m": (lambda: np.array([1, 1], np.float32) @ M, [5, 7, 9]),
    "eye @ v": (lambda: np.eye(3, dtype=np.float32) @ V, [1, 2, 3]),
    "a < v": (lambda: A < V, [0, 0, 0]),
    "v == a": (lambda: np.array([1, 0, 3], np.float32) == V, [1, 0, 1]),
    "cross": (lambda: V.cross(A), [-3, 6, -3]),
    "sin": (lambda: np.sin(V) * 0, [0, 0, 0]),
}
NUMBERS = {
    "a @ v": (lambda: A @ V, 32),
    "np.dot": (lambda: np.dot(A, V), 32),
    "v.dot(a)": (lambda: V.dot(A), 32),
    "np.sum": (lambda: np.sum(V), 6),
    "np.max": (lambda: np.max(M), 6),
    "np.min": (lambda: np.min(M), 1),
    "np.any": (lambda: np.any(V), 1),
    "np.all": (lambda: np.all(V > 0), 1),
    "norm": (lambda: np.linalg.norm(qp.Vector([3.0, 4.0])), 5),
}


@pytest.mark.parametrize("name", MIXED)
def test_operators(name):
    call, expected = MIXED[name]
    found = call()
    assert isinstance(found, qp.Vector)
    assert found.to_list() == expected


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    call, expected = NUMBERS[name]
    assert call() == expected


def test_types_meet_as_in_kernels():
    assert (V + A.astype(np.float64)).dtype is qp.f64
    assert (V + np.arange(3)).dtype is qp.f32
    assert (np.float64(1) * V).dtype is qp.f64
    assert V.outer_product(A[:2]).shape == (3, 2)


def test_arrays_of_them():
    assert np.array(V).dtype == np.float32
    assert np.stack([V, V]).shape == (2, 3)
    with pytest.raises(qp.ArgumentError, match="cannot be combined"):
        np.ones((2, 2)) * V


def test_elements_of_fields_write_through():
    x = qp.Vector.field(3, qp.f32, shape=2)
    x[0] = A
    x[0] += V
    v = x[0]
    v[1] = 0
    v.fill(7.0)
    assert x.to_numpy().tolist() == [[7, 7, 7], [0, 0, 0]]
    x[1] = np.float32(2) * x[0]
    m = qp.Matrix.field(2, 2, qp.f32, shape=())
    m[None] = np.eye(2)
    m[None][0, 1] = 5
    assert m[None].to_list() == [[1, 5], [0, 1]]
    assert x[1].to_list() == [14, 14, 14]
