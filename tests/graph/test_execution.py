"""Launches, changes, and the end of executable graphs."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import numpy as np
import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import (
    ArgumentError,
    DeviceError,
    DriverError,
    GraphError,
    GraphUpdateError,
    OutOfDeviceMemory,
    StreamError,
)
from quadpy.graph import GraphStats, memory_info, trim
from quadpy.graph.engines.driver import MOST_UPDATES

# launching


def test_launches_on_any_stream_come_after_each_other(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1))
    with on.device.create_stream() as a, on.device.create_stream() as b, graph.instantiate() as run:
        for stream in (a, b, None, a, a, b):
            run.launch(stream)
        assert on.numbers(x) == [6]
        assert run.stats() == GraphStats(launches=6)


@pytest.mark.quadpy_hazards(allow="launches that nothing orders are its subject")
def test_with_overlap_nothing_orders_two_launches(simulated):
    x, y = simulated.buffer(1), simulated.buffer(0)
    graph = simulated.graph()
    graph.add_memcpy(y, x)
    with simulated.device.create_stream() as a, simulated.device.create_stream() as b, graph.instantiate() as run:
        run.launch(a)
        run.launch(b, overlap=True)
        simulated.device.synchronize()
    races = simulated.driver.races()
    assert {(first.kind, second.kind) for first, second in races} == {("copy", "copy")}
    simulated.driver.simulation.ops.clear()


def test_launches_from_several_threads(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1))
    with graph.instantiate() as run:
        threads = [threading.Thread(target=lambda: [run.launch() for _ in range(10)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert on.numbers(x) == [40]


def test_a_graph_and_its_executables_are_independent(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="add")
    with graph.instantiate() as one, graph.instantiate(use_node_priority=True, upload=True) as two:
        graph.add_kernel(on.adder(x, 100))
        one.update("add", on.adder(x, 10))
        one.launch()
        two.launch()
        assert on.numbers(x) == [11]
        assert len(graph) == 2


def test_a_clone_grows_by_itself(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1))
    other = graph.clone()
    assert other.add_kernel(on.adder(x, 10)).after == ("add_value",)
    assert (len(graph), len(other)) == (1, 2)
    with other.instantiate() as run:
        run.launch()
        assert on.numbers(x) == [11]


# changes


def test_a_kernel_is_changed_in_place(on):
    x, y = on.buffer(0), on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="add")
    with graph.instantiate() as run:
        run.launch()
        run.update("add", on.adder(x, 10))
        run.launch()
        run.update("add", on.adder(y, 5))
        run.launch()
        assert (on.numbers(x), on.numbers(y)) == ([11], [5])
        assert run.stats() == GraphStats(launches=3, updates=2, rebuilds=0)


def test_copies_fills_and_host_functions_are_changed_in_place(on):
    x, y, z, seen = on.buffer(1), on.buffer(2), on.buffer(0), []
    graph = on.graph()
    graph.add_memset(x, 5, element=4)
    graph.add_memcpy(z, x)
    graph.add_host(seen.append, 1, name="note")
    with graph.instantiate() as run:
        run.update("memset", x, 6, element=4)
        run.launch()
        assert (on.numbers(z), seen) == ([6], [1])
        run.update("memcpy", z, y)
        run.update("note", seen.append, 2)
        run.launch()
        assert (on.numbers(z), seen) == ([2], [1, 2])
        assert run.stats().rebuilds == 0


def test_pending_launches_keep_what_they_were_given(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="add")
    with graph.instantiate() as run:
        for value in (1, 10, 100):
            run.update("add", on.adder(x, value))
            run.launch()
        assert on.numbers(x) == [111]


def test_what_the_driver_refuses_is_made_anew(gpu):
    x, y, target = gpu.buffer(7), gpu.buffer(0), np.zeros(1, np.int32)
    graph = gpu.graph()
    graph.add_memcpy(y, x, name="copy")
    with graph.instantiate() as run:
        run.launch()
        run.update("copy", target, x)  # another direction
        run.launch()
        run.synchronize()
        assert (gpu.numbers(y), target.tolist()) == ([7], [7])
        assert run.stats() == GraphStats(launches=2, updates=1, rebuilds=1)


def test_a_child_is_changed_or_made_anew(on):
    x = on.buffer(0)
    one, like_it, other = on.graph(), on.graph(), on.graph()
    one.add_kernel(on.adder(x, 1))
    like_it.add_kernel(on.adder(x, 10))
    other.add_kernel(on.adder(x, 100))
    other.add_kernel(on.adder(x, 1000))
    graph = on.graph()
    graph.add_child(one)
    with graph.instantiate() as run:
        run.launch()
        run.update("child", like_it)
        run.launch()
        assert run.stats().rebuilds == 0
        run.update("child", other)
        run.launch()
        assert on.numbers(x) == [1111]
        assert run.stats().rebuilds == (0 if on.is_cpu else 1)


def test_many_updates_make_it_anew(on):
    """Each update takes memory in HIP until the executable graph is destroyed."""
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="add")
    with graph.instantiate() as run:
        for value in range(MOST_UPDATES + 5):
            run.update("add", on.adder(x, value))
        run.launch()
        rebuilds = 0 if on.is_cpu else 1  # which has no driver whose memory grows
        assert run.stats() == GraphStats(launches=1, updates=MOST_UPDATES + 5, rebuilds=rebuilds)
        assert on.numbers(x) == [MOST_UPDATES + 4]


def test_an_update_that_needs_another_order_gets_it(on):
    x, y = on.buffer(0), on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="a")
    graph.add_memcpy(y, y.pointer - 0, nbytes=0, name="b")
    graph.add_memset(y, 5, element=4, name="c")
    with graph.instantiate() as run:
        run.update("c", x, 5, element=4)  # comes after "a" now
        run.launch()
        assert on.numbers(x) == [5]
        if not on.is_cpu:
            assert on.driver_edges(run) == [("a", "c")]
        assert run.stats().rebuilds == 1


def test_explicit_dependencies_stay(on):
    x, y = on.buffer(0), on.buffer(0)
    graph = on.graph()
    a = graph.add_kernel(on.adder(x, 1), name="a", deps=[])
    graph.add_kernel(on.adder(x, 1), name="b", deps=[a])
    with graph.instantiate() as run:
        run.update("b", on.adder(y, 1))
        run.launch()
        assert (on.numbers(x), on.numbers(y)) == ([1], [1])
        assert run.stats().rebuilds == 0


def test_nodes_are_switched_off_and_on(on):
    x, y, seen, host = on.buffer(0), on.buffer(0), [], np.array([9], np.int32)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="kernel")
    graph.add_memset(y, 5, element=4, name="fill")
    graph.add_host(seen.append, 1, name="host")
    graph.add_memcpy(host, x, name="out")
    with graph.instantiate() as run:
        for name in ("kernel", "fill", "host", "out"):
            run.enable(name, False)
        run.launch()
        assert (on.numbers(x), on.numbers(y), seen, host.tolist()) == ([0], [0], [], [9])
        run.update("kernel", on.adder(x, 10))  # stays off
        run.launch()
        assert on.numbers(x) == [0]
        for name in ("kernel", "fill", "host", "out"):
            run.enable(name)
        run.launch()
        assert (on.numbers(x), on.numbers(y), seen, host.tolist()) == ([10], [5], [1], [10])


def test_what_is_off_stays_off_when_it_is_made_anew(gpu):
    x, target = gpu.buffer(0), np.zeros(1, np.int32)
    graph = gpu.graph()
    graph.add_kernel(gpu.adder(x, 1), name="add")
    graph.add_memcpy(x, gpu.buffer(3), name="copy")
    with graph.instantiate() as run:
        run.enable("add", False)
        run.update("copy", target, x)
        run.launch()
        assert gpu.numbers(x) == [0]
        assert run.stats().rebuilds == 1


def test_changes_that_cannot_be(on):
    graph = on.graph()
    graph.add_empty()
    graph.add_host(print, name="host")
    with graph.instantiate() as run:
        with pytest.raises(GraphError, match="no node 'nobody'"):
            run.update("nobody")
        with pytest.raises(GraphUpdateError, match="nothing to change"):
            run.update("empty")
        with pytest.raises(ArgumentError, match="not a function"):
            run.update("host", 3)
        with pytest.raises(GraphUpdateError, match="cannot become a empty node"):
            run.replace({"host": graph["empty"]})
        with pytest.raises(GraphError, match="cannot be switched off"):
            run.enable("empty", False)
        with pytest.raises(GraphError, match="no node 'nobody'"):
            run.enable("nobody")
        assert run.stats() == GraphStats()


# memory of graphs


def test_memory_that_is_not_freed(on):
    """H3: it lives from its node to a free node, here or in a graph launched later, or to the end."""
    graph, y = on.graph(), on.buffer(0)
    memory = graph.add_alloc(4, name="memory")
    graph.add_memset(memory, 5, element=4)
    with graph.instantiate() as run:
        run.launch()
        with pytest.raises(GraphError, match="'memory' allocated in the last launch was not freed"):
            run.launch()
        reader = on.graph()
        reader.add_memcpy(y, memory)
        reader.add_free(memory)
        with reader.instantiate() as read:
            read.launch()
            with pytest.raises(GraphError, match="frees memory that is not allocated"):
                read.launch()
            run.launch()
            read.launch()
        assert on.numbers(y) == [5]
        run.launch()


def test_memory_that_the_next_launch_frees(on):
    graph, y = on.graph(), on.buffer(0)
    memory = graph.add_alloc(4)
    graph.add_memset(memory, 5, element=4)
    graph.add_memcpy(y, memory)
    with graph.instantiate(auto_free_on_launch=True) as run:
        run.launch()
        run.launch()
        assert on.numbers(y) == [5]


def test_a_graph_with_memory_is_instantiated_once_and_is_no_child(on):
    graph = on.graph()
    graph.add_free(graph.add_alloc(4))
    graph.instantiate().destroy()
    with pytest.raises(GraphError, match="can be instantiated only once"):
        graph.instantiate()
    with pytest.raises(GraphError, match="cannot be cloned"):
        graph.clone()
    with pytest.raises(GraphError, match="cannot be a node"):
        on.graph().add_child(graph)


def test_memory_after_its_free_node(on):
    graph = on.graph()
    memory = graph.add_alloc(4)
    graph.add_free(memory, name="gone")
    with pytest.raises(GraphError, match="memory that 'gone' has freed"):
        graph.add_memset(memory, 0)
    with pytest.raises(GraphError, match="memory that 'gone' has freed"):
        graph.add_free(memory)


def test_a_graph_with_memory_is_not_made_anew(gpu):
    x, target = gpu.buffer(1), np.zeros(1, np.int32)
    graph = gpu.graph()
    memory = graph.add_alloc(4)
    graph.add_memcpy(memory, x, name="copy")
    graph.add_free(memory)
    with graph.instantiate() as run:
        with pytest.raises(GraphUpdateError, match="cannot be rebuilt"):
            run.update("copy", target, x)
        run.launch()
        assert run.stats() == GraphStats(launches=1)


def test_h4_memory_of_graphs_is_counted_and_given_back(on):
    before, graph = memory_info(on.device).used, on.graph()
    graph.add_alloc(1 << 26)  # CUDA takes 32 MiB at a time
    with graph.instantiate() as run:
        run.launch()
        on.device.synchronize()
        assert on.is_cpu or memory_info(on.device).used > before
    on.device.synchronize()
    trim(on.device)
    assert memory_info(on.device).used <= before  # earlier graphs may have left some


def test_h4_what_was_held_at_most_and_what_is_kept(simulated):
    graph = simulated.graph()
    memory = graph.add_alloc(4096)
    graph.add_free(memory)
    with graph.instantiate() as run:
        run.launch()
        simulated.device.synchronize()
        found = memory_info(simulated.device)
        assert (found.used, found.used_peak, found.reserved) == (0, 4096, 4096)
        assert found.reserved_peak >= 4096
    del graph, memory
    gc.collect()
    simulated.device.synchronize()
    trim(simulated.device)
    assert (memory_info(simulated.device).used, memory_info(simulated.device).reserved) == (0, 0)


def test_g18_memory_of_graphs_has_an_end(simulated):
    graph = simulated.graph()
    with pytest.raises(OutOfDeviceMemory):
        graph.add_alloc(simulated.driver.memory.capacity + 1)
    assert len(graph) == 0
    graph.add_free(graph.add_alloc(8))
    with graph.instantiate() as run:
        run.launch()


# host functions


def test_what_a_host_function_raises_is_raised_by_the_next_synchronize(on):
    x = on.buffer(0)
    graph = on.graph()

    def fail():
        raise ValueError("on purpose")

    graph.add_host(fail)
    graph.add_kernel(on.adder(x, 1))
    with on.device.create_stream() as stream, on.device.create_stream() as other, graph.instantiate() as run:
        for wait in (stream.synchronize, run.synchronize, on.device.synchronize):
            run.launch(stream)
            if not on.is_cpu:  # where all streams are one
                other.synchronize()
            with pytest.raises(ValueError, match="on purpose"):
                wait()
            wait()
        assert on.numbers(x) == [3]  # what comes behind it runs all the same


def test_quadpy_is_refused_inside_a_host_function(on):
    x, errors = on.buffer(0), []
    graph, inner = on.graph(), on.graph()
    inner.add_memset(x, 1)
    run_inner = inner.instantiate()

    def call(*attempt):
        try:
            attempt[0](*attempt[1:])
        except DeviceError as error:
            errors.append(error.message)

    for attempt in [run_inner.launch, inner.instantiate, on.graph, on.device.create_stream, on.device.synchronize]:
        graph.add_host(call, attempt)
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()
    assert len(errors) == 5
    assert all("host function of a graph called quadpy" in message for message in errors)
    on.device.create_stream().destroy()  # not refused on this thread any more
    run_inner.destroy()


# the end


def test_use_after_destroy(on):
    graph = on.graph()
    graph.add_empty()
    run = graph.instantiate()
    assert not run.destroyed
    run.destroy()
    run.destroy()
    assert run.destroyed
    assert "destroyed" in repr(run)
    for use in (run.launch, run.upload, run.synchronize, lambda: run.update("empty"), lambda: run.enable("empty")):
        with pytest.raises(GraphError, match="was destroyed"):
            use()


def test_a_graph_of_a_closed_device_says_so(on):
    graph = on.graph()
    graph.add_empty()
    graph.add_host(print)
    run, memory = graph.instantiate(), on.graph()
    memory.add_alloc(8)
    if on.is_simulated and "_module" in vars(on):
        on.driver.module_unload(vars(on).pop("_module"))
    on.device.close()
    for use in (run.launch, graph.instantiate, graph.add_empty, on.graph, memory.instantiate):
        with pytest.raises(DeviceError, match="the device was closed"):
            use()
    run.destroy()


def test_a_stream_that_was_destroyed(on):
    stream = on.device.create_stream()
    stream.destroy()
    with on.graph().instantiate() as run, pytest.raises(StreamError, match="was destroyed"):
        run.launch(stream)


def test_a_stream_destroyed_behind_a_launch_is_no_trouble(on):
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1))
    with graph.instantiate() as run:
        with on.device.create_stream() as stream:
            run.launch(stream)
        run.launch()
        run.synchronize()
        assert on.numbers(x) == [2]


class Witness:
    """Something that a graph may keep alive."""

    def __call__(self, *_):
        """A host function."""


def test_g4_a_graph_keeps_alive_what_it_touches_and_nothing_afterwards(on):
    witness, x = Witness(), on.buffer(0)
    gone, memory = weakref.ref(witness), weakref.ref(x)
    graph = on.graph()
    graph.add_host(witness)
    graph.add_memset(x, 1)
    run = graph.instantiate()
    del witness, x, graph
    gc.collect()
    run.launch()
    on.device.synchronize()
    assert gone() is not None
    assert memory() is not None
    run.destroy()
    on.device.synchronize()
    gc.collect()
    assert gone() is None
    assert memory() is None


def test_g4_a_graph_that_is_dropped_is_given_back(on):
    witness = Witness()
    gone = weakref.ref(witness)
    graph = on.graph()
    graph.add_host(witness)
    graph.add_free(graph.add_alloc(8))
    run = graph.instantiate()
    run.launch()
    del witness, graph, run
    gc.collect()
    on.device.synchronize()
    gc.collect()
    assert gone() is None
    if on.is_simulated:
        assert on.driver.graphs.left_open() == {}


def test_g4_a_finalizer_calls_no_driver(simulated):
    run = simulated.graph().instantiate()
    before = len(simulated.driver.calls)
    del run
    gc.collect()
    assert len(simulated.driver.calls) == before
    simulated.device.synchronize()
    assert simulated.driver.graphs.left_open() == {}


def test_x3_what_a_launch_uses_lives_until_it_is_complete(simulated):
    x, y, seen = simulated.buffer(1), simulated.buffer(0), []
    graph = simulated.graph()
    graph.add_memcpy(y, x)
    graph.add_host(seen.append, 1)
    run = graph.instantiate()
    for _ in range(3):
        run.launch()
    run.destroy()
    del x, graph, run
    gc.collect()
    other = simulated.device.allocate(4, simulated.device.create_stream())  # would take the memory of x
    simulated.driver.fill(other.pointer, 9, 4, other.block.home.handle)
    assert seen == []
    assert simulated.numbers(y) == [1]
    assert seen == [1] * 3
    assert simulated.numbers(other) == [0x09090909]


def test_x3_arrays_of_an_update_live_until_launches_before_it_are_complete(simulated):
    x, y = simulated.buffer(1), simulated.buffer(0)
    graph = simulated.graph()
    graph.add_memcpy(y, x, name="copy")
    with graph.instantiate() as run:
        run.launch()
        run.update("copy", y, simulated.buffer(2))
        del x, graph
        gc.collect()
        simulated.device.reaper.drain()
        simulated.buffer(9)
        assert simulated.numbers(y) == [1]
        run.launch()
        assert simulated.numbers(y) == [2]


def test_x1_g7_what_comes_with_an_error_is_not_kept(simulated):
    x = simulated.buffer(1)
    graph = simulated.graph()
    graph.add_memset(x, 1)
    for verb in ("graph_create", "graph_add", "instantiate"):
        simulated.driver.failures[verb] = DriverError(f"{verb} failed: on purpose")
        with pytest.raises(DriverError, match="on purpose"):
            graph.instantiate()
        simulated.device.synchronize()
        assert simulated.driver.graphs.left_open() == {}


def test_x2_a_launch_that_fails_can_be_made_again(simulated):
    x = simulated.buffer(0)
    graph = simulated.graph()
    graph.add_kernel(simulated.adder(x, 1))
    with graph.instantiate() as run:
        simulated.driver.failures["graph_launch"] = DriverError("graph_launch failed: on purpose")
        with pytest.raises(DriverError, match="on purpose"):
            run.launch()
        assert run.stats().launches == 0
        run.launch()
        assert simulated.numbers(x) == [1]


def test_x2_an_update_that_fails_leaves_it_as_it_was(simulated):
    x, y = simulated.buffer(0), simulated.buffer(0)
    graph = simulated.graph()
    graph.add_kernel(simulated.adder(x, 1), name="add")
    with graph.instantiate() as run:
        simulated.driver.failures["update"] = DriverError("update failed: on purpose")
        with pytest.raises(DriverError, match="on purpose"):
            run.update("add", simulated.adder(y, 1))
        run.launch()
        assert (simulated.numbers(x), simulated.numbers(y)) == ([1], [0])
        assert run.stats() == GraphStats(launches=1)


def test_x2_several_updates_that_fail_leave_all_nodes_as_they_were(simulated):
    x, y = simulated.buffer(0), simulated.buffer(0)
    graph, other = simulated.graph(), simulated.graph()
    graph.add_kernel(simulated.adder(x, 1), name="add")
    graph.add_memset(y, 5, element=1, nbytes=4, name="fill")
    changes = {"add": other.add_kernel(simulated.adder(x, 100)), "fill": other.add_memset(y, 7, element=1, nbytes=0)}
    with graph.instantiate() as run:
        simulated.driver.failures["instantiate"] = DriverError("instantiate failed: on purpose")
        with pytest.raises(DriverError, match="on purpose"):
            run.replace(changes)
        run.launch()
        assert simulated.numbers(x) == [1]
        run.replace(changes)
        run.launch()
        assert simulated.numbers(x) == [101]


@pytest.mark.parametrize("error", [DriverError("event_record failed: on purpose"), KeyboardInterrupt()], ids=type)
def test_x2_a_rebuild_that_fails_after_the_exchange_leaves_the_nodes_as_they_were(simulated, error):
    """What was pending is given back behind an event, which cannot be recorded."""
    x, y = simulated.buffer(0), simulated.buffer(0)
    graph, other = simulated.graph(), simulated.graph()
    graph.add_kernel(simulated.adder(x, 1), name="add")
    graph.add_memset(y, 5, element=1, nbytes=4, name="fill")
    changes = {"add": other.add_kernel(simulated.adder(x, 100)), "fill": other.add_memset(y, 7, element=1, nbytes=0)}
    with graph.instantiate() as run:
        run.launch()
        simulated.driver.failures["event_record"] = error
        with pytest.raises(type(error)):
            run.replace(changes)
        simulated.driver.failures.clear()
        run.launch()
        assert simulated.numbers(x) == [2]
        run.replace(changes)
        run.launch()
        assert simulated.numbers(x) == [102]


def test_x2_a_switch_that_fails_leaves_the_node_as_it_was(simulated):
    x = simulated.buffer(0)
    graph = simulated.graph()
    graph.add_kernel(simulated.adder(x, 1), name="add")
    with graph.instantiate() as run:
        run.launch()
        simulated.driver.failures["enable"] = DriverError("enable failed: on purpose")
        with pytest.raises(DriverError, match="on purpose"):
            run.enable("add", False)
        simulated.driver.failures.clear()
        run.launch()
        assert simulated.numbers(x) == [2]


def test_g18_several_graphs_of_one_process_are_independent(on):
    parts = [on.buffer(0) for _ in range(5)]
    runs = []
    for number, part in enumerate(parts):
        graph = on.graph()
        graph.add_kernel(on.adder(part, number))
        runs.append(graph.instantiate())
    for run in [*runs, *reversed(runs)]:
        run.launch()
    assert [on.numbers(part) for part in parts] == [[2 * number] for number in range(5)]
    for run in runs:
        run.destroy()


def test_many_launches_leave_nothing(on):
    """A hundred thousand of them, where each costs little."""
    if not (on.is_cpu or on.is_simulated):
        pytest.skip("the simulated device shows it")
    if on.is_simulated:
        on = type(on)(type(on.device)(RecordingDriver(history=False)), None)
        on.driver = on.device.driver
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1))
    with graph.instantiate() as run:
        for _ in range(1000):
            for _ in range(100):
                run.launch()
            on.device.synchronize()
        assert on.numbers(x) == [100_000]
        assert run.stats().launches == 100_000
    if on.is_simulated:
        on.driver.module_unload(on._module)
        del x
        gc.collect()
        on.device.close()
        assert set(on.driver.left_open().values()) == {0}


def test_many_graphs_leave_nothing(on):
    x = on.buffer(0)
    count = 5 if "ROCJITSU_RUNTIME_DIR" in os.environ else 200  # an emulator is slow at it
    for _ in range(count):
        graph = on.graph()
        graph.add_kernel(on.adder(x, 1))
        graph.add_host(int)
        with graph.instantiate() as run:
            run.launch()
    assert on.numbers(x) == [count]
    assert len(on.device.deferred) == 0
    if on.is_simulated:
        assert on.driver.graphs.left_open() == {}
