"""Prints in graphs, replays, graph kernels and on several streams, on every backend."""

from __future__ import annotations

import contextlib
import io
import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.graph.replays.verify import Verification

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def bump(x: F32, n: qp.i32):
    print("bump", n)
    for i in x:
        x[i] += n
        if i % 400 == 7:
            print(i, x[i])


@qp.kernel
def double(x: F32):
    for i in x:
        x[i] *= 2
        if i % 400 == 7:
            print("twice", i, f"{x[i]:.1f}")


@contextlib.contextmanager
def output():
    """What is printed inside the block, when all work is done."""
    text = io.StringIO()
    lines: list[str] = []
    with contextlib.redirect_stdout(text):
        yield lines
        qp.sync()
    lines += text.getvalue().splitlines()


def bumped(n, value):
    return [f"bump {n}", f"7 {float(value)}", f"407 {float(value)}", f"807 {float(value)}"]


def doubled(value):
    return [f"twice {i} {value:.1f}" for i in (7, 407, 807)]


@pytest.mark.parametrize("fuse", [False, True, "auto"])
def test_graphs(arch, fuse):
    x = qp.ndarray(qp.f32, 1000)
    graph = qp.graph.Graph()
    graph.add_kernel(bump, x, 3)
    graph.add_kernel(double, x)
    with graph.instantiate(fuse=fuse) as exe:
        with output() as lines:
            exe.launch()
        assert lines == bumped(3, 3) + doubled(6)
        with output() as lines:
            exe.launch()
            exe.launch()
        assert sorted(lines) == sorted(bumped(3, 9) + doubled(18) + bumped(3, 21) + doubled(42))
        exe.update("bump", x, 5)
        with output() as lines:
            exe.launch()
        assert lines == bumped(5, 47) + doubled(94)


def test_captures_on_two_streams(arch):
    x, y = qp.ndarray(qp.f32, 1000), qp.ndarray(qp.f32, 1000)
    with qp.create_stream() as one, qp.create_stream() as two, qp.create_event() as fork, qp.create_event() as join:
        with output() as nothing, qp.graph.capture(one) as graph:
            bump(x, 1, stream=one)
            fork.record(one)
            fork.wait(two)
            bump(y, 2, stream=two)
            join.record(two)
            join.wait(one)
            double(y, stream=one)
        assert nothing == []
        with graph.instantiate() as exe, output() as lines:
            exe.launch(one)
            one.synchronize()
        assert sorted(lines) == sorted(bumped(1, 1) + bumped(2, 2) + doubled(4))
        assert lines.index("bump 2") < lines.index("7 2.0")


def test_replays(arch):
    x = qp.ndarray(qp.f32, 1000)

    @qp.graph.replay
    def step(n):
        bump(x, n)
        double(x)

    value = 0
    for n in (1, 1, 1, 2, 3, 3, 3):
        with output() as lines:
            step(n)
        value += n
        assert lines == bumped(n, value) + doubled(2 * value)
        value *= 2


def test_verified_replays_print_once(arch, monkeypatch):
    monkeypatch.setattr(Verification, "failed", False)
    x = qp.ndarray(qp.f32, 1000)

    @qp.graph.replay
    def step(n):
        bump(x, n)

    step._verification = Verification()
    with output() as lines:
        for n in (1, 2, 3, 4):
            step(n)
    assert lines == bumped(1, 1) + bumped(2, 3) + bumped(3, 6) + bumped(4, 10)
    assert not Verification.failed
    with output() as lines:  # what comes after it is printed
        bump(x, 5)
    assert lines == bumped(5, 15)


@pytest.mark.parametrize("fuse", [False, True])
def test_graph_kernels(arch, fuse):
    @qp.kernel(graph=True, fuse=fuse)
    def steps(x: F32, go: I32):
        while qp.graph.do_while(go):
            for i in x:
                x[i] += 1
                if i == 3:
                    print("turn", x[i])
            for i in range(1):
                go[i] -= 1
                print("left", go[i])

    x, go = qp.ndarray(qp.f32, 1000), qp.ndarray(qp.i32, 1)
    go.fill(4)
    with output() as lines:
        steps(x, go)
    assert lines == [line for k in range(4) for line in (f"turn {k + 1.0}", f"left {3 - k}")]
    assert not steps.fusion(x, go).fused


def test_streams_and_threads(arch):
    found: dict[int, float] = {}

    def work(k):
        x = qp.ndarray(qp.f32, 1000)
        with qp.create_stream() as stream:
            for _ in range(10):
                bump(x, k, stream=stream)
            stream.synchronize()
            found[k] = float(x[5])

    with output() as lines:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {k: 10.0 * k for k in range(1, 5)}
    assert sorted(lines) == sorted(line for k in range(1, 5) for n in range(10) for line in bumped(k, k * (n + 1)))


def test_numpy_arrays_and_results(arch):
    @qp.kernel
    def total(x: F32) -> qp.f32:
        s = 0.0
        for i in x:
            s += x[i]
            if i == 2:
                print("two", x[i])
        print("sum", s)
        return s

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert total(np.ones(100, np.float32)) == 100
    assert text.getvalue() == "two 1.0\nsum 100.0\n", "a result waits for the work"
