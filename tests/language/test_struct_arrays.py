"""ndarrays of structs, and structured NumPy arrays, as arguments of kernels."""

import numpy as np
import pytest

import quadpy as qp

Inner = qp.types.struct(big=qp.f64, small=qp.u8)


@qp.dataclass
class Particle:
    x: qp.types.vector(2, qp.f32)
    m: qp.f32
    inner: Inner
    n: qp.i64

    @qp.func
    def move(self, dt):
        self.x = self.x + dt
        self.inner.small += 1


PARTICLES = qp.types.ndarray(dtype=Particle, ndim=1)


@qp.kernel
def advance(p: PARTICLES, dt: qp.f32):
    for i in p:
        q = p[i]
        q.move(dt)
        p[i] = q
        p[i].n += i
        p.m[i] = p[i].x.y * 2.0
        qp.atomic_max(p[i].inner.big, q.m)


def test_an_array_of_structs_is_read_and_written(arch):
    p = qp.ndarray(Particle, 5)
    p[2] = {"m": 3, "n": 7}
    advance(p, 0.5)
    assert p[2] == Particle([0.5, 0.5], 1.0, Inner(3, 1), 9)
    assert p[4] == Particle([0.5, 0.5], 1.0, Inner(0, 1), 4)


def test_a_structured_numpy_array_is_an_argument(arch):
    p = np.zeros(5, Particle.numpy_dtype)
    p["m"] = 3
    advance(p, 0.5)
    assert p["x"].tolist() == [[0.5, 0.5]] * 5
    assert p["inner"]["big"].tolist() == [3] * 5
    assert p["n"].tolist() == [0, 1, 2, 3, 4]


def test_types_from_the_argument(arch):
    @qp.kernel
    def total(p: qp.types.ndarray()) -> qp.f64:
        s = qp.f64(0)
        for _ in range(1):
            for i in range(p.shape[0]):
                s += p[i].b * p[i].a
        return s

    p = np.zeros(4, np.dtype([("a", np.int8), ("b", np.float64)], align=True))
    p["a"], p["b"] = 2, [1, 2, 3, 4]
    assert total(p) == 20
    q = qp.ndarray(qp.types.struct(b=qp.f32, a=qp.i32), 3)
    q.fill({"a": 1, "b": 0.5})
    assert total(q) == 1.5


def test_two_axes_and_arrays_that_overlap(arch):
    @qp.kernel
    def shift(p: qp.types.ndarray(Particle, 2), q: qp.types.ndarray(Particle, 2)):
        for i, j in qp.ndrange(*p.shape):
            q[i, j].m = p[i, j].m + 1.0

    p = qp.ndarray(Particle, (3, 4))
    shift(p, p)
    assert p.to_numpy()["m"].tolist() == [[1] * 4] * 3


def test_host_access():
    p = qp.ndarray(Particle, (2, 3))
    p[1, 2].x = [1, 2]
    p[1, 2].inner.small = 9
    p[1, 2].inner = {"big": 2.5, "small": p[1, 2].inner.small}
    assert p[1, 2] == Particle([1, 2], 0, Inner(2.5, 9))
    assert np.asarray(p)["x"][1, 2].tolist() == [1, 2]
    q = qp.ndarray(Particle, (2, 3))
    q.copy_from(p)
    q.from_numpy({name: p.to_numpy()[name] for name in ("n", "inner", "m", "x")})
    assert q[1, 2] == p[1, 2]
    p.fill(Particle(m=4))
    assert p.to_numpy()["m"].sum() == 24
    assert (p.dtype, p.shape, p.size, p.nbytes) == (Particle, (2, 3), 6, 6 * 40)


def test_arrays_that_do_not_fit(arch):
    with pytest.raises(qp.ArgumentError, match=r"p takes elements of struct.*not f32"):
        advance(qp.ndarray(qp.f32, 3), 0.5)
    with pytest.raises(qp.ArgumentError, match=r"p takes elements of struct.*not struct\(big"):
        advance(qp.ndarray(Inner, 3), 0.5)
    with pytest.raises(qp.ArgumentError, match="is not one of struct"):
        advance(np.zeros(3, [("x", np.float32)]), 0.5)
    packed = np.zeros(4, np.dtype([("pad", np.uint8), ("p", Particle.numpy_dtype)]))
    with pytest.raises(qp.ArgumentError, match=r"strides .41,. of an array of structs are not multiples of 8"):
        advance(packed["p"], 0.5)
    with pytest.raises(qp.ArgumentError, match="takes 1 dimension, not 2"):
        advance(qp.ndarray(Particle, (3, 4)), 0.5)


@pytest.mark.parametrize("cut", [np.s_[::2], np.s_[::-1], np.s_[5:1:-2], np.s_[3:3]], ids=str)
def test_structured_arrays_with_gaps(arch, cut):
    whole, expected = (np.zeros(8, Particle.numpy_dtype) for _ in range(2))
    advance(whole[cut], 0.5)
    part = np.zeros(len(expected[cut]), Particle.numpy_dtype)
    advance(part, 0.5)
    expected[cut] = part
    assert whole.tobytes() == expected.tobytes()


def test_structured_arrays_in_other_orders(arch):
    @qp.kernel
    def number(p: qp.types.ndarray(ndim=2)):
        for i, j in p:
            p[i, j].n += 10 * i + j
            p.x[i, j] = [i, j]

    columns = np.zeros((3, 4), Particle.numpy_dtype, order="F")
    number(columns)
    number(columns.T[::2])
    assert columns["n"].tolist() == [[0, 1, 12, 3], [11, 11, 23, 13], [22, 21, 34, 23]]
    assert columns["x"][2, 1].tolist() == [2, 1]


def test_members_of_arrays_of_structs_are_array_arguments(arch):
    @qp.kernel
    def double(x: qp.types.ndarray()):
        for I in qp.grouped(x):
            x[I] *= 2

    p = qp.ndarray(Particle, 4)
    p.m.fill(3)
    p.x.fill(1)
    p.inner.big.fill(0.5)
    for member in (p.m, p.x, p.inner.big):
        double(member)
    assert [p[2].m, p[2].x.y, p[2].inner.big] == [6, 2, 1]
    f = Particle.field(4)
    f.m.fill(3)
    double(f.m)
    assert f.m.to_numpy().tolist() == [6] * 4


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_code_for_gpus(target):
    assert advance.compile(target).image


MADE_BY = {
    "field": lambda: Particle.field(shape=2),
    "SOA": lambda: Particle.field(shape=2, layout=qp.Layout.SOA),
    "ndarray": lambda: qp.ndarray(Particle, 2),
}


@pytest.mark.parametrize("make", MADE_BY.values(), ids=MADE_BY)
def test_a_dict_sets_the_members_that_it_has(arch, make):
    p = make()
    p.fill(7)
    assert p[1] == Particle([7, 7], 7, Inner(7, 7), 7)
    p.fill({"m": 5})
    p[0] = {"inner": {"big": 2}, "n": 3}
    assert (p[0], p[1]) == (Particle([7, 7], 5, Inner(2, 7), 3), Particle([7, 7], 5, Inner(7, 7), 7))
    p.fill({"x": [1, 2], "m": 3, "inner": {"small": 4}, "n": 5})
    p[0] = {"x": [0, 0], "m": 0, "inner": {"big": 9}, "n": 0}
    assert (p[0], p[1]) == (Particle([0, 0], 0, Inner(9, 4), 0), Particle([1, 2], 3, Inner(7, 4), 5))
    p.fill(Particle(m=4))
    assert p[0] == p[1] == Particle(m=4)
