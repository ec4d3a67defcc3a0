"""What a replayed function costs the host compared with the calls that it replaces.

Twenty kernels, reached through attributes and through a closure, with the arguments of the call before, with another number
in each call, and with other arrays in each call.  Both ways take turns in one process.  A time is that of the fastest turn,
until all calls of the turn are done; the ratio is the median of the ratios of turns.

On the simulated device, the simulation takes most of the time.  On the CPU a replay that does not pay ends by itself; then its
time is that of the calls, and the ratio is noise.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import quadpy as qp
from harness.report import table
from harness.simulated import open_simulated
from harness.timing import in_turns, repeat
from quadpy.runtime.device.devices import current_device

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
KERNELS = 20


@qp.kernel
def axpy(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] = a * x[i] + y[i]


class Solver:
    """Kernels and arrays are attributes."""

    def __init__(self, size: int) -> None:
        self.axpy, self.x, self.y = axpy, qp.ndarray(qp.f32, size), qp.ndarray(qp.f32, size)

    def step(self, a: float, x: Any, y: Any) -> None:
        """The arguments, then what the object has."""
        for _ in range(KERNELS // 4):
            self.axpy(a, x, y)
            self.axpy(0.5, y, self.x)
            self.axpy(a, self.x, self.y)
            self.axpy(0.25, self.y, x)


def closure(size: int) -> Callable[..., None]:
    """Kernels and arrays are in cells."""
    kernel, mine, other = axpy, qp.ndarray(qp.f32, size), qp.ndarray(qp.f32, size)

    def step(a: float, x: Any, y: Any) -> None:
        for _ in range(KERNELS // 4):
            kernel(a, x, y)
            kernel(0.5, y, mine)
            kernel(a, mine, other)
            kernel(0.25, other, x)

    return step


def main(words: Sequence[str]) -> int:
    """Prints the table; the exit status is 1 if a replay is slower than ``--most`` allows."""
    options = _options(words)
    if options.arch == "recording":
        open_simulated()
    else:
        qp.init(arch=options.arch)
    worst, lines = 0.0, []
    for way in ("attributes", "a closure"):
        for arguments in ("the same", "another number", "other arrays"):
            eager, replayed, ratio = _measured(way, arguments, options)
            worst = max(worst, ratio)
            lines.append([way, arguments, f"{eager:.1f}", f"{replayed:.1f}", f"{ratio:.2f}"])
    print(f"{KERNELS} kernels on {current_device()}, {options.size} elements, µs a call\n")
    print(table(["reached through", "arguments", "launched", "replayed", "ratio"], lines, 2))
    return int(worst > options.most)


def _measured(way: str, arguments: str, options: argparse.Namespace) -> tuple[float, float, float]:
    step = Solver(options.size).step if way == "attributes" else closure(options.size)
    replayed = qp.graph.replay(step)
    arrays = [qp.ndarray(qp.f32, options.size) for _ in range(8)]
    numbers = [k / 8 for k in range(7)]
    others: dict[str, list[tuple[Any, ...]]] = {
        "the same": [(0.5, *arrays[:2])],
        "another number": [(a, *arrays[:2]) for a in numbers],
        "other arrays": [(0.5, *arrays[k : k + 2]) for k in range(7)],
    }
    calls, device = cycle(others[arguments]), current_device()

    def turn(function: Callable[..., object], count: int) -> None:
        repeat(lambda: function(*next(calls)), count)
        device.synchronize()

    turn(step, 20)
    turn(replayed, 20)
    works = {"eager": lambda: turn(step, options.calls), "replayed": lambda: turn(replayed, options.calls)}
    times = in_turns(works, options.turns, device.synchronize)
    if replayed.stats.captures != 1 or (
        replayed.state != "captured" and "does not pay" not in str(replayed.stats.reason)
    ):
        raise SystemExit(f"it was not replayed: {replayed.state}, {replayed.stats}")
    eager, graph = (min(found) / options.calls * 1e6 for found in times.values())
    return eager, graph, statistics.median(b / a for a, b in zip(times["eager"], times["replayed"], strict=True))


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py replay", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=("cpu", "recording", "cuda", "amdgpu"), default="cpu")
    parser.add_argument("--size", type=int, default=256, help="elements of each array (%(default)s)")
    parser.add_argument("--calls", type=int, default=200, help="calls in a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument(
        "--most", type=float, default=1.0, help="the largest ratio that counts as success (%(default)s)"
    )
    return parser.parse_args(words)
