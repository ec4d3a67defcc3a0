"""Graph kernels as users call them, on every backend: the same bytes as without a graph, few updates, no rebuilds."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.examples.conjugate_gradient import Solver, random_charges
from quadpy.runtime.device.devices import current_device, open_device

A = qp.types.ndarray
I32, FLAG = A(qp.i32, 1), A(qp.i32, 0)
EMULATED = "ROCJITSU_RUNTIME_DIR" in os.environ
COUNTS = (1, 5, 21) if EMULATED else (1, 2, 4, 5, 20, 21, 33, 70)
"""Iterations: at the ends of chunks of every size, and inside them."""


def backends_and_chunks():
    """The backends that are here; of one whose graphs have loops, also as if they had none, which is what AMD's have."""
    found = []
    for name in backends():
        found.append(name)
        if name != "cpu" and "loops" in open_device(name).driver.graphs.features:
            found.append(f"{name} in chunks")
    return found


@pytest.fixture(scope="module", autouse=True, params=backends_and_chunks())
def arch(request):
    name, _, chunks = request.param.partition(" ")
    qp.init(arch=name, cpu_max_num_threads=2)
    with pytest.MonkeyPatch.context() as patch:
        if chunks:
            graphs = current_device().driver.graphs
            patch.setattr(graphs, "features", graphs.features - {"loops"})
        yield name


def step(x: I32, y: I32, z: I32, n: qp.i32):
    for i in x:
        x[i] += n * i
    for i in y:
        y[i] += 2 * n
    for i in range(z.shape[0]):
        z[i] = x[i] - y[i]
    z[0] = 7
    for i in x:
        x[i] = x[i] * 3 + z[i]


plain, replayed = qp.kernel(step), qp.kernel(step, graph=True, fuse=False)


def arrays(*firsts, size=100):
    found = [qp.ndarray(qp.i32, size) for _ in firsts]
    for array, first in zip(found, firsts, strict=True):
        array.from_numpy(np.arange(first, first + size, dtype=np.int32))
    qp.sync()  # tests use it on other streams
    return found


def bytes_of(found):
    return b"".join(array.to_numpy().tobytes() for array in found)


def test_a_chain_gives_the_bytes_of_separate_launches(arch):
    here, there = arrays(1, 2, 3), arrays(1, 2, 3)
    for n in (1, 1, 5, -2):
        plain(*here, n)
        replayed(*there, n)
    assert bytes_of(here) == bytes_of(there)
    if arch == "cpu":
        assert replayed.graph_stats() == type(replayed.graph_stats())()


def test_other_arrays_and_numbers_need_no_other_graph(arch):
    first, other = arrays(1, 2, 3), arrays(4, 5, 6)
    called = qp.kernel(step, graph=True, fuse=False)
    for found, n in ((first, 1), (other, 1), (first, 9), (first, 9)):
        called(*found, n)
    oracle = arrays(1, 2, 3)
    for n in (1, 9, 9):
        plain(*oracle, n)
    assert bytes_of(first) == bytes_of(oracle)
    if arch != "cpu":
        found = called.graph_stats()
        assert found.rebuilds == 0
        assert found.launches == 4
        assert found.updates + found.copies > 0


def test_arguments_that_change_in_each_call(arch):
    """After a few calls they stand in memory, and nodes are changed for other grids alone."""
    changing = qp.kernel(step, graph=True, fuse=False)
    sizes = (100, 100, 100, 100, 700, 100, 3)
    for k, size in enumerate(sizes):
        here, there = arrays(k, 1, 2, size=size), arrays(k, 1, 2, size=size)
        plain(*here, k)
        changing(*there, k)
        assert bytes_of(here) == bytes_of(there)
    found = changing.graph_stats()
    if arch != "cpu":
        assert (found.rebuilds, found.eager, found.reasons) == (0, 0, ())
        assert found.copies >= len(sizes) - 3
    before = changing.graph_stats()
    overlapping = arrays(5)[0]
    changing(overlapping, overlapping, arrays(1)[0], 2)
    expected = arrays(5)[0]
    plain(expected, expected, arrays(1)[0], 2)
    assert bytes_of([overlapping]) == bytes_of([expected])
    assert changing.graph_stats().copies == before.copies  # code of its own, with patience of its own


