"""Structs: types and values on the host, in variables, functions and methods, as arguments and results of kernels."""

import copy
import pickle

import pytest

import quadpy as qp

Inner = qp.types.struct(n=int, m=qp.math.mat2)
Outer = qp.types.struct(a=qp.f32, v=qp.math.vec3, inner=Inner)


@qp.dataclass
class Particle:
    x: qp.math.vec2
    v: qp.math.vec2
    m: float = 2.0

    @qp.func
    def energy(self):
        return 0.5 * self.m * self.v.dot(self.v)

    @qp.func
    def move(self, dt):
        self.x += dt * self.v
        self.fall(dt)

    @qp.func
    def fall(self, dt):
        self.v.y -= dt


def test_values_on_the_host_are_mutable_and_compare_by_members():
    s = Outer(1, v=[1, 2, 3])
    assert (s.a, s.v.entries, s.inner.n) == (1.0, (1.0, 2.0, 3.0), 0)
    s.inner.n = 4
    s.v = qp.Vector([3.0, 4.0, 5.0])
    s.inner = {"n": 7, "m": [[1, 2], [3, 4]]}
    assert s == Outer(1, [3, 4, 5], Inner(7, [[1, 2], [3, 4]]))
    assert s != Outer(1)
    assert s.to_dict()["inner"]["n"] == 7
    assert s.keys == ["a", "v", "inner"]
    assert "inner=struct(n=7" in repr(s)


def test_a_copy_is_a_value_of_its_own():
    s = Outer(1)
    t, u = copy.copy(s), pickle.loads(pickle.dumps(s))
    s.a = 5
    assert (t.a, u.a, s.a) == (1.0, 1.0, 5.0)


def test_a_struct_of_values_takes_their_types():
    s = qp.Struct(a=1, b=2.5, v=[1.0, 2.0], inner={"flag": True})
    assert (s.a, s.b, s.v.y, s.inner.flag) == (1, 2.5, 2.0, True)
    assert qp.Struct({"a": 1}) == qp.Struct(a=1)


def test_what_is_no_member_is_named():
    with pytest.raises(AttributeError, match="no member 'b'"):
        Outer().b  # noqa: B018 - the read raises
    with pytest.raises(AttributeError, match="no member 'b'"):
        Outer().b = 1
    with pytest.raises(qp.ArgumentError, match="no member 'b'"):
        Outer(b=1)
    with pytest.raises(qp.ArgumentError, match=r"'v' takes shape \(3,\), not \(2,\)"):
        Outer(v=[1, 2])
    with pytest.raises(qp.ArgumentError, match="the member 'a': 3 is not"):
        qp.types.struct(a=3)
    with pytest.raises(qp.ArgumentError, match="cannot be the name"):
        qp.types.struct(_a=qp.f32)


def test_defaults_of_a_dataclass():
    assert Particle().m == 2.0

    @qp.kernel
    def k() -> float:
        p = Particle(m=3.0)
        q = Particle([1.0, 2.0])
        return p.m + q.m + q.x.y

    assert k() == 7.0


def test_members_are_read_and_assigned():
    @qp.kernel
    def k(n: int) -> qp.types.vector(4, float):
        s = Outer(a=1.0)
        s.v = [1.0, 2.0, 3.0]
        s.v.x = 7.0
        s.v[1] += 1.0
        s.inner.m[0, 1] = 5.0
        s.inner.n += n
        s.a *= 2.0
        return qp.Vector([s.a, s.v.sum(), s.inner.m[0, 1], float(s.inner.n)])

    assert k(3).entries == (2.0, 13.0, 5.0, 3.0)


def test_an_assigned_struct_is_a_copy():
    @qp.kernel
    def k() -> float:
        s = Outer(a=1.0)
        t = s
        t.a = 5.0
        s.inner = t.inner
        return s.a * 10.0 + t.a

    assert k() == 15.0


def test_structs_in_branches_and_loops():
    @qp.kernel
    def k(n: int) -> float:
        s = Outer(a=1.0)
        qp.loop_config(serialize=True)
        for i in range(n):
            if i % 2 == 0:
                s = Outer(a=s.a + 1.0, v=[1.0, 1.0, s.v.z + 1.0])
            else:
                s.a += 10.0
        t = s if n > 100 else Outer(a=0.5)
        return s.a + 100.0 * s.v.z + t.a

    assert k(5) == 1 + 3 + 20 + 300 + 0.5


