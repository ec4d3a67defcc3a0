"""Examples of arrays, fields and trees."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_field() -> None:
    f = qp.field(qp.f32, shape=(2, 3))
    f[0, 1] = 2.5
    print(f.to_numpy().tolist())  # [[0.0, 2.5, 0.0], [0.0, 0.0, 0.0]]


def example_ndarray() -> None:
    x = qp.ndarray(qp.types.vector(3, qp.f32), 2)
    x[1] = [1.0, 2.0, 3.0]
    print(x.to_numpy().tolist())  # [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]


def example_tensor() -> None:
    x = qp.tensor(qp.f32, (2, 3), layout=(1, 0))  # column-major
    x.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    print(x[1, 0])  # 3.0


def example_from_dlpack() -> None:
    a = np.arange(3, dtype=np.float32)
    x = qp.from_dlpack(a)
    x[0] = 7.0
    print(a)  # [7. 1. 2.]


def example_Field() -> None:
    f = qp.field(qp.f32, 3)
    f.from_numpy(np.array([1, 2, 3], np.float32))
    f[0:2] = 5.0
    print(isinstance(f, qp.Field), f.to_numpy(), f.shape)  # True [5. 5. 3.] (3,)


def example_NDArray() -> None:
    x = qp.ndarray(qp.i32, 4)
    x.fill(3)
    y = qp.ndarray(qp.f32, 4)
    y.copy_from(x)
    print(isinstance(y, qp.NDArray), y.to_numpy(), x.nbytes)  # True [3. 3. 3. 3.] 16


def example_FieldsBuilder() -> None:
    builder = qp.FieldsBuilder()
    f = qp.field(qp.f32)
    builder.dense(qp.i, 1000).place(f)
    tree = builder.finalize()
    f.fill(1.0)
    tree.destroy()  # gives the memory back


def example_Layout() -> None:
    f = qp.Vector.field(3, qp.f32, shape=4, layout=qp.Layout.SOA)  # all x, then all y, then all z
    print(f.layout)  # Layout.SOA


def example_Backend() -> None:
    f = qp.tensor(qp.f32, 3, backend=qp.Backend.FIELD)
    print(isinstance(f, qp.Field))  # True


def example_root() -> None:
    a, b = qp.field(qp.f32), qp.field(qp.i32)
    qp.root.dense(qp.ij, (4, 8)).place(a, b)  # a[i, j] and b[i, j] lie together
    print(a.shape)  # (4, 8)


def example_deactivate_all_snodes() -> None:
    x = qp.field(qp.f32)
    qp.root.pointer(qp.i, 4).dense(qp.i, 2).place(x)
    x[3] = 5.0
    qp.deactivate_all_snodes()
    print(x[3])  # 0.0


def example_axes() -> None:
    print(qp.axes(0, 2) == qp.ik)  # True


def example_i() -> None:
    print(qp.i, qp.j, qp.k, qp.l)  # (0,) (1,) (2,) (3,)
    print(qp.ij, qp.ik, qp.il, qp.jk, qp.jl, qp.kl)  # (0, 1) (0, 2) (0, 3) (1, 2) (1, 3) (2, 3)
    print(qp.ijk, qp.ijl, qp.ikl, qp.jkl, qp.ijkl)  # (0, 1, 2) (0, 1, 3) (0, 2, 3) (1, 2, 3) (0, 1, 2, 3)
    f = qp.field(qp.f32)
    qp.root.dense(qp.i, 4).dense(qp.j, 8).place(f)
    print(f.shape)  # (4, 8)


def example_BufferView() -> None:
    x = qp.ndarray(qp.i32, 6)
    view = qp.BufferView(x, 2, 3)  # elements 2, 3 and 4
    view.fill(1)
    view[1:].fill(7)
    print(x.to_numpy(), view.subview(0, 2).get_ndarray() is x)  # [0 0 1 7 7 0] True


def example_BitpackedFields() -> None:
    a, b = qp.field(qp.types.quant.int(bits=12)), qp.field(qp.types.quant.fixed(bits=20, max_value=2.0))
    pack = qp.BitpackedFields(max_num_bits=32)
    pack.place(a, b)
    qp.root.dense(qp.i, 8).place(pack)
    a[3], b[3] = -7, 0.1
    print(a[3], round(b[3], 6))  # -7 0.099998


def example_wrap() -> None:
    f = qp.field(qp.f32, 3)
    print(qp.wrap(f) is f, isinstance(f, qp.Tensor))  # True True
