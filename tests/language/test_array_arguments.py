"""Arrays as arguments: quadpy's and NumPy's, views, empty ones, the same memory twice."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.kernel
def scale(x: A(qp.f32, 1), y: A(qp.f32, 1), a: qp.f32):
    for i in x:
        y[i] = a * x[i]


@qp.kernel
def transpose(x: A(ndim=2), y: A(ndim=2)):
    for i, j in x:
        y[j, i] = x[i, j]


def test_quadpy_and_numpy_arrays_mix():
    x, y = qp.ndarray(qp.f32, 100), np.zeros(100, np.float32)
    x.from_numpy(np.arange(100, dtype=np.float32))
    scale(x, y, 3.0)
    np.testing.assert_array_equal(y, 3 * np.arange(100, dtype=np.float32))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float64])
def test_element_type_and_ndim_left_out(dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    y = np.zeros((4, 3), dtype)
    transpose(x, y)
    np.testing.assert_array_equal(y, x.T)


VIEWS = {
    "steps": lambda a: a[::2, 1::3],
    "reversed": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "inner": lambda a: a[3:7, 2:5],
    "fortran": np.asfortranarray,
    "row broadcast": lambda a: np.broadcast_to(a[0], (4, 12)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_strided_views_are_read(view):
    x = view(np.arange(144, dtype=np.int32).reshape(12, 12))
    y = np.zeros(x.shape[::-1], np.int32)
    transpose(x, y)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("view", [v for k, v in VIEWS.items() if k not in ("row broadcast", "fortran")])
def test_strided_views_are_written_and_nothing_beside_them(view):
    base, want = np.zeros((12, 12), np.int32), np.zeros((12, 12), np.int32)
    target = view(base)
    x = np.arange(1, target.size + 1, dtype=np.int32).reshape(target.shape[::-1])
    view(want)[...] = x.T
    transpose(x, target)
    np.testing.assert_array_equal(base, want)


def test_a_column_of_records():
    records = np.zeros(5, np.dtype([("a", np.float32), ("b", np.int32)]))
    records["a"] = np.arange(5)
    scale(records["a"], records["a"], 2.0)
    np.testing.assert_array_equal(records["a"], [0, 2, 4, 6, 8])
    assert not records["b"].any()


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_empty_arrays(shape):
    y = np.zeros(shape[::-1])
    transpose(np.zeros(shape), y)
    assert y.size == 0


@qp.kernel
def shift_left(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    for _ in range(1):
        for i in range(x.shape[0]):
            y[i] = x[i] + 1


@pytest.mark.parametrize("distance", [0, 1, 3, 64])
def test_overlapping_arguments(distance):
    """Written through one argument, seen through the other: in order, since one iteration does it all."""
    n = 200
    base = np.arange(n + distance, dtype=np.int32)
    want = base.copy()
    for i in range(n):
        want[i + distance] = want[i] + 1
    shift_left(base[:n], base[distance:])
    np.testing.assert_array_equal(base, want)


@qp.kernel
def exchange(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    for i in x:
        y[i] += 1
        x[i] += 10
        y[i] = y[i] * 2


def test_the_same_array_twice():
    x = np.arange(1000, dtype=np.int32)
    exchange(x, x)
    np.testing.assert_array_equal(x, (np.arange(1000) + 11) * 2)


@qp.kernel
def attributes(x: A(), y: A(qp.i32, 1)):
    y[0] = x.shape[0]
    y[1] = x.shape[1]
    y[2] = len(x)
    y[3] = x.ndim
    y[4] = x.size


def test_shape_ndim_size():
    y = np.zeros(5, np.int32)
    attributes(np.zeros((3, 7)), y)
    assert y.tolist() == [3, 7, 3, 2, 21]


@qp.kernel
def zero_d(x: A(qp.f32, 0)):
    x[None] = x[None] + 2.5


def test_an_array_of_no_axes():
    x = np.array(1.0, np.float32)
    zero_d(x)
    assert x == 3.5


@qp.kernel
def vectors(x: A(qp.types.vector(3, qp.f32), 1), m: A(qp.types.matrix(2, 2, qp.f32), 1)):
    for i in x:
        x[i] = x[i] * 2.0
        x[i].y += 1.0
        m[i] = m[i] @ m[i]
        m[i][0, 1] = 9.0


def test_elements_that_are_vectors_and_matrices():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    m = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    want_x, want_m = x * 2 + np.array([0, 1, 0], np.float32), m @ m
    want_m[:, 0, 1] = 9
    vectors(x, m)
    np.testing.assert_array_equal(x, want_x)
    np.testing.assert_array_equal(m, want_m)


def test_read_only_arrays_are_read():
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    scale(x, y, 2.0)
    np.testing.assert_array_equal(y, 2 * x)
