"""Fields as a user's program declares, fills and reads them, and where their elements lie."""

import copy
import ctypes
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.dtypes import bf16, f32, f64, i8, i32
from quadpy.errors import ArgumentError, BoundsError
from quadpy.hostmath import Matrix, MatrixType, Vector, VectorType
from quadpy.runtime.arrays import tree
from quadpy.runtime.arrays.field import field
from quadpy.runtime.arrays.field_layout import Layout
from quadpy.runtime.arrays.ndarray import ndarray
from quadpy.runtime.memory.host_memory import ALIGNMENT

on_every_device = pytest.mark.usefixtures("arch")

LAYOUTS = [
    {},
    {"order": "ji"},
    {"layout": Layout.SOA},
    {"layout": Layout.SOA, "order": "ji"},
    {"offset": (-2, 7), "order": "ji"},
]


def read_by_strides(f, index, component):
    """What generated code would read: the pointer, and the strides in scalars."""
    at = sum(i * stride for i, stride in zip((*index, component), f.strides, strict=True))
    return ctypes.c_float.from_address(f.pointer + 4 * at).value


@pytest.mark.parametrize("options", LAYOUTS)
@pytest.mark.parametrize("dtype", [f32, VectorType(3, f32), MatrixType(2, 3, f32)], ids=str)
def test_strides_lead_to_the_elements(dtype, options):
    f = field(dtype, (3, 4), **options)
    components = int(np.prod(f.element_shape, dtype=int))
    values = np.arange(12 * components, dtype=np.float32).reshape(3, 4, *f.element_shape)
    f.from_numpy(values)
    np.testing.assert_array_equal(f.to_numpy(), values)
    for i, j, c in itertools.product(range(3), range(4), range(components)):
        assert read_by_strides(f, (i, j), c) == values[i, j].ravel()[c]
    assert f.nbytes == values.nbytes
    assert f.pointer % ALIGNMENT == 0


@pytest.mark.parametrize(
    ("options", "strides"),
    [
        ({}, (12, 3, 1)),
        ({"order": "ji"}, (3, 15, 1)),
        ({"layout": Layout.SOA}, (4, 1, 20)),
        ({"layout": Layout.SOA, "order": "ji"}, (1, 5, 20)),
    ],
)
def test_strides(options, strides):
    assert Vector.field(3, f32, (5, 4), **options).strides == strides


@on_every_device
def test_a_new_field_is_zero_and_says_what_it_is():
    f = field(i32, (2, 3), name="pressure")
    assert (f.shape, f.ndim, f.size, f.dtype, f.offset, f.element_shape, len(f)) == ((2, 3), 2, 6, i32, (0, 0), (), 2)
    assert not f.to_numpy().any()
    assert repr(f) == "field(i32, shape=(2, 3), name='pressure')"
    assert field(float, 3).dtype == f32


@on_every_device
def test_a_scalar_field_without_axes():
    f = field(i32, shape=())
    f[None] = 5
    assert (f[None], f.strides, f.shape, f.to_numpy().shape) == (5, (1,), (), ())
    assert pickle.loads(pickle.dumps(f))[None] == 5


@on_every_device
def test_elements_are_read_and_written():
    f = Matrix.field(2, 2, f32, shape=(3, 4), layout=Layout.SOA)
    f[1, 2] = [[1, 2], [3, 4]]
    assert f[1, 2].to_list() == [[1, 2], [3, 4]]
    assert f[-2, -2].to_list() == [[1, 2], [3, 4]]
    f.fill(Matrix.identity(f32, 2))
    assert f[2, 3].trace() == 2
    b = field(bf16, 2, order="i")
    b[1] = 1 / 3
    assert b[1] == 0.333984375


def test_indices_start_at_the_offset():
    f = field(f64, 4, offset=-2)
    f.from_numpy(np.arange(4))
    assert [f[i] for i in range(-2, 2)] == [0, 1, 2, 3]
    for outside in (-3, 2):
        with pytest.raises(BoundsError, match="starts at"):
            f[outside]
    assert f.offset == (-2,)


