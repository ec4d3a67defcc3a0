"""Kernels and functions as methods of classes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp


@qp.func
def doubled(a):
    return 2 * a


def halves(a):
    return a / 2


@qp.data_oriented
class Solver:
    """Fields, numbers, functions, and another such object as members."""

    unit = 10.0

    def __init__(self, n, dt):
        self.n, self.dt = n, dt
        self.x = qp.field(qp.f32, shape=n)
        self.maps = [doubled]
        self.gravity = Gravity(3.0)

    @qp.func
    def scaled(self, a):
        return a * self.dt

    @qp.func
    def force(self, a):
        return self.scaled(a) + self.gravity.pull(a)

    @qp.kernel
    def step(self, s: qp.f32):
        for i in range(self.n):
            self.x[i] += self.force(s) * i
        for i in self.x:
            for f in qp.static(self.maps):
                self.x[i] = f(self.x[i])

    @qp.kernel
    def add(self, other: qp.types.ndarray(), scale: qp.f32 = 1.0):
        for i in self.x:
            self.x[i] += other[i] * scale * self.unit

    @qp.kernel
    def total(self) -> qp.f32:
        t = 0.0
        for i in self.x:
            t += self.x[i]
        return t


@qp.data_oriented
class Gravity:
    def __init__(self, g):
        self.g = g

    @qp.func
    def pull(self, a):
        return self.g * a


class Stiff(Solver):
    @qp.func
    def scaled(self, a):
        return a * 100.0


def test_each_object_has_its_own_fields_and_numbers(init):
    solvers = Solver(3, 0.5), Solver(4, 2.0), Solver(3, 0.5)
    for solver, factor in zip(solvers, (3.5, 5.0, 3.5), strict=True):
        solver.step(1.0)
        np.testing.assert_allclose(solver.x.to_numpy(), 2 * factor * np.arange(solver.n))
    assert solvers[1].total() == 60.0
    solvers[0].step(s=1.0)
    np.testing.assert_allclose(solvers[0].x.to_numpy(), 2 * (7.0 + 3.5) * np.arange(3))
    np.testing.assert_allclose(solvers[2].x.to_numpy(), 7.0 * np.arange(3))


def test_methods_are_inherited_and_overridden(init):
    solver = Stiff(3, 0.5)
    solver.step(1.0)
    assert solver.x.to_numpy().tolist() == [0.0, 206.0, 412.0]


def test_a_kernel_can_be_called_through_its_class(init):
    solver = Solver(2, 1.0)
    Solver.step(solver, 1.0)
    assert solver.x.to_numpy().tolist() == [0.0, 8.0]


def test_arguments_defaults_and_keywords(init):
    solver = Solver(2, 1.0)
    solver.add(np.array([1.0, 2.0], np.float32))
    solver.add(np.array([1.0, 2.0], np.float32), scale=0.5)
    assert solver.x.to_numpy().tolist() == [15.0, 30.0]
    with pytest.raises(qp.ArgumentError, match="add"):
        solver.add()


def test_classes_inside_functions(init):
    @qp.data_oriented
    class Local:
        def __init__(self):
            self.y = qp.field(qp.i32, shape=2)

        @qp.kernel
        def fill(self, v: qp.i32):
            for i in self.y:
                self.y[i] = v + i

    local = Local()
    local.fill(7)
    assert local.y.to_numpy().tolist() == [7, 8]


def test_an_unannotated_parameter_that_is_no_self_is_refused():
    @qp.kernel
    def plain(x):
        pass

    class Holder:
        @qp.kernel
        def method(self, x):
            pass

    with pytest.raises(qp.KernelTypeError, match="'x' has no annotation"):
        plain(1)
    with pytest.raises(qp.KernelTypeError, match="'x' has no annotation"):
        Holder().method(1)


def test_what_an_object_does_not_have():
    @qp.data_oriented
    class Empty:
        @qp.kernel
        def run(self) -> qp.i32:
            return self.missing

        @qp.kernel
        def store(self):
            for i in range(3):
                self.missing[i] = 1.0

        @qp.kernel
        def no_self():
            pass

    with pytest.raises(qp.KernelTypeError, match=r"Empty has no attribute 'missing'") as raised:
        Empty().run()
    assert "return self.missing" in str(raised.value)
    with pytest.raises(qp.KernelTypeError, match=r"Empty has no attribute 'missing'"):
        Empty().store()
    with pytest.raises(qp.KernelTypeError, match=r"no_self is called as a method, and has no parameter for its object"):
        Empty().no_self()


def test_the_order_of_decorators_is_told():
    for wrap in (staticmethod, classmethod, property):
        with pytest.raises(qp.KernelSourceError) as raised:
            qp.kernel(wrap(lambda x: x))
        assert raised.value.hint == f"put @{wrap.__name__} above @qp.kernel"


def test_functions_as_methods_can_be_called():
    body = Gravity(1.0)
    before = body.pull(2.0)
    body.g = 3.0
    assert body.pull(2.0) == 3 * before


def test_only_a_class_is_data_oriented():
    with pytest.raises(qp.KernelSourceError, match="is not a class"):
        qp.data_oriented(halves)


def test_a_replayed_method_follows_its_object(init):
    solver = Solver(3, 1.0)

    @qp.graph.replay
    def twice(s):
        s.step(1.0)
        s.step(1.0)

    for _ in range(3):
        twice(solver)
    expected = Solver(3, 1.0)
    for _ in range(6):
        expected.step(1.0)
    np.testing.assert_array_equal(solver.x.to_numpy(), expected.x.to_numpy())


@qp.data_oriented
class Choices:
    factor = 2

    def __init__(self):
        self.names = {"a", "b"}

    @classmethod
    @qp.func
    def scaled(cls, v):
        return v * cls.factor

    @qp.kernel
    def by_class_method(self) -> qp.i32:
        return self.scaled(10)

    @qp.kernel
    def by_class(self) -> qp.i32:
        return type(self).factor

    @qp.kernel
    def by_set(self) -> qp.i32:
        return len(self.names)

    @qp.kernel
    def by_presence(self) -> qp.i32:
        return 1 if qp.static(hasattr(self, "extra")) else 0

    @qp.kernel
    def by_default(self) -> qp.i32:
        return getattr(self, "more", 7)


def test_what_changes_beside_attributes_of_the_object_is_seen(init):
    class Own(Choices):
        factor = 3

    own = Own()
    calls = [own.by_class_method, own.by_class, own.by_set, own.by_presence, own.by_default]
    assert [call() for call in calls] == [30, 3, 2, 0, 7]
    Own.factor = 4
    own.names.add("c")
    own.extra = own.more = 5
    assert [call() for call in calls] == [40, 4, 3, 1, 5]
    del Own.factor, own.extra
    own.names -= {"b", "c"}
    assert [call() for call in calls] == [20, 2, 1, 0, 5]


PROGRAM = """
import sys
import quadpy as qp

