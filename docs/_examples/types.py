"""Examples of ``qp.types``."""

from __future__ import annotations

import quadpy as qp


def example_vector() -> None:
    vec5 = qp.types.vector(5, qp.f32)
    print(vec5(1.0))  # Vector([1., 1., 1., 1., 1.], dt=f32)
    print(qp.ndarray(vec5, 2).to_numpy().shape)  # (2, 5)


def example_matrix() -> None:
    mat23 = qp.types.matrix(2, 3, qp.f32)
    print(mat23([1, 2, 3], [4, 5, 6]).shape)  # (2, 3)


def example_struct() -> None:
    sphere = qp.types.struct(center=qp.math.vec3, radius=qp.f32)
    spheres = sphere.field(shape=2)
    spheres[1].radius = 2.0
    print(spheres.radius.to_numpy())  # [0. 2.]


def example_is_integral() -> None:
    print(qp.types.is_integral(qp.u8), qp.types.is_integral(qp.f32))  # True False


def example_is_real() -> None:
    print(qp.types.is_real(qp.f16), qp.types.is_real(qp.i64))  # True False


def example_is_signed() -> None:
    print(qp.types.is_signed(qp.i8), qp.types.is_signed(qp.u8))  # True False


def example_is_tensor() -> None:
    print(qp.types.is_tensor(qp.math.vec3), qp.types.is_tensor(qp.f32))  # True False


def example_BufferViewType() -> None:
    @qp.kernel
    def first(v: qp.types.BufferViewType(dtype=qp.i32)) -> qp.i32:
        return v[0]

    x = qp.ndarray(qp.i32, 4)
    x[2] = 5
    print(first(qp.BufferView(x, 2, 2)), first(x))  # 5 0
