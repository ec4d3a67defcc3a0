"""Examples of types, vectors, matrices and structs."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_f32() -> None:
    print(qp.f32.bits, qp.f32.is_float)  # 32 True
    print([qp.ndarray(dtype, 2).nbytes for dtype in (qp.f16, qp.bf16, qp.f32, qp.f64)])  # [4, 4, 8, 16]


def example_i32() -> None:
    print(qp.i32.min_int, qp.i64.max_int, qp.u64.max_int)  # -2147483648 9223372036854775807 18446744073709551615
    print([dtype.max_int for dtype in (qp.i8, qp.i16, qp.u8, qp.u16, qp.u32)])  # [127, 32767, 255, 65535, 4294967295]


def example_u1() -> None:
    flags = qp.ndarray(qp.u1, 3)
    flags[1] = True
    print(flags.to_numpy())  # [False  True False]


def example_Array() -> None:
    @qp.kernel
    def add_one(x: qp.Array[qp.i32]) -> None:  # any number of axes
        for index in qp.grouped(x):
            x[index] += 1

    x = np.zeros((2, 2), np.int32)
    add_one(x)
    print(x.tolist())  # [[1, 1], [1, 1]]


def example_Array1D() -> None:
    @qp.kernel
    def row_sums(a: qp.Array2D[qp.f32], sums: qp.Array1D[qp.f32]) -> None:
        for i, j in a:
            sums[i] += a[i, j]

    sums = np.zeros(2, np.float32)
    row_sums(np.ones((2, 3), np.float32), sums)
    print(sums)  # [3. 3.]


def example_Array0D() -> None:
    @qp.kernel
    def count(x: qp.Array3D[qp.i32], y: qp.Array4D[qp.i32], n: qp.Array0D[qp.i32]) -> None:
        for _i, _j, _k in x:
            n[None] += 1
        for _i, _j, _k, _m in y:
            n[None] += 1

    n = np.zeros((), np.int32)
    count(np.zeros((2, 2, 2), np.int32), np.zeros((2, 2, 2, 2), np.int32), n)
    print(n)  # 24


def example_dataclass() -> None:
    @qp.dataclass
    class Particle:
        x: qp.math.vec2
        mass: qp.f32 = 1.0

        @qp.func
        def momentum(self, v):
            return self.mass * v

    particles = Particle.field(3)
    particles[0] = Particle(x=[1.0, 2.0], mass=4.0)
    print(particles[0])  # Particle(x=Vector([1., 2.], dt=f32), mass=4.0)
    print(particles.mass.to_numpy())  # [4. 0. 0.]


def example_Vector() -> None:
    v = qp.Vector([3.0, 4.0])
    print(v.norm(), v.dot(v), v.x)  # 5.0 25.0 3.0
    positions = qp.Vector.field(2, qp.f32, shape=5)
    positions[0] = v
    print(positions.to_numpy().shape)  # (5, 2)


def example_Matrix() -> None:
    a = qp.Matrix([[2.0, 0.0], [0.0, 4.0]])
    print(a @ qp.Vector([1.0, 1.0]))  # Vector([2., 4.], dt=f32)
    print(a.determinant(), a.inverse())  # 8.0 Matrix([[0.5 , 0.  ], [0.  , 0.25]], dt=f32)


def example_Struct() -> None:
    s = qp.Struct(mass=1.5, n=2)
    s.n += 1
    print(s.to_dict())  # {'mass': 1.5, 'n': 3}
