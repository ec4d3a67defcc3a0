"""Layouts in blocks, derivatives of fields, and fields whose memory is given back, as the host sees them."""

import copy
import gc
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import quadpy as qp
from quadpy.errors import ArgumentError, BoundsError

on_every_device = pytest.mark.usefixtures("arch")

vec3 = qp.types.vector(3, qp.f32)


def blocked(dtype=qp.i32, **options):
    f = qp.field(dtype)
    qp.root.dense(qp.ij, (1, 2)).dense(qp.ij, 2).dense(qp.ij, 2).place(f, **options)
    return f


def numbers_of(f):
    full = (*f.shape, *f.element_shape)
    return np.arange(int(np.prod(full))).reshape(full)


@pytest.mark.parametrize("dtype", [qp.i32, vec3, qp.u1, qp.bf16], ids=str)
@on_every_device
def test_blocks_look_like_other_fields(dtype):
    f = blocked(dtype)
    assert (f.shape, f.ndim, f.size, len(f)) == ((4, 8), 2, 32, 4)
    numbers = (numbers_of(f) % 7).astype(f.to_numpy().dtype)
    f.from_numpy(numbers)
    np.testing.assert_array_equal(f.to_numpy(), numbers)
    for i, j in itertools.product(range(4), range(8)):
        np.testing.assert_array_equal(np.asarray(f[i, j]), numbers[i, j])
    np.testing.assert_array_equal(np.asarray(f[-1, -2]), numbers[3, 6])
    np.testing.assert_array_equal(f[1:3, ::-3], numbers[1:3, ::-3])
    f[1:4, 2] = 1
    f[0, 0] = 1
    numbers[1:4, 2] = numbers[0, 0] = 1
    np.testing.assert_array_equal(f.to_numpy(), numbers)
    f.fill(1)
    assert (f.to_numpy() == 1).all()


def test_blocks_are_where_the_levels_say():
    f = blocked()
    f.from_numpy(numbers_of(f))
    flat = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int32 * 32).from_address(f.pointer))
    expected = np.arange(32).reshape(1, 2, 2, 2, 2, 2).transpose(0, 3, 1, 4, 2, 5)  # i0 i1 i2 j0 j1 j2, level by level
    assert flat.tolist() == expected.ravel().tolist()


def test_one_axis_in_blocks_and_others_whole():
    a, b = qp.field(qp.f32), vec3.field()
    qp.root.dense(qp.i, 3).dense(qp.j, 2).dense(qp.i, 4).place(a, b)
    assert (a.shape, b.shape) == ((12, 2), (12, 2))
    a.from_numpy(numbers_of(a))
    b.from_numpy(numbers_of(b) * 2)
    np.testing.assert_array_equal(a.to_numpy(), numbers_of(a))
    np.testing.assert_array_equal(b.to_numpy(), numbers_of(b) * 2)
    assert b.pointer == a.pointer + 4


@on_every_device
def test_blocks_with_an_offset():
    f = blocked(offset=(-2, 10))
    f[-2, 10] = 3
    f[1, 17] = 4
    assert (f[-2:2, 10].tolist(), f.to_numpy()[3, 7]) == ([3, 0, 0, 0], 4)
    with pytest.raises(BoundsError):
        f[2, 10]


@on_every_device
def test_blocks_are_copied_and_pickled():
    f, g, plain = blocked(), blocked(), qp.field(qp.i32, (4, 8))
    f.from_numpy(numbers_of(f))
    g.copy_from(f)
    plain.copy_from(g)
    f.fill(0)
    f.copy_from(plain)
    for each in (g, plain, f, pickle.loads(pickle.dumps(g)), copy.deepcopy(f)):
        np.testing.assert_array_equal(each.to_numpy(), numbers_of(g))


def test_blocks_cannot_be_shared():
    f = blocked()
    f[1, 2] = 5
    np.asarray(f)[1, 2] = 6
    assert (f[1, 2], np.asarray(f)[1, 2]) == (5, 5)
    with pytest.raises(ValueError, match="without a copy"):
        f.to_numpy(copy=False)
    with pytest.raises(BufferError, match="in blocks"):
        np.from_dlpack(f)


