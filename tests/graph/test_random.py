"""Random graphs against a sequential oracle: the same bytes, whatever runs first, and no two accesses unordered."""

from __future__ import annotations

import os
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import quadpy as qp

BUFFERS, SIZE = 4, 8

part = st.tuples(st.integers(0, BUFFERS - 1), st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(
    lambda p: (p[0], p[1], min(p[2], SIZE - p[1]))
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("fill"), part, st.integers(-100, 100)),
        st.tuples(st.just("add"), st.integers(0, BUFFERS - 1), st.integers(-9, 9)),
        st.tuples(st.just("copy"), part, part),
        st.tuples(st.just("in"), st.integers(0, BUFFERS - 1), st.integers(-100, 100)),
        st.tuples(st.just("out"), st.integers(0, BUFFERS - 1), st.integers(0, 3)),
        st.tuples(st.just("host"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("empty"), st.just(0), st.just(0)),
    ),
    max_size=12,
)
few = settings(
    max_examples=3 if "ROCJITSU_RUNTIME_DIR" in os.environ else 25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Program:
    """Steps, as nodes of a graph and as plain Python."""

    def __init__(self, on, given_steps):
        self.on, self.steps = on, given_steps
        self.buffers = [on.buffer(*range(8 * k, 8 * k + 8)) for k in range(BUFFERS)]
        self.sources = [np.full(SIZE, step[2] if step[0] == "in" else 0, np.int32) for step in given_steps]
        self.targets = np.zeros((4, SIZE), np.int32)
        self.log = []

    def graph(self, deps=None):
        """With derived dependencies, or those that ``deps`` has for each node."""
        graph = self.on.graph()
        for number, step in enumerate(self.steps):
            self._add(graph, number, step, None if deps is None else deps[number])
        return graph

    def _add(self, graph, number, step, deps):
        kind, what, value = step
        options = {"deps": deps, "name": str(number)}
        if kind == "fill":
            buffer, start, count = what
            at = self.buffers[buffer].pointer + 4 * start
            graph.add_memset(at, value, element=4, nbytes=4 * count, **options)
        elif kind == "add":
            graph.add_kernel(self.on.adder(self.buffers[what], value), **options)
        elif kind == "copy":
            target, source, count = self._ends(what, value)
            graph.add_memcpy(target, source, nbytes=count, **options)
        elif kind == "in":
            graph.add_memcpy(self.buffers[what], self.sources[number], **options)
        elif kind == "out":
            graph.add_memcpy(self.targets[value], self.buffers[what], **options)
        elif kind == "host":
            graph.add_host(self.log.append, what, **options)
        else:
            graph.add_empty(**options)

    def _ends(self, target, source):
        """Two parts of different buffers, as addresses, and how many bytes both have."""
        other = source[0] if source[0] != target[0] else (source[0] + 1) % BUFFERS
        count = 4 * min(target[2], source[2])
        return self.buffers[target[0]].pointer + 4 * target[1], self.buffers[other].pointer + 4 * source[1], count

    def oracle(self, launches):
        memory = np.arange(8 * BUFFERS, dtype=np.int32).reshape(BUFFERS, SIZE)
        targets, log = np.zeros((4, SIZE), np.int32), []
        for _ in range(launches):
            for number, (kind, what, value) in enumerate(self.steps):
                if kind == "fill":
                    memory[what[0], what[1] : what[1] + what[2]] = value
                elif kind == "add":
                    memory[what] += value
                elif kind == "copy":
                    other = value[0] if value[0] != what[0] else (value[0] + 1) % BUFFERS
                    count = min(what[2], value[2])
                    memory[what[0], what[1] : what[1] + count] = memory[other, value[1] : value[1] + count]
                elif kind == "in":
                    memory[what] = self.sources[number]
                elif kind == "out":
                    targets[value] = memory[what]
                elif kind == "host":
                    log.append(what)
        return memory.tolist(), targets.tolist(), log

    def result(self):
        return [self.on.numbers(buffer) for buffer in self.buffers], self.targets.tolist(), self.log


def run_in_any_order(on, seed):
    """Let the simulated device run what is ready, in a random order."""
    random = Random(seed)
    simulation = on.driver.simulation
    while ready := simulation.ready():
        simulation.step(random.choice(ready))


def check(on, given_steps, seed, deps=None, launches=2):
    program = Program(on, given_steps)
    graph = program.graph(deps)
    with graph.instantiate() as run, on.device.create_stream() as stream:
        for number in range(launches):
            run.launch(stream if number % 2 else None)
        if on.is_simulated:
            run_in_any_order(on, seed)
        on.device.synchronize()
        assert program.result() == program.oracle(launches)
    if on.is_simulated:
        on.device.synchronize()
        races = on.driver.races()
        on.driver.simulation.ops.clear()
        assert races == []
    return graph


@few
@given(steps, st.integers(0, 2**32))
def test_derived_dependencies_give_the_sequential_result(on, given_steps, seed):
    if not (on.is_cpu or on.is_simulated):
        given_steps = given_steps[:6]
    graph = check(on, given_steps, seed)
    explicit = [list(node.after) for node in graph]
    check(on, given_steps, seed, deps=explicit)


@few
@given(steps, st.integers(0, 11), st.integers(0, 2**32))
def test_updates_give_what_a_new_graph_gives(on, given_steps, which, seed):
    """Other memory at one node: dependencies are derived again where they must be."""
    fills = [number for number, step in enumerate(given_steps) if step[0] == "fill"]
    if not fills:
        return
    program = Program(on, given_steps)
    changed = fills[which % len(fills)]
    kind, (buffer, start, count), value = given_steps[changed]
    with program.graph().instantiate() as run:
        buffer = (buffer + 1) % BUFFERS
        at = program.buffers[buffer].pointer + 4 * start
        run.update(str(changed), at, value + 1, element=4, nbytes=4 * count)
        program.steps = list(given_steps)
        program.steps[changed] = (kind, (buffer, start, count), value + 1)
        run.launch()
        if on.is_simulated:
            run_in_any_order(on, seed)
        on.device.synchronize()
        assert program.result() == program.oracle(1)
    if on.is_simulated:
        on.device.synchronize()
        races = on.driver.races()
        on.driver.simulation.ops.clear()
        assert races == []


@pytest.mark.parametrize("missing", [0, 1])
def test_an_edge_that_is_missing_is_a_race(simulated, missing):
    """The check above sees what it looks for."""
    x, y = simulated.buffer(1), simulated.buffer(2)
    graph = simulated.graph()
    first = graph.add_memset(x, 5, element=4, deps=[])
    graph.add_memcpy(y, x, deps=[] if missing else [first])
    with qp.hazards.check(collect=True) as found, graph.instantiate() as run:  # without it, a missing edge is an error
        run.launch()
        simulated.device.synchronize()
    assert bool(simulated.driver.races()) is bool(missing) is bool(found.certain)
    simulated.driver.simulation.ops.clear()
