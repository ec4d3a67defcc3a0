"""What pending launches use lives until they are complete, whoever destroys, leaves, drops or changes the graph."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import sys
import threading
import weakref
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from quadpy.errors import DeviceError, EventError, GraphError
from quadpy.graph import Graph, Semaphore
from quadpy.graph.captures.capture import capture
from quadpy.graph.live_graph import LiveGraph


class HostMemory:
    """Numbers of the host in a place of their own, which no others ever get: so that a late access is seen."""

    def __init__(self, place):
        self.__array_interface__ = {"shape": (2,), "typestr": "<i4", "data": (place, False), "version": 3}


class Watched:
    """Host memory that is given out, and a ``memmove`` that looks whether it is still there."""

    def __init__(self, monkeypatch):
        self.pages = np.zeros((4000, 2), np.int32)
        self.owners = []
        self.late = []
        monkeypatch.setattr("quadpy.graph.engines.lowering.ctypes", SimpleNamespace(memmove=self._memmove))

    def numbers(self):
        owner = HostMemory(self.pages[len(self.owners)].ctypes.data)
        self.owners.append(weakref.ref(owner))
        return np.asarray(owner)

    def left(self):
        """How many of them are still there."""
        return sum(owner() is not None for owner in self.owners)

    def _memmove(self, target, source, nbytes):
        for end in (target, source):
            place = (end - self.pages.ctypes.data) // 8
            if 0 <= place < len(self.owners) and self.owners[place]() is None:
                self.late.append(place)
        ctypes.memmove(target, source, nbytes)


@pytest.fixture
def quick_switches():
    """Threads take turns after every few of Python's steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def watched(monkeypatch):
    made = Watched(monkeypatch)
    yield made
    assert made.late == []


def _copy_out(graph, x, host):
    graph.add_memcpy(host, x, name="copy")


def _copy_in(graph, x, host):
    graph.add_memcpy(x, host, name="copy")


def _child(graph, x, host):
    inner = type(graph)(graph.device)
    inner.add_memcpy(host, x)
    graph.add_child(inner, name="child")


def _beside_memory(graph, x, host):
    scratch = graph.add_alloc(64)
    graph.add_memcpy(host, x, name="copy")
    graph.add_free(scratch)


def _destroyed(run):
    run.destroy()


def _left(run):
    with run:
        pass


def _updated(run):
    other = np.zeros(2, np.int32)
    node = run.nodes[-1]
    if node.kind == "child":
        graph = Graph(run.device)
        graph.add_memcpy(other, node.nodes[0].source, nbytes=8)
        run.update(node.name, graph)
    else:
        ends = (node.target, other) if node.direction == "in" else (other, node.source)
        run.update(node.name, *ends, nbytes=8)


def _made_anew(run):
    """By a change that the driver refuses."""
    graphs = run.device.driver.graphs
    graphs.update = lambda *_: False
    try:
        _updated(run)
    finally:
        del graphs.update


def _dropped(run):
    """Nobody refers to it from here on."""


ENDS = [
    *itertools.product([_copy_out, _copy_in, _child], [_destroyed, _left, _updated, _made_anew, _dropped]),
    *itertools.product([_beside_memory], [_destroyed, _left, _dropped]),  # whose last node is a free, and stays
]


@pytest.mark.parametrize(("build", "end"), ENDS)
def test_host_memory_lives_until_pending_launches_are_complete(simulated, watched, build, end):
    x, graph = simulated.buffer(7, 8), simulated.graph()
    build(graph, x, watched.numbers())
    run = graph.instantiate(fuse=False)
    run.launch()
    end(run)
    kept = run if end in (_updated, _made_anew) else None
    del graph, run
    gc.collect()
    simulated.device.reaper.drain()
    assert watched.left() == 1
    simulated.device.synchronize()
    simulated.device.synchronize()  # what the first one gave back was perhaps a graph
    assert watched.left() == (kept is not None)  # which has the graph that it was made of


def test_a_second_change_keeps_what_the_first_one_put_there(simulated, watched):
    x, graph = simulated.buffer(7, 8), simulated.graph()
    graph.add_memcpy(watched.numbers(), x, name="copy")
    with graph.instantiate(fuse=False) as run:
        del graph
        for _ in range(3):
            run.update("copy", watched.numbers(), x)
            run.launch()
        assert watched.left() == 4
        simulated.device.synchronize()
        assert watched.pages[:5].tolist() == [[0, 0], [7, 8], [7, 8], [7, 8], [0, 0]]
        assert watched.left() == 2  # the last one, and that of the graph itself


