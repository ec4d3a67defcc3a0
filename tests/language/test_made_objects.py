"""Objects of Python classes that kernels make: structs of what ``__init__`` sets, with the methods of the class."""

import numpy as np
import pytest

import quadpy as qp

out = qp.Vector.field(3, qp.f32, 4)
total = qp.field(qp.f32, 4)


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])
    out.fill(0)


@qp.data_oriented
class Ray:
    FAR = 100.0

    def __init__(self, o, d, near=0.5):
        self.o = o
        self.d = d
        self.__near = near
        length = d.norm()
        if length > 1:
            self.d /= length
            self.kind = 1
        else:
            self.kind = 2

    @qp.func
    def at(self, t):
        return self.o + t * self.d

    @qp.func
    def move(self, t):
        self.o += t * self.d
        return self.kind

    @property
    def near(self):
        return self.__near

    @staticmethod
    @qp.func
    def twice(x):
        return 2 * x

    @qp.func
    def far(self):
        return self.at(self.FAR)


class Segment(Ray):
    def __init__(self, o, d, stop):
        self.o, self.d = o, d
        self.kind = 7
        self.ends = [0.0, stop]

    @qp.func
    def move(self, t):
        return super().move(t) + 10


def test_an_object_with_methods():
    @qp.kernel(graph=True)
    def kernel():
        for p in out:
            r = Ray(qp.Vector([0.0, 0.0, p]), qp.Vector([4.0, 0.0, 0.0]))
            out[p] = r.at(2.0)
            total[p] = r.near + Ray.twice(r.kind)

    kernel()
    kernel()
    assert out.to_numpy().tolist() == [[2, 0, p] for p in range(4)]
    assert total.to_numpy().tolist() == [2.5] * 4


def test_it_changes_and_passes_through_functions():
    @qp.func
    def make(p, near):
        return Ray(qp.Vector([0.0, 0.0, p]), qp.Vector([0.5, 0.0, 0.0]), near=near)

    @qp.func
    def advance(r: qp.template(), n):
        for _ in range(n):
            r.move(2.0)

    @qp.kernel
    def kernel(x: qp.types.ndarray(qp.f32, 1)):
        for p in out:
            r = make(p, 3.0)
            advance(r, p)
            if p > 2:
                r = make(10, r.near + 1)
                r.o.y = 5.0
            out[p] = r.o
            x[p] = r.far()[0] + r.near

    x = np.zeros(4, np.float32)
    kernel(x)
    assert out.to_numpy().tolist() == [[0, 0, 0], [1, 0, 1], [2, 0, 2], [0, 5, 10]]
    assert x.tolist() == [53, 54, 55, 54]


def test_classes_that_inherit():
    @qp.kernel
    def kernel() -> (qp.f32, qp.i32):
        s = Segment(qp.Vector([1.0, 0.0, 0.0]), qp.Vector([1.0, 0.0, 0.0]), 4.0)
        kind = s.move(2.0)
        return s.at(s.ends[1])[0], kind

    assert kernel() == (7, 17)


def test_a_plain_class_and_results():
    class Pair:
        def __init__(self, a, b):
            self.a: qp.f64 = a
            self.b = Inner(b)
            self.b.k += 1

    class Inner:
        def __init__(self, k):
            self.k = k

        @qp.func
        def double(self):
            return Inner(2 * self.k)

    @qp.kernel
    def kernel(n: qp.i32):
        return Pair(0.1, n).b.double(), Pair(0.1, n)

    inner, pair = kernel(3)
    assert (inner.k, pair.a, pair.b.k) == (8, 0.1, 4)


class Body:
    SCALE = 3.0
    OFFSETS = [1.0, 2.0]  # noqa: RUF012 - a constant
    KIND = "body"

    def __init__(self, a):
        super().__init__()
        self.a = a
        self.n = 0

    @qp.func
    def twice(self):
        return 2 * self.a

    @qp.func
    def grow(self, d):
        self.a += d
        return self.a

    @property
    def half(self):
        return self.a / 2


class Heavy(Body):
    SCALE = 5.0

    def __init__(self, a, b):
        self.n = 7
        super().__init__(a)
        self.b = b * self.SCALE + Body.SCALE + type(self).OFFSETS[1]

    @qp.func
    def twice(self):
        return super().twice() + self.b


class Grown(Body):
    def __init__(self, a):
        Body.__init__(self, a=a + 1)
        self.first, self.h = self.twice(), self.half
        if self.grow(2.0) > 4:
            self.first += self.grow(0.5)
        self.last = super().grow(1.0)


class Set(Heavy):
    def __init__(self, v):
        self.rest = 0
        self.setup(v)
        if v > 0:
            self.setup(2 * v)
            return
        self.rest = 1

    @qp.func
    def setup(self, v):
        self.x = v
        self.v = qp.Vector([v, 1.0])
        self.v[1] += self.x


def test_inits_of_bases():
    @qp.kernel
    def k():
        o = Heavy(1.0, 2.0)
        total[0], total[1], total[2], total[3] = o.a, o.b, o.n, o.twice()

    k()
    assert total.to_numpy().tolist() == [1, 15, 0, 17]


def test_methods_and_properties_in_init():
    @qp.kernel
    def k() -> (float, float, float, float, float):
        o = Grown(2.0)
        return o.first, o.h, o.n, o.a, o.last

    assert k() == (11.5, 1.5, 0, 6.5, 6.5)