def test_a_struct_is_selected():
    @qp.kernel
    def k(n: int) -> float:
        s = qp.select(n > 3, Outer(a=1.0, v=[1.0, 2.0, 3.0]), Outer(a=2.0))
        return s.a + s.v.z

    assert (k(3), k(4)) == (2.0, 4.0)


@qp.dataclass
class Box:
    low: qp.math.vec2
    high: qp.math.vec2

    @qp.func
    def grow(self, p):
        self.low = min(self.low, p)
        self.high = max(self.high, p)

    @qp.func
    def take(self, count: qp.template()):
        count += 1
        self.grow([count, -count])


@qp.dataclass
class Ship:
    x: qp.math.vec2
    box: Box

    @qp.func
    def move(self, d):
        self.x += d
        self.box.grow(self.x)
        return self.x.x


@qp.data_oriented
class Fleet:
    def __init__(self, n):
        self.ships = Ship.field(shape=n)
        self.total = qp.field(float, ())

    @qp.func
    def one(self, i):
        return self.ships[i].move([1.0, 2.0])

    @qp.kernel
    def step(self):
        for i in self.ships:
            self.total[None] += self.one(i)


def test_methods_change_nested_structs_in_fields_of_a_class():
    fleet = Fleet(4)
    fleet.step()
    fleet.step()
    assert fleet.total[None] == 12
    assert fleet.ships[2] == Ship([2, 4], Box([0, 0], [2, 4]))


def test_methods_with_references():
    @qp.kernel
    def k() -> qp.types.vector(3, float):
        s = Ship()
        n = 0.0
        qp.loop_config(serialize=True)
        for _ in range(3):
            s.box.take(n)
        return qp.Vector([s.box.low.y, s.box.high.x, n])

    assert k().entries == (-3, 3, 3)


def test_variables_that_iterations_share():
    @qp.kernel
    def k(n: int) -> qp.types.vector(3, float):
        b = Box([100.0, 100.0], [-100.0, -100.0])
        for i in range(n):
            qp.atomic_min(b.low, qp.Vector([float(i), 1.0]))
            qp.atomic_max(b.high.x, float(i))
            b.high.y += 1.0
        return qp.Vector([b.low.y, b.high.x, b.high.y])

    assert k(5).entries == (1, 4, -95)


def test_structs_in_parallel_loops_are_of_their_iteration():
    out = qp.ndarray(qp.f32, 8)

    @qp.kernel
    def k(out: qp.types.ndarray(qp.f32, 1)):
        shift = Outer(a=100.0)
        for i in out:
            p = Particle([float(i), 0.0], [1.0, 2.0])
            p.move(0.5)
            out[i] = p.x.x + p.x.y + shift.a

    k(out)
    assert out.to_numpy().tolist() == [101.5 + i for i in range(8)]


@qp.func
def heavier(p: Particle, q: Particle) -> Particle:
    if p.m > q.m:
        return p
    return q


@qp.func
def both(n):
    s = Inner(n=n)
    if n > 3:
        return s, Outer(a=1.0, inner=s)
    s.n = -n
    return s, Outer(a=2.0, inner=s)


def test_functions_take_and_return_structs():
    @qp.kernel
    def k(n: int) -> float:
        p = heavier(Particle(m=float(n)), Particle(m=2.5))
        s, t = both(n)
        return p.m + 10.0 * s.n + 100.0 * t.a + t.inner.n

    assert k(2) == 2.5 - 20 + 200 - 2
    assert k(4) == 4 + 40 + 100 + 4


def test_a_method_changes_the_struct_that_it_is_called_of():
    @qp.kernel
    def k(n: int) -> qp.types.vector(3, float):
        p = Particle([0.0, 0.0], [1.0, 2.0])
        before = p
        qp.loop_config(serialize=True)
        for _ in range(n):
            p.move(1.0)
        return qp.Vector([p.x.y, p.energy(), before.x.y])

    assert k(2).entries == (3.0, 1.0, 0.0)


