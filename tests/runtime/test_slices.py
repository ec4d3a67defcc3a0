"""Parts of fields and ndarrays on the host, by slices: what NumPy reads and writes there, on every device."""

import gc
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import quadpy as qp
from quadpy.errors import ArgumentError, BoundsError

on_every_device = pytest.mark.usefixtures("arch")

vec3, mat22 = qp.types.vector(3, qp.f32), qp.types.matrix(2, 2, qp.f64)
MAKERS = {
    "ndarray": qp.ndarray,
    "field": qp.field,
    "soa": lambda dtype, shape: qp.field(dtype, shape, layout=qp.Layout.SOA),
    "order": lambda dtype, shape: qp.field(dtype, shape, order="ijk"[: len(shape)][::-1]),
    "both": lambda dtype, shape: qp.field(dtype, shape, order="ijk"[: len(shape)][::-1], layout=qp.Layout.SOA),
}
INDICES = [
    np.s_[1:3, :], np.s_[:, 2], np.s_[-1, :], np.s_[::2, 1:], np.s_[::-1, ::-2], np.s_[...], np.s_[0, ...], np.s_[..., -1],
    np.s_[3:1, :], np.s_[1:100, -3:], np.s_[:, :], np.s_[2:3, 1:2], np.s_[np.int8(1), ...], np.s_[1:-1, ..., 0],
]  # fmt: skip


def numbers(x):
    full = (*x.shape, *x.element_shape)
    return np.arange(1, 1 + int(np.prod(full))).reshape(full).astype(x.to_numpy().dtype)


def of_axes(index, ndim=2):
    """``index`` with a slice for each axis that its Ellipsis stands for: in NumPy it would cover components, too."""
    items = index if isinstance(index, tuple) else (index,)
    if ... not in items:
        return items
    at = items.index(...)
    return (*items[:at], *(slice(None),) * (ndim - len(items) + 1), *items[at + 1 :])


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.mark.parametrize("dtype", [qp.f32, qp.i8, qp.u1, qp.f16, qp.bf16, vec3, mat22], ids=str)
@on_every_device
def test_a_part_is_what_numpy_has_there(make, dtype):
    for index in INDICES:
        x = make(dtype, (4, 5))
        expected = numbers(x)
        x.from_numpy(expected)
        part = x[index]
        at = of_axes(index)
        np.testing.assert_array_equal(part, expected[at], str(index))
        if isinstance(part, np.ndarray):  # of a field, or backwards: a copy
            assert part.flags.writeable == isinstance(x, qp.Field)
        else:  # of an ndarray: the same memory
            part.fill(0)
            expected[at] = 0
        np.testing.assert_array_equal(x.to_numpy(), expected, str(index))
        value = np.ones_like(expected[at])
        x[index] = value
        expected[at] = value
        np.testing.assert_array_equal(x.to_numpy(), expected, str(index))


def count_to(*shape):
    a = qp.ndarray(qp.i32, shape)
    a.from_numpy(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))
    return a


@on_every_device
def test_what_is_written_to_a_part_of_an_ndarray_is_kept():
    a = count_to(8)
    a[2:5][0] = 10
    a[2:5][-1] += 100
    a[::3][1] = 30
    a[1:][1:][1:3].fill(-1)
    assert a.to_numpy().tolist() == [0, 1, 10, -1, -1, 5, 6, 7]
    b = count_to(3, 4)
    b[1, 1:3][0] = 50
    b[:, 3][2] = 110
    b[1:, ::2][1, 0] = 80
    b[1:, ...][1:, 1:3].from_numpy(np.zeros((1, 2), np.int32))
    assert b.to_numpy().tolist() == [[0, 1, 2, 3], [4, 50, 6, 7], [80, 0, 0, 110]]
    v = qp.ndarray(vec3, 4)
    v[1:3][0] = [1, 2, 3]
    v[1:3][1].y = 5
    v[::2][1][0] = 6
    assert v.to_numpy().tolist() == [[0, 0, 0], [1, 2, 3], [6, 5, 0], [0, 0, 0]]
    m = qp.ndarray(mat22, (2, 2))
    m[1, :][0] = [[1, 2], [3, 4]]
    assert m.to_numpy().sum() == 10