def test_arrays_of_other_lengths_have_other_grids(arch):
    for size in (1, 1000, 3):
        here, there = arrays(1, 2, 3, size=size), arrays(1, 2, 3, size=size)
        plain(*here, 2)
        replayed(*there, 2)
        assert bytes_of(here) == bytes_of(there)


def test_arrays_of_the_host(arch):
    here, there = ([np.arange(k, k + 50, dtype=np.int32) for k in range(3)] for _ in range(2))
    for n in (1, 2):
        plain(*here, n)
        replayed(*there, n)
    np.testing.assert_array_equal(here, there)


def test_the_same_array_twice(arch):
    here, there = arrays(1, 2), arrays(1, 2)
    plain(here[0], here[0], here[1], 3)
    replayed(there[0], there[0], there[1], 3)
    assert bytes_of(here) == bytes_of(there)


def test_streams_and_threads_at_once(arch):
    work = [(arrays(k, k + 1, k + 2), arrays(k, k + 1, k + 2)) for k in range(4)]

    def run(found, n):
        with qp.create_stream() as stream, qp.use_stream(stream):
            for _ in range(5):
                replayed(*found, n)
            stream.synchronize()

    threads = [threading.Thread(target=run, args=(there, k)) for k, (_, there) in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, (here, there) in enumerate(work):
        for _ in range(5):
            plain(*here, k)
        assert bytes_of(here) == bytes_of(there)


@qp.kernel
def accumulate(a: qp.i32, x: I32, y: I32):
    for i in x:
        y[i] += a * x[i] + i


def sequence(a, x, y):
    t = qp.ndarray(qp.i32, x.shape[0])
    for k in range(3):
        accumulate(a, x, y)
        accumulate(k, y, t)
        accumulate(2, t, x)
    return t


@pytest.mark.parametrize("fuse", [False, True])
def test_a_replayed_function_with_other_arguments_in_each_call(arch, fuse):
    """From the third change on Python does not run; a grid, an overlap and an update by name change that."""
    replayed = qp.graph.replay(sequence, fuse=fuse)
    for k in (3, 1, 4, 1, 5, 9):
        here, there = arrays(k, 2), arrays(k, 2)
        wanted, found = sequence(k, *here), replayed(k, *there)
        assert bytes_of([*here, wanted]) == bytes_of([*there, found])
    for size in (100, 700):
        here, there = arrays(k, 2, size=size), arrays(k, 2, size=size)
        sequence(7, here[0], here[0])
        replayed(7, there[0], there[0])
        wanted, found = sequence(7, *here), replayed(7, *there)
        assert bytes_of([*here, wanted]) == bytes_of([*there, found])
    assert (replayed.stats.fallbacks, replayed.state) == (0, "captured")


# loops


@qp.kernel(graph=True, fuse=False)
def count_down(x: I32, total: A(qp.i64, 1), left: FLAG):
    while qp.graph.do_while(left):
        for i in x:
            x[i] += i
        for i in x:
            total[0] += x[i]
        left[None] -= 1


@pytest.mark.parametrize("rounds", COUNTS)
def test_a_loop_ends_when_its_condition_is_zero(arch, rounds):
    x, total, left = arrays(0)[0], qp.ndarray(qp.i64, 1), qp.ndarray(qp.i32, ())
    x.fill(0)
    total.fill(0)
    left[None] = rounds
    count_down(x, total, left)
    np.testing.assert_array_equal(x.to_numpy(), rounds * np.arange(100))
    assert total[0] == 4950 * rounds * (rounds + 1) // 2
    assert left[None] == 0


def test_a_loop_on_the_device_is_one_launch(arch):
    if arch == "cpu" or "loops" not in current_device().driver.graphs.features:
        pytest.skip("graphs of this driver have no loop nodes: the host repeats chunks instead")
    gc.collect()  # plans of earlier tests, whose launches no longer count when they end
    before = count_down.graph_stats()
    x, total = np.zeros(10, np.int32), np.zeros(1, np.int64)
    count_down(x, total, np.array(300, np.int32))
    now = count_down.graph_stats()
    assert x[1] == 300
    assert (now.launches - before.launches, now.waits, now.eager, now.reasons) == (1, 0, 0, ())


def test_the_host_waits_for_chunks(arch):
    if arch == "cpu" or "loops" in current_device().driver.graphs.features:
        pytest.skip("the loop is a node of the graph, or the CPU runs it: the host does not wait for chunks")
    x, total = np.zeros(10, np.int32), np.zeros(1, np.int64)
    before = count_down.graph_stats()
    count_down(x, total, np.array(12, np.int32))
    assert x[1] == 12
    assert count_down.graph_stats().waits - before.waits <= 12 // 4 + 1


@qp.kernel(graph=True, fuse=False)
def nested(x: I32, outer: FLAG, inner: A(qp.i64, 0)):
    while qp.graph.do_while(outer):
        inner[None] = outer[None]
        while qp.graph.do_while(inner):
            with qp.graph.parallel():
                for i in range(50):
                    x[i] += 1
            with qp.graph.parallel():
                for i in range(50, 100):
                    x[i] += 1
            inner[None] -= 1
        for i in x:
            x[i] *= 2
        outer[None] -= 1
    x[0] = -x[0]


def test_loops_in_loops_with_sections_in_them(arch):
    for rounds in (1, 3, 2):
        x = np.ones(100, np.int32)
        nested(x, np.array(rounds, np.int32), np.array(0, np.int64))
        want = 1
        for k in range(rounds, 0, -1):
            want = (want + k) * 2
        assert x[0] == -want
        assert set(x[1:]) == {want}


def test_loops_with_other_arguments_in_each_call(arch):
    found = []
    for rounds in (1, 2, 6, 3, 5):
        x, outer, inner = arrays(0)[0], qp.ndarray(qp.i32, ()), qp.ndarray(qp.i64, ())
        x.fill(1)
        outer[None] = rounds
        found.append((x, outer, inner))
        nested(*found[-1])
        want = 1
        for k in range(rounds, 0, -1):
            want = (want + k) * 2
        assert (-x.to_numpy()[0], set(x.to_numpy()[1:])) == (want, {want})
    if arch != "cpu":
        assert nested.graph_stats().copies
        assert nested.graph_stats().reasons == ()


@pytest.mark.parametrize(("size", "most", "times"), [(8, 6, 1)] if EMULATED else [(8, 60, 2), (96, 60, 2)])
def test_a_solver_with_sums_in_its_loop(arch, size, most, times):
    """Several calls, other arrays, and a kernel in one launch in turn with it: the bytes of each are the same."""
    b = random_charges(size, seed=3)
    reference = Solver(size, True)
    wanted = reference.solve(b, most)
    for _ in range(times):
        solver = Solver(size, False)
        for _ in range(2):
            x, count = solver.solve(b, most)
            assert (count, x.tobytes()) == (wanted[1], wanted[0].tobytes())
        again, count = reference.solve(b, most)
        assert (count, again.tobytes()) == (wanted[1], wanted[0].tobytes())


# bad input


def test_an_empty_condition_is_refused_before_any_work(arch):
    @qp.kernel(graph=True, fuse=False)
    def run(x: I32, left: I32):
        x[0] = 5
        while qp.graph.do_while(left):
            x[0] += 1

    x = np.zeros(1, np.int32)
    with pytest.raises(qp.ArgumentError, match="left is empty"):
        run(x, np.zeros(0, np.int32))
    assert x[0] == 0


def test_wrong_arguments_are_named(arch):
    x, y, z = arrays(1, 2, 3)
    with pytest.raises(qp.ArgumentError, match="step"):
        replayed(x, y, z, 1 << 40)
    with pytest.raises(qp.ArgumentError, match="step"):
        replayed(x, y, z)
    replayed(x, y, z, 1)


def test_a_destroyed_stream_is_refused(arch):
    x, y, z = arrays(1, 2, 3)
    stream = qp.create_stream()
    stream.destroy()
    with pytest.raises(qp.StreamError):
        replayed(x, y, z, 1, stream=stream)
