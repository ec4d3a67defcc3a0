"""``qp.hazards.allow`` is about memory that lives, not about its addresses."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import quadpy as qp

from .test_programs import put

N = 4096


def race(x, streams):
    """Two writes that nothing orders."""
    for stream in streams:
        put(x, 0, x.shape[0], stream=stream)


def make_ndarray():
    return qp.ndarray(qp.f32, N)


def make_field():
    found = qp.field(qp.f32, N)
    found.fill(0)
    return found


MAKERS = {"ndarray": make_ndarray, "field": make_field}


def another_at(x_pointer, make):
    """A new array at an address that one had that is gone; None if no array gets it."""
    kept = []
    for _ in range(200):
        kept.append(make())
        if kept[-1].pointer == x_pointer:
            return kept[-1]
    return None


@pytest.mark.parametrize("when", ["inside", "before"])
@pytest.mark.parametrize("what", MAKERS)
def test_a_new_array_at_the_old_address_is_not_excused(arch, what, when):
    make = MAKERS[what]
    streams = qp.create_stream(), qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        x = make()
        qp.sync()
        allowed, address = qp.hazards.allow(x, reason="x may race"), x.pointer
        if when == "before":
            del x
            gc.collect()
        with allowed:
            if when == "inside":
                race(x, streams)
                qp.sync()
                assert (len(found.certain), len(found.allowed)) == (0, 1)
                del x
                gc.collect()
            qp.sync()
            y = another_at(address, make)
            if y is None:
                pytest.skip("the allocator gave the address to nobody")
            qp.sync()
            race(y, streams)
            qp.sync()
    assert len(found.certain) == 1, found


@pytest.mark.parametrize("what", MAKERS)
def test_it_holds_while_the_memory_lives_under_another_name(arch, what):
    """Views of x, and of what another library has of it."""
    streams = qp.create_stream(), qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        x = MAKERS[what]()
        qp.sync()
        view = qp.from_dlpack(x) if what == "ndarray" else x
        with qp.hazards.allow(x, reason="x may race"):
            del x
            gc.collect()
            race(view, streams)
            qp.sync()
    assert (len(found.certain), len(found.allowed)) == (0, 1), found


def test_a_view_of_another_librarys_memory_may_be_allowed(arch):
    streams = qp.create_stream(), qp.create_stream()
    owner = qp.ndarray(qp.f32, N) if arch != "cpu" else np.zeros(N, np.float32)
    view = qp.from_dlpack(owner)
    with qp.hazards.check(collect=True) as found, qp.hazards.allow(view, reason="it may race"):
        race(view, streams)
        qp.sync()
    assert (len(found.certain), len(found.allowed)) == (0, 1), found


def test_every_member_and_leaf_is_excused_and_nothing_else():
    qp.init(arch=qp.cpu)
    streams = qp.create_stream(), qp.create_stream()
    pair = qp.Struct.field({"a": qp.f32, "b": qp.f32}, shape=N)
    other = make_field()
    pair.a.fill(0)
    with qp.hazards.check(collect=True) as found, qp.hazards.allow(pair, reason="pairs may race"):
        for part, stream in enumerate(streams):
            put(pair.a, 0, N - part, stream=stream)
            put(pair.b, 0, N - part, stream=stream)
        qp.sync()
        assert (len(found.certain), len(found.allowed)) == (0, 2), found
        race(other, streams)
        qp.sync()
        assert len(found.certain) == 1, found


def test_an_inner_allowance_gives_the_reason_and_goes_first():
    qp.init(arch=qp.cpu)
    streams = qp.create_stream(), qp.create_stream()
    x = make_ndarray()
    with qp.hazards.check(collect=True) as found, qp.hazards.allow(x, reason="outer"):
        with qp.hazards.allow(x, reason="inner"):
            race(x, streams)
            qp.sync()
        race(x, reversed(streams))
        qp.sync()
    assert {hazard.allowed for hazard in found.allowed} <= {"inner", "outer"}
    assert found.allowed[0].allowed == "inner"
    assert not found.certain


def test_edges_of_a_graph_and_sections_follow_the_memory():
    """Hazards that are found without a checker, too."""
    qp.init(arch=qp.cpu, hazards=False)
    x = make_ndarray()
    address = x.pointer
    graph = qp.graph.Graph()
    graph.add_memset(x, 1, deps=[])
    graph.add_memset(x, 2, deps=[])
    with qp.hazards.allow(x, reason="either value will do"):
        graph.instantiate().destroy()
        del graph, x
        gc.collect()
        qp.sync()
        y = another_at(address, make_ndarray)
        if y is None:
            pytest.skip("the allocator gave the address to nobody")
        graph = qp.graph.Graph()
        graph.add_memset(y, 1, deps=[])
        graph.add_memset(y, 2, deps=[])
        with pytest.raises(qp.HazardError):
            graph.instantiate()


def test_allow_keeps_no_array_alive():
    qp.init(arch=qp.cpu)
    before = qp.memory_stats().used
    x = qp.ndarray(qp.f32, 1 << 16)
    with qp.hazards.allow(x, reason="it may race"):
        del x
        gc.collect()
        assert qp.memory_stats().used == before


def test_what_is_not_an_array_is_refused():
    for thing in (None, 3, np.zeros(3), "x", [make_ndarray()]):
        with pytest.raises(qp.ArgumentError, match="allow takes an ndarray or a field"):
            qp.hazards.allow(thing, reason="none")
