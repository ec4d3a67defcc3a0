"""Reports call arrays and fields as the user's program does."""

from __future__ import annotations

import re

import pytest

import quadpy as qp

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)
Cell = qp.types.struct(mass=qp.i32, v=qp.math.ivec2)

plain = qp.field(qp.i32, shape=4)
named = qp.field(qp.i32, shape=4, name="energy")
cells = Cell.field(shape=4)
several = [qp.field(qp.i32, shape=4), qp.field(qp.i32, shape=4)]


@qp.kernel
def writes_globals():
    for i in range(4):
        plain[i] = 1
        named[i] = 2
        cells[i].mass = 3
        several[1][i] = 4


@qp.data_oriented
class Solver:
    def __init__(self):
        self.v = qp.field(qp.i32, shape=4)
        self.levels = {"fine": qp.field(qp.i32, shape=4)}

    @qp.kernel
    def step(self):
        for i in self.v:
            self.v[i] = self.levels["fine"][i]


@qp.kernel
def fills(into: qp.template()):
    for i in into:
        into[i] = 1


@pytest.fixture
def streams():
    qp.init(arch=qp.cpu)
    return qp.create_stream(), qp.create_stream()


def arrays_of(work, streams):
    """What the certain hazards call their arrays when ``work`` runs on two streams."""
    with qp.hazards.check(collect=True) as found:
        for stream in streams:
            work(stream)
    assert "$" not in str(found)
    return {hazard.second.array for hazard in found.certain}


def test_fields_have_the_names_that_the_kernel_uses(streams):
    found = arrays_of(lambda s: writes_globals(stream=s), streams)
    assert found == {"plain", "named", "cells", "several[1]"}


def test_fields_of_objects_and_arguments_too(streams):
    solver = Solver()
    assert arrays_of(lambda s: solver.step(stream=s), streams) == {"self.v"}
    assert arrays_of(lambda s: fills(solver.levels["fine"], stream=s), streams) == {"into"}


def test_graphs_use_the_same_names(streams):
    graph = qp.graph.Graph()
    graph.add_kernel(writes_globals, name="first")
    graph.add_kernel(writes_globals, name="second", deps=[])
    with pytest.raises(qp.HazardError, match=r"write after write of (plain|named|cells|several)"):
        graph.instantiate()


@qp.kernel
def increments(x: I1):
    for i in x:
        x[i] += 1


def test_accesses_of_the_host_have_the_name_of_the_variable(streams):
    mine = qp.ndarray(qp.i32, 4)
    with qp.hazards.check(collect=True) as found:
        mine.fill(1)
        increments(mine, stream=streams[0])
        plain.fill(2)
        writes_globals(stream=streams[1])
    by_line = {hazard.first.line: str(hazard.first) for hazard in found.certain}
    assert any(re.search("fill writes mine, on the default stream", text) for text in by_line.values()), by_line
    assert any(re.search("fill writes plain, on the default stream", text) for text in by_line.values()), by_line


def test_without_a_name_there_the_field_is_described(streams):
    def fill_one(value):
        several[0].fill(value)

    made = several[0].made.line
    with qp.hazards.check(collect=True) as found:
        fill_one(1)
        first_of(several)(stream=streams[0])
    (hazard,) = found.certain
    assert "fill writes several[0], on the default stream" in str(hazard.first)
    assert several[0].described == f"a field of i32, shape (4,), made at {__file__}:{made}"
    assert named.described == "the field 'energy'"


def first_of(fields):
    inner = fields[0]

    @qp.kernel
    def writes():
        for i in inner:
            inner[i] = 1

    return writes


def test_a_field_that_no_name_leads_to_is_described(streams):
    with qp.hazards.check(collect=True) as found:
        hidden(streams[0])
        hidden(streams[1])
    (hazard,) = found.certain
    assert hazard.second.array.startswith("a field of i32, shape (4,), made at ")


class _Hidden:
    field = qp.field(qp.i32, shape=4)


def pick():
    return _Hidden.field


@qp.kernel
def writes_what_is_picked():
    target = qp.static(pick())
    for i in range(4):
        target[i] = 1


def hidden(stream):
    writes_what_is_picked(stream=stream)


def test_messages_about_a_field_without_a_name_say_where_it_was_made():
    field = qp.field(qp.i32)
    line = field.made.line
    with pytest.raises(AttributeError, match=rf"the field made at .*test_names.py:{line} has no shape yet"):
        _ = field.shape


def test_the_checker_prints_nothing_a_second_time_while_compiling(capsys):
    @qp.kernel
    def says(x: I1):
        qp.static_print("once", x)
        for i in x:
            x[i] = 1

    with qp.hazards.check():
        says(qp.ndarray(qp.i32, 4))
    assert capsys.readouterr().out.count("once") == 1
