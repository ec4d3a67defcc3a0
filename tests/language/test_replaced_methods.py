"""What a kernel depends on besides attributes: methods of classes, and what Python functions in qp.static read."""

import dataclasses

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


@qp.func
def two_more(self, x):
    return x + 2


@qp.func
def three_more(self, x):
    return x + 3


class Mixin:
    @qp.func
    def mixed(self, x):
        return x + 1


@qp.data_oriented
class Base(Mixin):
    size = 5

    @qp.func
    def g(self, x):
        return x + 1

    @staticmethod
    @qp.func
    def s(x):
        return x + 1

    @property
    def p(self):
        return 1

    def python(self, x):
        return x + 1

    @qp.kernel
    def k(self) -> qp.i32:
        return self.g(10)

    @qp.kernel
    def others(self) -> (qp.i32, qp.i32, qp.i32, qp.i32, qp.i32):
        return self.mixed(10), self.s(10), self.p, qp.static(self.python(10)), self.size

    @qp.kernel(graph=True)
    def steps(self, x: qp.types.ndarray(qp.i32, 1)):
        for i in x:
            x[i] = self.g(x[i])
        for i in x:
            x[i] = self.g(x[i])


@qp.data_oriented
class Derived(Base):
    @qp.func
    def g(self, x):
        return super().g(x) + 1000


@pytest.fixture
def replace():
    """Sets an attribute of a class for one test."""
    before = []

    def run(cls, name, value):
        before.append((cls, name, vars(cls).get(name)))
        setattr(cls, name, value)

    yield run
    for cls, name, value in reversed(before):
        if value is None:
            delattr(cls, name)
        else:
            setattr(cls, name, value)


def test_a_method_of_the_class_is_replaced_and_put_back(replace):
    base, derived, first = Base(), Derived(), vars(Base)["g"]
    assert (base.k(), derived.k()) == (11, 1011)
    for function, more in ((two_more, 2), (three_more, 3), (first, 1), (two_more, 2)):
        replace(Base, "g", function)
        assert (base.k(), derived.k()) == (10 + more, 1010 + more)
    replace(Derived, "g", three_more)
    assert (base.k(), derived.k()) == (12, 13)
    assert len(base.k._dispatcher.specialisations) == 3


def test_a_class_or_an_object_gets_a_method_that_a_base_had():
    class Late(Base):
        pass

    late, other = Late(), Late()
    assert (late.k(), other.k(), Base().k()) == (11, 11, 11)
    Late.g = two_more
    assert (late.k(), other.k(), Base().k()) == (12, 12, 11)
    late.g = lambda x: x + 50
    assert (late.k(), other.k()) == (60, 12)
    del late.g
    del Late.g
    assert (late.k(), other.k()) == (11, 11)


def test_static_methods_properties_mixins_and_python_methods_are_replaced(replace):
    base = Base()
    assert base.others() == (11, 11, 1, 11, 5)
    replace(Mixin, "mixed", two_more)
    assert base.others() == (12, 11, 1, 11, 5)
    replace(Base, "s", staticmethod(qp.func(lambda x: x + 7)))
    assert base.others() == (12, 17, 1, 11, 5)
    replace(Base, "p", property(lambda self: 4))
    assert base.others() == (12, 17, 4, 11, 5)
    replace(Base, "python", lambda self, x: x * 2)
    assert base.others() == (12, 17, 4, 20, 5)
    replace(Base, "size", 6)
    assert base.others() == (12, 17, 4, 20, 6)


def test_graph_kernels_and_replays(replace):
    base, x = Base(), np.zeros(3, np.int32)
    base.steps(x)
    replace(Base, "g", two_more)
    base.steps(x)
    assert x.tolist() == [6, 6, 6]

    y = qp.ndarray(qp.i32, 3)
    y.fill(0)

    @qp.graph.replay
    def step(y):
        base.steps(y)

    for function, total in ((two_more, 4), (two_more, 8), (three_more, 14), (three_more, 20), (two_more, 24)):
        replace(Base, "g", function)
        step(y)
        assert y.to_numpy().tolist() == [total] * 3


