"""Dataclasses as arguments: their members are arguments, and those that a kernel does not use cost nothing."""

import dataclasses
import enum
import gc
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest

import quadpy as qp

F32 = qp.types.NDArray[qp.f32, 1]
VEC = qp.types.vector(2, qp.f32)
PARTICLE = qp.types.struct(m=qp.f32, x=VEC)


class Scheme(enum.Enum):
    EULER = 1
    MIDPOINT = 2


@dataclass
class Material:
    density: float
    stiffness: qp.f32 = 2.0


@dataclass
class Body:
    x: F32
    v: qp.types.NDArray
    material: Material
    n: int = 0
    gravity: VEC = field(default_factory=lambda: qp.Vector([0.0, -1.0]))
    scheme: qp.template() = Scheme.EULER
    name: str = "body"

    @qp.func
    def weight(self, k):
        return self.x[k] * self.material.density


@dataclass(frozen=True)
class Frozen:
    a: qp.types.ndarray(qp.f32, 1)
    s: qp.f32


@qp.kernel
def step(body: Body, dt: qp.f32):
    for i in body.x:
        body.x[i] += dt * body.v[i] * body.material.stiffness + body.gravity[1]


@qp.kernel
def weigh(body: Body) -> qp.f32:
    total = 0.0
    for i in body.x:
        total += body.weight(i)
    return total


@qp.kernel
def which(body: Body) -> qp.i32:
    result = 0
    if qp.static(body.scheme is Scheme.MIDPOINT):
        result = 10
    return result + body.n + qp.static(len(body.name))


@qp.kernel
def scale(p: Frozen):
    for i in p.a:
        p.a[i] *= p.s


@dataclasses.dataclass
class Weights:
    each: list


@pytest.fixture
def array(arch):
    def make(*numbers):
        made = qp.ndarray(qp.f32, len(numbers))
        made.from_numpy(np.array(numbers, np.float32))
        return made

    return make


@pytest.fixture
def body(array):
    return Body(array(1.0, 2.0), array(10.0, 20.0), Material(3.0))


def test_members_are_read_and_written(body):
    step(body, 0.5)
    assert body.x.to_numpy().tolist() == [10.0, 21.0]
    assert weigh(body) == 93.0


def test_numbers_change_from_call_to_call_without_new_code(body):
    for density in (1.0, 2, np.float32(3.0)):
        body.material.density = density
        assert weigh(body) == 3.0 * density
    assert weigh(Body(body.x, body.v, Material(5.0))) == 15.0
    assert len(weigh._dispatcher.specialisations) == 1


def test_compile_time_members_have_code_of_their_own(body):
    assert which(body) == 4
    body.n = 3
    assert which(body) == 7
    body.scheme = Scheme.MIDPOINT
    assert which(body) == 17
    body.name = "b"
    assert which(body) == 14
    body.scheme, body.name = Scheme.EULER, "body"
    assert which(body) == 7
    assert len(which._dispatcher.specialisations) == 3


def test_frozen_dataclasses_and_arrays_that_are_replaced(array):
    scale.forget()  # other tests call it with arrays of the host, too
    a, b = array(1.0, 2.0), array(3.0, 4.0, 5.0)
    scale(Frozen(a, 2.0))
    scale(Frozen(b, 3.0))
    scale(p=Frozen(a=a, s=0.5))
    assert a.to_numpy().tolist() == [1.0, 2.0]
    assert b.to_numpy().tolist() == [9.0, 12.0, 15.0]
    assert len(scale._dispatcher.specialisations) == 1


def test_numpy_arrays_as_members(arch):
    a = np.array([1.0, 2.0], np.float32)
    scale(Frozen(a, 4.0))
    assert a.tolist() == [4.0, 8.0]


def test_unused_members_are_not_looked_at(array):
    body = Body(array(1.0, 2.0), "no array", Material(3.0, "no number"))
    assert weigh(body) == 9.0
    code = weigh.compile("cpu", body=body)
    assert {value.param for value in code.layout.values if value.param.startswith("body")} == {
        "body.x", "body.material.density",
    }  # fmt: skip


def test_fields_vectors_and_structs_as_members(arch):
    @dataclass
    class Grid:
        f: qp.template()
        t: qp.Tensor
        p: PARTICLE

    @qp.kernel
    def run(g: Grid):
        for i in g.f:
            g.f[i] = g.t[i] + g.p.m * g.p.x[1]

    f, t = qp.field(qp.f32, 2), qp.field(qp.f32, 2)
    t.fill(1.0)
    run(Grid(f, t, PARTICLE(m=2.0, x=[0.0, 3.0])))
    assert f.to_numpy().tolist() == [7.0, 7.0]
    array = qp.ndarray(qp.f32, 2)
    array.fill(5.0)
    run(Grid(f, array, {"m": 1.0, "x": [0.0, 1.0]}))
    assert f.to_numpy().tolist() == [6.0, 6.0]
    other = qp.field(qp.f32, 2)
    run(Grid(other, array, PARTICLE()))
    assert other.to_numpy().tolist() == [5.0, 5.0]
    assert f.to_numpy().tolist() == [6.0, 6.0]


