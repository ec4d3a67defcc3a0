"""Random graphs of all kinds of nodes, made in every way: the same bytes as a sequential oracle.

Kernels, graph kernels with sections and with loops, copies, fills, memory that is made inside, host functions and graphs
in graphs, on several streams; eager, captured, built by hand and replayed, and changed between two launches.
``pytest --random-graphs=400`` tries more than the few of each run; a failure shows the smallest program that was found.
"""

from __future__ import annotations

import contextlib
import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import quadpy as qp

ARRAYS, STREAMS, SIZE = 3, 3, 4
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
FEW_NODES = 5
"""The number of steps of a program where they take long."""

array, stream, value = st.integers(0, 5), st.integers(0, STREAMS - 1), st.integers(-9, 9)
KINDS = ("add", "twice", "mix", "branch", "loop", "fill", "copy", "put", "new", "child", "host", "sync")
programs = st.lists(st.tuples(st.sampled_from(KINDS), stream, array, array, value), max_size=12)


@qp.kernel(graph=True)
def loop(v: qp.i32, x: I32, y: I32):
    y[0] = v % 4 + 1
    while qp.graph.do_while(y):
        for i in x:
            x[i] = x[i] * 3 + v
        y[0] -= 1


@pytest.fixture
def every(request, here):
    """Run a property for as many programs as the option says; only a few if the GPU is emulated."""
    wanted = request.config.getoption("--random-graphs")
    options = settings(
        max_examples=min(wanted, 2) if "ROCJITSU_RUNTIME_DIR" in os.environ else wanted,
        suppress_health_check=list(HealthCheck),
    )
    return lambda **strategies: lambda check: options(given(**strategies)(check))()


def starts():
    return [np.arange(SIZE, dtype=np.int32) + 10 * k for k in range(ARRAYS)]


def put_values(v):
    return np.arange(SIZE, dtype=np.int32) * v


def places(program, count=ARRAYS):
    """The steps with arrays from those that exist by then; arrays that must differ do."""
    found = []
    for kind, on, a, b, v in program:
        count += kind == "new"
        a, b = (count - 1, 0) if kind == "new" else (a % count, b % count)
        if a == b and kind in ("branch", "loop", "child", "copy", "mix"):
            b = (a + 1) % count
        found.append((kind, on, a, b, v))
    return found


def touched(kind, a, b):
    if kind in ("host", "sync"):
        return set()
    return {a, b} if kind in ("mix", "branch", "loop", "child", "copy") else {a}


def oracle(program, memory, log):
    """Apply a run to ``memory`` and to the log of each stream."""
    inner = list(memory)
    for kind, on, a, b, v in places(program):
        if kind == "new":
            inner.append(np.zeros(SIZE, np.int32))
        x, y = inner[a], inner[b]
        match kind:
            case "add":
                x += v
            case "twice":
                x[:] = (x + v) * 2
            case "mix":
                y[:] = 3 * y + x + v
            case "branch":
                x += v
                y[:] = 2 * y + x
            case "loop":
                for _ in range(v % 4 + 1):
                    x[:] = x * 3 + v
                y[0] = 0
            case "fill":
                x[:] = v
            case "copy":
                y[:] = x
            case "put":
                x[:] = put_values(v)
            case "child":
                x += 5
                y[:] = (y + 6) * 2
            case "host":
                log[on].append(v)


