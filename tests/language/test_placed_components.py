"""Components of a field of vectors or matrices that are placed one by one, in nodes and trees of their own."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError


def blocks_beside_each_other():
    m = qp.Matrix.field(2, 3, qp.f32)
    outer = qp.root.dense(qp.ij, (2, 1))
    for i in range(2):
        for j in range(3):
            outer.dense(qp.ij, (2, 5)).place(m.get_scalar_field(i, j))
    return m


def a_tree_for_each():
    m = qp.Matrix.field(2, 3, qp.f32)
    for at in np.ndindex(2, 3):
        qp.root.dense(qp.ij, (4, 5)).place(m.get_scalar_field(*at))
    return m


def backwards_and_with_others():
    m = qp.Matrix.field(2, 3, qp.f32)
    for number, at in enumerate(reversed([*np.ndindex(2, 3)])):
        others = [qp.field(qp.f64) for _ in range(number % 3)]
        qp.root.dense(qp.ij, (4, 5)).place(*others, m.get_scalar_field(*at))
    return m


def one_node():
    m = qp.Matrix.field(2, 3, qp.f32)
    qp.root.dense(qp.ij, (4, 5)).place(*(m.get_scalar_field(*at) for at in np.ndindex(2, 3)), offset=(-1, 2))
    return m


def the_whole_after_all():
    m = qp.Matrix.field(2, 3, qp.f32)
    m.kept = m.get_scalar_field(1, 2)
    qp.root.dense(qp.ij, (4, 5)).place(m)
    return m


MAKERS = [blocks_beside_each_other, a_tree_for_each, backwards_and_with_others, one_node, the_whole_after_all]


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def whole(request):
    return request.param()


def test_the_host_sees_one_field(whole):
    values = np.arange(120, dtype=np.float32).reshape(4, 5, 2, 3)
    whole.from_numpy(values)
    np.testing.assert_array_equal(whole.to_numpy(), values)
    for at in np.ndindex(2, 3):
        part = whole.get_scalar_field(*at)
        np.testing.assert_array_equal(part.to_numpy(), values[(..., *at)])
        assert (part.shape, part.offset) == (whole.shape, whole.offset)
    i, j = whole.offset
    whole[i, j + 1] = [[1, 2, 3], [4, 5, 6]]
    whole[i + 3, j][1, 2] = -1
    values[0, 1], values[3, 0, 1, 2] = [[1, 2, 3], [4, 5, 6]], -1
    np.testing.assert_array_equal(whole.to_numpy(), values)
    np.testing.assert_array_equal(whole[i + 1 :, j + 2], values[1:, 2])
    whole[:, j] = 7
    values[:, 0] = 7
    np.testing.assert_array_equal(whole.to_numpy(), values)
    other = qp.Matrix.field(2, 3, qp.f32, (4, 5))
    other.copy_from(whole)
    whole.fill(0)
    assert not whole.to_numpy().any()
    whole.copy_from(other)
    np.testing.assert_array_equal(whole.to_numpy(), values)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).to_numpy(), values)
    whole.get_scalar_field(0, 1).fill(9)
    assert whole[i + 2, j + 3][0, 1] == 9


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": "python"}], ids=str)
def test_kernels_see_one_field(init, whole, options):
    init(**options)
    x = whole.get_scalar_field(1, 0)
    values = np.arange(120, dtype=np.float32).reshape(4, 5, 2, 3)
    whole.from_numpy(values)

    @qp.kernel
    def change(k: qp.i32):
        for I in qp.grouped(whole):
            whole[I] *= 2
            whole[I][0, k] += 1
            x[I] += whole[I][1, 0]
            whole[I][1, 1] = k

    change(2)
    values *= 2
    values[..., 0, 2] += 1
    values[..., 1, 0] *= 2
    values[..., 1, 1] = 2
    np.testing.assert_array_equal(whole.to_numpy(), values)


def test_graphs_and_templates(whole):
    @qp.kernel
    def add(f: qp.template(), a: qp.f32):
        for I in qp.grouped(f):
            f[I] += a

    with qp.graph.capture() as graph:
        add(whole, 1.0)
        add(whole.get_scalar_field(0, 2), 2.0)
    with graph.instantiate() as run:
        for _ in range(3):
            run.launch()
        qp.sync()
    assert (whole.to_numpy() == [[3, 3, 9], [3, 3, 3]]).all()


def test_it_stays_while_a_part_is_used(whole):
    whole.fill(4)
    part = whole.get_scalar_field(0, 0)
    del whole
    gc.collect()
    assert (part.to_numpy() == 4).all()


def test_sparse_cells(init):
    init()
    v = qp.Vector.field(2, qp.f32)
    block = qp.root.pointer(qp.ij, 4)
    for d in range(2):
        block.dense(qp.ij, 4).place(v.get_scalar_field(d), offset=(-8, -8))
    count = qp.field(qp.i32, ())

    @qp.kernel
    def write():
        v[-3, 5] = [1, 2]

    @qp.kernel
    def visit():
        for i, j in v:
            count[None] += 1
            v[i, j].x += 1

    write()
    visit()
    assert (v.shape, count[None]) == ((16, 16), 16)
    assert list(v[-3, 5]) == [2, 2]
    v.fill(5)
    assert (v.to_numpy() == 5).sum() == 32
    block.deactivate_all()
    assert not v.to_numpy().any()


def test_derivatives():
    v = qp.Vector.field(2, qp.f32, needs_grad=True)
    for d in range(2):
        qp.root.dense(qp.i, 3).place(v.get_scalar_field(d))
    v.get_scalar_field(1).grad[2] = 4
    assert v.grad.to_numpy().tolist() == [[0, 0], [0, 0], [0, 4]]
    w = qp.Vector.field(2, qp.f32)
    for d in range(2):
        x = w.get_scalar_field(d)
        qp.root.dense(qp.i, 3).place(x, x.grad)
    w.grad[1] = [5, 6]
    assert w.get_scalar_field(1).grad[1] == 6
    z = qp.Vector.field(2, qp.f32)
    builder = qp.FieldsBuilder()
    for d in range(2):
        builder.dense(qp.i, 3).place(z.get_scalar_field(d))
    builder.lazy_grad()
    tree = builder.finalize()
    z.grad[0] = [7, 8]
    assert z.get_scalar_field(0).grad[0] == 7
    tree.destroy()
    for use in (lambda: z[0], lambda: z.get_scalar_field(0)[0], lambda: z.grad[0]):
        with pytest.raises(ArgumentError, match="was destroyed"):
            use()


def test_other_libraries_get_copies():
    m = a_tree_for_each()
    with pytest.raises(ValueError, match="without a copy"):
        m.to_numpy(copy=False)
    with pytest.raises(BufferError, match="DLPack cannot describe"):
        m.__dlpack__()
    part = m.get_scalar_field(0, 0)
    part[1, 1] = 3
    assert m[1, 1][0, 0] == 3


def test_placing_that_does_not_fit():
    def some(**options):
        v = qp.Vector.field(2, qp.f32)
        qp.root.dense(qp.i, 4).place(v.get_scalar_field(0), **options)
        return v

    v = some()
    with pytest.raises(AttributeError, match="place all its components"):
        v.shape  # noqa: B018
    with pytest.raises(ArgumentError, match="placed already"):
        qp.root.dense(qp.i, 4).place(v)
    for place in (
        lambda v: qp.root.dense(qp.i, 5).place(v.get_scalar_field(1)),
        lambda v: qp.root.dense(qp.i, 4).place(v.get_scalar_field(1), offset=1),
        lambda v: qp.root.dense(qp.i, 2).dense(qp.i, 2).place(v.get_scalar_field(1)),
        lambda v: qp.root.pointer(qp.i, 4).place(v.get_scalar_field(1)),
    ):
        v = some()
        with pytest.raises(ArgumentError, match="do not fit together"):
            place(v)
    v = some()
    v.get_scalar_field(0)[0] = 1  # its memory is allocated
    with pytest.raises(ArgumentError, match="layout is in use"):
        qp.root.dense(qp.i, 4).place(v.get_scalar_field(1))
    with pytest.raises(ArgumentError, match="already has a shape"):
        qp.root.dense(qp.i, 4).place(v.get_scalar_field(0))
