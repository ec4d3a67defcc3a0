"""What kernels return: numbers, vectors, matrices and tuples of them, each of its own type."""

from __future__ import annotations

import numpy as np

import quadpy as qp

vec2 = qp.types.vector(2, qp.f32)
mat2 = qp.types.matrix(2, 2, qp.f64)


@qp.kernel
def mixed(a: qp.i32) -> (qp.i32, vec2, mat2, qp.u1):
    return a, qp.Vector([1.5, a]), qp.Matrix([[0.25, 0.0], [0.0, a]]), a > 2


def test_parts_of_a_tuple_keep_their_types_and_shapes():
    number, vector, matrix, truth = mixed(3)
    assert number == 3
    assert truth is True
    assert vector.dtype == qp.f32
    np.testing.assert_array_equal(vector.to_numpy(), [1.5, 3])
    assert matrix.dtype == qp.f64
    np.testing.assert_array_equal(matrix.to_numpy(), [[0.25, 0], [0, 3]])
