"""Every type of node, on every device, and what the order of nodes is."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import current
from simulated_gpu.driver import RecordingDriver

from quadpy.core.flow import Fork, Loop
from quadpy.errors import ArgumentError, DeviceError, DriverError, EventError, GraphError, StreamError
from quadpy.graph import Semaphore
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import AllocWork, FillWork
from quadpy.runtime.launch.launch import KernelLaunch, Prepared

from .conftest import OPENERS


def test_the_device_is_here(backend):
    name, reason = backend
    if reason is not None:
        pytest.skip(reason)
    assert OPENERS[name]().info.name


# H1: one test for each type


def test_h1_kernel(on):
    x = on.buffer(1, 2, 3)
    graph = on.graph()
    node = graph.add_kernel(on.adder(x, 10))
    assert (node.name, node.kind) == ("add_value", "kernel")
    with graph.instantiate() as run:
        run.launch()
        run.launch()
        assert on.numbers(x) == [21, 22, 23]


def test_h1_memcpy(on):
    x, y = on.buffer(1, 2, 3), on.buffer(0, 0, 0)
    graph = on.graph()
    graph.add_memcpy(y, x)
    with graph.instantiate() as run:
        run.launch()
        assert on.numbers(y) == [1, 2, 3]


def test_h1_memcpy_of_a_part(on):
    x, y = on.buffer(1, 2, 3), on.buffer(0, 0, 0)
    graph = on.graph()
    graph.add_memcpy(y.pointer + 4, x, nbytes=8)
    with graph.instantiate() as run:
        run.launch()
        assert on.numbers(y) == [0, 1, 2]


def test_h1_memcpy_with_the_host_reads_and_writes_at_each_launch(on):
    source, target = np.array([1, 2, 3], np.int32), np.zeros(3, np.int32)
    x = on.buffer(0, 0, 0)
    graph = on.graph()
    graph.add_memcpy(x, source)
    graph.add_kernel(on.adder(x, 10))
    graph.add_memcpy(target, x)
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()
        assert target.tolist() == [11, 12, 13]
        source[...] = 5
        run.launch()
        run.synchronize()
        assert target.tolist() == [15, 15, 15]


@pytest.mark.parametrize(("element", "value", "expected"), [
    (1, 0x7F, 0x7F7F7F7F), (2, 0x1234, 0x12341234), (4, 0x12345678, 0x12345678), (4, -1, -1),
])  # fmt: skip
def test_h1_memset(on, element, value, expected):
    x = on.buffer(1, 2)
    graph = on.graph()
    graph.add_memset(x, value, element=element)
    with graph.instantiate() as run:
        run.launch()
        assert on.numbers(x) == [expected] * 2


def test_h1_memset_of_rows(on):
    x = on.buffer(*range(8))
    graph = on.graph()
    graph.add_memset(x, 9, element=4, nbytes=8, rows=2, pitch=16)
    with graph.instantiate() as run:
        run.launch()
        assert on.numbers(x) == [9, 9, 2, 3, 9, 9, 6, 7]


def test_h1_host(on):
    x, seen = on.buffer(0), []
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1))
    graph.add_host(seen.append, "ran")
    graph.add_kernel(on.adder(x, 1))
    with graph.instantiate() as run:
        run.launch()
        run.launch()
        run.synchronize()
        assert seen == ["ran"] * 2
        assert on.numbers(x) == [4]


def test_h1_empty_joins(on):
    x, y = on.buffer(0), on.buffer(0)
    graph = on.graph()
    a, b = graph.add_kernel(on.adder(x, 1)), graph.add_kernel(on.adder(y, 1))
    join = graph.add_empty()
    assert join.after == (a.name, b.name)
    assert graph.add_kernel(on.adder(x, 1)).after == (join.name,)
    with graph.instantiate() as run:
        run.launch()
        assert (on.numbers(x), on.numbers(y)) == ([2], [1])


def test_h1_child(on):
    x, seen = on.buffer(0), []
    inner = on.graph()
    inner.add_kernel(on.adder(x, 1))
    inner.add_host(seen.append, 1)
    outer = on.graph()
    outer.add_memset(x, 5, element=4)
    outer.add_child(inner)
    inner.add_kernel(on.adder(x, 100))  # the child is a copy
    outer.add_child(inner)
    with outer.instantiate() as run:
        run.launch()
        assert on.numbers(x) == [5 + 1 + 1 + 100]
    assert seen == [1, 1]


def test_h1_event_record(on):
    x = on.buffer(0)
    with on.device.create_event(timing=True) as begin, on.device.create_event(timing=True) as end:
        graph = on.graph()
        graph.add_event_record(begin)
        graph.add_kernel(on.adder(x, 1))
        graph.add_event_record(end)
        with graph.instantiate() as run:
            assert not end.recorded
            run.launch()
            end.synchronize()
            assert end.query()
            assert begin.elapsed_time(end) >= 0


def test_h1_event_wait_orders_after_work_of_the_outside(on):
    x = on.buffer(0)
    with on.device.create_event() as ready, on.device.create_stream() as a, on.device.create_stream() as b:
        graph = on.graph()
        graph.add_event_wait(ready)
        graph.add_kernel(on.adder(x, 1))
        other = on.graph()
        other.add_kernel(on.adder(x, 10))
        with graph.instantiate() as run, other.instantiate() as before:
            before.launch(a)
            ready.record(a)
            run.launch(b)
            assert on.numbers(x) == [11]


def test_h1_semaphores(gpu):
    if not gpu.is_simulated:
        with pytest.raises(DriverError):  # a descriptor that is no semaphore; HIP 7.2 imports none on Linux
            Semaphore.from_fd(0, device=gpu.device)
        return
    with Semaphore.from_fd(3, device=gpu.device) as semaphore:
        graph = gpu.graph()
        graph.add_semaphore_signal((semaphore, 7))
        graph.add_semaphore_wait((semaphore, 7))
        with graph.instantiate() as run:
            run.launch()
            run.synchronize()
            assert gpu.driver.graphs._runs.semaphores[semaphore.handle] == 7
    with pytest.raises(GraphError, match="was destroyed"):
        graph.add_semaphore_signal((semaphore, 7))


def test_h1_the_cpu_has_no_semaphores():
    with current("cpu"), pytest.raises(GraphError, match="no external semaphores"):
        Semaphore.from_fd(0)


def test_h1_alloc_and_free(on):
    y = on.buffer(0, 0)
    graph = on.graph()
    memory = graph.add_alloc(8)
    graph.add_memset(memory, 3, element=4)
    graph.add_memcpy(y, memory)
    graph.add_free(memory)
    with graph.instantiate() as run:
        run.launch()
        run.launch()
        assert on.numbers(y) == [3, 3]
    assert memory.pointer


# the order of nodes


def test_h5_memory_that_other_devices_reach(on):
    graph, x = on.graph(), on.buffer(0)
    memory = graph.add_alloc(4, peers=[on.device])  # its own, which reaches it anyway
    graph.add_memset(memory, 7, element=4)
    graph.add_memcpy(x, memory)
    graph.add_free(memory)
    with graph.instantiate() as run:
        run.launch()
        assert on.numbers(x) == [7]
    with pytest.raises(ArgumentError, match="not a device"):
        graph.add_alloc(4, peers=[0])
    if not on.is_simulated:
        with Device(RecordingDriver()) as other, pytest.raises(DeviceError, match="cannot access memory"):
            graph.add_alloc(4, peers=[other])


def test_h5_the_driver_is_told_which(simulated):
    with Device(RecordingDriver(1)) as other:
        graph = simulated.graph()
        graph.add_free(graph.add_alloc(8, peers=[other, simulated.device, other]))
        (work,) = [call.arguments[2] for call in simulated.driver.calls if call.verb == "graph_add_alloc"]
        assert work == AllocWork(8, peers=(1,))


def test_derived_dependencies_make_forks(on):
    x, y = on.buffer(1), on.buffer(0)
    graph = on.graph()
    fill = graph.add_memset(x, 1, element=4)
    left = graph.add_kernel(on.adder(x, 1))
    right = graph.add_memset(y, 2, element=4)
    join = graph.add_memcpy(y, x)
    assert (fill.after, left.after, right.after) == ((), (fill.name,), ())
    assert set(join.after) == {left.name, right.name}
    assert all(node.derived for node in graph)


def test_explicit_and_derived_dependencies_are_the_same_graph(on):
    """H2: whoever makes it, the structure is what counts."""
    x, y = on.buffer(1), on.buffer(0)

    def build(*deps):
        graph = on.graph()
        a = graph.add_kernel(on.adder(x, 1), name="a", deps=deps[0])
        b = graph.add_kernel(on.adder(y, 1), name="b", deps=deps[1])
        graph.add_memcpy(y, x, name="c", deps=[a, b.name] if deps[2] else None)
        return graph

    derived, explicit = build(None, None, False), build([], [], True)
    assert derived.inspect().edges == explicit.inspect().edges == (("a", "c"), ("b", "c"))
    if not on.is_cpu:
        with derived.instantiate() as one, explicit.instantiate() as two:
            assert on.driver_edges(one) == on.driver_edges(two) == [("a", "c"), ("b", "c")]


def test_forks_are_forks_in_the_drivers_graph(gpu):
    x = gpu.buffer(0, 0, 0, 0)
    graph = gpu.graph()
    graph.add_memset(x, 0, element=4, name="start")
    for k in range(4):
        graph.add_memset(x.pointer + 4 * k, k, element=4, nbytes=4, name=f"branch {k}")
    graph.add_kernel(gpu.adder(x, 1), name="join")
    with graph.instantiate() as run:
        branches = [f"branch {k}" for k in range(4)]
        assert gpu.driver_edges(run) == sorted([("start", b) for b in branches] + [(b, "join") for b in branches])
        run.launch()
        assert gpu.numbers(x) == [1, 2, 3, 4]


def test_a_kernels_flow_is_forked_and_joined(gpu):
    x, y = gpu.buffer(0), gpu.buffer(0)
    launches = (gpu.adder(x, 1), gpu.adder(x, 2), gpu.adder(y, 3), gpu.adder(x, 4))
    graph = gpu.graph()
    graph.add_kernel(Prepared(launches, (Fork(((0, 1), (2,))), 3)), name="kernel")
    with graph.instantiate() as run:
        built = run._owner.engine.graph
        a, b, c, d = built.handles("kernel")
        found = {edge for edge in built.graphs.edges(built.handle) if set(edge) <= {a, b, c, d}}
        assert found == {(a, b), (b, d), (c, d)}
        run.launch()
        assert (gpu.numbers(x), gpu.numbers(y)) == ([7], [3])


def test_a_graph_begins_with_one_node(gpu):
    """Of several first nodes, HIP 7.2 lets all but one run before the stream's earlier work is done."""
    x, y, z = gpu.buffer(0), gpu.buffer(0), gpu.buffer(0)
    forked = Prepared((gpu.adder(x, 1), gpu.adder(y, 2), gpu.adder(z, 3)), (Fork(((0,), (1,))), 2))
    single, several, flow, growing = (gpu.graph() for _ in range(4))
    single.add_kernel(gpu.adder(x, 1))
    for part in (x, y, z):
        several.add_kernel(gpu.adder(part, 1))
    flow.add_kernel(forked)
    memory = growing.add_alloc(4)
    growing.add_memset(x, 7, element=4)
    growing.add_memset(memory, 7, element=4)
    growing.add_free(memory)
    with single.instantiate() as one, several.instantiate() as two, flow.instantiate() as three:
        assert [gpu.driver_roots(run) for run in (one, two, three)] == [1, 1, 1]
        assert len(one._owner.engine.graph.graphs.nodes(one._owner.engine.graph.handle)) == 1
        for run in (one, two, three, two):
            run.launch()
        with growing.instantiate() as four:
            assert gpu.driver_roots(four) == 1
            assert (gpu.numbers(x), gpu.numbers(y), gpu.numbers(z)) == ([4], [4], [5])


