"""Shapes and offsets as NumPy has them: arrays of integers, and integers of its types."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

SHAPE = np.array([2, 3], np.int32)


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: qp.field(qp.f32, shape),
        lambda shape: qp.ndarray(qp.f32, shape),
        lambda shape: qp.Vector.field(3, qp.f32, shape),
        lambda shape: qp.Matrix.ndarray(2, 2, qp.f32, shape),
        lambda shape: qp.tensor(qp.i32, shape, layout=(1, 0)),
        lambda shape: qp.types.struct(a=qp.f32).field(shape),
    ],
)
def test_a_shape_is_an_array_of_integers(make):
    assert make(SHAPE).shape == make(tuple(SHAPE)).shape == make(list(SHAPE)).shape == (2, 3)


def test_a_tree_and_an_offset():
    x = qp.field(qp.f32)
    qp.root.dense(qp.ij, SHAPE).place(x, offset=np.array([-1, 4]))
    x[-1, 4] = 2.0
    assert x.shape == (2, 3)
    assert x.to_numpy()[0, 0] == 2.0
    assert qp.field(qp.f32, 3, offset=np.int64(5))[5] == 0.0


@pytest.mark.parametrize("shape", [np.array([2.0, 3.0]), np.array([[2, 3]]), np.array(2.5), "23"])
def test_what_is_no_shape(shape):
    with pytest.raises(qp.ArgumentError, match="is not a shape"):
        qp.field(qp.f32, shape)
    with pytest.raises(qp.ArgumentError, match="must be 2 integers"):
        qp.field(qp.f32, (2, 3), offset=shape)