@on_every_device
def test_structs_in_blocks():
    S = qp.types.struct(a=qp.i8, v=vec3)
    f = S.field()
    qp.root.dense(qp.i, 3).dense(qp.i, 4).place(f)
    f[7] = S(1, [1, 2, 3])
    assert (f.shape, f[7], f.v.to_numpy()[7].tolist(), f[6]) == ((12,), S(1, [1, 2, 3]), [1, 2, 3], S())
    assert f.to_numpy()["a"].tolist() == [0] * 7 + [1] + [0] * 4


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([qp.i, qp.j, qp.ij]), st.integers(0, 3)), min_size=1, max_size=4), st.data())
def test_trees_at_random(levels, data):
    node, a, b = qp.root, qp.field(qp.i16), qp.field(qp.f64)
    for axes, extent in levels:
        node = node.dense(axes, extent)
    node.place(a, b)
    a.from_numpy(numbers_of(a))
    b.from_numpy(numbers_of(b) + 0.5)
    index = tuple(slice(*data.draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9)))) for _ in a.shape)
    np.testing.assert_array_equal(a[index], numbers_of(a)[index])
    a[index] = 7
    expected = numbers_of(a)
    expected[index] = 7
    np.testing.assert_array_equal(a.to_numpy(), expected)
    np.testing.assert_array_equal(b.to_numpy(), numbers_of(b) + 0.5)


# derivatives


@pytest.mark.parametrize("options", [{}, {"order": "ji"}, {"layout": qp.Layout.SOA}, {"offset": (1, 2)}], ids=str)
@on_every_device
def test_a_field_that_needs_derivatives_has_them(options):
    x = qp.field(vec3, (2, 3), needs_grad=True, needs_dual=True, name="x", **options)
    assert (x.has_grad(), x.has_dual(), x.grad.shape, x.dual.offset) == (True, True, (2, 3), x.offset)
    assert x.grad.strides == x.strides
    x.fill(1)
    x.grad.fill(2)
    x.dual[x.offset] = 3
    assert [f.to_numpy().sum() for f in (x, x.grad, x.dual)] == [18, 36, 9]
    assert repr(x.grad) == "field(f32x3, shape=(2, 3), name='x.grad')"
    back = pickle.loads(pickle.dumps(x))
    assert [f.to_numpy().sum() for f in (back, back.grad, back.dual)] == [18, 36, 9]


def test_every_way_to_declare_them():
    for x in (
        qp.Vector.field(2, qp.f64, shape=3, needs_grad=True),
        qp.Matrix.field(2, 2, qp.f16, shape=3, needs_grad=True),
        vec3.field(3, needs_grad=True),
        qp.Struct.field({"a": qp.f32, "k": qp.i32}, shape=3, needs_grad=True),
        qp.field(qp.types.struct(a=qp.f32), 3, needs_grad=True),
    ):
        x.grad.fill(1)
        assert x.has_grad()
        assert not x.has_dual()
        assert x.grad.shape == (3,)


def test_a_gradient_is_placed_beside_its_field():
    x, y = qp.field(qp.f32), qp.field(qp.f32, needs_grad=True)
    qp.root.dense(qp.i, 4).place(x, x.grad, y, y.grad)
    assert x.has_grad()
    assert y.has_grad()
    assert x.grad.pointer - x.pointer == 4 == y.grad.pointer - y.pointer
    z = qp.field(qp.f32, needs_grad=True)
    qp.root.dense(qp.i, 4).place(z, offset=3)
    assert (z.grad.shape, z.grad.offset) == ((4,), (3,))
    z.grad[5] = 1
    w = qp.field(qp.f32)
    qp.root.dense(qp.i, 4).place(w)
    qp.root.dense(qp.i, 4).place(w.grad)
    w.grad[3] = 2
    assert (w[3], w.grad[3]) == (0, 2)


@pytest.mark.usefixtures("own_root")
@on_every_device
def test_lazy_derivatives():
    x, n, used, made = qp.field(qp.f32), qp.field(qp.i32), qp.field(qp.f64), qp.field(qp.f32, 5)
    S = qp.types.struct(a=qp.f32, k=qp.i32).field()
    qp.root.dense(qp.i, 4).place(x, n, S)
    qp.root.dense(qp.ij, 2).dense(qp.ij, 2).place(used)
    used[1, 2] = 3
    qp.root.lazy_grad()
    qp.root.lazy_dual()
    qp.root.lazy_grad()
    assert [f.has_grad() for f in (x, n, used, made, S)] == [True, False, True, True, True]
    assert [f.has_dual() for f in (x, n, used, made, S)] == [True, False, True, True, True]
    x.grad[3] = 1
    S.grad[2].a = 4
    used.grad[3, 3] = 5
    made.dual[4] = 6
    assert (x[3], x.grad[3], x.dual[3]) == (0, 1, 0)
    assert (S.a.grad[2], S[2].a, S.grad.a[2]) == (4, 0, 4)
    assert (used.grad.to_numpy().sum(), used.to_numpy().sum(), made.dual[4]) == (5, 3, 6)


