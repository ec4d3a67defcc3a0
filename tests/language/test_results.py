"""What kernels return: numbers, vectors, matrices and tuples of them, each of its own type."""

from __future__ import annotations

import numpy as np
import pytest

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


@qp.kernel
def cast_by_annotation() -> (vec2, qp.types.vector(2, qp.f64), (qp.f32, qp.i64)):
    return [1, 2], (0.1, 2**40), qp.Vector([1.5, 2.5])


def test_the_annotation_says_what_lists_and_vectors_become():
    vector, wide, pair = cast_by_annotation()
    assert (vector.dtype, vector.to_numpy().tolist()) == (qp.f32, [1, 2])
    assert (wide.dtype, wide.to_numpy().tolist()) == (qp.f64, [0.1, 2**40])
    assert pair == (1.5, 2)
    assert isinstance(pair[1], int)


WRONG = {
    "-> mat2: return [1.0, 2.0, 3.0, 4.0]": "the result is f64x2x2, not f64x4",
    "-> mat23: return qp.Matrix([[1, 2], [3, 4], [5, 6]])": "the result is f64x2x3, not f64x3x2",
    "-> vec1: return 1.0": "the result is f32x1, not float",
    "-> (qp.f32, vec1): return qp.Vector([1.0, 2.0])": "the result is f32x1, not f32",
    ": return None, 1": "None cannot be returned together with other results",
    ": return (1, (2, None))": "None cannot be returned together with other results",
}


@pytest.mark.parametrize("text", WRONG)
def test_results_of_another_shape_are_errors(load, text):
    kernel = load(f"""
mat2, mat23 = qp.types.matrix(2, 2, qp.f64), qp.types.matrix(2, 3, qp.f64)
vec1 = qp.types.vector(1, qp.f32)

@qp.kernel
def kernel() {text.replace(": ", ":" + chr(10) + "    ", 1)}
""").kernel
    with pytest.raises(qp.KernelTypeError, match=WRONG[text]) as caught:
        kernel()
    assert "return" in str(caught.value)
