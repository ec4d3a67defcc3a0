"""Changes of structs and vectors reach what the program names: through super(), fill and the names of unrolled loops."""

import numpy as np
import pytest

import quadpy as qp

vec3 = qp.math.vec3


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    options = {"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param]
    init(**options)
    return request.param


@qp.dataclass
class Base:
    m: qp.f32
    v: vec3

    @qp.func
    def bump(self):
        self.m += 10
        return self.m

    @qp.func
    def clear(self, value):
        self.v.fill(value)

    @qp.func
    def blind(self):
        return self.m


class Mixin:
    @qp.func
    def set(self, m):
        self.m = m


@qp.dataclass
class Derived(Base, Mixin):
    k: qp.i32

    @qp.func
    def bump(self):
        return super().bump()

    @qp.func
    def other(self):
        return self.bump()

    @qp.func
    def named(self):
        return super().bump()

    @qp.func
    def by_class(self):
        return Base.bump(self)

    @qp.func
    def set(self, m):
        super().set(m)

    @qp.func
    def blind(self):
        return super().blind() + 1

    @qp.func
    def maybe(self, c):
        if c > 0:
            super().bump()

    @qp.func
    def of_another(self, other: qp.template()):
        super(Derived, other).bump()


@qp.dataclass
class Third(Derived):
    @qp.func
    def bump(self):
        self.k += 1
        return super().bump()


@qp.dataclass
class Holder:
    inner: Third


def test_methods_that_change_through_super_in_variables_and_arguments():
    @qp.kernel
    def run(s: Third) -> (Third, qp.f32, qp.f32):
        t = s
        a = t.bump()
        t.other()
        t.named()
        t.by_class()
        t.maybe(0)
        t.maybe(1)
        s.set(3.0)
        return t, s.m, a

    t, s, a = run(Third(1.0, [0, 0, 0], 0))
    assert (t.m, t.k, s, a) == (51.0, 2, 3.0, 11.0)


def test_methods_that_change_through_super_in_fields_arrays_and_structs_inside():
    f, x, holders = Third.field(shape=3), Third.ndarray(3), Holder.field(shape=1)

    @qp.kernel
    def run(x: qp.types.ndarray(Third, 1)):
        for i in f:
            f[i].other()
            x[i].named()
        for i in holders:
            holders[i].inner.bump()
            holders[i].inner.set(holders[i].inner.blind())

    run(x)
    assert f.to_numpy()["m"].tolist() == [10, 10, 10]
    assert f.to_numpy()["k"].tolist() == [1, 1, 1]
    assert [x[i].m for i in range(3)] == [10, 10, 10]
    assert (holders[0].inner.m, holders[0].inner.k) == (11, 1)


def test_super_of_another_struct_changes_that_one():
    @qp.kernel
    def run() -> (qp.f32, qp.f32):
        a, b = Derived(), Derived()
        a.of_another(b)
        return a.m, b.m

    assert run() == (0, 10)


def test_templates_and_real_functions_change_structs_through_super():
    @qp.func
    def helper(s: qp.template()):
        s.bump()

    @qp.real_func
    def apart(s: Third) -> qp.f32:
        t = s
        t.bump()
        return t.m

    @qp.kernel
    def run() -> (qp.f32, qp.f32, qp.f32):
        s = Third()
        helper(s)
        return s.m, apart(s), s.m

    assert run() == (10, 20, 10)


@qp.dataclass
class Root:
    steps: qp.i32

    @qp.func
    def step(self):
        self.steps = self.steps * 10 + 1


@qp.dataclass
class Left(Root):
    @qp.func
    def step(self):
        super().step()
        self.steps = self.steps * 10 + 2


@qp.dataclass
class Right(Root):
    @qp.func
    def step(self):
        super().step()
        self.steps = self.steps * 10 + 3


@qp.dataclass
class Both(Left, Right):
    @qp.func
    def step(self):
        super().step()
        self.steps = self.steps * 10 + 4


def test_super_follows_the_order_of_the_whole_class():
    @qp.kernel
    def run() -> qp.i32:
        s = Both()
        s.step()
        return s.steps

    assert run() == 1324  # as in Python


def test_fill_of_members_elements_parts_and_template_parameters():
    f, m, s = qp.Vector.field(3, qp.f32, 4), qp.Matrix.field(2, 2, qp.f32, 2), Base.field(shape=2)

    @qp.func
    def by_reference(v: qp.template()):
        v.fill(4.0)

    @qp.kernel
    def run(x: qp.types.ndarray(vec3, 1), k: qp.i32) -> (Base, vec3, qp.math.mat2, vec3):
        t = Base()
        t.v.fill(2)
        u = qp.Vector([0.0, 0.0, 0.0])
        by_reference(u)
        w = qp.Matrix([[0.0, 0.0], [0.0, 0.0]])
        w[k].fill(5.0)
        local = Base()
        local.clear(7.0)
        for _ in range(1):
            f[0].fill(3.0)
            m[0].fill(3.0)
            m[1][k].fill(6.0)
            s[1].v.fill(8.0)
            by_reference(f[1])
            by_reference(s[0].v)
            x[k].fill(value=9.0)
        return t, u, w, local.v

    x = qp.ndarray(vec3, 2)
    x.fill(0)
    t, u, w, v = run(x, 1)
    assert t.v.entries == (2, 2, 2)
    assert u.entries == (4, 4, 4)
    assert w.entries == (0, 0, 5, 5)
    assert v.entries == (7, 7, 7)
    assert f.to_numpy().tolist() == [[3, 3, 3], [4, 4, 4], [0, 0, 0], [0, 0, 0]]
    assert m.to_numpy().tolist() == [[[3, 3], [3, 3]], [[0, 0], [6, 6]]]
    assert s.to_numpy()["v"].tolist() == [[4, 4, 4], [8, 8, 8]]
    assert x.to_numpy().tolist() == [[0, 0, 0], [9, 9, 9]]


def test_the_index_of_a_filled_element_is_evaluated_once():
    f = qp.Vector.field(2, qp.i32, 4)

    @qp.kernel
    def run(count: qp.types.ndarray(qp.i32, 1)):
        for _ in range(2):
            f[qp.atomic_add(count[0], 1)].fill(1)

    count = np.zeros(1, np.int32)
    run(count)
    assert count[0] == 2
    assert f.to_numpy().sum(1).tolist() == [2, 2, 0, 0]


def test_fill_as_an_expression_and_of_a_value():
    @qp.kernel
    def run() -> (vec3, vec3, vec3):
        u = vec3(0.0)
        filled = u.fill(1.0)
        return u, filled, (u + u).fill(3.0)

    assert [each.entries for each in run()] == [(1, 1, 1), (1, 1, 1), (3, 3, 3)]


@qp.data_oriented
class Owner:
    def __init__(self):
        self.v = qp.Vector([1.0, 2.0])
        self.x = qp.field(qp.f32, 3)

    @qp.kernel
    def lost(self):
        self.v.fill(3.0)

    @qp.kernel
    def kept(self):
        self.x.fill(3.0)


def test_fill_of_an_item_of_a_list_stays():
    @qp.kernel
    def run() -> qp.f32:
        pair = [vec3(0.0), vec3(1.0)]
        pair[0].fill(2.0)
        return pair[0].x + 10.0 * pair[1].x

    assert run() == 12.0


def test_fill_of_what_cannot_change_is_refused():
    with pytest.raises(qp.KernelTypeError, match=r"a kernel cannot set attributes of an object: self\.v"):
        Owner().lost()
    owner = Owner()
    owner.kept()
    assert owner.x.to_numpy().tolist() == [3, 3, 3]


def test_fills_of_one_variable_by_all_iterations_of_a_graph_kernel():
    @qp.kernel(graph=True)
    def run(x: qp.types.ndarray(qp.f32, 1)):
        v = vec3(1.0)
        for _ in range(1):
            v.fill(2.0)
        for i in x:
            x[i] = v.x + v.y

    x = np.zeros(3, np.float32)
    run(x)
    run(x)
    assert x.tolist() == [4, 4, 4]


@qp.dataclass
class S:
    k: qp.i32
    v: qp.math.vec2

    @qp.func
    def inc(self):
        self.k += 100


def test_names_of_unrolled_loops_stand_for_variables():
    @qp.kernel
    def run() -> (S, S, qp.math.vec2, qp.math.vec2):
        a, b = S(1), S(2)
        u, w = qp.math.vec2(1.0, 2.0), qp.math.vec2(3.0, 4.0)
        for s in qp.static([a, b]):
            s.k += 10
            s.v.x = 7
            s.v.fill(3)
            s.inc()
        for v in qp.static((u, w)):
            v[0] += 10
            v *= 2
        for n, (s, v) in qp.static(enumerate(zip([a, b], (u, w), strict=True))):
            s.k += n * 1000
            v.y += s.k
        for v in [a.v, w]:
            v.x = 0.5
        for s in qp.static(reversed([a, b])):
            qp.atomic_add(s.k, 10000 if s.k > 1000 else 20000)
        return a, b, u, w

    a, b, u, w = run()
    assert (a.k, b.k) == (20111, 11112)
    assert a.v.entries == (0.5, 3)
    assert b.v.entries == (3, 3)
    assert u.entries == (22, 4 + 111)
    assert w.entries == (0.5, 8 + 1112)


def test_names_of_unrolled_loops_stand_for_elements():
    f = S.field(shape=4)
    x = qp.Vector.field(2, qp.f32, 2)

    @qp.func
    def change(s: qp.template(), by):
        s.k += by

    @qp.kernel
    def run(k: qp.i32):
        for _ in range(1):
            for s in qp.static([f[0], f[k]]):
                s.k += 5
                s.inc()
                change(s, 1000)
            for v, n in qp.static([(x[0], 1), (f[3].v, 2)]):
                v[0] += n
                v.y = n

    run(2)
    assert f.to_numpy()["k"].tolist() == [1105, 0, 1105, 0]
    assert f.to_numpy()["v"].tolist() == [[0, 0], [0, 0], [0, 0], [2, 2]]
    assert x.to_numpy().tolist() == [[1, 1], [0, 0]]


def test_variables_that_a_parallel_loop_shares():
    @qp.kernel
    def run(n: qp.i32) -> (qp.i32, qp.i32):
        a, b = S(1), S(2)
        for _ in range(n):
            for s in qp.static([a, b]):
                s.k += 1
        return a.k, b.k

    assert run(100) == (101, 102)


def test_assigning_the_name_of_an_unrolled_loop_leaves_the_item_as_it_is():
    @qp.kernel
    def run() -> (qp.i32, qp.i32, qp.i32, qp.f32):
        a, b, total = S(1), S(2), 0
        x, y = 1.0, 2.0
        for s in qp.static([a, b]):
            s = S(s.k * 5)
            s.k += 1
            total += s.k
        for z in qp.static([x, y]):
            z += 1.0
        return a.k, b.k, total, x + y

    assert run() == (1, 2, 17, 3)


def test_items_of_containers_that_live_on_are_not_changed_in_silence():
    @qp.kernel
    def listed() -> qp.i32:
        a, b = S(1), S(2)
        both = [a, b]
        for s in qp.static(both):
            s.k += 10
        return a.k + b.k

    @qp.kernel
    def made() -> qp.i32:
        total = 0
        for s in qp.static([S(n) for n in range(3)]):
            s.k += 10
            total += s.k
        return total

    with pytest.raises(qp.KernelTypeError, match="'s' is a copy of an item, which would not change"):
        listed()
    assert made() == 33


def test_static_methods_and_properties_of_structs():
    @qp.dataclass
    class P:
        n: qp.i32

        @staticmethod
        @qp.func
        def thrice(a):
            return a * 3

        @property
        def twice(self):
            return self.n * 2

    class Q:
        @property
        def half(self):
            return self.n / 2

    @qp.dataclass
    class Sub(P, Q):
        k: qp.i32

        @property
        def twice(self):
            return super().twice + self.k

    f = Sub.field(shape=2)

    @qp.kernel
    def run(s: Sub) -> (qp.i32, qp.i32, qp.f32, qp.i32, qp.i32):
        t = s
        t.n += 1
        for i in f:
            f[i].k = f[i].twice + f[i].thrice(i)
        return s.thrice(s.n), s.twice, s.half, t.twice, P.thrice(5)

    s = Sub(4, 1)
    assert run(s) == (12, 9, 2, 11, 15)
    assert f.to_numpy()["k"].tolist() == [0, 3]
    assert (s.thrice(2), s.half, P(4).twice, P(4).thrice(2)) == (6, 2, 8, 6)
