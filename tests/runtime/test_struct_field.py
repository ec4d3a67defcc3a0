"""Fields of structs on the host, over the memory of every device."""

import copy
import pickle

import numpy as np
import pytest

import quadpy as qp

Inner = qp.types.struct(big=qp.f64, small=qp.u8)
S = qp.types.struct(a=qp.f32, v=qp.math.vec3, inner=Inner, b=qp.i16)


@pytest.fixture(params=["aos", "soa"])
def f(arch, request):
    return S.field(shape=(3, 4), layout=qp.Layout(request.param))


def test_the_layout_is_that_of_c():
    f = S.field(shape=5)
    assert [(m.offset, m.axes) for m in f.stored_members()] == [
        (0, (40,)), (4, (40,)), (16, (40,)), (24, (40,)), (32, (40,)),
    ]  # fmt: skip
    assert (S.numpy_dtype.itemsize, f.nbytes) == (40, 4 * 40 + 34)


def test_an_element_writes_back(f):
    f[1, 2] = {"a": 2, "v": [1, 2, 3]}
    f[1, 2].b = 5
    f[1, 2].inner.small = 7
    f[1, 2].inner = {"big": 0.5, "small": f[1, 2].inner.small + 1}
    assert f[1, 2] == S(2, [1, 2, 3], Inner(0.5, 8), 5)
    assert f[1, 1] == S()
    assert f.inner.small[1, 2] == 8


def test_a_dict_for_a_member_sets_what_it_has(f):
    f[0, 1] = {"inner": {"big": 1.5, "small": 2}, "b": 3}
    f[0, 1].inner = {"big": 9}
    assert f[0, 1].inner == Inner(9, 2)
    element = f[0, 1]
    f.inner.small[0, 1] = 7  # as a kernel may
    element.inner = {"big": 4}
    assert f[0, 1].inner == Inner(4, 7)
    with pytest.raises(qp.ArgumentError, match="no member 'bog'"):
        element.inner = {"big": 5, "bog": 1}
    assert f[0, 1].inner == Inner(4, 7)


@pytest.mark.parametrize("make", [lambda f: f, lambda f: qp.ndarray(S, (3, 4))], ids=["field", "ndarray"])
@pytest.mark.parametrize(
    "wrong", [{"b": "text"}, {"v": [1, 2]}, {"inner": {"small": "text"}}, {"inner": {"nothing": 1}}], ids=repr
)
def test_what_does_not_fit_is_refused_before_anything_is_written(f, make, wrong):
    f = make(f)
    before = S(2, [1, 2, 3], Inner(0.5, 8), 5)
    f[1, 2] = before
    given = {"a": 7, "inner": {"big": 7}, **wrong}
    with pytest.raises(qp.ArgumentError):
        f[1, 2] = given
    assert f[1, 2] == before
    with pytest.raises(qp.ArgumentError):
        f[1, :] = given
    assert f[1, 2] == before
    with pytest.raises(qp.ArgumentError):
        f.fill(given)
    assert f[1, 2] == before


def test_a_member_is_a_field(f):
    f.v.fill(2)
    f.inner.big.from_numpy(np.arange(12.0).reshape(3, 4))
    assert (f.v.shape, f.keys, f.get_member_field("a") is f.a) == ((3, 4), ["a", "v", "inner", "b"], True)
    assert f[2, 1].inner.big == 9
    assert f[2, 1].v.entries == (2, 2, 2)
    assert f.b.to_numpy().sum() == 0


def test_dicts_and_structured_arrays(f):
    numbers = np.zeros((3, 4), S.numpy_dtype)
    numbers["v"] = np.arange(36).reshape(3, 4, 3)
    numbers["inner"]["small"] = 3
    f.from_numpy(numbers)
    found = f.to_numpy()
    assert found["v"][2, 3].tolist() == [33, 34, 35]
    assert found["inner"]["small"].tolist() == [[3] * 4] * 3
    g = S.field(shape=(3, 4))
    g.from_numpy(found)
    assert g[2, 3] == f[2, 3]


