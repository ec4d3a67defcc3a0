"""The cost of a launch: an empty loop with 0, 2 and 8 arrays, a loop over a few elements, and one long enough for two threads."""

from collections.abc import Callable

import numba
import numpy as np

from cpu.with_numba.decorator import kernel
from cpu.workloads import Arrays, Bench


@kernel
def launch0(n):
    for _ in numba.prange(n):
        pass


@kernel
def launch2(n, a, b):
    for i in numba.prange(n):
        a[i] = b[i]


@kernel
def launch8(n, a, b, c, d, e, f, g, h):
    for i in numba.prange(n):
        a[i] = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]


@kernel
def add(x, y):
    for i in numba.prange(x.shape[0]):
        y[i] = x[i] + y[i]


def build_launch(kernel: Callable[..., object], count: int) -> Callable[[Arrays], Bench]:
    def build(_: Arrays) -> Bench:
        arrays = [np.ones(16, np.float32) for _ in range(count)]
        return Bench(lambda: kernel(0, *arrays), lambda: {str(i): a for i, a in enumerate(arrays)}, batch=1000)

    return build


def build_loop(data: Arrays) -> Bench:
    x, y = data["x"], data["y"].copy()

    def reset() -> None:
        y[:] = data["y"]

    return Bench(lambda: add(x, y), lambda: {"y": y}, reset, batch=1000)


BUILDERS = {
    "launch0": build_launch(launch0, 0),
    "launch2": build_launch(launch2, 2),
    "launch8": build_launch(launch8, 8),
    "small": build_loop,
    "dispatch": build_loop,
}