@on_every_device
def test_indices_outside_of_a_field():
    f = field(f64, (4, 2), order="ji")
    for outside in ((4, 0), (0, 2), (-5, 0)):
        with pytest.raises(BoundsError):
            f[outside]
    with pytest.raises(ArgumentError):
        f[0]


@pytest.mark.parametrize(
    "options",
    [
        {"order": "ij"},
        {"order": "kjl"},
        {"order": "iij"},
        {"offset": 1},
        {"offset": (1, 2)},
        {"offset": (1, 2.5, 3)},
        {"shape": (2, -1, 2)},
    ],
)
def test_options_that_do_not_fit_the_shape(options):
    with pytest.raises(ArgumentError):
        field(f32, **({"shape": (2, 3, 4)} | options))


def test_options_need_a_shape():
    with pytest.raises(ArgumentError, match="shape"):
        field(f32, order="i")


def test_a_field_without_a_shape_says_what_to_do():
    f = field(f32, name="later")
    with pytest.raises(AttributeError, match=r"later.*shape="):
        _ = f.shape
    with pytest.raises(ArgumentError, match="no memory"):
        f.fill(1)
    with pytest.raises(AttributeError, match="no attribute 'grads'"):
        _ = f.grads


@pytest.mark.parametrize("options", LAYOUTS)
@on_every_device
def test_zero_size_fields(options):
    f = Vector.field(2, f32, (0, 3), **options)
    f.fill(1)
    f.from_numpy(f.to_numpy())
    assert (f.nbytes, f.size, f.to_numpy().shape) == (0, 0, (0, 3, 2))


@on_every_device
def test_fields_and_ndarrays_copy_each_other():
    f = Vector.field(2, f32, 3, layout=Layout.SOA)
    a = ndarray(VectorType(2, i8), 3)
    a.from_numpy(np.arange(6).reshape(3, 2))
    f.copy_from(a)
    assert f.to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ArgumentError, match="truncated"):
        a.copy_from(f)


@pytest.mark.parametrize("options", LAYOUTS)
@on_every_device
def test_fields_travel(options):
    f = Vector.field(2, f32, (2, 3), name="v", **options)
    f.from_numpy(np.arange(12).reshape(2, 3, 2))
    for other in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert (other.shape, other.offset, other.name, other.element_shape) == (f.shape, f.offset, "v", (2,))
        np.testing.assert_array_equal(other.to_numpy(), f.to_numpy())
        other.fill(0)
        assert f.to_numpy().any()


def test_numpy_sees_the_memory():
    f = field(f32, (2, 3), order="ji")
    np.asarray(f)[1, 2] = 5
    np.from_dlpack(f)[0, 0] = 4
    assert (f[1, 2], f[0, 0]) == (5, 4)


def test_fields_are_placed_in_a_tree():
    x, y = field(f32, name="x"), Vector.field(2, f32, name="y")
    tree.root.dense(tree.ij, (3, 4)).place(x, y)
    assert (x.shape, y.shape, x.strides, y.strides) == ((3, 4), (3, 4), (12, 3, 1), (12, 3, 1))
    assert y.pointer == x.pointer + 4
    x.fill(1)
    y[2, 3] = [5, 6]
    assert (x.to_numpy() == 1).all()
    assert y.to_numpy().sum() == 11
    assert read_by_strides(y, (2, 3), 1) == 6


@on_every_device
def test_members_of_a_cell_are_aligned():
    a, b, c = field(i8), field(f64), field(i32)
    tree.root.dense(tree.i, 5).place(a, b, c)
    assert (a.strides, b.strides, c.strides) == ((24, 1), (3, 1), (6, 1))
    assert (b.pointer - a.pointer, c.pointer - a.pointer) == (8, 16)
    for f, value in ((a, 1), (b, 2), (c, 3)):
        f.fill(value)
    assert (set(a.to_numpy()), set(b.to_numpy()), set(c.to_numpy())) == ({1}, {2}, {3})


