"""A range of an ndarray as an array of its own."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import quadpy as qp

vec2 = qp.types.vector(2, qp.f32)


@qp.kernel
def count_up(v: qp.types.BufferViewType(dtype=qp.i32), first: qp.i32):
    for i in range(v.shape[0]):
        v[i] = first + i


@qp.kernel
def add(a: qp.BufferView, b: qp.BufferView[qp.i32]):
    for i in a:
        a[i] = a[i] * 10 + b[i]


@pytest.fixture
def array():
    return qp.ndarray(qp.i32, 8)


def test_kernels_change_the_array(array):
    view = qp.BufferView(array, 2, 3)
    count_up(view, 5)
    assert array.to_numpy().tolist() == [0, 0, 5, 6, 7, 0, 0, 0]
    view[0] = 9
    assert array[2] == 9
    assert view.to_numpy().tolist() == [9, 6, 7]
    assert (view.shape, view.size, view.start, len(view)) == ((3,), 3, 2, 3)
    assert view.get_ndarray() is array
    assert repr(view) == "BufferView(i32, elements 2 to 5)"


def test_views_of_views(array):
    array.from_numpy(np.arange(8, dtype=np.int32))
    view = qp.BufferView(array, 2, 5)
    for inner, expected in (
        (view.subview(1, 3), [3, 4, 5]),
        (view.subview(2), [4, 5, 6]),
        (view[1:4], [3, 4, 5]),
        (view[-2:], [5, 6]),
        (view[3:1], []),
        (view[:][1:][1:2], [4]),
        (qp.BufferView(array), list(range(8))),
        (qp.BufferView(array, 8), []),
    ):
        assert inner.to_numpy().tolist() == expected
        assert inner.get_ndarray() is array


def test_views_that_overlap_are_compiled_for_it(array):
    array.from_numpy(np.arange(8, dtype=np.int32))
    add(qp.BufferView(array, 1, 3), qp.BufferView(array, 0, 3))
    found = array.to_numpy().tolist()
    assert found[4:] == [4, 5, 6, 7]
    assert found[0] == 0
    assert found[1] == 10
    add(qp.BufferView(array, 0, 4), qp.BufferView(array, 4, 4))
    assert array.to_numpy()[:2].tolist() == [4, 105]


def test_elements_of_vectors(array):
    vectors = qp.ndarray(vec2, 4)

    @qp.kernel
    def run(v: qp.types.BufferViewType(vec2)):
        for i in v:
            v[i] = [i, 7]

    run(qp.BufferView(vectors, 1, 2))
    assert vectors.to_numpy().tolist() == [[0, 0], [0, 7], [1, 7], [0, 0]]


def test_the_views_own_range_counts_under_debug(init):
    init(debug=True)
    array = qp.ndarray(qp.i32, 8)

    @qp.kernel
    def write(v: qp.BufferView, at: qp.i32):
        v[at] = 1

    view = qp.BufferView(array, 2, 3)
    write(view, 2)

    def past_the_end():
        write(view, 3)
        qp.sync()

    with pytest.raises(qp.KernelIndexError, match="index 3"):
        past_the_end()


def test_clamped_views(array):
    @qp.kernel
    def write(v: qp.types.BufferViewType(qp.i32, boundary="clamp")):
        v[-5] = 1
        v[100] = 2

    write(qp.BufferView(array, 2, 3))
    assert array.to_numpy().tolist() == [0, 0, 1, 0, 2, 0, 0, 0]


def test_the_memory_stays(arch):
    view = qp.BufferView(qp.ndarray(qp.i32, 1000), 10, 20)
    gc.collect()
    count_up(view, 0)
    assert view.to_numpy().tolist() == list(range(20))
    copy = pickle.loads(pickle.dumps(view))
    assert copy.to_numpy().tolist() == list(range(20))
    if arch == "cpu":
        np.asarray(view)[3] = -1
        assert view[3] == -1


def test_wrong_views(array):
    for call, text in (
        (lambda: qp.BufferView(array, 6, 3), "elements 6 to 9 are not all in"),
        (lambda: qp.BufferView(array, -1, 3), "offset=-1 must be a whole number of at least 0"),
        (lambda: qp.BufferView(array, 0, 2.5), "size=2.5 must be a whole number"),
        (lambda: qp.BufferView(qp.ndarray(qp.i32, (2, 2)), 0, 1), "takes an ndarray of one axis"),
        (lambda: qp.BufferView(np.zeros(3), 0, 1), "takes an ndarray of one axis"),
        (lambda: qp.BufferView(array, 0, 4)[::2], "a BufferView has no steps"),
        (lambda: qp.BufferView(array, 0, 4).subview(2, 3), "elements 2 to 5 are not all in"),
        (qp.BufferView, "missing|argument"),
    ):
        with pytest.raises(qp.ArgumentError, match=text):
            call()
    with pytest.raises(qp.BoundsError):
        qp.BufferView(array, 0, 4)[4]
