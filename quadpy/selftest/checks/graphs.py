"""Graphs of each kind, with the defects that drivers are known for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.graph.device_graphs import graphs_of
from quadpy.selftest.kernels import work as kernels
from quadpy.selftest.place import Place, counted, require, require_same
from quadpy.selftest.table import Skip, check

_GRAPHS: Final = "none is needed: quadpy launches what graphs hold one by one; update the GPU's driver"
_FEWER: Final = "none is needed: quadpy makes smaller graphs; update the GPU's driver"
_CHAIN: Final = "none is needed: quadpy runs the branches of graphs one after another; update the GPU's driver"
_REBUILD: Final = "none is needed: quadpy makes such graphs again; update the GPU's driver"
_LOOPS: Final = "none is needed: quadpy repeats the loops of graphs from the host; update the GPU's driver"
_FUSED: Final = "none is needed: quadpy launches tasks one by one; update the GPU's driver"


@check("captured graphs: kernels, fills, copies, host functions", "graphs", remedy=_GRAPHS)
def captured(place: Place) -> None:
    x, y = counted(1000), counted(1000)
    called: list[int] = []
    with qp.graph.capture() as graph:
        x.fill(3.0)
        kernels.scale(2.0, x)
        y.copy_from(x)
        kernels.add(x, y)
        qp.graph.host_function(called.append, 1)
    with graph.instantiate(fuse=False) as run:
        for _ in range(3):
            run.launch()
        place.device.synchronize()
    require_same(np.full(1000, 12, np.float32), y.to_numpy(), "a captured graph")
    require(len(called) == 3, f"a host function was called {len(called)} times in 3 launches")


@check("graphs that are made node by node, with child graphs and events", "graphs", remedy=_GRAPHS)
def explicit(place: Place) -> None:
    x, y, event = counted(500), counted(500), qp.create_event()
    child = qp.graph.Graph()
    child.add_kernel(kernels.add, x, y)
    child.add_kernel(kernels.add_one, x)
    graph = qp.graph.Graph()
    graph.add_memset(y, 1.0, name="first")
    graph.add_child(child, name="child")
    graph.add_empty(deps=["child"], name="meet")
    graph.add_event_record(event, deps=["meet"])
    with graph.instantiate(fuse=False) as run:
        run.launch()
        event.synchronize()
        place.device.synchronize()
    require_same(np.arange(500, dtype=np.float32) + 1, y.to_numpy(), "a graph with a child graph")
    require_same(np.arange(500, dtype=np.float32) + 1, x.to_numpy(), "the end of a child graph")


@check("graphs with several branches", "graph-branches", remedy=_CHAIN)
def branches(place: Place) -> None:
    arrays, total = [counted(300) for _ in range(6)], counted(300)
    side = [qp.create_stream() for _ in arrays[1:]]
    with qp.graph.capture() as graph:
        total.fill(0.0)
        fork = qp.create_event()
        fork.record()
        joins = []
        for stream, array in zip(side, arrays[1:], strict=True):
            fork.wait(stream)
            kernels.add_one(array, stream=stream)
            kernels.scale(2.0, array, stream=stream)
            joins.append(qp.create_event())
            joins[-1].record(stream)
        kernels.add_one(arrays[0])
        for join in joins:
            join.wait()
        for array in arrays:
            kernels.add(array, total)
    turns = 2 if place.quick else 8  # the sums stay exact
    with graph.instantiate(fuse=False) as run:
        for _ in range(turns):
            run.launch()
        place.device.synchronize()
    value = np.arange(300, dtype=np.float32)
    first, others = value + turns, value
    for _ in range(turns):
        others = 2 * (others + 1)
    require_same(first + 5 * others, total.to_numpy(), "the branches of a graph")
    for stream in side:
        stream.destroy()


@check("graphs whose nodes get other arguments after they were made", "graph-updates", remedy=_REBUILD)
def updates(place: Place) -> None:
    x, y, z = counted(400), counted(400), counted(400)
    graph = qp.graph.Graph()
    graph.add_kernel(kernels.put, 1.0, x, name="put")
    graph.add_kernel(kernels.scale, 2.0, x, name="scale")
    graph.add_memset(y, 5.0, name="fill")
    turns = 6 if place.quick else 1200  # more than one executable graph is changed in place
    with graph.instantiate(fuse=False) as run:
        run.launch()
        for turn in range(turns):
            run.update("put", float(turn), x if turn % 2 else z)
            run.update("scale", 3.0, x if turn % 2 else z)
            run.launch()
        place.device.synchronize()
        require_same(np.full(400, 3 * (turns - 1), np.float32), x.to_numpy(), "a graph with changed nodes")
        require_same(np.full(400, 3 * (turns - 2), np.float32), z.to_numpy(), "a graph with changed nodes")
        run.enable("fill", False)
        y.fill(7.0)
        run.launch()
        place.device.synchronize()
    require_same(np.full(400, 7, np.float32), y.to_numpy(), "a node that is switched off")


@check("graphs of more than 200 nodes, whose arguments stay fresh", "large-graphs", remedy=_FEWER)
def large(place: Place) -> None:
    count = 260 if place.quick else 1000
    x, kept = counted(64), []
    graph = qp.graph.Graph()
    last = graph.add_empty()
    for number in range(count):
        each = qp.ndarray(qp.f32, 8)
        kept.append(each)
        last = graph.add_kernel(kernels.put, float(number), each, deps=[last], name=f"put {number}")
        if number % 10 == 0:
            last = graph.add_kernel(kernels.add_one, x, deps=[last])
    with graph.instantiate(fuse=False) as run:
        for turn in range(2):
            for number in range(0, turn * count, 9):
                run.update(f"put {number}", -1.0, kept[number])
            run.launch()
        place.device.synchronize()
    found, expected = np.array([each[0] for each in kept], np.float32), np.arange(count, dtype=np.float32)
    expected[::9] = -1
    require_same(expected, found, f"the nodes of a graph of {count + count // 10} kernels, some with other arguments")
    require_same(np.arange(64, dtype=np.float32) + 2 * (count // 10), x.to_numpy(), "a chain in a large graph")


@check("graph kernels: their tasks as one graph, with other arrays in later calls", "graphs", remedy=_GRAPHS)
def graph_kernels(place: Place) -> None:
    def made() -> list[Any]:
        found = []
        for turn in range(4):
            x, y = counted(100 + turn), counted(100 + turn)
            kernels.tasks(0.5 + turn, x, y)
            found += [x.to_numpy(), y.to_numpy()]
        x, y, z = counted(50), counted(50), counted(50)
        kernels.forked(x, y, z)
        return [*found, z.to_numpy()]

    place.compare(made)


@check("functions that are replayed, with other arguments and arrays", "graphs", remedy=_GRAPHS)
def replay(place: Place) -> None:
    @qp.graph.replay(fuse=False)
    def step(a: float, x: Any, y: Any) -> None:
        kernels.scale(a, x)
        kernels.add(x, y)
        for _ in range(20):
            kernels.add_one(y)

    x, y, one, two = counted(200), counted(200), np.arange(200, dtype=np.float32), np.arange(200, dtype=np.float32)
    for turn in range(6 if place.quick else 60):
        a = np.float32(0.5 + turn % 2)
        if turn % 3 == 2:
            x, y, one, two = y, x, two, one
        step(float(a), x, y)
        one = a * one
        two = one + two + np.float32(20)
        if turn == 3:
            require_same(two, y.to_numpy(), "a replayed function")
    require(step.state != "broken", f"the function cannot be replayed: {step.stats.reason}")


@check("loops on the device: do_while, which the device ends", "graph-loops", remedy=_LOOPS)
def loops(place: Place) -> None:
    for rounds in (1, 3, 17):
        x, left, count = counted(100), qp.ndarray(qp.i32, 1), qp.ndarray(qp.i32, 1)
        left.fill(rounds)
        kernels.halve(x, left, count)
        expected = np.arange(100, dtype=np.float32) * np.float32(0.5**rounds)
        require_same(expected, x.to_numpy(), f"a loop of {rounds} rounds on the device")
        require(count[0] == rounds, f"a loop of {rounds} rounds ran {count[0]}")


@check("one cooperative launch for several tasks, whose blocks wait for each other", "cooperative", remedy=_FUSED)
def fused(place: Place) -> None:
    place.needs_gpu("the CPU runs the tasks of a graph one after another")
    if "cooperative" not in place.device.driver.features:
        raise Skip("this device has no cooperative launches")
    size = 1000 if place.quick else 300_000
    x, y = counted(size), counted(size)
    one, two = np.arange(size, dtype=np.float32), np.arange(size, dtype=np.float32)
    with qp.graph.capture() as graph:
        for _ in range(4):
            kernels.scale(0.5, x)
            kernels.add(x, y)
    with graph.instantiate(fuse=True) as run:
        for _ in range(2 if place.quick else 50):
            run.launch()
            for _ in range(4):
                one = np.float32(0.5) * one
                two = one + two
        place.device.synchronize()
    require_same(two, y.to_numpy(), "a fused graph")


@check("memory that graphs allocate and free", "graphs", remedy=_GRAPHS)
def memory(place: Place) -> None:
    if place.is_gpu and "memory" not in graphs_of(place.device).features:
        raise Skip("the driver's graphs are off")
    y = counted(256)
    graph = qp.graph.Graph()
    held = graph.add_alloc(1024)
    graph.add_memset(held, 0x3FC00000, element=4, name="fill")  # the bits of 1.5
    graph.add_memcpy(y, held)
    graph.add_free(held)
    with graph.instantiate() as run:
        run.launch()
        place.device.synchronize()
    require_same(np.full(256, 1.5, np.float32), y.to_numpy(), "memory of a graph")