def test_pending_work_keeps_its_executable_and_the_drivers_graph(simulated):
    """What a driver does with an executable that is destroyed under its launch is its own affair: none is."""
    x = simulated.buffer(7)
    graph = simulated.graph()
    graph.add_kernel(simulated.adder(x, 1))
    run = graph.instantiate(fuse=False)
    run.launch()
    run.destroy()
    assert simulated.driver.graphs.left_open() == {"graphs": 1, "graph execs": 1}
    simulated.device.synchronize()
    assert simulated.driver.graphs.left_open() == {}


def test_a_launch_that_failed_forgets_no_launch_before_it(simulated, watched):
    """A launch on a second stream fails before it is ordered: that on the first is still known."""
    x, graph = simulated.buffer(7, 8), simulated.graph()
    graph.add_memcpy(watched.numbers(), x)
    first, second = simulated.device.create_stream(), simulated.device.create_stream()
    run = graph.instantiate(fuse=False)
    run.launch(first)
    for _ in range(2):
        simulated.driver.failures["stream_wait"] = DeviceError("on purpose")
        with pytest.raises(DeviceError, match="on purpose"):
            run.launch(second)
    second.synchronize()
    run.destroy()
    del graph, run
    assert watched.left() == 1
    simulated.device.synchronize()
    first.destroy()
    second.destroy()


# events and semaphores


def _record(graph, event):
    graph.add_event_record(event, name="node")


def _wait(graph, event):
    graph.add_event_wait(event, name="node")


def _in_a_child(graph, event):
    inner = type(graph)(graph.device)
    inner.add_event_record(event)
    graph.add_child(inner, name="node")


@pytest.mark.parametrize("add", [_record, _wait, _in_a_child])
def test_a_launch_refuses_an_event_that_was_destroyed(on, add):
    """By name, before the driver is asked: its handle may be that of another event by then."""
    event = on.device.create_event()
    graph = on.graph()
    add(graph, event)
    with graph.instantiate(fuse=False) as run:
        run.launch()
        event.destroy()
        other = on.device.create_event()
        with pytest.raises(EventError, match=r"'node' .* event that was destroyed"):
            run.launch()
        with pytest.raises(EventError, match="was destroyed"):
            graph.instantiate(fuse=False)
        on.device.synchronize()
        assert not other.recorded
        if add is not _in_a_child:
            run.update("node", other)
            run.launch()
            assert other.recorded is (add is _record)
        other.destroy()


@pytest.mark.parametrize("end", ["destroyed", "dropped"])
@pytest.mark.parametrize("add", [_record, _wait, _in_a_child])
def test_an_events_handle_lives_until_the_graph_and_its_launches_are_gone(simulated, add, end):
    event = simulated.device.create_event()
    event.record()
    graph = simulated.graph()
    add(graph, event)
    run = graph.instantiate(fuse=False)
    run.launch()
    handle = event.handle
    if end == "destroyed":
        event.destroy()
    del event, graph
    gc.collect()
    simulated.device.reaper.trim()
    simulated.driver.event_of(handle)
    run.destroy()
    del run
    simulated.device.reaper.trim()
    simulated.driver.event_of(handle)  # the launch is pending
    simulated.device.synchronize()
    gc.collect()
    simulated.device.synchronize()
    simulated.device.reaper.trim()
    with pytest.raises(DeviceError, match="destroyed"):
        simulated.driver.event_of(handle)


def test_a_captured_launch_refuses_an_event_that_was_destroyed(on):
    event = on.device.create_event()
    graph = on.graph()
    graph.add_event_record(event, name="node")
    with graph.instantiate(fuse=False) as run:
        event.destroy()
        with pytest.raises(EventError, match="was destroyed"), capture(device=on.device):
            run.launch()


def test_a_semaphore_that_was_destroyed_is_refused_and_stays_with_pending_launches(simulated):
    semaphore = Semaphore.from_fd(0, device=simulated.device)
    graph = simulated.graph()
    graph.add_semaphore_signal((semaphore, 1), name="node")
    run = graph.instantiate(fuse=False)
    run.launch()
    semaphore.destroy()
    assert simulated.driver.graphs.left_open()["semaphores"] == 1
    with pytest.raises(GraphError, match=r"'node' .* semaphore that was destroyed"):
        run.launch()
    run.destroy()
    assert simulated.driver.graphs.left_open()["semaphores"] == 1
    simulated.device.synchronize()
    assert simulated.driver.graphs.left_open() == {}


# several threads, and any order