def test_fill_and_copy(f):
    f.fill(S(1, [1, 2, 3], Inner(2, 3), 4))
    g = S.field(shape=(3, 4))
    g.copy_from(f)
    assert g[2, 2] == S(1, [1, 2, 3], Inner(2, 3), 4)
    g.fill({"a": 5})
    assert g[0, 0] == S(5, [1, 2, 3], Inner(2, 3), 4)
    g.fill(0)
    assert g[0, 0] == S()


def test_fields_travel(f):
    f[1, 1] = S(1, [1, 2, 3])
    for other in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert (other.shape, other[1, 1]) == ((3, 4), S(1, [1, 2, 3]))


def test_a_struct_of_fields_made_from_a_dict():
    f = qp.Struct.field({"a": qp.f32, "v": qp.types.vector(2, int)}, shape=4)
    f[2] = {"v": [1, 2]}
    assert f[2].v.y == 2


def test_what_does_not_fit(f):
    with pytest.raises(qp.ArgumentError, match="no member 'w'"):
        f[0, 0] = {"w": 1}
    with pytest.raises(qp.BoundsError, match="outside"):
        f[3, 0]
    with pytest.raises(qp.ArgumentError, match="takes arrays for a, v"):
        f.from_numpy({"a": np.zeros((3, 4))})
    with pytest.raises(AttributeError, match="no member 'w'"):
        f.w  # noqa: B018 - the read raises
    with pytest.raises(qp.ArgumentError, match="need a shape"):
        S.field(layout=qp.Layout.SOA)


def test_arrays_of_structs_on_every_device(arch):
    a = qp.ndarray(S, (2, 3))
    a[1, 2] = {"a": 2, "v": [1, 2, 3]}
    a[1, 2].inner.small = 7
    assert a[1, 2] == S(2, [1, 2, 3], Inner(0, 7))
    b = S.ndarray((2, 3))
    b.copy_from(a)
    c = pickle.loads(pickle.dumps(b))
    assert c.to_numpy().dtype == S.numpy_dtype
    assert (c[1, 2], c[0, 0]) == (S(2, [1, 2, 3], Inner(0, 7)), S())
    c.fill(S(b=3))
    assert np.asarray(c)["b"].tolist() == [[3] * 3] * 2
    assert S.ndarray(0).to_numpy().shape == (0,)


def test_large_arrays_of_a_field_do_not_compete_for_lines_of_the_cache():
    f = qp.types.struct(a=qp.f32, v=qp.types.vector(2, qp.f64)).field(shape=1 << 16, layout=qp.Layout.SOA)
    a, v = f.stored_members()
    assert (a.offset, v.offset % 64, v.stride % 64) == (0, 0, 0)
    assert all(distance % 4096 for distance in (v.offset, v.stride, v.offset + v.stride))


@pytest.fixture(params=["ndarray", "aos", "soa"])
def x(arch, request):
    return (
        qp.ndarray(S, (3, 4)) if request.param == "ndarray" else S.field(shape=(3, 4), layout=qp.Layout(request.param))
    )


def test_members_of_all_structs_are_arrays_over_their_memory(x):
    x.v[1, 2] = [1, 2, 3]
    x.inner.big[1, 2] = 0.5
    x.get_member_field("inner").small.fill(7)
    x.a[0, :] = 4
    x.b.from_numpy(np.arange(12, dtype=np.int16).reshape(3, 4))
    assert x[1, 2] == S(0, [1, 2, 3], Inner(0.5, 7), 6)
    assert (x.a.to_numpy().sum(), x.v[1, 2].y, x[0, 0].inner.small) == (16, 2, 7)
    assert x.inner[1, 2] == Inner(0.5, 7)
    x.inner[1, 1] = {"small": 9}
    assert (x[1, 1].inner, x.keys, x.inner.keys) == (Inner(0, 9), ["a", "v", "inner", "b"], ["big", "small"])
    assert x.v.to_numpy(copy=None).shape == (3, 4, 3)


