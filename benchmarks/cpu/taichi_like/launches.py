"""The cost of a launch: an empty loop with 0, 2 and 8 arrays, a loop over a few elements, and one long enough for two threads."""

from collections.abc import Callable

import numpy as np

from cpu.workloads import Arrays, Bench
from gpu.qp_like.launches import add, launch0, launch2, launch8
from harness.language import array_of


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
