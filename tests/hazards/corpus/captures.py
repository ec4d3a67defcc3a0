"""Captured graphs and replays: forks inside, other work outside."""

from __future__ import annotations

import numpy as np

import quadpy as qp

from .kernels import add, copy, ones, part, ramp
from .program import clean, racy


@racy("write after read")
def two_branches(s1, x, y, ready, done):
    """The fork comes back, but its two branches touch one array."""
    with qp.graph.capture() as graph:
        ones(y)
        ready.record()
        ready.wait(s1)
        copy(x, y, stream=s1)  # first
        # fixed by: done.record(s1); done.wait()
        ramp(x)  # second
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@racy("read after write")
def forked_too_early(s1, x, y, ready, done):
    with qp.graph.capture() as graph:
        # fixed to: ramp(x)
        ready.record()
        # fixed to: ready.record()
        ramp(x)  # first
        ready.wait(s1)
        copy(x, y, stream=s1)  # second
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@racy("read after write")
def joined_too_late(s1, x, y, z, ready, done):
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        ramp(x, stream=s1)  # first
        # fixed by: done.record(s1); done.wait()
        copy(x, y)  # second
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@racy("write after write")
def branches_of_a_capture_that_overlap(s1, x, ready, done):
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        part(x, 0, 40, stream=s1)  # first
        # fixed to: part(x, 40, 64)
        part(x, 32, 64)  # second
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@racy("write after write")
def a_fill_in_a_branch(s1, x, ready, done):
    """A fill comes after what uses the array, and what follows it on another branch does not come after it."""
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        x.fill(0.0)  # first
        # fixed to: ramp(x)
        ramp(x, stream=s1)  # second
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@racy("read after write")
def captured_and_read_elsewhere(s1, s2, x, y, z, ready):
    with qp.graph.capture() as graph:
        ramp(x)
        ones(y)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(y, z, stream=s2)  # second


@racy("write after read")
def a_captured_graph_on_two_streams(s1, s2, x, y, z, ready):
    """Two graphs of the same calls: nothing orders one after the other."""
    with qp.graph.capture() as one:
        copy(x, y)
    with qp.graph.capture() as two:
        ramp(x)
    first, second = one.instantiate(), two.instantiate()
    first.launch(s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    second.launch(s2)  # second


@racy("read after write")
def a_replay_and_a_reader(s1, s2, x, y, z, ready):
    @qp.graph.replay
    def step(x):
        ramp(x)
        ones(y)

    with qp.use_stream(s1):
        step(x)
    s1.synchronize()
    with qp.use_stream(s1):
        step(x)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(x, z, stream=s2)  # second


@racy("write after read")
def a_replay_that_forks(s1, x, y, ready, done):
    @qp.graph.replay
    def step(x, y):
        ready.record()
        ready.wait(s1)
        copy(x, y, stream=s1)  # first
        # fixed by: done.record(s1); done.wait()
        ramp(x)  # second
        done.record(s1)
        done.wait()

    step(x, y)


@racy("write after read")
def replays_on_two_streams(s1, s2, x, y, z, ready):
    """Each thread and argument has its graph; a function is not ordered with itself on another stream."""

    @qp.graph.replay
    def produce(x):
        ramp(x)

    @qp.graph.replay
    def consume(x, y):
        copy(x, y)

    with qp.use_stream(s1):
        consume(x, y)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    with qp.use_stream(s2):
        produce(x)  # second


@racy("read after write")
def captured_values_of_the_host(s1, x, y):
    """The host's array of a captured kernel is read at each launch."""
    result = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_memcpy(result, x)
    with qp.graph.capture() as outer:
        graph.instantiate().launch()
    run = outer.instantiate()
    run.launch(s1)  # first
    # fixed by: s1.synchronize()
    y.from_numpy(result)  # second


@clean
def a_captured_step(x, y):
    with qp.graph.capture() as graph:
        ramp(x)
        copy(x, y)
        x.fill(0.0)
    with graph.instantiate() as run:
        run.launch()
        run.launch()


@clean
def a_fork_that_joins(s1, x, y, z, ready, done):
    with qp.graph.capture() as graph:
        ramp(x)
        ready.record()
        ready.wait(s1)
        copy(x, y, stream=s1)
        copy(x, z)
        done.record(s1)
        done.wait()
        add(y, z, x)
    with graph.instantiate() as run:
        run.launch()
        run.launch()


@clean
def a_fill_comes_after_the_branches(s1, x, y, ready, done):
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        ramp(x, stream=s1)
        copy(y, x, stream=s1)
        x.fill(0.0)
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@clean
def halves_in_branches(s1, x, ready, done):
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        part(x, 0, 32, stream=s1)
        part(x, 32, 64)
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@clean
def arrays_of_the_graph(x, y):
    with qp.graph.capture() as graph:
        own = qp.ndarray(qp.f32, 64)
        ramp(own)
        copy(own, x)
    with graph.instantiate() as run:
        run.launch()
        copy(x, y)


@clean
def an_array_that_is_made_in_a_fork(s1, x, ready, done):
    """Its zeros come before its first use, on whatever stream."""
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        own = qp.ndarray(qp.f32, 64, stream=s1)
        ramp(own)
        copy(own, x)
        done.record(s1)
        done.wait()
    graph.instantiate().launch()


@clean
def the_events_of_a_capture_again(s1, s2, x, y, z, ready, done):
    """An event of the capture is an ordinary one after it."""
    with qp.graph.capture() as graph:
        ready.record()
        ready.wait(s1)
        ramp(x, stream=s1)
        done.record(s1)
        done.wait()
    graph.instantiate().launch(s1)
    ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def a_host_function_of_a_capture(s1, x, y):
    with qp.graph.capture(s1) as graph:
        ramp(x, stream=s1)
        qp.graph.host_function(str, stream=s1)
        copy(x, y, stream=s1)
    graph.instantiate().launch(s1)
    qp.graph.host_function(str, stream=s1)
    ramp(x, stream=s1)


@clean
def a_capture_runs_nothing(s1, s2, x, y):
    with qp.graph.capture() as graph:
        ramp(x)
    ones(x, stream=s1)
    assert len(graph) == 1


@clean
def replays_one_after_another(x, y):
    @qp.graph.replay
    def step(x, y):
        ramp(x)
        copy(x, y)

    for _ in range(3):
        step(x, y)
    step(y, x)


@clean
def replays_between_other_work(s1, s2, x, y, z, ready, done):
    @qp.graph.replay
    def step(x, y):
        copy(x, y)

    for _ in range(3):
        ramp(x, stream=s1)
        with qp.use_stream(s1):
            step(x, y)
        ready.record(s1)
        ready.wait(s2)
        copy(y, z, stream=s2)
        done.record(s2)
        done.wait(s1)


@clean
def a_replay_follows_other_streams(s1, s2, x, y, ready):
    """The launches of one graph are ordered among each other, on whatever stream."""

    @qp.graph.replay
    def step(x):
        ramp(x)

    with qp.use_stream(s1):
        step(x)
    ready.record(s1)
    ready.wait(s2)
    with qp.use_stream(s2):
        step(x)


@clean
def a_replay_that_joins(s1, x, y, z, ready, done):
    @qp.graph.replay
    def step(x, y, z):
        ready.record()
        ready.wait(s1)
        copy(x, y, stream=s1)
        copy(x, z)
        done.record(s1)
        done.wait()
        ramp(x)

    step(x, y, z)
    step(x, z, y)