def test_a_function_does_not_change_the_struct_of_its_caller():
    @qp.func
    def change(p):
        p.m = 7.0
        return p.m

    @qp.kernel
    def k() -> float:
        p = Particle(m=1.0)
        return change(p) * 10.0 + p.m

    assert k() == 71.0


def test_a_struct_as_argument_and_result_of_a_kernel():
    @qp.kernel
    def k(p: Particle, s: Outer, factor: float) -> Particle:
        p.move(factor)
        p.m += s.inner.n
        return p

    made = k(Particle([0, 0], [1, 2]), {"a": 0, "v": [0, 0, 0], "inner": {"n": 3, "m": 0}}, 2.0)
    assert made == Particle([2, 4], [1, 0], 5.0)
    with pytest.raises(qp.ArgumentError, match=r"takes Particle.*not float"):
        k(1.0, Outer(), 2.0)
    with pytest.raises(qp.ArgumentError, match=r"the member 'inner\.m' is missing"):
        k(Particle(), {"a": 0, "v": [0, 0, 0], "inner": {"n": 3}}, 2.0)
    with pytest.raises(qp.ArgumentError, match="the member 'm' is missing"):
        k({"x": [0, 0], "v": [0, 0]}, Outer(), 2.0)


def test_results_keep_their_types():
    @qp.kernel
    def k() -> qp.types.struct(big=qp.i64, small=qp.u8, v=qp.types.vector(2, qp.f64)):
        return qp.Struct(big=qp.i64(1 << 40), small=qp.u8(255), v=qp.Vector([0.1, 0.2], qp.f64))

    made = k()
    assert (made.big, made.small, made.v.dtype) == (1 << 40, 255, qp.f64)


def test_structs_from_around_the_kernel_are_constants():
    scale = qp.Struct(a=2.0, v=[1.0, 2.0])

    @qp.kernel
    def k(x: float) -> float:
        return scale.a * x + scale.v.y

    assert k(3.0) == 8.0


def test_a_struct_as_template_argument_is_its_value():
    s = Inner(n=2)

    @qp.kernel
    def k(s: qp.template()) -> int:
        return qp.static(3) * s.n

    assert k(s) == 6
    s.n = 5
    assert k(s) == 15


def test_equality_in_kernels():
    @qp.kernel
    def k(n: int) -> int:
        s, t = Inner(n=n), Inner(n=3)
        return (1 if s == t else 0) + (2 if s != t else 0)

    assert (k(3), k(4)) == (1, 2)


def failing(fn, match):
    with pytest.raises(qp.KernelTypeError, match=match) as caught:
        qp.kernel(fn)()
    assert "test_structs.py" in str(caught.value)


def test_errors_name_the_member():
    def unknown():
        s = Outer()
        s.b = 1.0

    def read():
        s = Outer()
        s.a = s.b

    def shape():
        s = Outer()
        s.v = [1.0, 2.0]

    def other():
        s = Outer()
        s = Inner()  # noqa: F841 - the assignment raises

    def number():
        s = Outer()
        s = 1.0  # noqa: F841 - the assignment raises

    def loses():
        s = Inner()
        s = qp.Struct(n=1.5, m=s.m)

    def twice():
        Outer(1.0, a=2.0)

    def lacks():
        s = Inner()
        s = {"n": 1}  # noqa: F841 - the assignment raises

    def adds():
        s = Outer() + Outer()  # noqa: F841 - the assignment raises

    failing(unknown, "no member 'b'")
    failing(read, "no member 'b'")
    failing(shape, "f32x2 where f32x3 is needed")
    failing(other, "no member 'a'")
    failing(number, "float where struct")
    failing(loses, "the member 'n' is i32 and cannot become f32")
    failing(twice, "'a' is given twice")
    failing(lacks, "needs a value for its member 'm'")
    failing(adds, "not defined for struct")


@qp.dataclass
class Tally:
    n: qp.i32

    @qp.func
    def inc(self):
        self.n += 1
        return self.n


GLOBAL = Tally(4)


