"""What a launch costs: over nothing with 0, 2 and 8 arrays, over a few elements, and over enough for two threads."""

from collections.abc import Callable

import numpy as np
from harness.language import array_of, pure_kernel, qp

from cpu.workloads import Arrays, Bench

floats = qp.types.ndarray(dtype=qp.f32, ndim=1)


@pure_kernel
def launch0(n: qp.i32):
    for _ in range(n):
        pass


@pure_kernel
def launch2(n: qp.i32, a: floats, b: floats):
    for i in range(n):
        a[i] = b[i]


@pure_kernel
def launch8(n: qp.i32, a: floats, b: floats, c: floats, d: floats, e: floats, f: floats, g: floats, h: floats):
    for i in range(n):
        a[i] = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]


@pure_kernel
def add(x: floats, y: floats):
    for i in range(x.shape[0]):
        y[i] = x[i] + y[i]


def build_launch(kernel: Callable[..., object], count: int) -> Callable[[Arrays], Bench]:
    def build(_: Arrays) -> Bench:
        arrays = [array_of(np.ones(16, np.float32)) for _ in range(count)]
        return Bench(
            lambda: kernel(0, *arrays), lambda: {str(i): a.to_numpy() for i, a in enumerate(arrays)}, batch=1000
        )

    return build


def build_loop(data: Arrays) -> Bench:
    x, y = array_of(data["x"]), array_of(data["y"])
    return Bench(lambda: add(x, y), lambda: {"y": y.to_numpy()}, lambda: y.from_numpy(data["y"]), batch=1000)


BUILDERS = {
    "launch0": build_launch(launch0, 0),
    "launch2": build_launch(launch2, 2),
    "launch8": build_launch(launch8, 8),
    "small": build_loop,
    "dispatch": build_loop,
}