def test_a_child_begins_with_one_node(gpu):
    x, y = gpu.buffer(0), gpu.buffer(0)
    inner, graph = gpu.graph(), gpu.graph()
    for part in (x, y):
        inner.add_kernel(gpu.adder(part, 1))
    graph.add_memset(x, 5, element=4)
    graph.add_memset(y, 6, element=4)
    graph.add_child(inner, name="child")
    with graph.instantiate() as run:
        assert gpu.driver_edges(run) == [("memset", "child"), ("memset.1", "child")]
        (child,) = run._owner.engine.graph._children
        edges = child.graphs.edges(child.handle)
        assert len(child.graphs.nodes(child.handle)) == 3
        assert len({before for before, _ in edges}) == 1
        run.launch()
        assert (gpu.numbers(x), gpu.numbers(y)) == ([6], [7])


def test_first_nodes_that_do_not_wait_are_seen_as_a_race(simulated):
    """The simulated device does as HIP 7.2 does; so the tests above see what they look for."""
    x, y = simulated.buffer(1), simulated.buffer(2)
    graphs, device = simulated.driver.graphs, simulated.device
    graph = graphs.graph_create()
    for part in (x, y):
        graphs.add(graph, [], FillWork(part.pointer, 0, 4, 1))
    run = graphs.instantiate(graph)
    simulated.driver.fill(y.pointer, 1, 4, device.default_stream.handle)
    graphs.launch(run, device.default_stream.handle)
    device.synchronize()
    graphs.exec_destroy(run)
    graphs.graph_destroy(graph)
    assert [(first.kind, second.kind) for first, second in simulated.driver.races()] == [("fill", "fill")]
    simulated.driver.simulation.ops.clear()