@pytest.mark.parametrize("v", [3.0, -3.0])
def test_methods_that_set_attributes(v):
    @qp.kernel
    def k(v: float) -> (float, float, int):
        o = Set(v)
        return o.x, o.v[1], o.rest

    assert k(v) == ((6, 7, 0) if v > 0 else (-3, -2, 1))


def test_attributes_and_classes_of_objects():
    @qp.kernel
    def k() -> (float, float, int, int):
        o, body = Heavy(1.0, 2.0), Body(2.0)
        total = 0.0
        for offset in qp.static(o.OFFSETS):
            total += offset * body.SCALE
        heavy = isinstance(o, Body) and isinstance(o, Heavy) and not isinstance(body, Heavy) and o.KIND == "body"
        return total, type(o).SCALE, heavy, type(body) is Body

    assert k() == (9, 5, 1, 1)


REFUSED = {
    "a member that is no value": ("self.x = FIELD", "Ball()", "self.x is .* cannot hold"),
    "no members": ("pass", "Ball()", "sets no attributes"),
    "a member that one path sets": ("if FLAG[0] > 1:\n        self.x = 1", "Ball()", "not defined here"),
    "an argument too many": ("self.x = 1", "Ball(1)", "__init__"),
    "a member that is not there": ("self.x = 1", "Ball().y", "has no member 'y'"),
    "a method of Python's": ("self.x = 1\n  def f(self):\n    return 1", "Ball().f()", "mark the method f with @qp.func"),
    "one of a variable": ("self.x = 1\n  def f(self):\n    return 1", "Ball(); b.f()", "mark the method f with @qp.func"),
    "an attribute before it is set": ("self.y = self.x\nself.x = 1", "Ball()", "'self.x' is not defined here"),
    "arguments of object": ("super().__init__(1)\nself.x = 1", "Ball()", "__init__"),
    "a method of Python's in __init__": ("self.x = self.f()\n  def f(self):\n    return 1", "Ball()", "mark the method f with @qp.func"),
    "a member that one return leaves out": ("self.x = 1\nif FLAG[0] > 1:\n        return\nself.y = 2", "Ball()", "all returns of a function must"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_hold(load, case):
    body, made, message = REFUSED[case]
    module = load(
        "FIELD = FLAG = qp.field(qp.i32, 1)\nclass Ball:\n  def __init__(self):\n"
        + "".join(f"{'' if line[0] == ' ' else '    '}{line}\n" for line in body.splitlines())
        + f"@qp.kernel\ndef kernel():\n    b = {made}\n"
    )
    with pytest.raises(qp.CompilationError, match=message) as caught:
        module.kernel()
    assert "^" in str(caught.value)


NOT_AS_IN_PYTHON = {
    "__new__": ("def __new__(cls, x): return object.__new__(cls)", "has __new__"),
    "__setattr__": ("def __setattr__(self, name, value): object.__setattr__(self, name, 2 * value)", "has __setattr__"),
    "__getattribute__": ("def __getattribute__(self, name): return 7", "has __getattribute__"),
    "a setter": ("x = property(lambda self: self.y, lambda self, x: print(x))", "self.x is a property of Ball"),
    "a descriptor": ("x = Doubled()", "self.x is a Doubled of Ball"),
    "__call__ of a metaclass": ("", "has Meta.__call__"),
}


@pytest.mark.parametrize("case", NOT_AS_IN_PYTHON)
def test_classes_that_make_their_objects_otherwise(load, case):
    text, message = NOT_AS_IN_PYTHON[case]
    module = load(
        "class Doubled:\n  def __set__(self, owner, value): owner.__dict__['kept'] = 2 * value\n"
        "class Meta(type):\n  def __call__(cls, x): return super().__call__(2 * x)\n"
        f"class Ball({'' if text else 'metaclass=Meta'}):\n  def __init__(self, x):\n    self.x = x\n  {text}\n"
        "@qp.kernel\ndef kernel(x: float) -> float:\n    return Ball(x).x\n"
    )
    with pytest.raises(qp.KernelTypeError, match=message):
        module.kernel(1.0)


def test_a_decorated_init_is_named(load):
    module = load(
        "class Ball:\n  @qp.func\n  def __init__(self, x):\n    self.x = x\n"
        "@qp.kernel\ndef kernel(x: float) -> float:\n    return Ball(x).x\n"
    )
    with pytest.raises(qp.KernelTypeError, match="leave __init__ undecorated"):
        module.kernel(1.0)


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Parity:  # noqa: PLW1641 - kernels need no hash
    def __init__(self, n):
        self.n = n

    @qp.func
    def __eq__(self, other):
        return self.n % 2 == other.n % 2


class Pair:
    def __init__(self, n):
        self.parity = Parity(n)


@qp.dataclass
class Turn:  # noqa: PLW1641 - kernels need no hash
    angle: qp.i32

    @qp.func
    def __eq__(self, other):
        return self.angle % 360 == other.angle % 360


@pytest.mark.parametrize("cls", [Parity, Pair, Turn])
def test_classes_that_say_what_is_equal(cls):
    @qp.kernel
    def same(n: int) -> bool:
        return cls(n) == cls(n + 360)

    @qp.kernel
    def inside(n: int) -> bool:
        return cls(n) in [cls(n + 360), cls(n)]

    for kernel in (same, inside):
        with pytest.raises(qp.KernelTypeError, match="says itself when two objects are equal"):
            kernel(1)


def test_other_objects_are_equal_if_their_members_are():
    @qp.kernel
    def same(n: int, m: int) -> bool:
        return Slotted(n) == Slotted(m)

    assert same(1, 1)
    assert not same(1, 2)