@qp.data_oriented
class A:
    def __init__(self, scale):
        self.scale = scale

    @qp.func
    def scaled(self, v):
        return v * self.scale

    @qp.kernel
    def run(self, v: qp.i32) -> qp.i32:
        return self.scaled(v)

class B(A):
    @qp.func
    def scaled(self, v):
        return v * self.scale + 1

print(A(int(sys.argv[1])).run(10), B(int(sys.argv[1])).run(10))
"""


def test_code_of_one_process_is_right_in_the_next(tmp_path):
    """The cache must tell apart members that changed, and classes that override."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {"PYTHONPATH": str(Path(qp.__file__).parents[1]), "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
    for scale in (3, 3, 4, 3):
        child = subprocess.run(
            [sys.executable, program, str(scale)], capture_output=True, text=True, check=True, env=environment
        )
        assert child.stdout.split() == [str(10 * scale), str(10 * scale + 1)]


class Table:
    def __init__(self, values):
        self.values = values

    @qp.kernel
    def second(self) -> qp.f64:
        return self.values[1]


def test_numpy_arrays_that_are_replaced(arch):
    table = Table(np.array([1.0, 2.0]))
    assert table.second() == 2
    table.values = np.array([3.0, 4.0])
    assert table.second() == 4
    table.values[1] = 9.0  # changed in place: the contents of the first call count
    assert table.second() == 4
    table.values = np.array([1.0, 2.0])
    assert table.second() == 2


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @qp.func
    def __call__(self, x, power: qp.template() = 1):
        return x * self.factor**power

    @qp.kernel
    def apply(self, x: float) -> float:
        return self(x, power=2)


class Shifted(Scaled):
    @qp.func
    def __call__(self, x):
        return super().__call__(x) + 1


def test_objects_that_kernels_call(arch):
    @qp.kernel
    def call(f: qp.template(), x: float) -> float:
        return f(x)

    scaled = Scaled(3.0)
    assert (scaled.apply(2.0), call(scaled, 2.0), call(Shifted(4.0), 2.0)) == (18, 6, 9)
    scaled.factor = 5.0
    assert (scaled.apply(2.0), call(scaled, 2.0)) == (50, 10)
