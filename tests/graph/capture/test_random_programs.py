"""Random programs on several streams, run eagerly, captured, replayed and by hand: the same bytes as a sequential oracle."""

from __future__ import annotations

import contextlib
import os

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

import quadpy as qp

ARRAYS, STREAMS, SIZE = 4, 3, 5

array = st.integers(0, ARRAYS)  # the last one is made inside the program
stream = st.integers(0, STREAMS - 1)
value = st.integers(-9, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), stream, array, array, value),
        st.tuples(st.just("twice"), stream, array, array, value),
        st.tuples(st.just("mix"), stream, array, array, value),
        st.tuples(st.just("fill"), stream, array, array, value),
        st.tuples(st.just("copy"), stream, array, array, value),
        st.tuples(st.just("put"), stream, array, array, value),
    ),
    max_size=14,
)
EXAMPLES = 3 if "ROCJITSU_RUNTIME_DIR" in os.environ else 25  # an emulator is slow at it
few = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])


def start():
    return [np.arange(SIZE, dtype=np.int32) + 10 * k for k in range(ARRAYS)]


def put_values(v):
    return np.arange(SIZE, dtype=np.int32) * v


def oracle(program, runs=1, memory=None):
    memory = start() if memory is None else memory
    for _ in range(runs):
        inner = [*memory, np.zeros(SIZE, np.int32)]
        for kind, _, a, b, v in program:
            x, y = inner[a], inner[b]
            if kind == "add":
                x += v
            elif kind == "twice":
                x[:] = (x + v) * 2
            elif kind == "mix":
                y[:] = 3 * y + x + v if a != b else 4 * y + v
            elif kind == "fill":
                x[:] = v
            elif kind == "copy":
                y[:] = x
            else:
                x[:] = put_values(v)
    return [numbers.tobytes() for numbers in memory]


class Runner:
    """The calls of a program, with an event wherever a kernel needs work of another stream."""

    def __init__(self, here, stack):
        self.here = here
        self.side = [stack.enter_context(qp.create_stream()) for _ in range(STREAMS - 1)]

    def run(self, program, *arrays):
        device = self.here.device
        streams = [device.current_stream(), *self.side]
        for stream in streams[1:]:
            self.order(streams[0], stream)
        memory = [*arrays, qp.ndarray(qp.i32, SIZE)]
        users = [{0} for _ in memory]
        for kind, on, a, b, v in program:
            touched = {a, b} if kind in ("mix", "copy") else {a}
            if kind in ("add", "twice", "mix"):  # copies and fills come after all work on their memory by themselves
                for other in set().union(*(users[k] for k in touched)) - {on}:
                    self.order(streams[other], streams[on])
            for k in touched:
                users[k] = {*users[k], on} if kind in ("fill", "copy", "put") else {on}
            self.step(kind, streams[on], memory[a], memory[b], v)
        for stream in streams[1:]:
            self.order(stream, streams[0])

    def step(self, kind, on, x, y, v):
        if kind == "add":
            self.here.add(v, x, stream=on)
        elif kind == "twice":
            self.here.twice(v, x, stream=on)
        elif kind == "mix":
            self.here.mix(v, x, y, stream=on)
        elif kind == "fill":
            x.fill(v, stream=on)
        elif kind == "copy":
            y.copy_from(x, stream=on)
        else:
            x.from_numpy(put_values(v), stream=on)

    @staticmethod
    def order(before, after):
        event = qp.create_event()
        event.record(before)
        event.wait(after)


def explicit(here, program, arrays):
    graph = qp.graph.Graph(here.device)
    inner = qp.ndarray(qp.i32, SIZE)
    memory = [*arrays, inner]
    graph.add_memset(inner, 0)
    for kind, _, a, b, v in program:
        x, y = memory[a], memory[b]
        if kind == "copy":
            if a != b:
                graph.add_memcpy(y, x)
        elif kind == "fill":
            graph.add_memset(x, v)
        elif kind == "put":
            held = qp.ndarray(qp.i32, SIZE)
            held.from_numpy(put_values(v))
            graph.add_memcpy(x, held)
        elif kind == "mix":
            graph.add_kernel(here.mix, v, x, y)
        else:
            graph.add_kernel({"add": here.add, "twice": here.twice}[kind], v, x)
    return graph


def arrays_of(here):
    return [here.array(*numbers.tolist()) for numbers in start()]


def contents(here, arrays, seed):
    here.settle(seed)
    return [x.to_numpy().tobytes() for x in arrays]


def few_on_hardware(here, program):
    return program if here.is_cpu or here.is_simulated else program[:6]


@few
@given(program=steps, seed=st.integers(0, 2**32))
def test_eager_captured_and_explicit_give_the_sequential_result(here, program, seed):
    program = few_on_hardware(here, program)
    with contextlib.ExitStack() as stack:
        runner = Runner(here, stack)
        eager, captured, built = (arrays_of(here) for _ in range(3))
        for _ in range(2):
            runner.run(program, *eager)
        with qp.graph.capture() as graph:
            runner.run(program, *captured)
        with graph.instantiate() as run, explicit(here, program, built).instantiate() as other:
            for _ in range(2):
                run.launch()
                other.launch()
            found = [contents(here, arrays, seed) for arrays in (eager, captured, built)]
        assert found == [oracle(program, 2)] * 3
    here.without_races()


@few
@given(program=steps, other=value, seed=st.integers(0, 2**32))
def test_replays_with_changed_arguments_give_the_sequential_result(here, program, other, seed):
    program = few_on_hardware(here, program)
    changed = [(kind, on, a, b, other if kind == "add" else v) for kind, on, a, b, v in program]
    with contextlib.ExitStack() as stack:
        runner = Runner(here, stack)
        one, two = arrays_of(here), arrays_of(here)
        step = qp.graph.replay(runner.run)
        memory = [start(), start()]
        for given_program, arrays, kept in (
            (program, one, memory[0]), (program, one, memory[0]), (changed, one, memory[0]), (changed, two, memory[1]),
            (program, two, memory[1]),
        ):  # fmt: skip
            step(given_program, *arrays)
            oracle(given_program, memory=kept)
        assert contents(here, one, seed) == [numbers.tobytes() for numbers in memory[0]]
        assert contents(here, two, seed) == [numbers.tobytes() for numbers in memory[1]]
        assert step.stats.fallbacks == 0
        step.clear()
    here.without_races()
