"""Slices of ndarrays without elements."""

import numpy as np
import pytest

import quadpy as qp


@pytest.mark.parametrize("element", [qp.f32, qp.types.vector(3, qp.f32), qp.types.matrix(2, 2, qp.f64)])
def test_slices_of_an_empty_array_are_views(element):
    whole = qp.ndarray(element, 0)
    view = whole[0:5]
    view.fill(1)
    assert isinstance(view, qp.BufferView)
    assert view.shape == whole[::2].shape == view[1:].shape == view.subview(0, 0).shape == (0,)
    assert np.asarray(view).shape == (0, *whole.element_shape)
    assert view.get_ndarray() is whole


def test_a_kernel_takes_a_slice_of_an_empty_array():
    @qp.kernel
    def length(x: qp.types.ndarray(qp.f32, 1)) -> qp.i32:
        for i in x:
            x[i] = 1.0
        return x.shape[0]

    assert length(qp.ndarray(qp.f32, 0)[:]) == 0
