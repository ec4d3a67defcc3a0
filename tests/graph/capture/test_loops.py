"""Graph kernels with loops in captures and in graphs built by hand: the same bytes as the calls themselves."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.runtime.device.devices import current_device

A = qp.types.ndarray
I32, F32, FLAG = A(qp.i32, 1), A(qp.f32, 1), A(qp.i64, 0)


@pytest.fixture(scope="module", autouse=True, params=backends())
def arch(request):
    qp.init(arch=request.param, cpu_max_num_threads=2)
    return request.param


@qp.kernel
def add(v: qp.i32, x: I32):
    for i in x:
        x[i] = x[i] * 3 + v


@qp.kernel(graph=True)
def repeated(x: I32, y: I32, left: I32):
    y[0] = 7
    while qp.graph.do_while(left):
        for i in x:
            x[i] += i
        for i in y:
            y[i] += x[(i + 1) % x.shape[0]]
        left[0] = max(left[0] - 1, 0)
    y[1] = 100


@qp.kernel(graph=True)
def nested(x: I32, outer: I32, inner: FLAG):
    while qp.graph.do_while(outer):
        inner[None] = outer[0]
        while qp.graph.do_while(inner):
            for i in x:
                x[i] += 1
            inner[None] = max(inner[None] - 1, 0)
        for i in x:
            x[i] *= 2
        outer[0] = max(outer[0] - 1, 0)


@qp.kernel(graph=True)
def sections(x: I32, y: I32, z: I32):
    for i in x:
        x[i] += 1
    with qp.graph.parallel():
        for i in y:
            y[i] += x[i]
    with qp.graph.parallel():
        for i in z:
            z[i] -= x[i]
    for i in x:
        x[i] = y[i] * z[i]


@qp.kernel(graph=True)
def descent(x: F32, energy: F32, go: I32):
    """Repeats until the value is small enough; only the device knows how often."""
    while qp.graph.do_while(go):
        for i in x:
            x[i] = x[i] * 0.75 - 0.01
        found = 0.0
        for i in x:
            found += x[i] * x[i]
        energy[0] = found
        go[0] = 0
        if found > 1.0:
            go[0] = 1


def integers(*numbers, dtype=np.int32, shape=None):
    data = np.array(numbers, dtype).reshape(shape if shape is not None else len(numbers))
    made = qp.ndarray(qp.i64 if dtype is np.int64 else qp.i32, data.shape)
    made.from_numpy(data)
    qp.sync()  # tests use it on other streams
    return made


def contents(arrays):
    return [array.to_numpy().tobytes() for array in arrays]


def same(make, step, *, launches=1, fuse=False):
    eager, captured = make(), make()
    for _ in range(launches):
        step(*eager)
    with qp.graph.capture() as graph:
        step(*captured)
    with graph.instantiate(fuse=fuse) as run:
        for _ in range(launches):
            run.launch()
        assert contents(captured) == contents(eager)
    return graph


COUNTS = [1, 2, 5, 17]


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("rounds", COUNTS)
def test_a_loop_between_other_work(rounds, fuse):
    def step(x, y, left):
        add(1, x)
        repeated(x, y, left)
        add(2, y)

    same(lambda: (integers(*range(300)), integers(*range(99)), integers(rounds)), step, fuse=fuse)


def test_a_loop_between_work_that_is_no_kernel():
    seen = []

    def step(x, y, left, copy):
        left.fill(4)
        copy.copy_from(x)
        repeated(x, y, left)
        qp.graph.host_function(seen.append, 1)
        left.fill(2)
        repeated(copy, x, left)
        y.copy_from(copy)

    def make():
        return integers(*range(80)), integers(*[5] * 80), integers(1), integers(*[0] * 80)

    same(make, step, launches=3)
    qp.sync()
    assert len(seen) == 6


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("fuse", [False, True])
def test_a_loop_in_a_loop(rounds, fuse):
    def make():
        return integers(*range(50)), integers(rounds), integers(0, dtype=np.int64, shape=())

    same(make, nested, fuse=fuse)


def test_sections_are_forks_in_a_capture(arch):
    graph = same(lambda: (integers(1, 2), integers(3, 4), integers(5, 6)), sections, launches=2)
    if arch != "cpu":
        with graph.instantiate(fuse=False) as run:
            built = run._owner.engine.graph
            edges = built.graphs.edges(built.handle)
            first, left, right, last = built.handles("sections")
            assert set(edges) == {(first, left), (first, right), (left, last), (right, last)}


def test_loops_on_streams_that_fork():
    def step(x, y, z, one, two):
        start, end = qp.create_event(), qp.create_event()
        add(1, x)
        start.record()
        start.wait(side)
        repeated(y, z, one, stream=side)
        repeated(x, w, two)
        end.record(side)
        end.wait()
        add(3, z)
        add(4, w)

    w = integers(*range(40))
    with qp.create_stream() as side:

        def make():
            w.from_numpy(np.arange(40, dtype=np.int32))
            return integers(*range(70)), integers(*range(30)), integers(*range(20)), integers(3), integers(2)

        eager = make()
        step(*eager)
        wanted = [*contents(eager), w.to_numpy().tobytes()]
        captured = make()
        with qp.graph.capture() as graph:
            step(*captured)
        with graph.instantiate(fuse=False) as run:
            run.launch()
            assert [*contents(captured), w.to_numpy().tobytes()] == wanted


def test_a_loop_as_a_node_other_arguments_and_switched_off():
    x, y, left = integers(*range(9)), integers(*range(9)), integers(3)
    graph = qp.graph.Graph()
    graph.add_memset(y, 0)
    graph.add_kernel(repeated, x, y, left, name="loop")
    graph.add_kernel(add, 1, y, name="behind")
    with graph.instantiate(fuse=False) as run:
        run.launch()
        want = integers(*range(9)), integers(*[0] * 9), integers(3)
        repeated(*want)
        add(1, want[1])
        assert contents((x, y, left)) == contents(want)
        more, go = integers(*[2] * 9), integers(2)
        run.update("loop", more, y, go)
        run.launch()
        want = integers(*[2] * 9), integers(*[0] * 9), integers(2)
        repeated(*want)
        add(1, want[1])
        assert contents((more, y, go)) == contents(want)
        go.from_numpy(np.array([5], np.int32))
        run.enable("loop", False)
        run.launch()
        assert go[0] == 5
        assert y.to_numpy().tolist() == [1] * 9
        run.enable("loop")
        run.launch()
        assert go[0] == 0


def test_a_loop_in_a_graph_in_a_graph():
    def inner(x, y, left):
        left.fill(3)
        repeated(x, y, left)

    eager, captured = (tuple(integers(*range(n)) for n in (30, 20, 1)) for _ in range(2))
    add(1, eager[0])
    inner(*eager)
    inner(*eager)
    add(2, eager[1])
    with qp.graph.capture() as part:
        inner(*captured)
    with part.instantiate(fuse=False) as child, qp.graph.capture() as whole:
        add(1, captured[0])
        child.launch()
        child.launch()
        add(2, captured[1])
    with whole.instantiate(fuse=False) as run:
        run.launch()
        assert contents(captured) == contents(eager)


def test_a_function_that_is_replayed():
    @qp.graph.replay
    def step(x, energy, go):
        go.fill(1)
        descent(x, energy, go)

    def make(seed):
        x = qp.ndarray(qp.f32, 400)
        x.from_numpy(np.random.default_rng(seed).normal(size=400).astype(np.float32) * (seed + 1))
        return x, qp.ndarray(qp.f32, 1), integers(0)

    for seed in (0, 1, 2, 1):
        eager, replayed = make(seed), make(seed)
        eager[2].fill(1)
        descent(*eager)
        step(*replayed)
        assert contents(replayed) == contents(eager)
    assert step.state == "captured", step.stats.reason
    assert step.stats.captures == 1


def test_a_launch_beside_another_stream_waits_for_the_one_before():
    x, y, left = integers(*range(64)), integers(*range(64)), integers(1)
    graph = qp.graph.Graph()
    graph.add_memset(left, 3)
    graph.add_kernel(repeated, x, y, left)
    with graph.instantiate(fuse=False) as run, qp.create_stream() as one, qp.create_stream() as two:
        for stream in (one, two, one, None):
            run.launch(stream)
        qp.sync()
    want = integers(*range(64)), integers(*range(64)), integers(1)
    for _ in range(4):
        want[2].fill(3)
        repeated(*want)
    assert contents((x, y)) == contents(want[:2])


def test_memory_of_the_graphs_own_and_a_loop(arch):
    graph = qp.graph.Graph()
    memory = graph.add_alloc(64)
    x, y, left = integers(1), integers(1, 2), integers(2)
    if arch != "cpu" and "loops" not in current_device().driver.graphs.features:
        with pytest.raises(qp.GraphError, match="'repeated' has a loop, and a graph that allocates"):
            graph.add_kernel(repeated, x, y, left)
        return
    graph.add_kernel(repeated, x, y, left)
    graph.add_free(memory)
    with graph.instantiate() as run:
        run.launch()
    assert left[0] == 0
