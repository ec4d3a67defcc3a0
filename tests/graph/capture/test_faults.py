"""Faults while a graph is captured, made, changed or launched: nothing leaks or hangs, and the stream works."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import quadpy as qp
from quadpy.errors import DriverError, KernelTypeError, OutOfDeviceMemory

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
HUGE = 1 << 44


def numbers(x):
    return x.to_numpy().tolist()


def memory_in_use(here):
    for _ in range(2):  # what the first round gives back may be a graph, which held arrays
        gc.collect()
        here.device.synchronize()
    return here.device.memory_stats().used


@pytest.fixture
def faulty(here):
    """``here``; after the test, its stream and captures work, and no memory has leaked."""
    x = here.array(1)
    before = memory_in_use(here)
    yield here
    here.add(1, x)
    with qp.graph.capture() as g:
        here.twice(1, x)
    with g.instantiate(fuse=False) as run:
        run.launch()
    assert numbers(x) == [6]
    del g, run
    assert memory_in_use(here) == before
    assert len(here.device.deferred) == 0
    if here.is_simulated:
        assert here.driver.graphs.left_open() == {}


def failing(monkeypatch, here, verb, at=1, error=None):
    """Let the driver refuse the ``at``-th call of ``verb``; returns a counter of the calls."""
    real, calls = getattr(here.driver.graphs, verb), []

    def call(*arguments, **options):
        calls.append(verb)
        if len(calls) == at:
            raise error or DriverError(f"{verb} failed: on purpose")
        return real(*arguments, **options)

    monkeypatch.setattr(here.driver.graphs, verb, call)
    return calls


def captured(here, x, y):
    """With ``fuse=False`` the driver makes a graph; otherwise quadpy may fuse it."""
    with qp.graph.capture() as g:
        here.add(1, x)
        here.twice(2, y)
        here.mix(3, x, y)
    return g


# instantiate, launch, update


@pytest.mark.parametrize(
    ("verb", "at"), [("graph_create", 1), ("add", 1), ("add", 2), ("add", 4), ("instantiate", 1), ("launch", 1)]
)
def test_the_driver_refuses_to_make_or_to_launch_it(faulty, monkeypatch, verb, at):
    """What was made so far is destroyed, and the next attempt starts anew."""
    if faulty.is_cpu:
        return
    x, y = faulty.array(1), faulty.array(1)
    graph = captured(faulty, x, y)
    calls = failing(monkeypatch, faulty, verb, at)
    with pytest.raises(DriverError, match="on purpose"), graph.instantiate(fuse=False) as run:
        run.launch()
    assert len(calls) == at
    assert (numbers(x), numbers(y)) == ([1], [1])
    with graph.instantiate(fuse=False) as run:
        run.launch()
        assert (numbers(x), numbers(y)) == ([2], [3 * 6 + 2 + 3])


def test_the_driver_has_no_memory_for_it(faulty, monkeypatch):
    if faulty.is_cpu:
        return
    x, y = faulty.array(1), faulty.array(1)
    graph = captured(faulty, x, y)
    failing(monkeypatch, faulty, "instantiate", error=OutOfDeviceMemory("instantiate failed: out of memory"))
    with pytest.raises(OutOfDeviceMemory):
        graph.instantiate(fuse=False)
    with graph.instantiate(fuse=False) as run:
        run.launch()
        assert numbers(x) == [2]


def test_an_update_that_is_refused_makes_it_anew(faulty, monkeypatch):
    """Also while launches are pending, which keep their arguments."""
    if faulty.is_cpu:
        return
    x, y = faulty.array(1), faulty.array(1)
    with captured(faulty, x, y).instantiate(fuse=False) as run:
        run.launch()
        monkeypatch.setattr(faulty.driver.graphs, "update", lambda *_: False)
        run.update("add", faulty.add, 10, x)
        run.launch()
        assert (run.stats().rebuilds, numbers(x)) == (1, [12])


@pytest.mark.parametrize("at", [1, 2])
def test_an_update_that_fails_half_way_leaves_it_as_it_was(faulty, monkeypatch, at):
    """A kernel of two tasks is two nodes of the driver; the first is changed back."""
    if faulty.is_cpu:
        return
    x, y = faulty.array(1), faulty.array(1)
    with captured(faulty, x, y).instantiate(fuse=False) as run:
        failing(monkeypatch, faulty, "update", at)
        with pytest.raises(DriverError, match="on purpose"):
            run.update("twice", faulty.twice, 100, y)
        run.launch()
        assert (numbers(x), numbers(y)) == ([2], [3 * 6 + 2 + 3])
        run.update("twice", faulty.twice, 0, x)
        run.launch()
        assert (numbers(x), numbers(y)) == ([2 * (2 + 1)], [3 * 23 + 6 + 3])


def test_an_update_whose_new_graph_cannot_be_made_leaves_it_as_it_was(faulty, monkeypatch):
    if faulty.is_cpu:
        return
    x, y = faulty.array(1), faulty.array(1)
    with captured(faulty, x, y).instantiate(fuse=False) as run:
        monkeypatch.setattr(faulty.driver.graphs, "update", lambda *_: False)
        failing(monkeypatch, faulty, "instantiate")
        with pytest.raises(DriverError, match="on purpose"):
            run.update("add", faulty.add, 10, x)
        run.launch()
        assert (run.stats().rebuilds, numbers(x)) == (0, [2])


# other threads


def test_nothing_that_another_thread_does_invalidates_a_capture(faulty):
    """Each of these would end a capture by the driver, on any thread."""
    x, y = faulty.array(1), faulty.array(5)
    fork, done = qp.create_event(), []

    def disturb():
        qp.sync()
        faulty.device.synchronize()
        numbers(y)
        faulty.add(1, y)
        y.fill(7)
        made = faulty.array(1, 2, 3)
        qp.sync()
        with qp.create_stream() as stream:
            faulty.add(1, made, stream=stream)
            stream.synchronize()
            stream.query()
        fork.record()
        fork.synchronize()
        with pytest.raises(ValueError, match="invalid"), qp.graph.capture():
            int("no number")
        with qp.graph.capture() as other:
            faulty.add(1, made)
        with other.instantiate(fuse=False) as run:
            run.launch()
        qp.graph.trim()
        gc.collect()
        done.append(True)

    with qp.graph.capture() as g:
        for _ in range(2):
            faulty.add(1, x)
            thread = threading.Thread(target=disturb)
            thread.start()
            thread.join()
    assert done == [True, True]
    with g.instantiate(fuse=False) as run:
        run.launch()
    assert (len(g), numbers(x), numbers(y)) == (2, [3], [7])


# memory


def test_memory_that_is_not_there(faulty):
    """The capture fails if the exception leaves it, and continues if the exception is caught."""
    if faulty.is_cpu:
        return
    x = faulty.array(1)
    with pytest.raises(OutOfDeviceMemory), qp.graph.capture() as g:  # noqa: PT012 - a capture is a block
        small = qp.ndarray(qp.i32, 1000)
        faulty.add(1, small)
        qp.ndarray(qp.i32, HUGE)
    assert (len(g), numbers(x)) == (0, [1])
    with qp.graph.capture() as g:
        faulty.add(1, x)
        with pytest.raises(OutOfDeviceMemory):
            qp.ndarray(qp.i32, HUGE)
        faulty.add(1, x)
    with g.instantiate(fuse=False) as run:
        run.launch()
    assert (len(g), numbers(x)) == (2, [3])


def test_memory_that_is_not_there_in_a_replay(faulty):
    if faulty.is_cpu:
        return

    @qp.graph.replay
    def step(x, size):
        faulty.add(1, x)
        faulty.add(1, qp.ndarray(qp.i32, size))

    x = faulty.array(1)
    step(x, 8)
    with pytest.raises(OutOfDeviceMemory):
        step(x, HUGE)
    before = numbers(x)
    step(x, 8)
    assert (numbers(x), step.state) == ([before[0] + 1], "captured")
    step.clear()


# kernels that compile first


def test_a_kernel_that_cannot_be_compiled(faulty):
    @qp.kernel
    def wrong(x: I32):
        for i in x:
            x[i] = x.nothing

    x = faulty.array(1)
    with pytest.raises((KernelTypeError, qp.QuadpyError)), qp.graph.capture() as g:  # noqa: PT012 - a capture is a block
        faulty.add(1, x)
        wrong(x)
    assert (len(g), numbers(x)) == (0, [1])


def test_a_kernel_with_memory_of_its_own_that_first_compiles_inside(faulty):
    """A sum allocates scratch memory and loads its code during the capture."""
    if faulty.is_simulated:
        return

    @qp.kernel
    def total(x: I32, y: I32):
        found = 0
        for i in x:
            found += x[i]
        y[0] = found

    x, y = faulty.array(1, 2, 3), faulty.array(0)
    with qp.graph.capture() as g:
        total(x, y)
        faulty.add(1, x)
    with g.instantiate(fuse=False) as run:
        run.launch()
        assert numbers(y) == [6]
        run.launch()
        assert numbers(y) == [9]
    total(x, y)
    assert numbers(y) == [12]


# garbage


def test_garbage_of_every_kind_inside(faulty):
    """Cycles die at any moment of a capture: the collector runs at each Python allocation."""

    class Ring:
        def __init__(self, *things):
            self.things, self.me = things, self

    x, seen = faulty.array(1), []
    before = gc.get_threshold()
    with qp.graph.capture() as g:
        gc.set_threshold(1, 1, 1)
        try:
            for k in range(4):
                inner = qp.graph.Graph(faulty.device)
                inner.add_memset(x, 0)
                ring = Ring(faulty.array(k), qp.create_event(), qp.create_stream(), inner, inner.instantiate())
                seen.append(weakref.ref(ring))
                del ring, inner
                faulty.add(1, x)
                gc.collect()
        finally:
            gc.set_threshold(*before)
    assert [ring() for ring in seen] == [None] * 4
    with g.instantiate(fuse=False) as run:
        run.launch()
    assert numbers(x) == [5]


def test_a_graph_kernel_keeps_the_graph_of_a_pending_call(here, monkeypatch):
    """The driver refuses the new arguments while the launch of the call before is pending."""
    if not here.is_simulated:
        return
    x, y, z, w = (here.array(1) for _ in range(4))
    graphs = here.driver.graphs
    here.branch(1, x, y)
    monkeypatch.setattr(graphs, "update", lambda *_: False)
    here.branch(2, z, w)
    assert graphs.left_open() == {"graphs": 2, "graph execs": 2}
    here.device.synchronize()
    assert graphs.left_open() == {"graphs": 1, "graph execs": 1}
    assert (numbers(x), numbers(y), numbers(z), numbers(w)) == ([2], [4], [3], [5])