def test_trees_nest():
    per_row, grid = field(f32), field(f32)
    row = tree.root.dense(tree.j, 3)
    row.place(per_row)
    row.dense(tree.i, 4).place(grid, offset=(10, 0))
    assert (per_row.shape, grid.shape, grid.offset) == ((3,), (4, 3), (10, 0))
    assert (per_row.strides, grid.strides) == ((5, 1), (1, 5, 1))
    grid[13, 2] = 7
    assert (read_by_strides(grid, (3, 2), 0), per_row.to_numpy().any()) == (7, False)


@on_every_device
def test_an_element_at_the_root():
    f = field(i32)
    tree.root.place(f)
    f[None] = 3
    assert (f[None], f.shape) == (3, ())


def test_an_int_is_the_extent_of_each_axis():
    f = field(i32)
    tree.root.dense(tree.axes(0, 1, 2), 2).place(f)
    assert f.shape == (2, 2, 2)


def test_trees_that_cannot_be():
    f, placed = field(f32), field(f32, 3)
    node = tree.root.dense(tree.i, 4)
    for wrong in (
        lambda: node.dense(tree.jk, (1, 2, 3)),
        lambda: node.place(3),
        lambda: node.place(placed),
        lambda: tree.axes(0, 0),
    ):
        with pytest.raises(ArgumentError):
            wrong()
    node.place(f)
    with pytest.raises(ArgumentError, match="once"):
        node.place(f)
    f.fill(1)
    with pytest.raises(ArgumentError, match="in use"):
        node.place(field(f32))


@on_every_device
def test_threads_agree_on_the_memory_of_a_tree():
    for _ in range(20):
        f = field(i32)
        tree.root.dense(tree.i, 8).place(f)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda n, f=f: f.__setitem__(n, n + 1), range(8)))
        assert f.to_numpy().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_memory_is_taken_at_the_first_use():
    f = field(f32, (3, 4), name="f")
    assert (f.shape, f.nbytes, f.placed) == ((3, 4), 48, False)
    f[1, 2] = 5.0
    assert f.placed
    assert f.to_numpy().sum() == 5.0


def test_threads_that_use_a_new_field_get_one_memory():
    f = field(f32, 64)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: f.pointer, range(64)))) == 1


def test_a_field_says_its_layout():
    placed = Vector.field(2, f32)
    tree.root.dense(tree.i, 3).place(placed)
    soa = Vector.field(2, f32, 3, layout=Layout.SOA)
    structs = [qp.types.struct(a=f32).field(3, layout=layout) for layout in Layout]
    assert [f.layout for f in (placed, soa, *structs)] == [Layout.AOS, Layout.SOA, Layout.AOS, Layout.SOA]
    assert not soa.placed


Pair = qp.types.struct(a=qp.i32)


@pytest.mark.parametrize("layout", ["aos", "soa", "anything", 0, None])
@pytest.mark.parametrize(
    "make", [lambda **given: qp.field(qp.types.vector(3, qp.f32), **given), Pair.field], ids=["vectors", "structs"]
)
def test_a_layout_is_a_layout(make, layout):
    for shape in (3, None):
        with pytest.raises(qp.ArgumentError, match=f"layout={layout!r} is not a layout"):
            make(shape=shape, layout=layout)


@pytest.mark.parametrize("make", [lambda: qp.field(qp.f32), Pair.field], ids=["numbers", "structs"])
def test_a_field_without_a_shape_says_so(make):
    with pytest.raises(TypeError, match="has no length: it has no shape yet"):
        len(make())
    with pytest.raises(qp.ArgumentError, match="has no memory"):
        make().from_numpy({"a": np.zeros(3, np.int32)})