@dataclasses.dataclass
class Box:
    x: qp.types.ndarray(qp.i32, 1)
    n: int

    @qp.func
    def g(self, x):
        return x + self.n

    @staticmethod
    @qp.func
    def thrice(a):
        return a * 3

    @property
    def twice(self):
        return self.n * 2


@dataclasses.dataclass
class Outer(Box):
    inner: Box

    @property
    def twice(self):
        return super().twice + self.inner.twice


@qp.kernel
def boxed(b: Box) -> (qp.i32, qp.i32, qp.i32):
    return b.g(b.x[0]), b.thrice(b.n), b.twice


@qp.kernel
def nested(b: Outer) -> (qp.i32, qp.i32, qp.i32):
    return b.inner.g(b.x[0]), b.inner.thrice(b.n), b.twice


def test_methods_static_methods_and_properties_of_dataclass_arguments(replace):
    box = Box(np.full(1, 7, np.int32), 4)
    outer = Outer(np.full(1, 7, np.int32), 10, box)
    assert boxed(box) == (11, 12, 8)
    assert nested(outer) == (11, 30, 28)
    assert boxed(outer) == (17, 30, 28)
    box.n = 5
    assert boxed(box) == (12, 15, 10)
    replace(Box, "g", two_more)
    replace(Box, "twice", property(lambda self: self.n * 100))
    assert boxed(box) == (9, 15, 500)
    assert nested(outer) == (9, 30, 1500)


def helper(obj, x):
    return inner_helper(obj) * x


def inner_helper(obj):
    return sum(value for value in [obj.n])


class Config:
    def __init__(self, m):
        self.m = m


def closed_over():
    def read(obj):
        return obj.n + obj.config.m

    return lambda obj: read(obj) + 0


READ = closed_over()


@qp.data_oriented
class Owner:
    unused = 1

    def __init__(self):
        self.n, self.config, self.weights = 3, Config(10), np.array([1, 2])

    def calc(self, x):
        return self.n * x

    def deep(self):
        return self.calc(2) + self.prop + self.config.m + int(self.weights.sum())

    @property
    def prop(self):
        return self.n * 100

    @classmethod
    def of_class(cls):
        return cls.unused

    @qp.kernel
    def k(self) -> (qp.i32, qp.i32, qp.i32, qp.i32, qp.i32):
        turns = 0
        for _ in qp.static(range(self.calc(1))):
            turns += 1
        return (
            qp.static(self.calc(3)), turns, qp.static(self.deep()), qp.static(helper(self, 2)), qp.static(READ(self)),
        )  # fmt: skip


def expected(owner):
    return owner.calc(3), owner.calc(1), owner.deep(), helper(owner, 2), READ(owner)


def test_python_functions_in_static_see_attributes_that_changed(replace):
    owner = Owner()
    assert owner.k() == expected(owner)
    owner.n = 5
    assert owner.k() == expected(owner) == (15, 5, 523, 10, 15)
    owner.config.m = 11
    assert owner.k() == expected(owner)
    owner.config = Config(20)
    assert owner.k() == expected(owner)
    owner.weights = np.array([5, 5])
    assert owner.k() == expected(owner)
    replace(Owner, "calc", lambda self, x: self.n + x)
    assert owner.k() == expected(owner)
    replace(Owner, "prop", property(lambda self: self.n))
    assert owner.k() == expected(owner)


def test_what_functions_do_not_read_compiles_nothing_again(replace):
    owner = Owner()
    owner.k()
    owner.other, owner.config.other = 3, 4
    replace(Owner, "unused", 2)
    replace(Owner, "new", lambda self: 3)
    owner.k()
    assert len(owner.k._dispatcher.specialisations) == 1


@qp.kernel
def templated(obj: qp.template()) -> qp.i32:
    return qp.static(obj.calc(2)) + qp.static(helper(obj, 1))


def test_template_arguments():
    owner = Owner()
    assert templated(owner) == 9
    owner.n = 4
    assert templated(owner) == 12