def test_an_end_between_the_looks_of_a_change_is_named(on, monkeypatch):
    """Another thread destroys the graph after a change found it usable, and before it looks for its node."""
    x = on.buffer(0)
    graph = on.graph()
    graph.add_kernel(on.adder(x, 1), name="add")
    run = graph.instantiate()
    other, usable = threading.Thread(target=run.destroy), LiveGraph.check

    def check(live):
        found = usable(live)
        if not other.ident:
            other.start()
            other.join(0.1)
        return found

    monkeypatch.setattr(LiveGraph, "check", check)
    why = "destroyed"  # also where the change is the first
    try:
        run.update("add", on.adder(x, 2))
    except GraphError as error:
        why = str(error)
    other.join()
    assert run.destroyed
    assert "destroyed" in why


def test_threads_launch_change_and_destroy_one_executable(on, quick_switches):
    """Each launch runs as a whole, or is refused since the graph was destroyed."""
    x = on.buffer(0)
    for _ in range(5):
        graph = on.graph()
        graph.add_kernel(on.adder(x, 1), name="add")
        run = graph.instantiate(fuse=False)
        done, unexpected = [], []

        def work(run=run, done=done, unexpected=unexpected):
            try:
                for _ in range(20):
                    run.launch()
                    done.append(None)
                    run.update("add", on.adder(x, 1))
            except GraphError as error:
                if "destroyed" not in str(error):
                    unexpected.append(error)
            except BaseException as error:  # noqa: BLE001 - shown below, on the test's own thread
                unexpected.append(error)

        before = on.numbers(x)[0]
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not done and any(thread.is_alive() for thread in threads):
            threads[0].join(0.001)
        run.destroy()
        for thread in threads:
            thread.join()
        assert unexpected == []
        assert on.numbers(x) == [before + len(done)]


class Program:
    """Graphs are made, launched, changed and ended in any way, while the device does what it likes."""

    def __init__(self, simulated, watched, seed):
        self.simulated, self.watched, self.random = simulated, watched, Random(seed)
        self.device = simulated.device
        self.memory = [simulated.buffer(0, 0) for _ in range(40)]  # each graph has some for itself
        self.streams = [None, self.device.create_stream(), self.device.create_stream()]
        self.runs, self.events = [], []

    def step(self):
        steps = self._make, self._launch, self._launch, self._change, self._end, self._run_some, self._event
        self.random.choice(steps)()

    def _make(self):
        graph, x = self.simulated.graph(), self.memory.pop()
        for _ in range(self.random.randrange(1, 5)):
            self._add(graph, x)
        if self.random.random() < 0.3:
            outer = self.simulated.graph()
            outer.add_child(graph)
            self._add(outer, x)
            graph = outer
        self.runs.append((graph.instantiate(fuse=False), x))

    def _add(self, graph, x):
        kind = self.random.randrange(6)
        if kind == 0:
            graph.add_memcpy(self.watched.numbers(), x)
        elif kind == 1:
            graph.add_memcpy(x, self.watched.numbers())
        elif kind == 2:
            graph.add_kernel(self.simulated.adder(x, 1))
        elif kind == 3 and self.events:
            graph.add_event_record(self.random.choice(self.events))
        elif kind == 4 and self.events:
            graph.add_event_wait(self.random.choice(self.events))
        else:
            graph.add_host(self.watched.numbers().sum)

    def _launch(self):
        if self.runs:
            with contextlib.suppress(EventError):  # one that this program has destroyed
                self.random.choice(self.runs)[0].launch(self.random.choice(self.streams))

    def _change(self):
        if not self.runs:
            return
        run, x = self.random.choice(self.runs)
        for node in run.nodes:
            other = self.watched.numbers()
            if node.kind == "memcpy":
                run.update(node.name, *((x, other) if node.direction == "in" else (other, x)))
            elif node.kind == "host":
                run.update(node.name, other.sum)

    def _end(self):
        if self.runs:
            run, _ = self.runs.pop(self.random.randrange(len(self.runs)))
            if self.random.random() < 0.6:
                run.destroy()
            del run
            self.device.reaper.drain()

    def _event(self):
        if self.events and self.random.random() < 0.5:
            self.events.pop(self.random.randrange(len(self.events))).destroy()
        else:
            self.events.append(self.device.create_event())

    def _run_some(self):
        simulation = self.simulated.driver.simulation
        while (ready := simulation.ready()) and self.random.random() < 0.8:
            simulation.step(self.random.choice(ready))

    def close(self):
        for owned in (*(run for run, _ in self.runs), *self.events, *self.streams[1:]):
            owned.destroy()
        self.runs.clear()
        self.events.clear()
        for _ in range(2):
            self.device.synchronize()
            gc.collect()


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_free_nothing_too_early_and_all_in_the_end(simulated, watched, seed):
    program = Program(simulated, watched, seed)
    for _ in range(80):
        program.step()
    program.close()
    assert watched.left() == 0
    assert len(simulated.device.deferred) == 0
    assert simulated.driver.graphs.left_open() == {}
