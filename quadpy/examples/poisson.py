"""The potential of charges in a grounded box, by conjugate gradients whose loop is on the host.

Solves 4 x - (its neighbours) = b on a square grid; x is 0 outside.  (M. R. Hestenes and E. Stiefel, "Methods of conjugate
gradients", 1952.)  With several ranks (``quadpy run -n 4``), each has its part of the grid, and the bits are the same
as with one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import quadpy as qp
from quadpy.examples._common import parser, run
from quadpy.examples._pictures import Floats, Sink
from quadpy.examples.conjugate_gradient import draw, random_charges

tolerance: Final = 1e-5  # of the final residual, relative to the first
scalars = qp.Array2D[qp.f32]


@qp.kernel
def begin(b: scalars, x: scalars, r: scalars, p: scalars) -> qp.f32:
    """The solution 0, its residual and the first direction; returns the square of the residual."""
    square = 0.0
    for i, j in b:
        x[i, j] = 0.0
        r[i, j] = b[i, j]
        p[i, j] = b[i, j]
        square += b[i, j] * b[i, j]
    return square


@qp.kernel
def advance(x: scalars, r: scalars, p: scalars, q: scalars, square: qp.f32) -> qp.f32:
    """A step along p, then the next direction; q = A p.  Returns the square of the new residual."""
    curvature = 0.0
    for i, j in p:
        total = 4.0 * p[i, j]
        for di, dj in qp.static(((1, 0), (-1, 0), (0, 1), (0, -1))):
            if 0 <= i + di < p.shape[0] and 0 <= j + dj < p.shape[1]:
                total -= p[i + di, j + dj]
        q[i, j] = total
        curvature += p[i, j] * total
    step = square / curvature
    left = 0.0
    for i, j in r:
        x[i, j] += step * p[i, j]
        r[i, j] -= step * q[i, j]
        left += r[i, j] * r[i, j]
    for i, j in p:
        p[i, j] = r[i, j] + left / square * p[i, j]
    return left


def solve(b: Floats, most: int) -> tuple[Floats, int]:
    """The solution, and the number of iterations, which is at most ``most``."""
    grid = qp.dist.Grid(b.shape)
    charge, x, r, p, q = (grid.ndarray(qp.f32) for _ in range(5))
    charge.from_numpy(b)
    square = begin(charge, x, r, p)
    enough, count = tolerance**2 * square, 0
    while square > enough and count < most:
        square = advance(x, r, p, q, square)
        count += 1
    return x.to_numpy(), count


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="poisson.png", steps=5000, steps_help="maximum number of iterations", size=256,
                       size_help="points along each side")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        potential, count = solve(random_charges(args.size, 5), args.steps)
        print(f"{count} iterations")
        sink.add(draw(potential))

    return run(arguments, argv, body, fast_math=False)


if __name__ == "__main__":
    sys.exit(main())