@on_every_device
def test_parts_as_numpy_arrays():
    a = count_to(8)
    part, values = a[2:5], np.arange(2, 5)
    for found, expected in (
        (part + 1, values + 1), (1 - part, 1 - values), (part * part, values**2), (-part, -values), (part == 3, values == 3),
        (np.sqrt(part), np.sqrt(values)), (np.ones(3) @ part, 9), (part.sum(), 9), (part.T, values), (np.add.reduce(part), 9),
        (a[::2] / 2, np.arange(0, 8, 2) / 2), (np.concatenate([part, a[:2]]), [2, 3, 4, 0, 1]), ([*part], values), (part.tolist(), values),
    ):  # fmt: skip
        np.testing.assert_array_equal(found, expected)
    part += 10
    a[::4] *= 3
    np.negative(a[6:], out=a[6:])
    assert a.to_numpy().tolist() == [0, 1, 12, 13, 42, 5, -6, -7]
    assert {part: 1}[part] == 1
    with pytest.raises(ValueError, match="read-only"):
        part.sort()
    with pytest.raises(AttributeError, match="an ndarray has no attribute 'sume'"):
        part.sume  # noqa: B018


@on_every_device
def test_parts_stay_and_travel():
    part, other = count_to(8)[2:5], count_to(3, 4)[:, 1]
    gc.collect()
    for each, expected in ((part, [2, 3, 4]), (other, [1, 5, 9])):
        assert each.to_numpy().tolist() == expected
        copy = pickle.loads(pickle.dumps(each))
        copy[0] = 7
        assert (copy.to_numpy().tolist(), each.to_numpy().tolist()) == ([7, *expected[1:]], expected)
    with pytest.raises(AttributeError, match="cannot be changed"):
        part.shape = (1,)


def test_other_libraries_share_parts():
    a = count_to(3, 4)
    for part in (a[1, 1:3], a[:, 2], a[1:, ...]):
        np.from_dlpack(part)[...] = -1
        assert (part.to_numpy(copy=False) == -1).all()
        np.asarray(part)[...] = -2
    assert a.to_numpy().tolist() == [[0, 1, -2, 3], [-2, -2, -2, -2], [-2, -2, -2, -2]]


@on_every_device
def test_parts_of_structs_cannot_be_written_by_mistake():
    a = qp.ndarray(qp.types.struct(a=qp.f32), 4)
    with pytest.raises(ValueError, match="read-only"):
        a[1:3]["a"][0] = 1
    a.a[1:3] = 5
    assert a.to_numpy()["a"].tolist() == [0, 5, 5, 0]


@on_every_device
def test_numbers_vectors_and_rows_are_broadcast(make):
    x = make(vec3, (4, 5))
    x[1:3, :] = 2
    x[:, -1] = qp.Vector([1, 2, 3])
    x[0, ::2] = [[4, 5, 6]] * 3
    expected = np.zeros((4, 5, 3), np.float32)
    expected[1:3, :] = 2
    expected[:, -1] = [1, 2, 3]
    expected[0, ::2] = [4, 5, 6]
    np.testing.assert_array_equal(x.to_numpy(), expected)


@on_every_device
def test_a_part_is_set_from_another_array(make):
    x, y = make(qp.f32, (4, 5)), make(qp.i32, (2, 5))
    y.fill(7)
    x[1:3, ...] = y
    assert x.to_numpy().sum() == 70


@on_every_device
def test_slices_of_a_field_with_an_offset_count_from_it():
    f = qp.field(qp.i32, (5, 3), offset=(-2, 10))
    f.from_numpy(np.arange(15).reshape(5, 3))
    assert f[-1:2, 11].tolist() == [4, 7, 10]
    assert f[:0, 10].tolist() == [0, 3]
    assert f[-9:9, 12].tolist() == [2, 5, 8, 11, 14]
    assert f[::-2, 10].tolist() == [12, 6, 0]
    f[1:, 10:12] = -1
    assert f.to_numpy()[3:].tolist() == [[-1, -1, 11], [-1, -1, 14]]
    with pytest.raises(BoundsError, match="start at"):
        f[:, 9]