def test_a_kernel_that_loops_is_no_node(gpu):
    loop = Prepared((gpu.adder(gpu.buffer(0), 1),), (Fork(((Loop("x", (0,)),),)),))
    with pytest.raises(GraphError, match="'add_value' has a loop"):
        gpu.graph().add_kernel(loop)


def test_a_host_function_that_says_what_it_touches_is_no_barrier(on):
    x, y = on.buffer(0), on.buffer(0)
    graph = on.graph()
    first = graph.add_kernel(on.adder(x, 1))
    look = graph.add_host(print, reads=[x])
    assert look.after == (first.name,)
    assert graph.add_kernel(on.adder(y, 1)).after == ()
    assert graph.add_kernel(on.adder(x, 1)).after == (look.name,)


def test_a_long_fan_out_and_in(on):
    parts = [on.buffer(0) for _ in range(20)]
    graph = on.graph()
    for part in parts:
        graph.add_kernel(on.adder(part, 1))
    join = graph.add_empty()
    assert len(join.after) == 20
    with graph.instantiate() as run:
        run.launch()
        assert [on.numbers(part) for part in parts] == [[1]] * 20


def test_an_empty_graph_runs(on):
    with on.graph().instantiate() as run:
        run.launch()
        run.synchronize()
        assert run.stats().launches == 1