@pytest.mark.parametrize(
    "lines",
    [
        "l = [qp_Tally(1), GLOBAL]\n    for s in qp.static(l):\n        s.inc()",
        "GLOBAL.inc()",
        "qp_Tally(1).inc()",
    ],
)
def test_a_method_does_not_change_a_struct_that_is_not_a_variable(lines, load):
    module = load(f"@qp.kernel\ndef k():\n    {lines}\n")
    module.qp_Tally, module.GLOBAL = Tally, GLOBAL
    with pytest.raises(qp.KernelTypeError, match="inc changes its struct, which cannot change here"):
        module.k()


@qp.dataclass
class Base:
    x: qp.f32 = 1.0
    v: qp.types.vector(2, qp.f32)

    @qp.func
    def energy(self):
        return self.x * self.v[0]

    @qp.func
    def move(self, dt):
        self.x += dt * self.v[1]

    @qp.func
    def kept(self):
        return self.x


@qp.dataclass
class Derived(Base):
    m: qp.f32 = 3.0

    @qp.func
    def energy(self):
        return super().energy() + self.m

    @qp.func
    def move(self, dt):
        super().move(2 * dt)
        self.m += 1


def test_structs_inherit_members_defaults_and_methods(init):
    @qp.kernel
    def run(d: Derived) -> qp.types.vector(5, qp.f32):
        e = d
        e.move(0.5)
        f = Derived(x=2.0, v=[1.0, 0.0])
        return qp.Vector([e.energy(), e.kept(), e.m, f.energy(), f.m])

    assert list(Derived.members) == ["x", "v", "m"]
    assert Derived().x == 1.0
    d = Derived(2.0, [1.0, 4.0], 10.0)
    assert run(d).to_list() == [6.0 + 11.0, 6.0, 11.0, 2.0 + 3.0, 3.0]
    fields = Derived.field(shape=2)
    fields.m.fill(1.0)

    @qp.kernel
    def step():
        for i in fields:
            fields[i].move(1.0)

    step()
    assert fields.m.to_numpy().tolist() == [2.0, 2.0]


def test_what_structs_cannot_inherit_from():
    with pytest.raises(qp.ArgumentError, match=r"cannot inherit from struct\(a: f32\)"):

        @qp.dataclass
        class Wrong(qp.types.struct(a=qp.f32)):
            b: qp.f32

    class Plain:
        a: qp.f32

    with pytest.raises(qp.ArgumentError, match="Other inherits from Plain, which has members and is not a struct"):

        @qp.dataclass
        class Other(Plain):
            b: qp.f32


def test_a_mixin_gives_methods(init):
    class Norm:
        @qp.func
        def norm(self):
            return qp.sqrt(self.a * self.a + self.b * self.b)

    @qp.dataclass
    class Pair(Norm):
        a: qp.f32
        b: qp.f32

    @qp.kernel
    def run(p: Pair) -> qp.f32:
        return p.norm()

    assert run(Pair(3.0, 4.0)) == 5.0


def test_a_missing_method_of_a_base(init):
    @qp.dataclass
    class Wrong(Base):
        @qp.func
        def total(self):
            return super().enrgy()

    @qp.kernel
    def run(w: Wrong) -> qp.f32:
        return w.total()

    with pytest.raises(qp.KernelTypeError, match=r"super\(\) has no attribute 'enrgy'"):
        run(Wrong())


Mass = qp.types.struct(x=qp.math.vec2, m=qp.f32)


def test_an_annotation_of_an_assignment_may_be_the_type_of_a_struct():
    @qp.kernel
    def total(masses: qp.types.ndarray(Mass, 1)) -> qp.f32:
        first: Mass = masses[0]
        first.m += 1.0
        return first.m + first.x.sum()

    masses = qp.ndarray(Mass, 2)
    masses[0] = Mass([2.0, 3.0], 4.0)
    assert total(masses) == 10
    assert masses[0].m == 4


def test_a_type_keeps_its_methods():
    @qp.dataclass
    class P:
        a: qp.f32

        def get(self):
            return self.a

    for name in ("get", "a", "new"):
        with pytest.raises(
            AttributeError, match=f"'{name}' of P.* cannot be set: .* Write it in the class, or in another"
        ):
            setattr(P, name, lambda self: 2 * self.a)
    assert P(3.0).get() == 3.0