def test_members_by_name():
    a = qp.ndarray(S, 3)
    a["v"][1] = 2
    assert a[1]["v"].entries == (2, 2, 2)
    assert np.asarray(a.v)[1].tolist() == [2, 2, 2]
    np.from_dlpack(a.inner.big)[2] = 5
    assert a[2].inner.big == 5


def test_a_name_that_is_no_member(x):
    for access in (lambda: x.inners, lambda: x[0, 0].inners, lambda: setattr(x[0, 0], "inners", 1)):
        with pytest.raises(AttributeError, match=r"no member 'inners'; did you mean 'inner'\?"):
            access()
    with pytest.raises(qp.ArgumentError, match=r"(?s)no member 'iner'.*did you mean 'inner'\?"):
        x[0, 0] = {"iner": 1}
    with pytest.raises(qp.ArgumentError, match=r"(?s)no member 'zzz'.*there are a, v, inner, b"):
        x.get_member_field("zzz")
    with pytest.raises(qp.ArgumentError, match=r"(?s)no member 'bb'.*there are"):
        S(bb=1)
    assert not hasattr(x, "inners")


def test_floats_for_integers_follow_the_rules_of_elements(x):
    x[0, 0] = {"b": 2.9}  # one element is cast, as in a kernel
    x[0, 1].b = -2.9
    assert (x[0, 0].b, x[0, 1].b, S(b=2.9).b) == (2, -2, 2)
    arrays = x.to_numpy()
    whole = {name: arrays[name] for name in x.keys} | {"b": np.full((3, 4), 2.9)}
    with pytest.raises(qp.ArgumentError, match="truncated to i16"):
        x.from_numpy(whole)
    with pytest.raises(qp.ArgumentError, match="truncated to i16"):
        x[0, :] = {"b": [0.5] * 4}
    with pytest.raises(qp.ArgumentError, match="does not fit i16"):
        x[0, 0] = {"b": 2**20}


def test_a_gpu_copies_structs_as_a_whole(gpu, monkeypatch):
    monkeypatch.setattr(gpu.faults, "_buffer", None)  # else each wait fetches what checks of earlier tests found
    copied = []
    staging = gpu.staging
    for name in ("fetch", "download", "upload"):
        whole = getattr(staging, name)
        setattr(staging, name, lambda *args, whole=whole, name=name: copied.append(name) or whole(*args))
    f = S.field(shape=(3, 4), offset=(1, 0), order="ji")
    value = S(1, [1, 2, 3], Inner(2, 3), 4)
    f[2, 3] = value
    assert f[2, 3] == value
    assert copied == ["upload", "fetch"]
    copied.clear()
    arrays = f.to_numpy()
    f.from_numpy(arrays)
    f.fill(value)
    assert copied == ["download", "upload", "upload"]
    assert arrays["inner"]["small"].sum() == 3
    assert f[1, 0] == f[3, 3] == value


def test_a_field_of_structs_in_a_tree_leaves_its_neighbours(arch):
    f, g = S.field(), qp.field(qp.i32)
    qp.root.dense(qp.i, 4).place(f, g)
    g.fill(5)
    f[2] = S(1, [1, 2, 3], Inner(2, 3), 4)
    f.fill(f[2])
    assert g.to_numpy().tolist() == [5] * 4
    assert f.to_numpy()["v"].sum() == 24


@pytest.mark.parametrize("wrong", [np.array([1.5, 2.5]), np.zeros(3, np.int32), np.array([1, 2**40])])
def test_arrays_that_do_not_fit_change_nothing(wrong):
    pair = qp.types.struct(x=qp.f32, inner=qp.types.struct(n=qp.i32))
    f = pair.field(shape=2)
    f.fill(7)
    with pytest.raises(qp.ArgumentError):
        f.from_numpy({"x": np.zeros(2), "inner": {"n": wrong}})
    assert f.x.to_numpy().tolist() == f.inner.n.to_numpy().tolist() == [7, 7]
    f.from_numpy({"x": np.zeros(2), "inner": {"n": np.array([3, 4])}})
    assert f[1] == {"x": 0, "inner": {"n": 4}}