def test_a_builder_has_gradients_of_its_own():
    builder, x, y = qp.FieldsBuilder(), qp.field(qp.f32), qp.field(qp.f32, 3)
    builder.dense(qp.i, 4).place(x)
    builder.lazy_grad()
    assert (x.has_grad(), y.has_grad()) == (True, False)


def test_what_has_no_derivative():
    with pytest.raises(ArgumentError, match=r"needs_grad=True: a field without floats has no grad"):
        qp.field(qp.i32, 3, needs_grad=True)
    with pytest.raises(ArgumentError, match="needs_dual=True"):
        qp.Vector.field(2, qp.i64, shape=3, needs_dual=True)
    with pytest.raises(AttributeError, match="a field without floats has no grad"):
        qp.field(qp.i32, 3).grad  # noqa: B018 - the read raises
    with pytest.raises(AttributeError, match="the grad of a field has no grad"):
        qp.field(qp.f32, 3, needs_grad=True).grad.grad  # noqa: B018 - the access raises
    x = qp.field(qp.f32, 3, name="x")
    assert not x.has_grad()
    with pytest.raises(AttributeError, match=r"'x.grad' has no shape yet: pass needs_grad=True, .*lazy_grad"):
        x.grad.shape  # noqa: B018 - the access raises
    with pytest.raises(ArgumentError, match="has no memory"):
        x.grad.fill(0)
    with pytest.raises(ArgumentError, match="already has a shape"):
        qp.root.dense(qp.i, 3).place(qp.field(qp.f32, 3, needs_grad=True).grad, x)


def test_a_member_named_grad_is_the_member():
    f = qp.types.struct(grad=vec3, a=qp.f32).field(shape=3)
    f.grad[1] = 2
    assert f[1].grad.x == 2


def test_gradients_go_with_their_field():
    x = qp.field(qp.f32, 1 << 20, needs_grad=True)
    x.grad.fill(1)
    view = x.grad
    del x
    gc.collect()
    assert view[5] == 1


# FieldsBuilder


@on_every_device
def test_a_builder_gives_its_memory_back():
    builder = qp.FieldsBuilder()
    x, v, S = qp.field(qp.f32, name="x"), vec3.field(), qp.types.struct(a=qp.i32).field()
    assert builder.empty
    builder.dense(qp.i, 5).place(x, v)
    builder.root.dense(qp.ij, 2).place(S)
    builder.place(one := qp.field(qp.i32))
    assert (builder.empty, builder.finalized) == (False, False)
    tree = builder.finalize()
    assert builder.finalized
    x.fill(1)
    one[None] = 7
    assert (x.to_numpy().sum(), one[None], S.shape) == (5, 7, (2, 2))
    tree.destroy()
    tree.destroy()
    for use in (
        lambda: x[0],
        lambda: x.fill(1),
        x.to_numpy,
        lambda: v[0],
        lambda: S[0, 0],
        lambda: S.fill(0),
        lambda: one[None],
    ):
        with pytest.raises(ArgumentError, match="was destroyed"):
            use()
    with pytest.raises(ArgumentError, match="'x' was destroyed"):
        np.asarray(x)


def test_memory_goes_back_to_the_device(gpu):
    gc.collect()
    qp.sync()
    before = gpu.memory_stats()
    builder, x = qp.FieldsBuilder(), qp.field(qp.f32)
    builder.dense(qp.i, 1 << 20).place(x)
    builder.finalize().destroy()
    qp.sync()
    assert gpu.memory_stats().used == before.used


def test_misuse_of_a_builder():
    builder = qp.FieldsBuilder()
    with pytest.warns(RuntimeWarning, match="without fields"):
        builder.finalize()
    qp.FieldsBuilder().finalize(raise_warning=False)
    for wrong in (lambda: builder.dense(qp.i, 3), lambda: builder.place(qp.field(qp.f32)), builder.finalize):
        with pytest.raises(ArgumentError, match="is finalized"):
            wrong()
    open_tree = qp.FieldsBuilder()
    node, x = open_tree.dense(qp.i, 3), qp.field(qp.f32)
    node.place(x)
    open_tree.finalize()
    with pytest.raises(ArgumentError, match="in use"):
        node.place(qp.field(qp.f32))
    with pytest.raises(ArgumentError, match="3 is not a field"):
        qp.root.dense(qp.i, 3).place(3)
    with pytest.raises(AttributeError, match=r"use qp\.BitpackedFields or quant_array"):
        qp.root.bit_struct  # noqa: B018 - the access raises


def test_elements_of_a_field_without_memory():
    x = qp.field(qp.f32, name="x")
    for use in (lambda: x[0], lambda: x[:], lambda: x.__setitem__(0, 1)):
        with pytest.raises(ArgumentError, match="has no memory") as caught:
            use()
        assert "pass shape=, or place it" in caught.value.hint