def test_in_functions(body):
    @qp.func
    def inner(b: Body, k):
        return b.x[k] + b.material.density

    @qp.func
    def outer(b: qp.template(), k):
        return inner(b, k) + inner(k=k, b=b)

    @qp.kernel
    def run(b: Body) -> qp.f32:
        return outer(b, 1)

    assert run(body) == 10.0


def test_two_of_one_class(body, array):
    @qp.kernel
    def swap(a: Body, b: Body):
        for i in a.x:
            a.x[i], b.x[i] = b.x[i], a.x[i]

    other = Body(array(7.0, 8.0), body.v, body.material)
    swap(body, other)
    assert body.x.to_numpy().tolist() == [7.0, 8.0]
    assert other.x.to_numpy().tolist() == [1.0, 2.0]
    swap(body, body)
    assert body.x.to_numpy().tolist() == [7.0, 8.0]


def test_arrays_of_two_members_may_overlap(array):
    @dataclass
    class Pair:
        a: F32
        b: F32

    @qp.kernel
    def shift(p: Pair):
        for _ in range(1):
            for i in range(p.a.shape[0] - 1):
                p.a[i + 1] = p.b[i] + 1

    a = array(0.0, 0.0, 0.0, 0.0)
    shift(Pair(a, array(0.0, 0.0, 0.0, 0.0)))
    assert a.to_numpy().tolist() == [0.0, 1.0, 1.0, 1.0]
    a.fill(0.0)
    shift(Pair(a, a))
    assert a.to_numpy().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_members_that_other_branches_use(array):
    @dataclass
    class Either:
        a: F32
        b: F32
        first: qp.template()

    @qp.kernel
    def total(e: Either) -> qp.f32:
        t = 0.0
        if qp.static(e.first):
            for i in e.a:
                t += e.a[i]
        else:
            for i in e.b:
                t += e.b[i]
        return t

    a, b = array(1.0, 2.0), array(10.0, 20.0)
    for _ in range(2):
        assert total(Either(a, b, True)) == 3.0
        assert total(Either(a, b, False)) == 30.0
    assert total(Either(a, None, True)) == 3.0


def test_inherited_members_and_functions(array):
    @dataclass
    class Base:
        x: F32

        @qp.func
        def at(self, k):
            return self.x[k]

    @dataclass
    class Derived(Base):
        offset: qp.f32 = 1.0

        @qp.func
        def at(self, k):
            return self.x[k] + self.offset

    @qp.kernel
    def read(b: Base) -> qp.f32:
        return b.at(1)

    x = array(1.0, 2.0)
    assert read(Base(x)) == 2.0
    assert read(Derived(x)) == 3.0
    assert read(Derived(x, 5.0)) == 7.0
    assert read(Base(x)) == 2.0


def test_in_replays_and_graphs(init, body, array):
    @qp.graph.replay
    def twice(b, dt):
        step(b, dt)
        step(b, dt)

    expected = np.array([1.0, 2.0], np.float32)
    for dt in (0.5, 0.5, 0.25):
        twice(body, dt)
        for _ in range(2):
            expected += np.float32(dt) * np.array([10.0, 20.0], np.float32) * 2 - 1
    np.testing.assert_allclose(body.x.to_numpy(), expected)
    other = Body(array(0.0), array(1.0), Material(1.0, 1.0))
    twice(other, 3.0)
    assert other.x.to_numpy().tolist() == [4.0]
    graph = qp.graph.Graph()
    graph.add_kernel(step, other, 1.0)
    graph.instantiate().launch()
    qp.sync()
    assert other.x.to_numpy().tolist() == [4.0]


def test_an_argument_is_not_kept_alive(array):
    a = array(1.0, 2.0)
    p = Frozen(a, 2.0)
    scale(p)
    seen = weakref.ref(a)
    del a, p
    scale(Frozen(array(1.0), 2.0))
    gc.collect()
    assert seen() is None


def test_code_for_other_targets(body):
    for target in ("gfx942", "gfx1100", "sm_80"):
        assert step.compile(target, body=body).image
    assert scale.compile("gfx942").image  # its annotations say all


@dataclass
class Loose:
    x: qp.types.NDArray


BAD = [
    (lambda: step({"x": 1}, 1.0), r"step: body takes a Body, not dict"),
    (lambda: step(Body, 1.0), r"step: body takes a Body, not the class Body"),
    (lambda: step(None, 1.0), r"step: body takes a Body, not NoneType"),
    (lambda: scale(Frozen(np.zeros(2), 1.0)), r"scale: p.a takes elements of f32, not f64"),
    (lambda: scale(Frozen(np.zeros((2, 2), np.float32), 1.0)), r"scale: p.a takes 1 dimension, not 2"),
    (lambda: scale(Frozen(np.zeros(2, np.float32), "x")), r"scale: p.s takes a number \(f32\), not str"),
    (lambda: scale(Frozen(None, 1.0)), r"scale: p.a takes an array, not NoneType"),
]