@on_every_device
def test_many_gaps_stay_as_they_are():
    f = qp.field(qp.f32, (300, 3), order="ij")
    f.fill(1)
    f[:, 1] = np.arange(300)
    assert f[:, 0].sum() == f[:, 2].sum() == 300
    assert f[:, 1].tolist() == list(range(300))


@on_every_device
def test_fields_of_one_tree_keep_their_numbers():
    a, b = qp.field(qp.i32), qp.field(qp.i32)
    qp.root.dense(qp.ij, (6, 4)).place(a, b)
    b.fill(5)
    a[1:3, :] = np.arange(8).reshape(2, 4)
    assert a.to_numpy().sum() == 28
    assert (b.to_numpy() == 5).all()


@on_every_device
def test_structs_are_set_by_member():
    S = qp.types.struct(a=qp.f32, v=vec3)
    f = S.field(shape=(4, 5))
    f.a.from_numpy(np.arange(20).reshape(4, 5))
    assert f[1:3, 0]["a"].tolist() == [5, 10]
    f[0, :] = {"v": [1, 2, 3]}
    f[1:, 4] = S(1, 2)
    assert f.v.to_numpy().sum() == 30 + 18
    assert f[3, 4] == S(1, 2)
    a = qp.ndarray(S, (4, 5))
    a[1:3, 0] = {"a": [5, 10], "v": 1}
    assert a[:, 0]["a"].tolist() == [0, 5, 10, 0]
    assert a.to_numpy()["v"].sum() == 6
    a[:, 1] = S(a=3)
    a[:, 2] = a[:, 0]
    assert a.to_numpy()["a"].tolist() == [[0, 3, 0, 0, 0], [5, 3, 5, 0, 0], [10, 3, 10, 0, 0], [0, 3, 0, 0, 0]]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (np.s_[0], "takes 2"),
        (np.s_[:], "takes 2"),
        (np.s_[:, :, :], "takes 2"),
        (np.s_[..., ...], "Ellipsis"),
        (np.s_[:, None], "is not an index"),
        (np.s_[:, 1.5], "is not an index"),
        (np.s_[[1, 2], :], "is not an index"),
        (np.s_[:, 5], "outside"),
        (np.s_[-5, :], "outside"),
        (np.s_[::0, :], "step"),
        (np.s_["a":, :], "is not an index"),
    ],
    ids=str,
)
@on_every_device
def test_what_is_no_part(make, index, says):
    x = make(qp.f32, (4, 5))
    for access in (lambda: x[index], lambda: x.__setitem__(index, 1)):
        with pytest.raises((ArgumentError, BoundsError), match=says):
            access()


@on_every_device
def test_what_does_not_fit_a_part(make):
    x = make(qp.i32, (4, 5))
    with pytest.raises(ArgumentError, match=r"shape \(3,\).*\(4,\)"):
        x[:, 0] = [1, 2, 3]
    with pytest.raises(ArgumentError, match="truncated"):
        x[:, 0] = np.ones(4)
    with pytest.raises(ArgumentError, match="do not fit"):
        x[0, :] = [2**40] * 5
    with pytest.raises(ArgumentError, match="numeric"):
        x[0, :] = "a"
    x[0, :] = 2.9  # one number is cast, as for an element
    assert x.to_numpy().sum() == 10


@settings(max_examples=60)
@given(st.data())
def test_parts_at_random(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    maker = MAKERS[data.draw(st.sampled_from(sorted(MAKERS)))]
    ends = st.one_of(st.none(), st.integers(-7, 7))
    steps = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
    index = tuple(
        data.draw(
            st.one_of(st.builds(slice, ends, ends, steps), st.integers(-n, n - 1)) if n else st.builds(slice, ends, ends, steps)
        )
        for n in shape
    )  # fmt: skip
    if all(isinstance(i, int) for i in index):
        index = (*index, ...)
    x = maker(qp.i32, shape)
    expected = numbers(x)
    x.from_numpy(expected)
    np.testing.assert_array_equal(x[index], expected[index])
    x[index] = -expected[index]
    expected[index] *= -1
    np.testing.assert_array_equal(x.to_numpy(), expected)
