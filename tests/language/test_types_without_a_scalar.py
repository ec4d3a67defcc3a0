"""``qp.types.vector(3)``: the scalar type comes from the value, and is that of floats where there is none."""

from __future__ import annotations

import pytest

import quadpy as qp

vec3, mat2 = qp.types.vector(3), qp.types.matrix(2, 2)


@qp.func
def square(p: vec3):
    return p.norm_sqr()


@qp.func
def by_row(m: qp.types.matrix(2, 2), i) -> qp.types.vector(2):
    return m[i, :] * m[1, 0]


def test_parameters_of_functions_take_numbers_of_any_type():
    @qp.kernel
    def squares(a: vec3) -> (qp.f32, qp.i32, qp.f64, qp.f32):
        tenth = qp.Vector([qp.f64(0.1), 0, 0])
        return square(a), square(qp.Vector([1, 2, 4])), square(tenth), by_row(mat2(1.5, 2, 3, 4), 0).sum()

    assert squares(vec3(1, 2, 3)) == (14.0, 21, 0.1 * 0.1, 10.5)


@pytest.mark.parametrize("default", [qp.f32, qp.f64])
def test_values_in_kernels_have_the_type_of_their_numbers(default):
    qp.init(arch=qp.cpu, default_fp=default)

    @qp.kernel
    def made() -> (qp.i32, float):
        return vec3(7, 8, 9)[2] // 2, vec3(1.5)[1]

    assert made() == (4, 1.5)
    made_here, members = vec3(1, 2, 3), qp.types.struct(at=vec3, turn=mat2)
    assert made_here.dtype == default
    assert vec3.field(shape=2).dtype == mat2.ndarray(shape=2).dtype == default
    assert members.field(shape=1)[0].turn.dtype == default
    qp.init(arch=qp.cpu)


def test_the_shape_is_checked():
    @qp.kernel
    def wrong():
        square(qp.Vector([1.0, 2.0]))

    with pytest.raises(qp.KernelTypeError, match="p is f32x3, not f32x2"):
        wrong()
    assert (repr(vec3), repr(mat2)) == ("vector(3)", "matrix(2, 2)")
