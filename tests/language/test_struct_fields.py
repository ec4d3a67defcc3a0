"""Fields of structs in kernels, in both layouts, and the code that GPUs get for them."""

import numpy as np
import pytest

import quadpy as qp

Inner = qp.types.struct(big=qp.f64, small=qp.u8)


@qp.dataclass
class Particle:
    x: qp.math.vec2
    v: qp.math.vec2
    m: qp.f32 = 2.0
    n: qp.i64 = 0
    inner: Inner = None

    @qp.func
    def move(self, dt):
        self.x = self.x + dt * self.v
        self.inner.small += 1


@pytest.fixture(params=["aos", "soa"])
def layout(request):
    return qp.Layout(request.param)


def test_elements_are_read_and_written_whole(arch, layout):
    f, g = Particle.field(shape=9, layout=layout), qp.field(Particle, shape=9)
    f.v.fill(2)
    f.n.from_numpy(np.arange(9))

    @qp.kernel
    def k():
        for i in f:
            p = f[i]
            p.move(0.5)
            p.m += p.n
            g[i] = p
            f[i].move(1.0)

    k()
    assert g[3] == Particle([1, 1], [2, 2], 3.0, 3, Inner(0, 1))
    assert f[3] == Particle([2, 2], [2, 2], 0.0, 3, Inner(0, 1))


def test_members_are_read_written_and_updated_atomically(arch, layout):
    f = Particle.field(shape=(4, 3), layout=layout, order="ji", offset=(1, 0))

    @qp.kernel
    def k():
        for i, j in qp.ndrange((1, 5), 3):
            f[i, j].v.x = 1.0 * i
            f[i, j].v[1] = f[i, j].v.x + j
            f[i, j].inner.big = 0.25
            f.m[i, j] = 7.0
        for i, _j in qp.ndrange((1, 5), 3):
            for _ in range(2):
                f[1, 0].n += 1
                qp.atomic_max(f[1, 1].inner.big, 1.0 * i)
                f.x[2, 2] += qp.Vector([1.0, 2.0])

    k()
    assert f[3, 2].v.entries == (3, 5)
    assert f[4, 2] == {"v": [4, 6], "m": 7, "inner": {"big": 0.25}}
    assert f[1, 0].n == 24
    assert f[1, 1].inner.big == 4.0
    assert f[2, 2].x.entries == (24, 48)


def test_a_field_without_axes(arch, layout):
    f = Particle.field(shape=(), layout=layout)

    @qp.kernel
    def k() -> qp.i64:
        f[None].n = 4
        f[None].inner = Inner(1.5, 7)
        return f[None].n + f[None].inner.small

    assert k() == 11
    assert f[None].inner == Inner(1.5, 7)


def test_structs_in_a_tree(arch):
    f, x = Particle.field(), qp.field(qp.f32)
    qp.root.dense(qp.i, 5).place(f, x)

    @qp.kernel
    def k():
        for i in x:
            x[i] = 2.0
            f[i].n = i
            f[i].inner.small = 3

    k()
    assert x.to_numpy().tolist() == [2] * 5
    assert f.n.to_numpy().tolist() == [0, 1, 2, 3, 4]
    assert f.inner.small.to_numpy().tolist() == [3] * 5


def test_a_struct_field_is_a_template_argument(arch, layout):
    f, g = Particle.field(shape=3, layout=layout), Particle.field(shape=4)

    @qp.kernel
    def k(f: qp.template(), value: qp.i64):
        for i in f:
            f[i].n = value + f.shape[0]

    k(f, 1)
    k(g, 2)
    assert f.n.to_numpy().tolist() == [4] * 3
    assert g.n.to_numpy().tolist() == [6] * 4


def test_sums_over_a_member(arch, layout):
    f, total = Particle.field(shape=1000, layout=layout), Inner.field(shape=())
    f.m.fill(0.5)

    @qp.kernel
    def k():
        for i in f:
            total[None].big += f[i].m

    k()
    assert total[None].big == 500