class Runner:
    """The calls of a program, with an event wherever a kernel needs work of another stream."""

    def __init__(self, here, stack):
        self.here, self.stack = here, stack
        self.log = [[] for _ in range(STREAMS)]
        self.side = [stack.enter_context(qp.create_stream()) for _ in range(STREAMS - 1)]
        self.children = {}

    def has(self, kind):
        """The simulated device has no Python function for code with loops."""
        return kind != "loop" or not self.here.is_simulated

    def child(self, x, y):
        """A graph of two independent nodes, to launch or to add as a node."""
        found = self.children.get((id(x), id(y)))
        if found is None:
            graph = qp.graph.Graph(self.here.device)
            graph.add_kernel(self.here.add, 5, x)
            graph.add_kernel(self.here.twice, 6, y)
            run = self.stack.enter_context(graph.instantiate())
            found = self.children[id(x), id(y)] = graph, run, x, y  # the arrays live as long as their numbers count
        return found

    def run(self, program, *arrays):
        streams = [self.here.device.current_stream(), *self.side]
        for one in streams[1:]:
            self.order(streams[0], one)
        memory = list(arrays)
        users = [{0} for _ in memory]
        for kind, on, a, b, v in places(program):
            if kind == "new":
                with qp.use_stream(streams[on]):
                    memory.append(qp.ndarray(qp.i32, SIZE))
                users.append({on})
                continue
            mine = touched(kind, a, b)
            if kind not in ("fill", "copy", "put"):  # these come after all work on their memory by themselves
                for other in set().union(*(users[k] for k in mine)) - {on}:
                    self.order(streams[other], streams[on])
            for k in mine:
                users[k] = {*users[k], on} if kind in ("fill", "copy", "put") else {on}
            self.step(kind, on, streams, memory[a], memory[b], v)
        for one in streams[1:]:
            self.order(one, streams[0])

    def step(self, kind, on, streams, x, y, v):
        here, at = self.here, streams[on]
        match kind:
            case "add" | "twice":
                getattr(here, kind)(v, x, stream=at)
            case "mix" | "branch":
                getattr(here, kind)(v, x, y, stream=at)
            case "loop":
                loop(v, x, y, stream=at)
            case "fill":
                x.fill(v, stream=at)
            case "copy":
                y.copy_from(x, stream=at)
            case "put":
                x.from_numpy(put_values(v), stream=at)
            case "child":
                self.child(x, y)[1].launch(at)
            case "host":
                qp.graph.host_function(self.log[on].append, v, stream=at)
            case "sync":  # an event that nobody needs
                self.order(streams[(on + 1) % STREAMS], at)

    @staticmethod
    def order(before, after):
        event = qp.create_event()
        event.record(before)
        event.wait(after)

    def explicit(self, program, arrays):
        """The same by hand, with dependencies derived from memory."""
        graph, here = qp.graph.Graph(self.here.device), self.here
        memory = list(arrays)
        for number, (kind, on, a, b, v) in enumerate(places(program)):
            name = f"step {number}"
            if kind == "new":
                memory.append(qp.ndarray(qp.i32, SIZE))
                graph.add_memset(memory[-1], 0, name=name)
                continue
            x, y = memory[a], memory[b]
            match kind:
                case "add" | "twice":
                    graph.add_kernel(getattr(here, kind), v, x, name=name)
                case "mix" | "branch":
                    graph.add_kernel(getattr(here, kind), v, x, y, name=name)
                case "loop":
                    graph.add_kernel(loop, v, x, y, name=name)
                case "fill":
                    graph.add_memset(x, v, name=name)
                case "copy":
                    graph.add_memcpy(y, x, name=name)
                case "put":
                    held = qp.ndarray(qp.i32, SIZE)
                    held.from_numpy(put_values(v))
                    graph.add_memcpy(x, held, name=name)
                case "child":
                    graph.add_child(self.child(x, y)[0], name=name)
                case "host":
                    graph.add_host(self.log[on].append, v, name=name)
                case "sync":
                    graph.add_empty(name=name)
        return graph

    def drain_log(self):
        found = [list(part) for part in self.log]
        for part in self.log:  # nodes refer to them
            part.clear()
        return found


def given_to(here, runner, program):
    program = [step for step in program if runner.has(step[0])]
    return program if here.is_cpu or here.is_simulated else program[:FEW_NODES]


def arrays_of(here):
    return [here.array(*numbers.tolist()) for numbers in starts()]


def contents(here, arrays, seed):
    here.settle(seed)
    return [x.to_numpy().tolist() for x in arrays]


def expected(program, runs, memory=None):
    memory, log = starts() if memory is None else memory, [[] for _ in range(STREAMS)]
    for _ in range(runs):
        oracle(program, memory, log)
    return [numbers.tolist() for numbers in memory], log


