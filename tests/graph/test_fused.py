"""Graphs as one launch: the same bytes as launch by launch, changes without another launch, and why not where not."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.errors import ArgumentError, GraphError

A = qp.types.ndarray
I32, F32 = A(qp.i32, 1), A(qp.f32, 1)
block = qp.simt.block


@pytest.fixture(scope="module", autouse=True, params=backends())
def arch(request):
    qp.init(arch=request.param, cpu_max_num_threads=2)
    return request.param


@qp.kernel
def scale(a: qp.f32, x: F32):
    for i in x:
        x[i] = a * x[i]


@qp.kernel
def mix(x: F32, y: F32, k: qp.i32):
    for i in y:
        y[i] = y[i] - x[(i + k) % x.shape[0]]


@qp.kernel
def total(x: F32, out: F32):
    found = 0.0
    for i in x:
        found += x[i] * x[i]
    out[0] = found
    out[1] = out[1] + 1.0


@qp.kernel
def normed(x: F32, out: F32):
    for i in x:
        x[i] = x[i] / qp.sqrt(out[0]) + qp.sin(x[i])


@qp.kernel
def noise(x: F32):
    for i in x:
        x[i] = x[i] + qp.random(qp.f32)


@qp.kernel
def reversed_blocks(x: F32, y: F32):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        held = block.SharedArray((64,), qp.f32)
        t = block.thread_idx()
        held[t] = x[i]
        block.sync()
        y[i] = held[63 - t]


@qp.kernel
def counted(x: I32, bins: I32):
    for i in x:
        bins[x[i] % bins.shape[0]] += 1


@qp.kernel(graph=True)
def halve_until(x: F32, steps: I32, left: I32):
    while qp.graph.do_while(left):
        for i in x:
            x[i] = x[i] * 0.5
        steps[0] = steps[0] + 1
        left[0] = left[0] - 1


def floats(n, seed=0):
    made = qp.ndarray(qp.f32, n)
    made.from_numpy(np.random.default_rng(seed).normal(size=n).astype(np.float32))
    qp.sync()  # tests use it on other streams
    return made


def integers(*numbers):
    made = qp.ndarray(qp.i32, len(numbers))
    made.from_numpy(np.array(numbers, np.int32))
    qp.sync()  # tests use it on other streams
    return made


def same(make, step, *, launches=3):
    """Runs ``step`` launch by launch and as one launch, over what ``make`` makes; the bytes and the executable graph."""
    eager, captured = make(), make()
    for _ in range(launches):
        step(*eager)
    with qp.graph.capture() as graph:
        step(*captured)
    run = graph.instantiate(fuse=True)
    for _ in range(launches):
        run.launch()
    for a, b in zip(eager, captured, strict=True):
        assert a.to_numpy().tobytes() == b.to_numpy().tobytes()
    return run


def is_one(run, arch):
    if arch == "cpu":
        assert run.fusion == (False, "the CPU runs nodes one after another")
    else:
        assert run.fusion.fused, run.fusion.reason
    assert run.inspect().fusion == run.fusion


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_a_chain_of_kernels(arch, n):
    def step(x, y):
        scale(0.5, x)
        mix(x, y, 7)
        mix(y, x, 3)
        scale(1.25, y)

    is_one(same(lambda: (floats(n), floats(n, 1)), step), arch)


def test_reductions_keep_their_bits(arch):
    def step(x, y, out):
        total(x, out)
        normed(x, out)
        total(y, out)
        normed(y, out)

    is_one(same(lambda: (floats(5001), floats(77, 1), floats(2, 2)), step), arch)


def test_shared_memory_of_several_kernels(arch):
    def step(x, y, z):
        reversed_blocks(x, y)
        reversed_blocks(y, z)
        mix(z, x, 1)

    is_one(same(lambda: (floats(640), floats(640, 1), floats(640, 2)), step), arch)


def test_copies_of_small_arrays(arch):
    def step(x, bins, more):
        counted(x, bins)
        counted(bins, more)
        counted(x, more)

    is_one(same(lambda: (integers(*range(3000)), integers(*[0] * 7), integers(*[0] * 5)), step), arch)


def test_forks(arch):
    def step(x, y, z):
        scale(0.5, x)
        start, end = qp.create_event(), qp.create_event()
        start.record()
        start.wait(side)
        mix(x, y, 1, stream=side)
        mix(x, z, 2)
        end.record(side)
        end.wait()
        mix(y, z, 3)

    with qp.create_stream() as side:
        is_one(same(lambda: (floats(500), floats(500, 1), floats(500, 2)), step), arch)


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_a_loop_between_kernels(arch, rounds):
    def step(x, steps, left):
        scale(3.0, x)
        halve_until(x, steps, left)
        scale(5.0, x)

    is_one(same(lambda: (floats(300), integers(0), integers(rounds)), step, launches=1), arch)


def test_fills_copies_and_arrays_of_the_graphs_own(arch):
    def step(x, y):
        made = qp.ndarray(qp.f32, 333)
        mix(x, made, 2)
        y.copy_from(made)
        x.fill(1.5)
        mix(made, x, 1)
        made.fill(0.0)
        mix(made, y, 1)

    is_one(same(lambda: (floats(333), floats(333, 1)), step), arch)


@pytest.mark.parametrize(("kind", "value"), [("u8", 7), ("i16", -3), ("f16", 1.5), ("i64", 9), ("f64", 0.0)])
def test_fills_of_every_width(arch, kind, value):
    dtype = getattr(qp, kind)
    for n in (1, 3, 64):
        x, left = qp.ndarray(dtype, n), integers(1)
        if kind == "i64":
            value = -1
        with qp.graph.capture() as graph:
            x.fill(value)
            left.fill(4)
            count(left)
        with graph.instantiate(fuse=True) as run:
            run.launch()
            assert set(x.to_numpy().tolist()) == {value}
            assert left[0] == 5
            is_one(run, arch)


@qp.kernel
def count(x: I32):
    for i in x:
        x[i] += 1


def test_random_numbers_are_those_of_the_calls(arch):
    @qp.graph.replay(fuse=True)
    def step(x, y):
        noise(x)
        noise(y)
        mix(x, y, 1)

    def eager(x, y):
        noise(x)
        noise(y)
        mix(x, y, 1)

    found = []
    for function in (eager, step):
        qp.init(arch=arch, random_seed=5, cpu_max_num_threads=2)
        x, y = floats(100), floats(100, 1)
        for _ in range(3):
            function(x, y)
        found.append(x.to_numpy().tobytes() + y.to_numpy().tobytes())
    assert found[0] == found[1]
    assert step.fusion.fused is (arch != "cpu"), step.fusion.reason


# ----------------------------------------------------------------- changes


def test_other_arguments_are_another_block_for_the_same_launch(arch):
    x, y, z = floats(50), floats(50, 1), floats(70, 2)
    graph = qp.graph.Graph()
    graph.add_kernel(scale, 2.0, x, name="scale")
    graph.add_kernel(mix, x, y, 1, name="mix")
    with graph.instantiate(fuse=True) as run:
        run.launch()
        run.update("scale", 0.25, x)
        run.update("mix", x, z, 9)
        run.launch()
        assert run.stats().rebuilds == 0
        is_one(run, arch)
    a, b, c = floats(50), floats(50, 1), floats(70, 2)
    scale(2.0, a)
    mix(a, b, 1)
    scale(0.25, a)
    mix(a, c, 9)
    for mine, wanted in ((x, a), (y, b), (z, c)):
        assert mine.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def test_another_order_makes_another_launch(arch):
    """What was independent is no longer, so that the blocks must meet between the two."""
    x, y, z = (integers(*range(200)) for _ in range(3))
    graph = qp.graph.Graph()
    graph.add_kernel(count, x)
    graph.add_kernel(counted, y, z, name="second")
    with graph.instantiate(fuse=True) as run:
        run.update("second", x, z)
        run.launch()
        is_one(run, arch)
        assert run.stats().rebuilds == 1
    assert z.to_numpy().sum() == sum(range(200)) + 200


def test_a_node_that_is_switched_off(arch):
    x, y = integers(1, 1), integers(5, 5)
    graph = qp.graph.Graph()
    graph.add_kernel(count, x, name="x")
    graph.add_kernel(count, y, name="y")
    with graph.instantiate(fuse=True) as run:
        run.enable("x", False)
        run.launch()
        assert not run.fusion.fused
        if arch != "cpu":
            assert run.fusion.reason == "'x' is switched off"
        run.update("x", y)
        run.enable("x")
        run.launch()
        is_one(run, arch)
    assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([1, 1], [8, 8])


def test_a_replayed_function_follows_its_arguments(arch):
    @qp.graph.replay(fuse=True)
    def step(a, x, y):
        scale(a, x)
        mix(x, y, 3)

    x, y = floats(64), floats(64, 1)
    a, b = floats(64), floats(64, 1)
    for k, swapped in ((2.0, False), (0.5, True), (0.5, False), (3.0, True)):
        step(k, *((y, x) if swapped else (x, y)))
        first, second = (b, a) if swapped else (a, b)
        scale(k, first)
        mix(first, second, 3)
    assert x.to_numpy().tobytes() == a.to_numpy().tobytes()
    assert y.to_numpy().tobytes() == b.to_numpy().tobytes()
    assert (step.stats.captures, step.stats.rebuilds, step.state) == (1, 0, "captured")
    assert step.fusion.fused is (arch != "cpu"), step.fusion.reason


def test_launches_on_several_streams(arch):
    x, y = integers(*range(100)), integers(*range(100))
    graph = qp.graph.Graph()
    graph.add_kernel(count, x)
    graph.add_kernel(counted, x, y)
    with graph.instantiate(fuse=True) as run, qp.create_stream() as one, qp.create_stream() as two:
        for stream in (one, two, one, None, two):
            run.launch(stream)
        qp.sync()
        is_one(run, arch)
    assert x.to_numpy().tolist() == [k + 5 for k in range(100)]
    assert y.to_numpy().sum() == sum(range(100)) + 500


# ---------------------------------------------------------------- why not


def test_what_is_no_task_of_quadpys_own(arch):
    x, y = integers(1), integers(2)
    with qp.graph.capture() as graph:
        count(x)
        qp.graph.host_function(print)
        count(y)
    refused(graph, arch, "'print' is a node of kind host")
    with qp.graph.capture() as graph:
        count(x)
        y.from_numpy(np.zeros(1, np.int32))
        count(np.zeros(3, np.int32))
    refused(graph, arch, "is a node of kind memcpy")
    graph = qp.graph.Graph()
    graph.add_event_record(qp.create_event())
    graph.add_kernel(count, x)
    refused(graph, arch, "'event_record' is a node of kind event_record")


def refused(graph, arch, reason):
    for fuse in ("auto", False):
        with graph.instantiate(fuse=fuse) as run:
            assert not run.fusion.fused
            assert run.fusion.reason
    if arch == "cpu":
        graph.instantiate(fuse=True).destroy()
        return
    with pytest.raises(GraphError, match=f"the graph cannot be one launch: .*{reason}"):
        graph.instantiate(fuse=True)


def test_one_launch_alone_and_none(arch):
    refused(qp.graph.Graph(), arch, "there is nothing to launch")
    graph = qp.graph.Graph()
    graph.add_kernel(count, integers(1))
    refused(graph, arch, "there is only one launch")


def test_arguments_that_do_not_fit_and_too_many_tasks(arch):
    @qp.kernel
    def wide(a: qp.types.vector(60, qp.f64), x: F32):
        x[0] = x[0] + qp.f32(a[0] + a[59])

    x = floats(1)
    graph = qp.graph.Graph()
    for _ in range(9):
        graph.add_kernel(wide, qp.Vector([1.0] * 60), x)
    refused(graph, arch, "arguments together have .* bytes; a launch can have at most 4096")
    graph = qp.graph.Graph()
    for _ in range(65):
        graph.add_kernel(scale, 1.0, x)
    refused(graph, arch, "it has 65 tasks; 64 are the most")


def test_blocks_of_different_sizes(arch):
    @qp.kernel
    def other_blocks(x: F32):
        qp.loop_config(block_dim=128)
        for i in range(x.shape[0]):
            x[i] = x[i] + qp.f32(block.thread_idx())

    x, y = floats(128), floats(128)
    graph = qp.graph.Graph()
    graph.add_kernel(reversed_blocks, x, y)
    graph.add_kernel(other_blocks, x)
    refused(graph, arch, "blocks of 64 and 128 threads")


def test_bad_input():
    with pytest.raises(ArgumentError, match="fuse is 'yes'"):
        qp.graph.Graph().instantiate(fuse="yes")
    with pytest.raises(ArgumentError, match="fuse is 3"):
        qp.graph.replay(fuse=3)


def test_a_graph_in_a_graph(arch):
    x, y = integers(0), integers(0)
    inner = qp.graph.Graph()
    inner.add_kernel(count, x)
    inner.add_kernel(counted, x, y)
    outer = qp.graph.Graph()
    outer.add_kernel(count, x)
    outer.add_child(inner)
    outer.add_empty()
    outer.add_child(inner)
    outer.add_kernel(count, y)
    with outer.instantiate(fuse=True) as run:
        run.launch()
        is_one(run, arch)
    assert (x[0], y[0]) == (3, 3)


def test_events_wait_for_one_launch(arch):
    x, y = integers(*range(640)), integers(*[0] * 640)
    graph = qp.graph.Graph()
    graph.add_kernel(count, x)
    graph.add_kernel(counted, x, y)
    streams = [qp.create_stream() for _ in range(3)]
    with graph.instantiate(fuse=True) as run:
        for k in range(12):
            here, there = streams[k % 3], streams[(k + 1) % 3]
            run.launch(here)
            ready = qp.create_event()
            ready.record(here)
            ready.wait(there)
            counted(x, y, stream=there)
            ready.record(there)
            ready.wait(streams[(k + 1) % 3])
        qp.sync()
    for stream in streams:
        stream.destroy()
    assert x.to_numpy().tolist() == [k + 12 for k in range(640)]
    assert y.to_numpy().sum() == 2 * 12 * 640


def random_step(seed):
    """A step of random kernels over four arrays of random lengths, often several that touch nothing of each other."""
    draw = np.random.default_rng(seed)
    lengths = [int(n) for n in draw.choice([1, 7, 64, 255, 256, 257, 1000, 3000], 4)]
    calls = [(str(draw.choice(["scale", "mix", "total", "normed", "fill"])), *draw.integers(0, 4, 2)) for _ in range(8)]

    def make():
        sums = [floats(2), floats(2)]
        for each in sums:
            each.fill(3.0)  # of squares
        qp.sync()
        return (*(floats(n, k) for k, n in enumerate(lengths)), *sums)

    def step(*arrays):
        for kind, a, b in calls:
            x, y, out = arrays[a], arrays[b], arrays[4 + b % 2]
            match kind:
                case "scale":
                    scale(0.5 + float(b), x)
                case "mix" if a != b:  # iterations would read what others write
                    mix(x, y, int(a) + 1)
                case "total":
                    total(x, out)
                case "normed":
                    normed(x, out)
                case "fill":
                    x.fill(float(b))

    return make, step


@pytest.mark.parametrize("seed", range(6))
def test_random_steps_are_the_same_bytes(arch, seed):
    make, step = random_step(seed)
    is_one(same(make, step, launches=2), arch)


@pytest.mark.parametrize("units", [1, 0.25])
def test_one_launch_on_a_part_of_the_device_is_the_same_bytes(arch, units):
    """Its blocks wait for each other: there must be no more than the part can hold."""
    make, step = random_step(11)
    eager, captured = make(), make()
    step(*eager)
    with qp.create_stream(compute_units=units) as part:
        with qp.graph.capture(part) as graph, qp.use_stream(part):
            step(*captured)
        with graph.instantiate(fuse=True) as run:
            run.launch(part)
            part.synchronize()
    for a, b in zip(eager, captured, strict=True):
        assert a.to_numpy().tobytes() == b.to_numpy().tobytes()
