"""Graphs that are saved and loaded on the current device: each does there what the live graph does, to the bit.

``python saved_cases.py`` runs all of them on a simulated GPU.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
vec3 = qp.types.vector(3, qp.f32)
mat2 = qp.types.matrix(2, 2, qp.f32)
Body = qp.types.struct(place=vec3, mass=qp.f32)


@qp.kernel
def saxpy(a: qp.f32, x: F32, y: F32):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


@qp.kernel
def half_step(x: F32, y: F32):
    for i in x:
        y[i] += 0.5 * x[i]


def floats(*values):
    made = qp.ndarray(qp.f32, len(values))
    made.from_numpy(np.array(values, np.float32))
    return made


def explicit():
    x, y, temporary = floats(1, 2, 3, 4), floats(5, 6, 7, 8), floats(0, 0, 0, 0)
    g = qp.graph.Graph()
    first = g.add_kernel(saxpy, 2.0, x, y)
    g.add_memcpy(temporary, y)
    g.add_memset(x, 1.5)
    g.add_kernel(saxpy, 0.25, temporary, y, deps=None)
    g.add_empty(deps=[first])
    g.add_memset(y, 0x3F, element=1, nbytes=3, rows=2, pitch=8)
    return g, {"x": x, "y": y}, {"internal": [temporary]}


def captured():
    x, y = floats(1, 2, 3, 4), floats(4, 3, 2, 1)
    ready, done = qp.create_event(), qp.create_event()
    with qp.create_stream() as main, qp.create_stream() as other, qp.graph.capture(main) as g:
        x.fill(1.5, stream=main)
        made = qp.ndarray(qp.f32, 4, stream=main)
        ready.record(main)
        ready.wait(other)
        half_step(x, made, stream=other)
        saxpy(3.0, x, y, stream=main)
        done.record(other)
        done.wait(main)
        y.copy_from(made, stream=main)
        saxpy(0.5, x, y, stream=main)
    return g, {"x": x, "y": y}, {}


@qp.data_oriented
class Tank:
    def __init__(self):
        self.level = qp.field(qp.f32, 4)
        self.inflow = qp.ndarray(qp.f32, 4)

    @qp.kernel
    def fill(self, x: F32):
        for i in x:
            self.level[i] += x[i] + self.inflow[i]
            x[i] = self.level[i]


def fields_and_methods():
    tank, x = Tank(), floats(1, 2, 3, 4)
    tank.level.fill(0.5)
    tank.inflow.fill(2.0)
    g = qp.graph.Graph()
    g.add_kernel(tank.fill, x)
    return g, {"x": x}, {"constants": [tank.inflow]}


@dataclasses.dataclass
class State:
    pos: qp.types.ndarray(dtype=vec3, ndim=2)
    turn: mat2
    scale: qp.f64
    bodies: qp.types.ndarray(dtype=Body, ndim=1)


@qp.kernel
def advance(state: State, axis: qp.template(), sizes: qp.types.ndarray(dtype=qp.u8, ndim=1), flag: qp.u1):
    for i, j in state.pos:
        v = state.pos[i, j]
        turned = state.turn @ qp.Vector([v[0], v[1]])
        v[0], v[1] = turned[0], turned[1]
        v[axis] += qp.cast(state.scale, qp.f32)
        state.pos[i, j] = v
    for k in state.bodies:
        if flag:
            state.bodies[k].place += state.bodies[k].mass
            sizes[k] += qp.cast(3, qp.u8)


def structs_and_vectors():
    pos, sizes = qp.ndarray(vec3, (3, 5)), qp.ndarray(qp.u8, 4)
    bodies = Body.ndarray(4)
    pos.from_numpy(np.arange(45, dtype=np.float32).reshape(3, 5, 3))
    for k in range(4):
        bodies[k] = Body(place=[k, k + 1, k + 2], mass=0.5 + k)
    state = State(pos, qp.Matrix([[0.0, -1.0], [1.0, 0.0]]), 0.125, bodies)
    g = qp.graph.Graph()
    g.add_kernel(advance, state, 2, sizes, True)
    return g, {"pos": pos, "sizes": sizes, "bodies": bodies}, {}


@qp.kernel
def count_up(x: I32, out: I32):
    for i in out:
        out[i] = x[0]


def allocated():
    x, out = qp.ndarray(qp.i32, 1), qp.ndarray(qp.i32, 4)
    x.fill(7)
    g = qp.graph.Graph()
    memory = g.add_alloc(4)
    inside = g.add_memcpy(memory, x, nbytes=4)
    g.add_memset(x, 9)
    back = g.add_memcpy(x, memory, nbytes=4, deps=[inside, "memset"])
    g.add_free(memory, deps=[back])
    g.add_kernel(count_up, x, out)
    return g, {"x": x, "out": out}, {}


@qp.kernel(graph=True)
def collatz(n: I32, left: I32, turns: I32):
    while qp.graph.do_while(left):
        for i in n:
            if n[i] != 1:
                n[i] = qp.select(n[i] % 2 == 0, n[i] // 2, 3 * n[i] + 1)
                turns[i] += 1
        for _ in range(1):
            left[0] = 0
        for i in n:
            if n[i] != 1:
                left[0] = 256


def loops():
    n, left, turns = qp.ndarray(qp.i32, 3), qp.ndarray(qp.i32, 1), qp.ndarray(qp.i32, 3)
    n.from_numpy(np.array([6, 7, 27], np.int32))
    g = qp.graph.Graph()
    g.add_kernel(collatz, n, left, turns)
    g.add_memset(left, 0)
    return g, {"n": n, "turns": turns}, {"internal": [left]}


@qp.kernel
def sums(x: F32, total: F32):
    for i in x:
        total[0] += x[i]
    for i in x:
        x[i] = total[0] + x[i] * qp.random()


def children():
    x, total = floats(*range(1, 301)), floats(0)
    inner = qp.graph.Graph()
    inner.add_kernel(sums, x, total)
    inner.add_kernel(sums, x, total)
    g = qp.graph.Graph()
    g.add_child(inner)
    g.add_kernel(saxpy, 0.5, total, x)
    return g, {"x": x, "total": total}, {}


def parts():
    x = floats(*range(12))
    g = qp.graph.Graph()
    g.add_kernel(saxpy, 2.0, x[0:4], x[4:8], name="left", deps=[])
    g.add_kernel(saxpy, 3.0, x[8:12], x[8:12], name="right", deps=[])
    g.add_kernel(half_step, x[2:6], x[4:8], name="over")
    return g, {"x": x}, {}


def constants():
    """What a capture writes from the host is a copy from memory that the graph keeps."""
    x, y, wide = floats(1, 2, 3, 4), floats(0, 0, 0, 0), qp.ndarray(qp.f64, 4)
    with qp.graph.capture() as g:
        x.from_numpy(np.array([4, 3, 2, 1], np.float32))
        made = qp.ndarray(qp.f32, 4)
        made.from_numpy(np.array([0.5, 0.25, 8, 16], np.float32))
        half_step(made, y)
        saxpy(1.0, x, y)
        y[1:3] = np.array([-1, -2], np.float32)
        wide.fill(2.5)
    return g, {"x": x, "y": y, "wide": wide}, {}


CASES = [explicit, captured, fields_and_methods, structs_and_vectors, allocated, loops, children, parts, constants]


def again(array):
    """An array like ``array``, with its values."""
    made = Body.ndarray(array.shape) if hasattr(array, "record") else qp.ndarray(array_type(array), array.shape)
    made.from_numpy(array.to_numpy())
    return made


def array_type(array):
    if not array.element_shape:
        return array.dtype
    kind = qp.types.vector if len(array.element_shape) == 1 else qp.types.matrix
    return kind(*array.element_shape, array.dtype)


SMALL = [
    None,
    True,
    -1,
    0,
    1,
    2,
    1 << 62,
    1 << 70,
    0.5,
    "",
    "x",
    "value",
    [],
    {},
    ["value", 99],
    ["bits", 3],
    [0, 9],
    "cpu:arm64",
]


def mutated(value, chance):
    """``value`` with one part of it replaced."""
    if isinstance(value, dict) and value and chance.random() < 0.93:
        key = chance.choice(sorted(value))
        if chance.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.93:
        at = chance.randrange(len(value))
        if chance.random() < 0.1:
            return value[:at] + value[at + 1 :]
        return [*value[:at], mutated(value[at], chance), *value[at + 1 :]]
    return chance.choice(SMALL)


def check(case, folder, **options):
    """The graph of ``case``, saved and loaded, does what it does itself."""
    graph, bind, memory = case()
    path = Path(folder) / f"{case.__name__}.qpg"
    graph.save(path, bind=bind, **memory, **options)
    copies = {name: again(array) for name, array in bind.items()}
    with graph.instantiate() as live, qp.graph.load(path) as loaded:
        for _ in range(2):
            live.launch()
            loaded.run(**copies)
            live.synchronize()
            qp.sync()
            for name, array in bind.items():
                assert array.to_numpy().tobytes() == copies[name].to_numpy().tobytes(), (case.__name__, name)
    return path


def check_uses(folder):
    """What was loaded takes arrays of the host, runs in captures and in other graphs, and kernels alone run everywhere."""
    path, x, y = Path(folder) / "uses.qpg", floats(1, 2), floats(5, 6)
    g = qp.graph.Graph()
    g.add_kernel(half_step, x, y)
    g.save(path, bind={"x": x, "y": y})
    host, sums_there = np.ones(6, np.float32), np.ones(6, np.float32)
    with qp.graph.load(path) as loaded, qp.create_stream() as stream:
        loaded.run(x=host, y=sums_there)
        loaded.run(x=host, y=sums_there)
        assert sums_there.tolist() == [2.0] * 6
        with qp.graph.capture(stream) as captured:
            loaded.run(stream, x=x, y=y)
            loaded.run(stream, x=host, y=sums_there)
        outer = qp.graph.Graph()
        outer.add_child(loaded.graph(x=x, y=y))
        qp.sync()  # what was written on the default stream
        for graph in (captured, outer):
            with graph.instantiate() as live:
                live.launch(stream)
                live.synchronize()
        assert (sums_there.tolist(), y.to_numpy().tolist()) == ([2.5] * 6, [6.0, 8.0])

    half_step.save(path)
    kernel = qp.load_kernel(path)
    kernel(x, y)
    kernel(host, sums_there)
    assert (sums_there.tolist(), y.to_numpy().tolist()) == ([3.0] * 6, [6.5, 9.0])
    collatz.save(path)
    loop, turns = qp.load_kernel(path), qp.ndarray(qp.i32, 3)
    n, left = qp.ndarray(qp.i32, 3), qp.ndarray(qp.i32, 1)
    g = qp.graph.Graph()
    g.add_kernel(loop, n, left, turns)
    with g.instantiate() as live:
        for run in (lambda: loop(n, left, turns), live.launch):
            n.from_numpy(np.array([6, 7, 27], np.int32))
            turns.fill(0)
            run()
            assert turns.to_numpy().tolist() == [8, 16, 111]


def main():
    sys.path.append(str(Path(__file__).parent))
    from running_gpu import running

    with running(), tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            check(case, folder)
            print(case.__name__)
        check_uses(folder)
        print("uses")


if __name__ == "__main__":
    main()