@pytest.mark.quadpy_hazards(allow="its host functions do not say what they touch")
def test_eager_captured_and_built_by_hand(here, every):
    @every(program=programs, seed=st.integers(0, 2**32))
    def check(program, seed):
        with contextlib.ExitStack() as stack:
            runner = Runner(here, stack)
            program = given_to(here, runner, program)
            wanted = expected(program, 2)
            arrays = arrays_of(here)
            for _ in range(2):
                runner.run(program, *arrays)
            assert (contents(here, arrays, seed), runner.drain_log()) == wanted
            arrays = arrays_of(here)
            with qp.graph.capture() as graph:
                runner.run(program, *arrays)
            for made in (graph, runner.explicit(program, built := arrays_of(here))):
                with made.instantiate() as run:
                    for _ in range(2):
                        run.launch()
                    arrays = arrays if made is graph else built
                    assert (contents(here, arrays, seed), runner.drain_log()) == wanted
        here.without_races()


def test_changes_between_launches(here, every):
    """The nodes are changed one after another; pending launches keep their arguments."""

    @every(
        program=programs,
        changes=st.lists(st.tuples(st.integers(0, 11), array, value), max_size=3),
        seed=st.integers(0, 2**32),
    )
    def check(program, changes, seed):
        with contextlib.ExitStack() as stack:
            runner = Runner(here, stack)
            program = given_to(here, runner, program)
            arrays, memory = arrays_of(here), starts()
            wanted = expected(program, 1, memory)[1]
            with runner.explicit(program, arrays).instantiate() as run:
                run.launch()
                for which, a, v in changes:
                    numbers = [k for k, step in enumerate(program) if step[0] in ("add", "twice", "fill")]
                    if not numbers:
                        break
                    number = numbers[which % len(numbers)]
                    kind, on, _, b, _ = program[number]
                    a %= ARRAYS  # one that is there from the beginning
                    program = [*program[:number], (kind, on, a, b, v), *program[number + 1 :]]
                    run.update(f"step {number}", *((arrays[a], v) if kind == "fill" else (v, arrays[a])))
                    run.launch()
                    more = expected(program, 1, memory)[1]
                    wanted = [one + other for one, other in zip(wanted, more, strict=True)]
                assert contents(here, arrays, seed) == [numbers.tolist() for numbers in memory]
                assert runner.drain_log() == wanted
        here.without_races()


@pytest.mark.quadpy_hazards(allow="its host functions do not say what they touch")
def test_replayed_with_other_arguments(here, every):
    @every(program=programs, other=value, seed=st.integers(0, 2**32))
    def check(program, other, seed):
        with contextlib.ExitStack() as stack:
            runner = Runner(here, stack)
            program = given_to(here, runner, program)
            changed = [(kind, on, a, b, other if kind in ("add", "branch") else v) for kind, on, a, b, v in program]
            one, two = arrays_of(here), arrays_of(here)
            memory, log = [starts(), starts()], [[] for _ in range(STREAMS)]
            step = qp.graph.replay(runner.run)
            for which, given_now in ((0, program), (0, program), (0, changed), (1, changed), (1, program)):
                step(given_now, *(one, two)[which])
                oracle(given_now, memory[which], log)
            assert contents(here, one, seed) == [numbers.tolist() for numbers in memory[0]]
            assert contents(here, two, seed) == [numbers.tolist() for numbers in memory[1]]
            assert runner.drain_log() == log
            assert step.stats.fallbacks == 0
            step.clear()
        here.without_races()


@pytest.mark.parametrize("way", ["captured", "replayed"])
def test_what_the_program_orders_is_not_reported(here, every, way):
    """Also where memory that is first used on another stream adds edges that a program did not ask for."""

    @every(program=programs, twice=st.booleans())
    def check(program, twice):
        with contextlib.ExitStack() as stack:
            runner = Runner(here, stack)
            program = given_to(here, runner, program)
            arrays = arrays_of(here)
            here.settle(0)
            with qp.hazards.check(collect=True) as found:
                if way == "captured":
                    with qp.graph.capture() as graph:
                        runner.run(program, *arrays)
                    with graph.instantiate() as run:
                        run.launch()
                else:
                    step = qp.graph.replay(runner.run)
                    for _ in range(2 + twice):
                        step(program, *arrays)
                    step.clear()
                here.settle(0)
            assert not found.certain