def test_copies_and_fills_of_no_bytes_are_nodes(on):
    x = on.buffer(1)
    graph = on.graph()
    graph.add_memcpy(x, x.pointer + 4, nbytes=0)
    graph.add_memset(x, 0, nbytes=0)
    with graph.instantiate() as run:
        run.launch()
        run.enable("memcpy", False)
        run.launch()
        assert on.numbers(x) == [1]


# what cannot be


def test_names_are_unique(on):
    graph = on.graph()
    graph.add_empty(name="a")
    with pytest.raises(GraphError, match="already has a node 'a'"):
        graph.add_empty(name="a")
    assert [graph.add_empty().name, graph.add_empty().name] == ["empty", "empty.1"]
    assert graph["a"].name == "a"
    with pytest.raises(GraphError, match="no node 'b'"):
        graph["b"]
    with pytest.raises(ArgumentError, match="not the name"):
        graph.add_empty(name=3)
    assert len(graph) == 3


def test_dependencies_are_nodes_of_this_graph(on):
    graph, other = on.graph(), on.graph()
    node = other.add_empty()
    graph.add_empty()
    for wrong in (node, "nobody", 3, None):
        with pytest.raises(GraphError, match="not a node of this graph"):
            graph.add_empty(deps=[wrong])
    with pytest.raises(ArgumentError, match="list of nodes"):
        graph.add_empty(deps="empty")
    assert graph.add_empty(deps=["empty", "empty"]).after == ("empty",)


def test_a_graph_is_no_child_of_itself(on):
    graph = on.graph()
    with pytest.raises(GraphError, match="node of itself"):
        graph.add_child(graph)
    with pytest.raises(ArgumentError, match="not a graph"):
        graph.add_child(3)
    graph.add_child(graph.clone())