def test_a_struct_that_does_not_fit_is_an_error(arch):
    f = Particle.field(shape=3)

    @qp.kernel
    def whole():
        f[0] = Inner()

    @qp.kernel
    def number():
        f[0] = 1.0

    @qp.kernel
    def atomic():
        f[0] += 1.0

    @qp.kernel
    def member():
        f[0].w = 1.0

    with pytest.raises(qp.KernelTypeError, match="no member 'x'"):
        whole()
    with pytest.raises(qp.KernelTypeError, match="float where struct"):
        number()
    with pytest.raises(qp.KernelTypeError, match="not a struct"):
        atomic()
    with pytest.raises(qp.KernelTypeError, match="no member 'w'"):
        member()


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_code_for_gpus(target, layout):
    f = Particle.field(shape=64, layout=layout)

    @qp.kernel
    def k(dt: qp.f32):
        for i in f:
            f[i].move(dt)
            f[0].n += 1
            f[i].inner.big += f[i].m

    assert k.compile(target).image


@pytest.mark.parametrize("layout", [qp.Layout.AOS, qp.Layout.SOA])
def test_a_field_of_structs_beside_its_members(layout):
    inner = qp.types.struct(k=qp.i32, w=qp.f32)
    S = qp.types.struct(a=qp.f32, inner=inner)
    f = S.field(shape=8, layout=layout)
    a, nested, k = f.a, f.inner, f.inner.k

    @qp.kernel
    def work(whole: qp.template(), part: qp.template()) -> qp.f32:
        f[0].a = 1.0
        a[0] = 2.0
        x = f[0].a
        whole[1].a = 3.0
        part[1] = 4.0
        y = whole[1].a
        nested[2].k = 5
        k[2] = 6
        f[2].inner.k += 1
        return x + 10 * y + 100 * nested[2].k

    assert work(f, a) == 2 + 40 + 700

    @qp.kernel
    def reverse(out: qp.types.ndarray(dtype=qp.f32, ndim=1)):
        for _ in range(1):
            for j in range(8):
                f[j].a = 1.0
                a[7 - j] = 2.0
                out[j] = f[j].a

    out = qp.ndarray(qp.f32, 8)
    reverse(out)
    assert out.to_numpy().tolist() == [1, 1, 1, 1, 1, 1, 1, 1]
    assert a.to_numpy().tolist() == [2, 2, 2, 2, 1, 1, 1, 1]


@qp.dataclass
class Counted:
    a: qp.f32

    @qp.func
    def add(self, x):
        self.a += x

    @qp.func
    def again(self, x):
        self.a += x


@qp.dataclass
class CountedTwice(Counted):
    b: qp.f32

    @qp.func
    def again(self, x):
        super().again(x)

    @qp.func
    def add(self, x):
        super().add(x)
        self.again(x)


@pytest.mark.parametrize("shape", [6, (2, 3)])
@pytest.mark.parametrize("debug", [False, True])
def test_overridden_methods_call_each_other_on_elements(arch, layout, shape, debug):
    f = CountedTwice.field(shape, layout=layout)
    pair = [CountedTwice.field(shape, layout=layout) for _ in range(2)]

    @qp.kernel(debug=debug)
    def given(f: qp.template()):
        for i in qp.grouped(f):
            f[i].add(1.0)

    @qp.kernel(debug=debug)
    def in_a_tuple(fs: qp.template()):
        for i in qp.grouped(fs[1]):
            fs[1][i].add(2.0)

    given(f)
    in_a_tuple(tuple(pair))
    assert (f.a.to_numpy() == 2.0).all()
    assert (f.b.to_numpy() == 0.0).all()
    assert (pair[1].a.to_numpy() == 4.0).all()
    assert (pair[0].a.to_numpy() == 0.0).all()
