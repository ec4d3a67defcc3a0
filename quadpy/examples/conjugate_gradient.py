"""The electric potential of charges in a grounded box, by conjugate gradients that stop on the device.

Solves Poisson's equation on a square grid with a five-point stencil: 4 x - (its neighbours) = b, and x is 0 outside.  The
solver is one kernel with a loop over its tasks, so a GPU does not wait for the host between iterations; with
``--fuse yes`` all of it is one launch.  (M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients", 1952.)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink, palette

tolerance = 1e-5  # of the final residual, relative to the first
charges = 24
bands = 24  # equipotential lines between the lowest and the highest potential

scalars = qp.Array2D[qp.f32]
number = qp.Array0D[qp.i32]

FUSE: Final = {"auto": "auto", "yes": True, "no": False}


@qp.func
def stencil(p: scalars, i: qp.i32, j: qp.i32) -> qp.f32:
    """4 p minus its neighbours, which are 0 outside the grid."""
    total = 4.0 * p[i, j]
    for di, dj in qp.static(((1, 0), (-1, 0), (0, 1), (0, -1))):
        if 0 <= i + di < p.shape[0] and 0 <= j + dj < p.shape[1]:
            total -= p[i + di, j + dj]
    return total


def conjugate_gradients(
    b: scalars, x: scalars, r: scalars, p: scalars, q: scalars, go: number, count: number, least: qp.f32, most: qp.i32
) -> None:
    """Solve for x until the residual r is ``least`` times b, for ``most`` iterations at most; p is the direction, q = A p."""
    rr = 0.0
    for i, j in b:
        x[i, j] = 0.0
        r[i, j] = b[i, j]
        p[i, j] = b[i, j]
        rr += b[i, j] * b[i, j]
    enough = least * least * rr
    count[None] = 0
    while qp.graph.do_while(go):
        curvature = 0.0
        for i, j in p:
            q[i, j] = stencil(p, i, j)
            curvature += p[i, j] * q[i, j]
        step = rr / curvature if curvature > 0.0 else 0.0
        left = 0.0
        for i, j in r:
            x[i, j] += step * p[i, j]
            r[i, j] -= step * q[i, j]
            left += r[i, j] * r[i, j]
        turn = left / rr if rr > 0.0 else 0.0
        rr = left
        for i, j in p:
            p[i, j] = r[i, j] + turn * p[i, j]
        count[None] += 1
        go[None] = qp.i32(left > enough and count[None] < most)


solution = qp.kernel(graph=True)(conjugate_gradients)


class Solver:
    """Solves for right-hand sides of shape (n, n); ``fuse`` is passed to ``qp.kernel``."""

    def __init__(self, n: int, fuse: Any = "auto") -> None:
        self.kernel = solution if fuse == "auto" else qp.kernel(graph=True, fuse=fuse)(conjugate_gradients)
        self.b, self.x, *self._work = (qp.ndarray(qp.f32, (n, n)) for _ in range(5))
        self.go, self.count = qp.ndarray(qp.i32, ()), qp.ndarray(qp.i32, ())

    def arguments(self, most: int) -> tuple[Any, ...]:
        """The arguments of the kernel."""
        return self.b, self.x, *self._work, self.go, self.count, tolerance, most

    def solve(self, b: Floats, most: int) -> tuple[Floats, int]:
        """The solution and the number of iterations, which is at most ``most``."""
        self.b.from_numpy(b)
        self.kernel(*self.arguments(most))
        return self.x.to_numpy(), int(self.count.to_numpy())


def random_charges(n: int, seed: int) -> Floats:
    """As many positive as negative charges, away from the edges, each spread over a few points."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(0.1, 0.9, (charges, 2)) * n
    size = (n / 60) ** 2
    y, x = np.mgrid[:n, :n] + 0.5
    b = np.zeros((n, n))
    for k, (cx, cy) in enumerate(at):
        b += (-1) ** k * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / size) / size
    return b.astype(np.float32)


def draw(potential: Floats) -> Picture:
    """Negative potential blue, positive orange, with a line between bands."""
    scale = np.abs(potential).max() or 1.0
    level = 0.5 + 0.5 * np.sign(potential) * np.sqrt(np.abs(potential) / scale)
    picture = palette(level.astype(np.float32), ["0b2a6b", "3f7fd0", "b9d7ee", "f6f3ea", "f3c48a", "dd7a2e", "7a2208"])
    step = np.floor(level * bands)
    edge = (step != np.roll(step, 1, 0)) | (step != np.roll(step, 1, 1))
    edge[0], edge[:, 0] = False, False
    picture[edge] = picture[edge] // 2
    return picture


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="conjugate_gradient.png", steps=5000, steps_help="maximum number of iterations", size=512,
                  size_help="points along each side")  # fmt: skip
    arguments.add_argument("--seed", type=int, default=5, help="seed of the random charges (%(default)s)")
    arguments.add_argument(
        "--fuse", choices=tuple(FUSE), default="auto", help="run all tasks in one launch (%(default)s)"
    )

    def body(args: argparse.Namespace, sink: Sink) -> None:
        solver = Solver(args.size, FUSE[args.fuse])
        solver.b.from_numpy(random_charges(args.size, args.seed))
        count = min(args.steps.bit_length(), sink.most)
        limits = (args.steps >> left for left in reversed(range(count)))  # each solution has twice the iterations
        play(count, lambda: solver.kernel(*solver.arguments(next(limits))), lambda: draw(solver.x.to_numpy()), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
