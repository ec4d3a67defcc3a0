"""One component of the vectors or matrices of a field as a field of its own."""

from __future__ import annotations

import gc
import pickle
import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.arrays import component_fields


def dense():
    return qp.Matrix.field(2, 3, qp.f32, (4, 5))


def structure_of_arrays():
    return qp.Matrix.field(2, 3, qp.f32, (4, 5), order="ji", layout=qp.Layout.SOA)


def in_blocks():
    f = qp.Matrix.field(2, 3, qp.f32)
    qp.root.dense(qp.ij, (2, 1)).dense(qp.ij, (2, 5)).place(f)
    return f


def beside_another():
    f, g = qp.field(qp.f64), qp.Matrix.field(2, 3, qp.f32)
    qp.root.dense(qp.ij, (4, 5)).place(f, g, offset=(-1, 2))
    return g


@pytest.mark.parametrize("make", [dense, structure_of_arrays, in_blocks, beside_another])
def test_it_is_the_same_memory(make):
    whole = make()
    values = np.arange(120, dtype=np.float32).reshape(4, 5, 2, 3)
    whole.from_numpy(values)
    part = whole.get_scalar_field(1, 2)
    np.testing.assert_array_equal(part.to_numpy(), values[:, :, 1, 2])
    assert (part.shape, part.offset, part.dtype) == (whole.shape, whole.offset, whole.dtype)

    @qp.kernel
    def double():
        for I in qp.grouped(part):
            part[I] *= 2

    double()
    part[whole.offset] = -7
    values[:, :, 1, 2] *= 2
    values[0, 0, 1, 2] = -7
    np.testing.assert_array_equal(whole.to_numpy(), values)
    part.fill(3)
    assert whole[whole.offset][1, 2] == 3


def test_a_kernel_sees_both():
    """Neither is taken for memory of its own: what one writes, the other reads."""
    v = qp.Vector.field(2, qp.i32, 8)
    x = v.get_scalar_field(0)

    @qp.kernel
    def run():
        for i in range(8):
            v[i] = [i, 1]
            a = x[i]
            x[i] = a + 10
            v[i].y += v[i].x

    run()
    assert v.to_numpy().tolist() == [[i + 10, i + 11] for i in range(8)]


def test_it_is_one_object_while_it_is_used():
    v = qp.Vector.field(2, qp.i32, 8, name="v")
    x = v.get_scalar_field(0)
    assert v.get_scalar_field(0) is x
    assert v.get_scalar_field(1) is not x
    assert x.name == "v[0]"
    del v
    gc.collect()
    x[1] = 5
    assert x[1] == 5
    assert pickle.loads(pickle.dumps(x))[1] == 5


def test_members_of_structs_and_derivatives_have_components():
    s = qp.Struct.field({"v": qp.types.vector(2, qp.f32), "n": qp.i32}, shape=3)
    y = s.v.get_scalar_field(1)

    @qp.kernel
    def run():
        for i in range(3):
            s[i].v = [i, 2 * i]
            y[i] += 1

    run()
    assert s.v.to_numpy().tolist() == [[0, 1], [1, 3], [2, 5]]
    v = qp.Vector.field(2, qp.f32, 3, needs_grad=True)
    v.get_scalar_field(1).grad[2] = 4
    assert v.grad[2][1] == 4


def test_a_field_in_a_sparse_tree():
    v = qp.Vector.field(2, qp.f32)
    node = qp.root.pointer(qp.i, 4)
    node.dense(qp.i, 2).place(v)
    x = v.get_scalar_field(0)
    count = qp.field(qp.i32, ())

    @qp.kernel
    def write():
        x[3] = 1.0

    @qp.kernel
    def visit():
        for _i in x:
            count[None] += 1

    write()
    visit()
    assert count[None] == 2
    assert v[3][0] == 1


def test_a_component_of_a_field_that_is_given_back():
    builder = qp.FieldsBuilder()
    v = qp.Vector.field(2, qp.f32)
    builder.dense(qp.i, 4).place(v)
    tree = builder.finalize()
    x = v.get_scalar_field(0)
    x[1] = 2
    tree.destroy()
    with pytest.raises(qp.ArgumentError, match="was destroyed"):
        x[1]


def test_components_that_are_not_there():
    v = qp.Vector.field(2, qp.f32, 3)
    for call, text in (
        (lambda: v.get_scalar_field(2), r"\(2,\) is not a component of .*, whose elements are vectors of 2"),
        (lambda: v.get_scalar_field(0, 0), "is not a component"),
        (lambda: v.get_scalar_field(0.5), "is not a component"),
        (lambda: qp.field(qp.f32, 3).get_scalar_field(), "whose elements are numbers"),
    ):
        with pytest.raises(qp.ArgumentError, match=text):
            call()


def test_threads_get_one_field():
    """The first thread is stopped while it makes the field; another that asks for it waits, and gets the same."""
    whole, found = dense(), []
    made, asked = component_fields._made, threading.Event()

    def slowly(*args):
        other.start()
        asked.wait(0.2)  # the other one cannot be done
        return made(*args)

    def ask():
        found.append(whole.get_scalar_field(0, 1))
        asked.set()

    other = threading.Thread(target=ask)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(component_fields, "_made", slowly)
        found.append(whole.get_scalar_field(0, 1))
    other.join()
    assert found[0] is found[1]
