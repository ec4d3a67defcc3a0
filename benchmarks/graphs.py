"""Steps of several tasks on a GPU, by how they are launched: `python benchmarks/graphs.py --help`.

``separate`` is a graph kernel without fusing, ``fused`` one cooperative launch of all its tasks, ``auto`` what quadpy
chooses, with its reason, and ``host loop`` kernels that the host launches one by one, asking behind each iteration whether
to go on; ``other arrays`` is a separate step with other arrays in each call, ``replay`` a captured function.  The conjugate gradients are those of ``quadpy.examples.conjugate_gradient``; chains are tasks that depend on the
one before.  A time is the median of rounds in which all variants take turns, and includes the wait for the result.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.examples.conjugate_gradient import Solver, random_charges, stencil, tolerance
from quadpy.runtime import devices

A = qp.types.ndarray(dtype=qp.f32, ndim=1)
GRID = qp.types.ndarray(dtype=qp.f32, ndim=2)
FUSE = {"separate": False, "fused": True, "auto": "auto"}
SIDES = (32, 128, 512, 1024)
LENGTHS = (1 << 10, 1 << 14, 1 << 17, 1 << 20)


# --------------------------------------------------------- conjugate gradients


@qp.kernel
def begin(b: GRID, x: GRID, r: GRID, p: GRID, sums: A):
    for i, j in b:
        x[i, j] = 0.0
        r[i, j] = b[i, j]
        p[i, j] = b[i, j]
        sums[0] += b[i, j] * b[i, j]


@qp.kernel
def image(p: GRID, q: GRID, sums: A):
    sums[1] = 0.0
    sums[2] = 0.0
    for i, j in p:
        q[i, j] = stencil(p, i, j)
        sums[1] += p[i, j] * q[i, j]


@qp.kernel
def advance(x: GRID, r: GRID, p: GRID, q: GRID, sums: A):
    for i, j in r:
        step = sums[0] / sums[1]
        x[i, j] += step * p[i, j]
        r[i, j] -= step * q[i, j]
        sums[2] += r[i, j] * r[i, j]


@qp.kernel
def turn(r: GRID, p: GRID, sums: A):
    for i, j in p:
        p[i, j] = r[i, j] + sums[2] / sums[0] * p[i, j]
    sums[0] = sums[2]


class HostLoop:
    """The same solver with the host in each iteration."""

    def __init__(self, n: int) -> None:
        self.b, self.x, self.r, self.p, self.q = (qp.ndarray(qp.f32, (n, n)) for _ in range(5))
        self.sums = qp.ndarray(qp.f32, 3)

    def solve(self, most: int) -> int:
        """The iterations that it took."""
        self.sums.fill(0)
        begin(self.b, self.x, self.r, self.p, self.sums)
        enough = tolerance**2 * float(self.sums.to_numpy()[0])
        for count in range(1, most + 1):
            image(self.p, self.q, self.sums)
            advance(self.x, self.r, self.p, self.q, self.sums)
            turn(self.r, self.p, self.sums)
            if float(self.sums.to_numpy()[0]) <= enough:
                return count
        return most


def conjugate_gradients(n: int, most: int) -> tuple[str, dict[str, Callable[[], object]], str]:
    """A solve on n x n points: its name, its variants, and what auto says."""
    b = random_charges(n, seed=5)
    calls: dict[str, Callable[[], object]] = {}
    found: dict[str, tuple[int, np.ndarray[Any, Any]]] = {}
    reason = ""
    for name, fuse in FUSE.items():
        solver = Solver(n, fuse)
        x, count = solver.solve(b, most)
        found[name] = count, x
        if fuse == "auto":
            reason = str(solver.kernel.fusion(*solver.arguments(most)).reason)

        def solve(solver: Solver = solver) -> None:
            solver.kernel(*solver.arguments(most))
            solver.count.to_numpy()

        calls[name] = solve
    host = HostLoop(n)
    host.b.from_numpy(b)
    host.solve(most)
    calls["host loop"] = lambda: host.solve(most)
    counts = {count for count, _ in found.values()}
    assert len(counts) == 1, f"solvers took {counts} iterations"
    assert len({x.tobytes() for _, x in found.values()}) == 1, "the bytes depend on how the tasks are launched"
    return f"CG {n} x {n}, {counts.pop()} iterations", calls, reason


# ----------------------------------------------------------------------- chains


def chain_of_20(x: A, y: A) -> None:
    """Twenty tasks, each of which reads what the one before wrote."""
    for _ in qp.static(range(10)):
        for i in x:
            y[i] = 0.5 * (x[i] + x[(i + 1) % x.shape[0]])
        for i in y:
            x[i] = y[i] + 0.001


def chain_of_2(x: A, y: A) -> None:
    """Two tasks, the second of which reads what the first wrote."""
    for i in x:
        y[i] = 0.5 * (x[i] + x[(i + 1) % x.shape[0]])
    for i in y:
        x[i] = y[i] + 0.001


@qp.kernel
def half(x: A, y: A):
    for i in x:
        y[i] = 0.5 * (x[i] + x[(i + 1) % x.shape[0]])


@qp.kernel
def more(x: A, y: A):
    for i in y:
        x[i] = y[i] + 0.001


def chains(function: Callable[..., None], tasks: int, n: int) -> tuple[str, dict[str, Callable[[], object]], str]:
    """``tasks`` dependent tasks over n elements, as ``conjugate_gradients``."""
    x, y = qp.ndarray(qp.f32, n), qp.ndarray(qp.f32, n)
    device = devices.current_device()
    calls: dict[str, Callable[[], object]] = {}
    reason, results = "", set()
    for name, fuse in FUSE.items():
        kernel = qp.kernel(graph=True, fuse=fuse)(function)
        x.from_numpy(np.linspace(0, 1, n, dtype=np.float32))
        kernel(x, y)
        results.add(x.to_numpy().tobytes())
        if fuse == "auto":
            reason = str(kernel.fusion(x, y).reason)

        def step(kernel: Any = kernel) -> None:
            kernel(x, y)
            device.synchronize()

        calls[name] = step

    def launches() -> None:
        for _ in range(tasks // 2):
            half(x, y)
            more(x, y)
        device.synchronize()

    launches()
    calls["host loop"] = launches
    calls["other arrays"] = other_arrays(function, n)

    @qp.graph.replay
    def replayed(x: Any, y: Any) -> None:
        for _ in range(tasks // 2):
            half(x, y)
            more(x, y)

    def replay() -> None:
        replayed(x, y)
        device.synchronize()

    replay()
    calls["replay"] = replay
    assert len(results) == 1, "the bytes depend on how the tasks are launched"
    return f"chain of {tasks}, {n} elements", calls, reason


def other_arrays(function: Callable[..., None], n: int) -> Callable[[], object]:
    """A graph kernel that is called with two pairs of arrays in turn, so that each call changes all nodes."""
    pairs = itertools.cycle([(qp.ndarray(qp.f32, n), qp.ndarray(qp.f32, n)) for _ in range(2)])
    kernel, device = qp.kernel(graph=True, fuse=False)(function), devices.current_device()

    def step() -> None:
        kernel(*next(pairs))
        device.synchronize()

    step()
    return step


# ------------------------------------------------------------------------ report


def measure(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Microseconds of each call."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> int:
    """Prints a table; 1 where there is no such device."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", choices=("cpu", "amdgpu", "cuda", "gpu"), default="gpu")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--most", type=int, default=2000, help="iterations of a solve (%(default)s)")
    parser.add_argument("--sides", type=int, nargs="*", default=SIDES, help="of the grids (%(default)s)")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS, help="of the chains (%(default)s)")
    options = parser.parse_args()
    try:
        qp.init(arch=options.arch)
    except qp.QuadpyError as error:
        print(error, file=sys.stderr)
        return 1
    names = (*FUSE, "host loop", "other arrays", "replay")
    print(f"{devices.current_device().driver.info.name}, µs\n")
    print("| step |", " | ".join(names), "| separate / fused | auto |")
    print("|---|" + "---|" * (len(names) + 2))
    rows = [lambda n=n: conjugate_gradients(n, options.most) for n in options.sides]
    rows += [lambda n=n: chains(chain_of_2, 2, n) for n in options.lengths]
    rows += [lambda n=n: chains(chain_of_20, 20, n) for n in options.lengths]
    for row in rows:
        title, calls, reason = row()
        found = measure(calls, options.rounds)
        cells = " | ".join(f"{found[name]:.1f}" if name in found else "" for name in names)
        print(f"| {title} | {cells} | {found['separate'] / found['fused']:.2f} | {reason} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
