"""Ctrl-C at every point of captures, replays and graphs: the thread no longer captures, and later calls work.

``--interrupts=0`` tries every place, not a sample.
"""

from __future__ import annotations

import contextlib
import gc
import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.launch.capturing import CAPTURES, thread_captures

from ...support.interrupts import interrupt, places_of, sample  # noqa: TID252
from .conftest import add, array, current, mix

N = 4


def captured(x, y):
    with qp.graph.capture() as g:
        add(1, x)
        x.fill(2)
        y.copy_from(x)
    with g.instantiate(fuse=False) as run:
        run.launch()


def forked(x, y):
    with qp.create_stream() as side, qp.create_event() as fork, qp.create_event() as join:
        with qp.graph.capture() as g:
            z = qp.ndarray(qp.i32, N)
            fork.record()
            fork.wait(side)
            mix(1, x, z, stream=side)
            join.record(side)
            add(1, y)
            join.wait()
            mix(2, z, y)
        with g.instantiate(fuse=False) as run:
            run.launch(side)
            run.launch()


def with_the_host(x, y):
    host = np.ones(N, np.int32)
    with qp.graph.capture() as g:
        mix(1, x, host)
        qp.graph.host_function(host.sum)
    with g.instantiate(fuse=False) as run:
        run.launch()
        run.synchronize()


def refused(x, y):
    with contextlib.suppress(qp.CaptureError), qp.graph.capture():
        add(1, x)
        qp.sync()


def replayed(x, y):
    @qp.graph.replay(fuse=False)
    def step(v, x, y):
        mix(v, x, y)
        x.fill(v)

    for v in (1, 1, 2):
        step(v, x, y)
    step(2, y, x)


def explicit(x, y):
    inner, event = qp.graph.Graph(), qp.create_event()
    inner.add_memset(x, 1)
    inner.add_event_record(event)
    graph = qp.graph.Graph()
    graph.add_child(inner)
    graph.add_kernel(add, 1, y, name="add")
    with graph.instantiate(fuse=False) as run:
        run.launch()
        run.enable("add", False)
        run.launch()
        run.enable("add")
        run.update("add", 2, x)
        run.launch()
    event.destroy()


def with_memory(x, y):
    graph = qp.graph.Graph()
    memory = graph.add_alloc(64)
    graph.add_memset(memory, 1)
    graph.add_memcpy(x, memory, nbytes=4 * N)
    graph.add_free(memory)
    with graph.instantiate(auto_free_on_launch=True) as run:
        run.launch()
        run.launch()


PARTS = re.compile("/graph/|/capturing|/deferred_release|/resource_stack|/event|/graph_")
"""Where Ctrl-C is tried; the rest has tests of its own, and no signal reaches the threads on which drivers call."""

PROGRAMS = [captured, forked, with_the_host, refused, replayed, explicit, with_memory]


@contextlib.contextmanager
def prepared(program, name):
    """The device ``name`` with two arrays, after a run of ``program``; at the end nothing is left open."""
    with current(name) as device:
        x, y = array(*range(N)), array(*range(N))
        program(x, y)
        gc.collect()
        qp.sync()
        yield device, x, y
        del x, y
        gc.collect()


def check(device, program, x, y):
    assert (CAPTURES.count, device.life.captures, device.life.direct) == (0, 0, CAPTURES.observer is None)
    assert (thread_captures().sessions, thread_captures().streams) == ([], {})
    assert device.default_stream.timeline.captured is None
    assert device.current_stream() is device.default_stream
    program(x, y)
    x.fill(1)
    y.fill(1)
    mix(1, x, y)
    assert y.to_numpy().tolist() == [5] * N
    with qp.graph.capture() as g:
        mix(1, x, y)
    with g.instantiate(fuse=False) as run:
        run.launch()
    assert y.to_numpy().tolist() == [17] * N


@pytest.mark.parametrize("name", ["cpu", "recording"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_ctrl_c_at_every_place(program, name, request):
    with prepared(program, name) as (_, x, y):
        places = [place for place in places_of(lambda: program(x, y)) if PARTS.search(place.code.co_filename)]
    count = request.config.getoption("--interrupts")
    gc.collect()
    gc.freeze()  # the collections below look at what the programs leave
    try:
        broken = [broken_by(program, name, place) for place in sample(places, count, 0)]
    finally:
        gc.unfreeze()
    assert not any(broken), "\n".join(filter(None, broken))


def broken_by(program, name, place):
    """What is wrong after Ctrl-C at ``place``, in one line; None if nothing is."""
    try:
        with prepared(program, name) as (device, x, y):
            interrupt(lambda: program(x, y), place)
            gc.collect()
            qp.sync()  # what the program would have ordered may be pending
            check(device, program, x, y)
    except Exception as error:  # noqa: BLE001 - it fails the test with all others
        return f"{place}: {type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def calls_that_go_on(x, y, side, fork, join, done):
    """Work in a capture that catches Ctrl-C for each call; ``done`` collects the calls that raised nothing."""

    def fork_and_join():
        fork.record()
        fork.wait(side)
        mix(1, x, y, stream=side)
        join.record(side)
        join.wait()

    calls = [lambda: add(1, x), lambda: x.fill(3), fork_and_join, lambda: mix(2, y, x)]
    with qp.graph.capture() as g:
        for number, call in enumerate(calls):
            with contextlib.suppress(KeyboardInterrupt):
                call()
                done.append(number)
    return g


def as_numbers(done):
    """The elements of x and y after ``calls_that_go_on``, starting from 0 and 1."""
    x, y = 0, 1
    for number in done:
        if number == 0:
            x += 1
        elif number == 1:
            x = 3
        elif number == 2:
            y = 3 * y + x + 1
        else:
            x = 3 * x + y + 2
    return x, y


def test_a_program_that_catches_ctrl_c_in_a_capture_loses_nothing_without_a_word(request):
    """The graph has the calls that raised nothing and perhaps the one that did, or there is no graph."""
    with current("cpu") as device:
        x, y = array(0), array(1)
        with qp.create_stream() as side, qp.create_event() as fork, qp.create_event() as join:
            places = places_of(lambda: calls_that_go_on(x, y, side, fork, join, []))
            places = [place for place in places if PARTS.search(place.code.co_filename)]
            for place in sample(places, 4 * request.config.getoption("--interrupts"), 1):
                x.fill(0)
                y.fill(1)
                done, made = [], []
                with contextlib.suppress(qp.CaptureError):
                    interrupt(lambda d=done, m=made: m.append(calls_that_go_on(x, y, side, fork, join, d)), place)
                gc.collect(0)
                assert (CAPTURES.count, device.life.direct) == (0, CAPTURES.observer is None), place
                if made:
                    with made[0].instantiate() as run:
                        run.launch()
                    possible = [as_numbers(done), *(as_numbers(sorted({*done, k})) for k in range(4))]
                    assert (x[0], y[0]) in possible, f"{place}: {done}"