def test_what_is_no_kernel_no_event_no_function(on):
    graph = on.graph()
    for attempt, match in [
        (lambda: graph.add_kernel(print), "is not a kernel"),
        (lambda: graph.add_kernel(on.adder(on.buffer(1), 1), 3), "take no further arguments"),
        (lambda: graph.add_event_record(3), "not an event"),
        (lambda: graph.add_event_wait(None), "not an event"),
        (lambda: graph.add_host(3), "not a function"),
        (graph.add_semaphore_signal, "at least one"),
        (lambda: graph.add_semaphore_wait(3), "not a semaphore"),
        (lambda: graph.add_alloc(0), "is 0, which is too few"),
        (lambda: graph.add_alloc(-1), "is -1, which is negative"),
        (lambda: graph.add_free(3), "not an alloc node"),
        (lambda: graph.add_memcpy(0, 0, nbytes=4), "is not an address"),
        (lambda: graph.add_memcpy(on.buffer(1), on.buffer(1, 2)), "8 bytes into 4"),
        (lambda: graph.add_memset(on.buffer(1), 256), "does not fit an element of 1 bytes"),
        (lambda: graph.add_memset(on.buffer(1), 1, element=3), "does not fit an element of 3 bytes"),
        (lambda: graph.add_memset(on.buffer(1), 1.5), "takes an int"),
        (lambda: graph.add_memset(on.buffer(1), 1, element=4, nbytes=3), "cannot be filled"),
        (lambda: graph.add_memcpy(on.buffer(1), np.zeros((4, 4), np.int32)[:, 1]), "not contiguous"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            attempt()
    assert len(graph) == 0


def test_a_copy_whose_ends_overlap(on):
    x = on.buffer(1, 2)
    with pytest.raises(ArgumentError, match="overlap"):
        on.graph().add_memcpy(x.pointer, x.pointer + 4, nbytes=8)


def test_both_ends_on_the_host(gpu):
    with pytest.raises(ArgumentError, match="on the host"):
        gpu.graph().add_memcpy(np.zeros(2), np.zeros(2))
    with pytest.raises(ArgumentError, match="cannot fill host memory"):
        gpu.graph().add_memset(np.zeros(2), 0)


def test_things_of_another_device(on):
    with Device(RecordingDriver()) as other, other.create_event() as event, other.create_stream() as stream:
        graph = on.graph()
        with pytest.raises(DeviceError, match="in a graph of"):
            graph.add_event_record(event)
        with pytest.raises(DeviceError, match="as a node of one of"):
            graph.add_child(type(graph)(other))
        with graph.instantiate() as run, pytest.raises(StreamError, match="cannot run work"):
            run.launch(stream)


def test_a_kernel_of_another_kind_of_device(on):
    wrong = KernelLaunch("k", 1, (1, 1, 1), (1, 1, 1), 0, b"", (), (), (), None) if on.is_cpu else None
    if wrong is None:
        pytest.skip("launches of GPUs look alike")
    with pytest.raises(DeviceError, match="another device"):
        on.graph().add_kernel(wrong)


def test_an_event_that_was_destroyed(on):
    event = on.device.create_event()
    event.destroy()
    with pytest.raises(EventError, match="the event was destroyed"):
        on.graph().add_event_wait(event)


def test_a_node_that_fails_in_the_driver_leaves_nothing(simulated):
    x = simulated.buffer(1)
    graph = simulated.graph()
    graph.add_memset(x, 1)
    simulated.driver.failures["graph_add"] = DriverError("graph_add failed: on purpose")
    with pytest.raises(DriverError, match="on purpose"):
        graph.instantiate()
    simulated.driver.failures["instantiate"] = DriverError("instantiate failed: on purpose")
    with pytest.raises(DriverError, match="on purpose"):
        graph.instantiate()
    with graph.instantiate() as run:
        run.launch()


def test_looking_at_a_graph(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_memset(x, 1, element=4, name='the "first"')
    graph.add_kernel(on.adder(x, 1))
    info = graph.inspect()
    assert [node.kind for node in info.nodes] == ["memset", "kernel"]
    assert info.roots == ('the "first"',)
    assert info.leaves == ("add_value",)
    assert info.nodes[1].reads == ((x.pointer, 4),)
    assert __file__ in info.nodes[0].place
    assert 'the \\"first\\"" -> "add_value";' in graph.to_dot()
    assert "add_value: kernel (add_value) after the" in str(graph)
    assert "2 nodes" in repr(graph)
