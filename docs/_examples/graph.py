"""Examples of graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import quadpy as qp


def example_capture() -> None:
    x, y = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4)
    x.fill(1.0)
    with qp.graph.capture() as g:
        y.copy_from(x)  # recorded, not run
    with g.instantiate() as run:
        run.launch()
    print(y[0])  # 1.0


def example_replay() -> None:
    @qp.kernel
    def add(x: qp.Array1D[qp.f32], by: qp.f32) -> None:
        for i in x:
            x[i] += by

    @qp.graph.replay
    def step(x, by):
        add(x, by)
        add(x, by)

    assert isinstance(step, qp.graph.Replay)
    x = qp.ndarray(qp.f32, 4)
    for _ in range(3):
        step(x, 0.5)
    print(x[0])  # 3.0
    stats = step.stats
    assert isinstance(stats, qp.graph.ReplayStats)
    print(stats.captures, stats.replays)  # 1 3


def example_host_function() -> None:
    x, seen = qp.ndarray(qp.f32, 4), []
    with qp.graph.capture() as g:
        x.fill(1.0)
        qp.graph.host_function(seen.append, "filled")
    with g.instantiate() as run:
        run.launch()
        run.synchronize()
    print(seen)  # ['filled']


def example_Graph() -> None:
    @qp.kernel
    def double(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] *= 2.0

    x = qp.ndarray(qp.f32, 4)
    g = qp.graph.Graph()
    g.add_memset(x, 3.0)
    node = g.add_kernel(double, x, name="double")  # after the fill, which writes what it reads
    assert isinstance(node, qp.graph.Node)
    print(node.after)  # ('memset',)
    with g.instantiate() as run:
        run.launch()
        run.synchronize()
    print(x[0])  # 6.0


def example_GraphExec() -> None:
    @qp.kernel
    def add(x: qp.Array1D[qp.f32], by: qp.f32) -> None:
        for i in x:
            x[i] += by

    x = qp.ndarray(qp.f32, 4)
    g = qp.graph.Graph()
    g.add_kernel(add, x, 1.0, name="add")
    run = g.instantiate()
    assert isinstance(run, qp.graph.GraphExec)
    run.launch()
    run.update("add", x, 10.0)
    run.launch()
    run.synchronize()
    stats = run.stats()
    assert isinstance(stats, qp.graph.GraphStats)
    print(x[0], stats.launches, stats.updates)  # 11.0 2 1
    run.destroy()


def example_GraphInfo() -> None:
    x, y = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4)
    with qp.graph.capture() as g:
        x.fill(1.0)
        y.copy_from(x)
    info = g.inspect()
    assert isinstance(info, qp.graph.GraphInfo)
    assert isinstance(info.nodes[0], qp.graph.NodeInfo)
    print([node.name for node in info.nodes], info.edges)  # ['memset', 'memcpy'] (('memset', 'memcpy'),)


def example_Semaphore() -> None:
    def wait_for_renderer(g, vulkan_fd, kind):
        """Of a semaphore that Vulkan exported; for GPUs only."""
        semaphore = qp.graph.Semaphore.from_fd(vulkan_fd, kind)
        g.add_semaphore_wait(semaphore, value=1)

    try:
        wait_for_renderer(qp.graph.Graph(), -1, 1)
    except qp.QuadpyError as error:
        print(type(error).__name__)  # GraphError


def example_memory_info() -> None:
    info = qp.graph.memory_info()
    assert isinstance(info, qp.graph.GraphMemory)
    print(info.used, info.reserved)  # 0 0


def example_trim() -> None:
    qp.graph.trim()


def example_do_while() -> None:
    @qp.kernel(graph=True)
    def halve(x: qp.Array1D[qp.f32], left: qp.Array1D[qp.i32]) -> None:
        while qp.graph.do_while(left):
            for i in x:
                x[i] *= 0.5
            left[0] = left[0] - 1

    x, left = qp.ndarray(qp.f32, 4), qp.ndarray(qp.i32, 1)
    x.fill(8.0)
    left.fill(3)
    halve(x, left)
    print(x[0])  # 1.0


def example_parallel() -> None:
    @qp.kernel(graph=True)
    def both(x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]) -> None:
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i in x:
                    x[i] = 1.0
            with qp.graph.parallel():  # at the same time
                for i in y:
                    y[i] = 2.0

    x, y = qp.ndarray(qp.f32, 2), qp.ndarray(qp.f32, 2)
    both(x, y)
    print(x[0], y[0])  # 1.0 2.0


def example_load() -> None:
    @qp.kernel
    def add(x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]) -> None:
        for i in x:
            y[i] += x[i]

    x, y = qp.ndarray(qp.f32, 1000), qp.ndarray(qp.f32, 1000)
    g = qp.graph.Graph()
    g.add_memset(x, 2.0)
    g.add_kernel(add, x, y)
    g.save("add.qpg", targets=["x86-64", "arm64", "gfx942"], bind={"x": x, "y": y})

    small, sums = np.zeros(3, np.float32), np.ones(3, np.float32)
    with qp.graph.load("add.qpg") as loaded:  # in another process, without the compiler
        assert isinstance(loaded, qp.graph.SavedGraph)
        assert isinstance(loaded.arrays[0], qp.graph.ArrayInfo)
        loaded.run(x=small, y=sums)
    print(sums)  # [3. 3. 3.]
    Path("add.qpg").unlink()