@pytest.mark.parametrize("given", [None, np.zeros(2), np.zeros((2, 2), np.float32)])
def test_a_wrong_member_in_the_first_call_is_the_callers_mistake(arch, given):
    @qp.kernel
    def first(p: Frozen):
        for i in p.a:
            p.a[i] += p.s

    with pytest.raises(qp.ArgumentError, match=r"first: p.a takes"):
        first(Frozen(given, 1.0))
    x = np.ones(2, np.float32)
    first(Frozen(x, 1.0))
    assert x.tolist() == [2, 2]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_wrong_arguments(arch, call, message):
    with pytest.raises(qp.ArgumentError, match=message):
        call()
    scale(Frozen(np.ones(2, np.float32), 1.0))
    with pytest.raises(qp.ArgumentError, match=message):
        call()


def test_misuse_in_kernels(body, load):
    module = load(
        """
        import dataclasses

        @dataclasses.dataclass
        class P:
            stiffness: qp.f32
            x: qp.types.NDArray[qp.f32, 1]

        @qp.kernel
        def misspelt(p: P) -> qp.f32:
            return p.stifness

        @qp.kernel
        def stores(p: P):
            p.stiffness = 1.0

        @qp.kernel
        def unrolls(p: P):
            for _ in qp.static(p):
                pass

        @qp.kernel
        def kinds(p: P) -> qp.i32:
            return 1 if qp.static(isinstance(p, P) and not isinstance(p, int)) else 0

        @qp.kernel
        def adds(p: P) -> qp.f32:
            return p + 1.0

        @qp.kernel
        def indexes(p: P) -> qp.f32:
            return p[0]
        """
    )
    p = module.P(1.0, np.zeros(1, np.float32))
    assert module.kinds(p) == 1
    for kernel, message in (
        (module.misspelt, r"P has no member 'stifness'(?s:.)*did you mean 'stiffness'"),
        (module.stores, r"a kernel cannot set members of a dataclass: p.stiffness"),
        (module.unrolls, r"a P cannot be unrolled"),
        (module.adds, r"this operator is not defined for P and"),
        (module.indexes, r"P cannot be indexed"),
    ):
        with pytest.raises(qp.CompilationError, match=message) as raised:
            kernel(p)
        assert "p" in str(raised.value)
        assert raised.value.span.line > 0


def test_annotations_that_cannot_be_read(load):
    module = load(
        """
        import dataclasses

        @dataclasses.dataclass
        class P:
            x: "qp.f23"
            y: "Missing"

        @dataclasses.dataclass
        class Again:
            again: "Again"

        @qp.kernel
        def run(p: P):
            pass

        @qp.kernel
        def loops(p: Again):
            pass
        """
    )
    with pytest.raises(qp.KernelTypeError, match=r"the annotation 'qp.f23' of P.x cannot be read"):
        module.run(None)
    with pytest.raises(
        qp.KernelTypeError, match=r"^[^\n]*loops: p\.\w+: the dataclass Again contains itself\n"
    ) as caught:
        module.loops(None)
    assert "qp.template()" in caught.value.hint


def test_dataclasses_in_objects(array):
    @dataclass
    class State:
        x: F32
        k: qp.f32

    @qp.data_oriented
    class Solver:
        def __init__(self, state):
            self.state = state

        @qp.kernel
        def grow(self):
            for i in self.state.x:
                self.state.x[i] += self.state.k

    first, second = State(array(1.0), 1.0), State(array(5.0), 2.0)
    solver = Solver(first)
    solver.grow()
    solver.state = second
    solver.grow()
    second.k = 10.0
    solver.grow()
    second.x = array(0.0)
    solver.grow()
    assert first.x.to_numpy().tolist() == [2.0]
    assert second.x.to_numpy().tolist() == [10.0]


def test_replace_keeps_the_code(array):
    p = Frozen(array(1.0, 2.0), 2.0)
    before = len(scale._dispatcher.specialisations) if scale._dispatcher else None
    scale(p)
    scale(dataclasses.replace(p, s=3.0))
    assert p.a.to_numpy().tolist() == [6.0, 12.0]
    assert before is None or len(scale._dispatcher.specialisations) <= before + 1


def test_lists_that_change(arch):
    @qp.kernel
    def total(weights: Weights) -> qp.f32:
        result = 0.0
        for each in qp.static(weights.each):
            result += each
        return result

    weights = Weights([1, 2])
    assert total(weights) == 3
    weights.each.append(4)
    assert total(weights) == 7
