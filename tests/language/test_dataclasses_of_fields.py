"""Dataclasses whose members are all fields: nested, in functions, objects and graphs, with members that are not used."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


@dataclasses.dataclass(frozen=True)
class Inner:
    kind: ClassVar[int] = 3
    x: qp.Tensor
    y: qp.template()


@dataclasses.dataclass
class Outer:
    inner: Inner
    z: qp.Tensor
    unused: qp.Tensor
    none: qp.Tensor
    flag: qp.template()


@qp.func
def add(i, inner: Inner, z: qp.Tensor):
    inner.x[i] += z[i] + inner.y[i]


@qp.func
def add_twice(i, outer: Outer):
    add(i, outer.inner, outer.z)
    add(i, z=outer.z, inner=outer.inner)


@qp.func
def by_name(i, outer: qp.template()):
    add_twice(i, outer=outer)


def made(flag=True, unused: Any = None):
    fields = [qp.field(qp.f32, 4) for _ in range(3)]
    for field, value in zip(fields, (1, 10, 100), strict=True):
        field.fill(value)
    return Outer(Inner(fields[0], fields[1]), fields[2], unused, None, flag)


def test_members_in_functions_and_loops():
    @qp.kernel
    def annotated(outer: Outer):
        for i in range(outer.inner.x.shape[0]):
            by_name(i, outer)
            if qp.static(outer.flag):
                outer.z[i] = 5

    @qp.kernel
    def template(outer: qp.template()):
        for i in outer.inner.x:
            add_twice(i, outer)

    for flag, z in ((True, 5), (False, 100)):
        outer = made(flag)
        annotated(outer)
        assert outer.inner.x.to_numpy().tolist() == [221] * 4
        assert outer.z[3] == z
        outer = made(flag)
        template(outer)
        assert outer.inner.x.to_numpy().tolist() == [221] * 4


def test_in_graphs_with_other_fields():
    @qp.kernel(graph=True)
    def kernel(outer: Outer, inner: Inner, n: qp.i32):
        for i in range(n):
            add(i, inner, outer.z)
        for i in range(n):
            add(i, outer.inner, inner.x)

    a, b = made(), made()
    kernel(a, b.inner, 4)
    assert (a.inner.x[2], b.inner.x[2]) == (122, 111)
    kernel(b, a.inner, 3)
    assert (a.inner.x[2], b.inner.x[2], b.inner.x[3]) == (232, 353, 111)


def test_fields_and_arrays_in_turn():
    @qp.kernel
    def kernel(outer: Outer):
        for i in range(4):
            add(i, outer.inner, outer.z)

    ones = Inner(np.ones(4, np.float32), qp.field(qp.f32, 4))
    for _ in range(2):
        outer = made()
        kernel(outer)
        assert outer.inner.x[1] == 111
        kernel(Outer(ones, np.full(4, 2, np.float32), None, None, False))
    assert ones.x.tolist() == [5] * 4


def test_unused_members_are_not_looked_at():
    @qp.kernel
    def kernel(outer: Outer):
        for i in range(4):
            add(i, outer.inner, outer.z)

    outer = made(unused="no field")
    kernel(outer)
    kernel(outer)
    assert outer.inner.x[0] == 221


@qp.data_oriented
class Solver:
    def __init__(self, outer):
        self.outer, self.all = outer, [outer.inner, outer.inner]

    @qp.kernel
    def step(self, other: Outer):
        for i in self.outer.inner.x:
            add_twice(i, self.outer)
            for inner in qp.static(self.all):
                inner.x[i] += 1
            other.inner.x[i] += 100


def test_in_objects():
    solver, other = Solver(made()), made()
    solver.step(other)
    assert (solver.outer.inner.x[0], other.inner.x[0]) == (223, 101)
    solver.outer = made()
    solver.step(other)
    assert (solver.outer.inner.x[0], solver.all[0].x[0], other.inner.x[0]) == (221, 225, 201)
