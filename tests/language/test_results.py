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
    return [1, 2], (0.1, 2**40), qp.Vector([1.5, 2.0])


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
    "-> None: return 1.0": "kernel returns float, but its annotation says None",
    "-> 'None': return 1, 2": "kernel returns tuple, but its annotation says None",
    "-> qp.i32: return 2.5": "the result is i32, and 2.5 would be cut to it",
    "-> (qp.f32, qp.u8): return 1.0, qp.f32(2.5)": "the result is u8, and 2.5 would be cut to it",
    "-> bool: return qp.f64(0.5)": "the result is u1, and 0.5 would be cut to it",
    "-> ivec2: return qp.Vector([qp.f32(1.0), 2.5])": "the result is i32, and 2.5 would be cut to it",
    "-> (ivec2, int): return [1, 2.5], 3": "the result is i32, and 2.5 would be cut to it",
    ": return None, 1": "None cannot be returned together with other results",
    ": return (1, (2, None))": "None cannot be returned together with other results",
}


@pytest.mark.parametrize("text", WRONG)
def test_results_of_another_shape_are_errors(load, text):
    kernel = load(f"""
mat2, mat23 = qp.types.matrix(2, 2, qp.f64), qp.types.matrix(2, 3, qp.f64)
vec1, ivec2 = qp.types.vector(1, qp.f32), qp.types.vector(2, qp.i32)

@qp.kernel
def kernel() {text.replace(": ", ":" + chr(10) + "    ", 1)}
""").kernel
    with pytest.raises(qp.KernelTypeError, match=WRONG[text]) as caught:
        kernel()
    assert "return" in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}])
def test_floats_are_cut_to_results_only_where_a_cast_says_so(init, options):
    init(**options)

    @qp.kernel
    def total(x: qp.types.ndarray(qp.f32, 1)) -> qp.i32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    @qp.kernel
    def written(x: qp.types.ndarray(qp.f32, 1)) -> (qp.i32, int, qp.i32, qp.f32, qp.u1):
        s = 0.0
        for i in x:
            s += x[i]
        return int(s), qp.i32(s), 3.0, qp.f64(s), s > 1

    x = np.full(3, 0.9, np.float32)
    with pytest.raises(qp.KernelTypeError, match="the result is i32, and f32 would be cut to it") as caught:
        total(x)
    assert "return s" in str(caught.value)
    assert caught.value.hint == "cast it: qp.i32(...) or int(...); or change the annotation"
    assert written(x) == (2, 2, 3, np.float32(0.9) * 3, True)


@qp.func
def half(a) -> qp.i32:
    return a / 2


@qp.func
def silent(x: qp.template()) -> None:
    x += 1
    return x


@qp.real_func
def early(a: qp.f32) -> qp.i32:
    if a > 1:
        return 1
    return a


@qp.data_oriented
class Counter:
    @qp.func
    def count(self) -> qp.i32:
        return 0.5

    @qp.kernel
    def run(self) -> None:
        return self.count()


def test_results_of_functions_follow_their_annotations_too():
    @qp.kernel
    def halved() -> qp.i32:
        return half(3)

    @qp.kernel
    def changed() -> qp.i32:
        a = 1
        return silent(a)

    @qp.kernel
    def returned(a: qp.f32) -> qp.i32:
        return early(a)

    for kernel, args, message in (
        (halved, (), "the result is i32, and 1.5 would be cut"), (changed, (), "silent returns i32, but its annotation says None"),
        (returned, (2.5,), "the result is i32, and f32 would be cut"), (Counter().run, (), "the result is i32, and 0.5 would be cut"),
    ):  # fmt: skip
        with pytest.raises(qp.KernelTypeError, match=message):
            kernel(*args)
    with pytest.raises(qp.KernelTypeError, match="the result is i32, and f32 would be cut"):
        half(3)


def test_no_result_under_none_and_any_result_without_annotation():
    @qp.kernel
    def nothing() -> None:
        return None

    @qp.kernel
    def free():
        return 1.5, 2

    assert nothing() is None
    assert free() == (1.5, 2)
