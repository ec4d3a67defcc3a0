"""A range of an ndarray as an array of its own."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import quadpy as qp

vec2 = qp.types.vector(2, qp.f32)


@qp.kernel
def count_up(v: qp.types.BufferViewType(dtype=qp.i32), first: qp.i32):
    for i in range(v.shape[0]):
        v[i] = first + i


@qp.kernel
def add(a: qp.BufferView, b: qp.BufferView[qp.i32]):
    for i in a:
        a[i] = a[i] * 10 + b[i]


@pytest.fixture
def array():
    return qp.ndarray(qp.i32, 8)


def test_kernels_change_the_array(array):
    view = qp.BufferView(array, 2, 3)
    count_up(view, 5)
    assert array.to_numpy().tolist() == [0, 0, 5, 6, 7, 0, 0, 0]
    view[0] = 9
    assert array[2] == 9
    assert view.to_numpy().tolist() == [9, 6, 7]
    assert (view.shape, view.size, view.offset, len(view)) == ((3,), 3, 2, 3)
    assert view.get_ndarray() is array
    assert repr(view) == "BufferView(i32, elements 2 to 5)"


def test_views_of_views(array):
    array.from_numpy(np.arange(8, dtype=np.int32))
    view = qp.BufferView(array, 2, 5)
    for inner, expected in (
        (view.subview(1, 3), [3, 4, 5]),
        (view.subview(2), [4, 5, 6]),
        (view[1:4], [3, 4, 5]),
        (view[-2:], [5, 6]),
        (view[3:1], []),
        (view[:][1:][1:2], [4]),
        (qp.BufferView(array), list(range(8))),
        (qp.BufferView(array, 8), []),
    ):
        assert inner.to_numpy().tolist() == expected
        assert inner.get_ndarray() is array


def test_views_that_overlap_are_compiled_for_it(array):
    array.from_numpy(np.arange(8, dtype=np.int32))
    add(qp.BufferView(array, 1, 3), qp.BufferView(array, 0, 3))
    found = array.to_numpy().tolist()
    assert found[4:] == [4, 5, 6, 7]
    assert found[0] == 0
    assert found[1] == 10
    add(qp.BufferView(array, 0, 4), qp.BufferView(array, 4, 4))
    assert array.to_numpy()[:2].tolist() == [4, 105]


def test_elements_of_vectors(array):
    vectors = qp.ndarray(vec2, 4)

    @qp.kernel
    def run(v: qp.types.BufferViewType(vec2)):
        for i in v:
            v[i] = [i, 7]

    run(qp.BufferView(vectors, 1, 2))
    assert vectors.to_numpy().tolist() == [[0, 0], [0, 7], [1, 7], [0, 0]]


def count_to(*shape):
    a = qp.ndarray(qp.i32, shape)
    a.from_numpy(np.arange(np.prod(shape), dtype=np.int32).reshape(shape))
    return a


def test_kernels_take_parts_of_any_shape_without_a_copy():
    a, v = count_to(4, 6), qp.ndarray(vec2, 6)

    @qp.kernel
    def double(x: qp.types.ndarray()):
        for I in qp.grouped(x):
            x[I] *= 2

    expected = a.to_numpy()
    for index in (np.s_[1:3, :], np.s_[:, 2], np.s_[::2, 1::3], np.s_[3, 2:]):
        double(a[index])
        expected[index] *= 2
        np.testing.assert_array_equal(a.to_numpy(), expected)
    add(a[0, 1:], a[0, :-1])  # they overlap: compiled for it
    v.fill(1)
    double(v[2:4])
    double(v[::5])
    assert v.to_numpy()[:, 0].tolist() == [2, 1, 2, 2, 1, 2]


def test_members_that_are_parts(array):
    @qp.data_oriented
    class Holder:
        def __init__(self, part):
            self.part = part

        @qp.kernel
        def run(self, value: qp.i32):
            for i in self.part:
                self.part[i] = value + i

    Holder(array[6:]).run(5)
    Holder(array[::3]).run(1)
    assert array.to_numpy().tolist() == [1, 0, 0, 2, 0, 0, 3, 6]


def test_graphs_have_the_memory_of_parts(array):
    other = count_to(2, 4)
    part, column = array[2:5], other[:, 1]
    with qp.graph.capture() as graph:
        count_up(part, 5)
        count_up(column, 7)
        array[6:].fill(9)
    with graph.instantiate() as run:
        run.launch()
        qp.sync()
        array.fill(0)
        run.launch()
        qp.sync()
    assert array.to_numpy().tolist() == [0, 0, 5, 6, 7, 0, 9, 9]
    assert other.to_numpy()[:, 1].tolist() == [7, 8]


@pytest.fixture(params=[{}, {"debug": True}, {"arch": "python"}], ids=str)
def any_way(init, request):
    return init(**request.param)


@qp.func
def total(v):
    s = 0
    for i in range(v.shape[0]):
        s += v[i]
    return s


@qp.real_func
def first_of(v: qp.types.ndarray(dtype=qp.i32, ndim=1)) -> qp.i32:
    return v[0]


@qp.func
def put(v: qp.template(), value):
    v[0] = value


@pytest.mark.usefixtures("any_way")
def test_slices_inside_kernels():
    @qp.kernel
    def run(x: qp.Array1D[qp.i32], y: qp.BufferView, a: qp.i32, b: qp.i64) -> (qp.i32, qp.i32, qp.i32, qp.i32):
        part = x[a:b]
        for i in part:
            part[i] += 100
        put(x[:2], 55)
        x[-1:][0] = 77
        inner = x[1:].subview(1, 3)
        inner[1] += 1000
        y[1:].subview(offset=1).fill(3)
        view = qp.BufferView(x, 4, 2)
        return total(x[a:b]), len(inner) + 10 * part.size, first_of(part), view[0] + view.shape[0]

    x, y = count_to(8), count_to(6)
    assert run(x, y[1:], 2, 5) == (102 + 1103 + 104, 33, 102, 106)
    assert x.to_numpy().tolist() == [55, 1, 102, 1103, 104, 5, 6, 77]
    assert y.to_numpy().tolist() == [0, 1, 2, 3, 3, 3]


@pytest.mark.usefixtures("any_way")
def test_slices_in_parallel_loops_and_of_other_arrays():
    f, shifted = qp.field(qp.i32, 12), qp.field(qp.i32, 8, offset=-4)
    blocks, vectors = qp.field(qp.i32), qp.Vector.field(2, qp.i32, 6)
    qp.root.dense(qp.i, 3).dense(qp.i, 4).place(blocks)

    @qp.kernel
    def run(v: qp.types.ndarray(dtype=vec2)):
        for i in range(4):
            row = f[3 * i : 3 * i + 3]
            for j in range(3):
                row[j] = 10 * i + j
        for i in shifted[-2:3]:
            shifted[-2:3][i] = i + 1
        for i in blocks[2:9]:
            blocks[2:][i] += 5 + i
        for i in range(2):
            pair = vectors[2 * i : 2 * i + 2]
            pair[1].x = i + 1
            pair[0] += [7, 8]
            qp.atomic_add(v[1:][i][1], 2.5)

    v = qp.ndarray(vec2, 3)
    run(v)
    assert f.to_numpy().tolist() == [10 * i + j for i in range(4) for j in range(3)]
    assert shifted.to_numpy().tolist() == [0, 0, 1, 2, 3, 4, 5, 0]
    assert blocks.to_numpy().tolist() == [0, 0, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0]
    assert vectors.to_numpy().tolist() == [[7, 8], [1, 0], [7, 8], [2, 0], [0, 0], [0, 0]]
    assert v.to_numpy().tolist() == [[0, 0], [0, 2.5], [0, 2.5]]


def test_slices_that_leave_the_array(init):
    init(debug=True)

    @qp.kernel
    def read(x: qp.Array1D[qp.i32], a: qp.i32, b: qp.i32, at: qp.i32) -> qp.i32:
        return x[a:b][at]

    x = count_to(8)
    assert read(x, 2, 8, 5) == 7
    for ends, text in (((2, 9, 0), "from 2 to 9 is not inside an array of 8"), ((-1, 3, 0), "from -1 to 3"),
                       ((4, 3, 0), "from 4 to 3"), ((2, 5, 3), "index 3"), ((2, 5, -1), "index -1")):  # fmt: skip
        with pytest.raises(qp.KernelIndexError, match=text):
            read(x, *ends)  # it waits for the result


@pytest.mark.parametrize(
    ("line", "says"),
    [("y = x[::2]", "no steps"), ("y = x[1.5:]", "must be integers, not 1.5"), ("y = g[1:]", "one axis, not of 2 axes"),
     ("y = s[1:]", "sparse trees have no slices"), ("y = x.subview()", "subview: an argument is missing"), ("x[1:] = 5", "cannot assign a slice"),
     ("y = c[1:3][2]", "out of range")],
)  # fmt: skip
def test_what_is_no_slice(load, line, says):
    module = load(f"""
        g, s, c = qp.field(qp.i32, (2, 2)), qp.field(qp.i32), qp.field(qp.i32, 5)
        qp.root.pointer(qp.i, 4).place(s)

        @qp.kernel
        def run(x: qp.Array1D[qp.i32]):
            {line}
    """)
    with pytest.raises(qp.CompilationError, match=says):
        module.run(qp.ndarray(qp.i32, 4))


def test_the_views_own_range_counts_under_debug(init):
    init(debug=True)
    array = qp.ndarray(qp.i32, 8)

    @qp.kernel
    def write(v: qp.BufferView, at: qp.i32):
        v[at] = 1

    view = qp.BufferView(array, 2, 3)
    write(view, 2)

    def past_the_end():
        write(view, 3)
        qp.sync()

    with pytest.raises(qp.KernelIndexError, match="index 3"):
        past_the_end()


def test_clamped_views(array):
    @qp.kernel
    def write(v: qp.types.BufferViewType(qp.i32, boundary="clamp")):
        v[-5] = 1
        v[100] = 2

    write(qp.BufferView(array, 2, 3))
    assert array.to_numpy().tolist() == [0, 0, 1, 0, 2, 0, 0, 0]


def test_the_memory_stays(arch):
    view = qp.BufferView(qp.ndarray(qp.i32, 1000), 10, 20)
    gc.collect()
    count_up(view, 0)
    assert view.to_numpy().tolist() == list(range(20))
    copy = pickle.loads(pickle.dumps(view))
    assert copy.to_numpy().tolist() == list(range(20))
    if arch == "cpu":
        np.asarray(view)[3] = -1
        assert view[3] == -1


def test_wrong_views(array):
    for call, text in (
        (lambda: qp.BufferView(array, 6, 3), "elements 6 to 9 are not all in"),
        (lambda: qp.BufferView(array, -1, 3), "offset=-1 must be a whole number of at least 0"),
        (lambda: qp.BufferView(array, 0, 2.5), "size=2.5 must be a whole number"),
        (lambda: qp.BufferView(qp.ndarray(qp.i32, (2, 2)), 0, 1), "takes an ndarray of one axis"),
        (lambda: qp.BufferView(np.zeros(3), 0, 1), "takes an ndarray of one axis"),
        (
            lambda: qp.BufferView(qp.ndarray(qp.types.struct(a=qp.i32), 3), 0, 1),
            "takes an ndarray of one axis, of numbers",
        ),
        (lambda: qp.BufferView(array, 0, 4).subview(2, 3), "elements 2 to 5 are not all in"),
        (qp.BufferView, "missing|argument"),
    ):
        with pytest.raises(qp.ArgumentError, match=text):
            call()
    with pytest.raises(qp.BoundsError):
        qp.BufferView(array, 0, 4)[4]


@pytest.mark.parametrize("block", [None, 8, 16, 32, 64])
def test_slices_mean_the_same_in_loops_of_every_block_size(block):
    x, out = np.arange(8, dtype=np.float32), np.zeros(64, np.float32)

    @qp.func
    def total(part):
        s = 0.0
        for j in part:
            s += part[j]
        return s

    @qp.kernel
    def k(x: qp.types.ndarray(qp.f32, 1), out: qp.types.ndarray(qp.f32, 1)):
        qp.loop_config(block_dim=block)
        for i in out:
            part = x[1 : 1 + i % 4]
            out[i] = total(part) + total(x[5:]) + part.shape[0]

    k(x, out)
    assert out.tolist() == [x[1 : 1 + i % 4].sum() + 18 + i % 4 for i in range(64)]


@pytest.mark.parametrize("block", [8, 16])
def test_columns_are_of_arrays_with_more_axes(block):
    @qp.kernel
    def k(x: qp.types.ndarray(qp.f32, 2)):
        qp.loop_config(block_dim=block)
        for i in range(16):
            x[i, 0] = x[0:16, 1]

    x = np.arange(32, dtype=np.float32).reshape(16, 2)
    if block == 16:
        k(x)
        assert x[:, 0].tolist() == x[:, 1].tolist()
    else:
        with pytest.raises(qp.KernelTypeError, match=r"is a column of a tile(.|\n)*block_dim=16"):
            k(x)
