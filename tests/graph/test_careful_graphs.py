"""Graphs without some capabilities of the driver: the same results in the same order, and nothing is left open."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import DriverError, GraphUpdateError
from quadpy.graph import Semaphore
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.careful_graphs import MOST_NODES, CarefulGraphs
from quadpy.runtime.drivers.graph_driver import EmptyWork

from .conftest import On

OFF = "graphs", "large-graphs", "graph-branches", "graph-updates", "graph-loops"


def device_without(*off):
    driver = RecordingDriver()
    with Device(driver, None, dict.fromkeys(off, "a test")) as device:
        made = On(device, driver)
        yield made
        device.synchronize()
        if "_module" in vars(made):
            driver.module_unload(made._module)
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.fixture(params=OFF)
def without(request):
    """A device without one capability."""
    yield from device_without(request.param)


@pytest.fixture
def launching():
    """A device whose graphs are launched node by node."""
    yield from device_without("graphs")


def launched(on, verb="launch"):
    return sum(call.verb == verb for call in on.driver.calls)


def test_a_graph_of_each_kind_of_node(without):
    x, y, host, seen = without.buffer(1, 2, 3), without.buffer(0, 0, 0), np.zeros(3, np.int32), []
    child, graph = without.graph(), without.graph()
    child.add_kernel(without.adder(x, 10))
    child.add_host(seen.append, "child")
    graph.add_kernel(without.adder(x, 100))
    graph.add_child(child)
    graph.add_memcpy(y, x)
    graph.add_empty()
    graph.add_memcpy(host, y)
    event = without.device.create_event()
    graph.add_event_record(event)
    with graph.instantiate() as run:
        run.launch()
        run.launch()
        run.synchronize()
        assert (without.numbers(y), host.tolist(), seen) == ([221, 222, 223], [221, 222, 223], ["child"] * 2)
        assert event.query()
    event.destroy()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(("element", "value"), [(1, 7), (2, 0x0102), (4, 0x01020304), (4, 0)])
def test_fills_of_every_pattern(launching, count, element, value):
    x, whole = launching.buffer(*[-1] * 65), np.full(260, 255, np.uint8)
    graph = launching.graph()
    graph.add_memset(x, value, element=element, nbytes=element * count)
    whole[: element * count] = np.full(count, value, f"<u{element}").view(np.uint8)
    with graph.instantiate() as run:
        run.launch()
        assert launching.numbers(x) == whole.view(np.int32).tolist()


def test_branches_join(without):
    arrays = [without.buffer(k) for k in range(5)]
    graph = without.graph()
    for x in arrays:
        graph.add_kernel(without.adder(x, 1))
    for x in arrays[1:]:
        graph.add_memcpy(arrays[0], x)
    with graph.instantiate() as run:
        run.launch()
        assert without.numbers(arrays[0]) == [5]


def test_nodes_are_changed_and_switched_off(without):
    x, y = without.buffer(0), without.buffer(0)
    graph = without.graph()
    graph.add_kernel(without.adder(x, 1), name="add")
    graph.add_memset(y, 3, element=4, name="fill")
    with graph.instantiate() as run:
        run.launch()
        run.update("add", without.adder(x, 10))
        run.launch()
        run.update("add", without.adder(y, 100))
        run.enable("fill", False)
        run.launch()
        run.enable("fill")
        assert (without.numbers(x), without.numbers(y)) == ([11], [103])
        run.launch()
        assert without.numbers(y) in ([3], [103])  # the two have no order


def test_host_functions_are_switched_off_and_on(without):
    seen = []
    graph = without.graph()
    graph.add_host(seen.append, 1, name="one")
    graph.add_host(seen.append, 2)
    with graph.instantiate() as run:
        for enabled in (True, False, True):
            run.enable("one", enabled)
            run.launch()
            run.synchronize()
            seen.append("end")
    assert seen == [1, 2, "end", 2, "end", 1, 2, "end"]


def test_a_graph_with_memory_refuses_a_switch_that_would_rebuild_it():
    for on in device_without("graph-updates"):
        graph, x = on.graph(), on.buffer(0)
        held = graph.add_alloc(64)
        add = graph.add_kernel(on.adder(x, 1), name="add", deps=[held])
        graph.add_free(held, deps=[add])
        with graph.instantiate() as run:
            with pytest.raises(GraphUpdateError, match="'add' cannot be switched in place"):
                run.enable("add", False)
            run.launch()
            assert (on.numbers(x), run.disabled) == ([1], frozenset())


def test_pending_launches_keep_the_arguments_that_they_had(launching):
    x = launching.buffer(0)
    graph = launching.graph()
    graph.add_kernel(launching.adder(x, 1), name="add")
    with graph.instantiate() as run:
        for value in range(2, 50):
            run.launch()
            run.update("add", launching.adder(x, value))
        assert launching.numbers(x) == [sum(range(1, 49))]


@pytest.mark.parametrize(("off", "count", "alone"), [("graphs", 3, 3), ("large-graphs", MOST_NODES, 0),
                                                     ("large-graphs", MOST_NODES + 1, MOST_NODES + 1)])  # fmt: skip
def test_how_many_nodes_the_driver_gets(off, count, alone):
    for on in device_without(off):
        x = on.buffer(0)
        graph = on.graph()
        for _ in range(count):
            graph.add_kernel(on.adder(x, 1))
        with graph.instantiate() as run:
            run.launch()
            assert (on.numbers(x), launched(on)) == ([count], alone)


def test_a_large_graph_with_memory_is_refused_before_it_runs():
    for on in device_without("large-graphs"):
        graph = on.graph()
        held = graph.add_alloc(64)
        for _ in range(MOST_NODES):
            graph.add_kernel(on.adder(on.buffer(0), 1))
        graph.add_free(held)
        why = "kind Alloc cannot be used in a graph of 103: graphs of more than 100 nodes are off"
        with pytest.raises(DriverError, match=why):
            graph.instantiate()
        assert launched(on) == 0


def test_chains_have_one_edge_from_node_to_node():
    for on in device_without("graph-branches"):
        graph = on.graph()
        for value in (1, 2, 3):
            graph.add_kernel(on.adder(on.buffer(0), value))
        with graph.instantiate() as run:
            built = run._owner.engine.graph
            nodes = built.graphs.nodes(built.handle)
            assert built.graphs.edges(built.handle) == list(itertools.pairwise(nodes))


def test_what_follows_a_loop_and_what_is_in_it_is_a_chain_too():
    driver = RecordingDriver(loops=True)
    graphs = CarefulGraphs(driver, driver.graphs, ["graph-branches"])
    graph = graphs.graph_create()
    before = [graphs.add(graph, (), EmptyWork()) for _ in range(2)]
    loop, body = graphs.add_loop(graph, (), graphs.condition_create(graph))
    after = [graphs.add(graph, (), EmptyWork()) for _ in range(2)]
    inner, innermost = graphs.add_loop(body, (), graphs.condition_create(body))
    within = [inner, *(graphs.add(body, (), EmptyWork()) for _ in range(2))]
    assert graphs.edges(graph) == list(itertools.pairwise([*before, loop, *after]))
    assert graphs.edges(body) == list(itertools.pairwise(within))
    graphs.exec_destroy(graphs.instantiate(graph))
    graphs.graph_destroy(graph)
    assert graphs._known.keys().isdisjoint({graph, body, innermost})


def test_what_needs_the_drivers_graphs_says_so(launching):
    graph = launching.graph()
    with pytest.raises(DriverError, match="memory of graphs cannot be used: the driver's graphs are off") as caught:
        graph.add_alloc(64)
    assert "quadpy selftest" in caught.value.hint
    with pytest.raises(DriverError, match="semaphores cannot be used"):
        Semaphore.from_fd(3, device=launching.device)
    assert (qp.graph.memory_info(launching.device).used, qp.graph.trim(launching.device)) == (0, None)


def test_a_launch_that_fails_can_be_made_again(launching):
    x = launching.buffer(0)
    graph = launching.graph()
    graph.add_kernel(launching.adder(x, 1))
    with graph.instantiate() as run:
        launching.driver.failures["launch"] = DriverError("refused")
        with pytest.raises(DriverError, match="refused"):
            run.launch()
        run.launch()
        assert launching.numbers(x) == [1]


def test_a_host_function_runs_after_what_is_before_it(launching):
    x, seen = launching.buffer(0), []
    graph = launching.graph()
    graph.add_kernel(launching.adder(x, 1))
    graph.add_host(lambda: seen.append(ctypes.c_int32.from_address(x.pointer).value))
    graph.add_kernel(launching.adder(x, 1))
    with graph.instantiate() as run:
        run.launch()
        run.launch()
    launching.device.synchronize()
    assert seen == [1, 3]


def test_an_error_of_a_host_function_is_raised_at_the_next_wait(launching):
    def fail():
        raise ZeroDivisionError

    graph = launching.graph()
    graph.add_host(fail)
    with graph.instantiate() as run:
        run.launch()
        with pytest.raises(ZeroDivisionError):
            run.synchronize()


def test_a_pattern_lives_until_pending_launches_are_complete(launching):
    x = launching.buffer(0, 0)
    graph = launching.graph()
    graph.add_memset(x, 0x01020304, element=4, name="fill")
    with graph.instantiate() as run:
        run.launch()
        run.update("fill", x, 0x05060708, element=4)
        assert launching.numbers(x) == [0x01020304] * 2
        run.launch()
        assert launching.numbers(x) == [0x05060708] * 2
