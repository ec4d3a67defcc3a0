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


REFUSED = {
    "a member that is no value": ("self.x = FIELD", "Ball()", "self.x is .* cannot hold"),
    "no members": ("pass", "Ball()", "sets no attributes"),
    "a member that one path sets": ("if FLAG[0] > 1:\n        self.x = 1", "Ball()", "not defined here"),
    "an argument too many": ("self.x = 1", "Ball(1)", "__init__"),
    "a member that is not there": ("self.x = 1", "Ball().y", "has no member 'y'"),
    "a method of Python's": ("self.x = 1\n  def f(self):\n    return 1", "Ball().f()", "mark the method f with @qp.func"),
    "one of a variable": ("self.x = 1\n  def f(self):\n    return 1", "Ball(); b.f()", "mark the method f with @qp.func"),
    "super() in __init__": ("super().__init__()\nself.x = 1", "Ball()", r"__init__ of Ball uses super\(\), but"),
    "a method in __init__": ("self.x = self.f()\n  @qp.func\n  def f(self):\n    return 1", "Ball()", "uses self.f, but in a"),
    "a property in __init__": ("self.x = self.f\n  @property\n  def f(self):\n    return 1", "Ball()", "uses self.f, but in a"),
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
