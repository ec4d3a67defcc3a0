"""Heat flows through a block of metal with a hot face and a cold rod in it, in three dimensions.

An explicit step for du/dt = k (d2u/dx2 + d2u/dy2 + d2u/dz2) with seven points; the outermost cells keep their temperature.
With several ranks (``quadpy run -n 4``), each computes its part of the block.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink, palette

rate: Final = 0.16  # k times the step of time over the square of a cell; stable below 1/6
temperatures = qp.Array3D[qp.f32]


@qp.kernel
def flow(u: temperatures, after: temperatures, solid: temperatures) -> None:
    """One step of time; solid cells keep their temperature, as do the outermost cells."""
    for i, j, k in u:
        inside = 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1 and 0 < k < u.shape[2] - 1
        change = 0.0
        if inside and solid[i, j, k] == 0.0:
            around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
            change = rate * (around - 6.0 * u[i, j, k])
        after[i, j, k] = u[i, j, k] + change


@qp.kernel
def mean(u: temperatures) -> qp.f32:
    """The mean temperature."""
    total = 0.0
    for i, j, k in u:
        total += u[i, j, k]
    return total / (qp.f32(u.shape[0]) * u.shape[1] * u.shape[2])


class Metal:
    """A block of ``n`` cells along each side."""

    def __init__(self, n: int) -> None:
        grid = qp.dist.Grid((n, n, n))
        self.u, self.after, self.solid = (grid.ndarray(qp.f32) for _ in range(3))
        x, y, z = np.ogrid[:n, :n, :n]
        rod = ((y - 0.6 * n) ** 2 + (z - 0.55 * n) ** 2 < (0.12 * n) ** 2) & (x > 0.15 * n)
        start = np.where(rod, -1.0, 0.0).astype(np.float32)
        start[:, :, 0] = 1.0
        self.u.from_numpy(start)
        self.after.from_numpy(start)
        self.solid.from_numpy(rod.astype(np.float32))

    def step(self) -> None:
        """One step of time."""
        flow(self.u, self.after, self.solid)
        self.u, self.after = self.after, self.u

    def slice(self) -> Floats:
        """The temperatures in the middle of the block."""
        found: Floats = self.u.to_numpy()[len(self.u) // 2]
        return found

    def draw(self) -> Picture:
        """Hot orange, cold blue."""
        return palette(0.5 + 0.5 * self.slice(), ("0b2a6b", "3f7fd0", "f6f3ea", "dd7a2e", "7a2208"))[::-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="heat.png", steps=60, steps_help="tens of steps of time", size=96,
                       size_help="cells along each side")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        metal = Metal(args.size)
        play(args.steps, metal.step, metal.draw, sink, substeps=10)
        print(f"mean temperature {mean(metal.u):.6f}")

    return run(arguments, argv, body, fast_math=False)


if __name__ == "__main__":
    sys.exit(main())
