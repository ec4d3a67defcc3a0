"""Flow in a box whose lid moves, on a staggered grid: pressures in cells, velocities on the faces between them.

Each step moves the velocities by advection and viscosity, then subtracts the gradient of a pressure that leaves them free
of divergence (A. J. Chorin, "Numerical solution of the Navier-Stokes equations", 1968; F. H. Harlow and J. E. Welch, 1965,
for the grid).  The box has side 1, and the lid speed 1.  With several ranks (``quadpy run -n 4``), each has its part of
the grid, and the bits are the same as with one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink, palette

scalars = qp.Array2D[qp.f32]
COLOURS = ("10131c", "0b3a6b", "16a6ff", "ffd166", "ff7a3d")


@qp.kernel
def move(u: scalars, v: scalars, u_new: scalars, v_new: scalars, h: qp.f32, dt: qp.f32, viscosity: qp.f32) -> None:
    """Advection and viscosity, by central differences; walls and lid act on the faces beside them."""
    for i, j in u:
        if 0 < i < u.shape[0] - 1:
            here, left, right = u[i, j], u[i - 1, j], u[i + 1, j]
            below = u[i, j - 1] if j > 0 else -here
            above = u[i, j + 1] if j < u.shape[1] - 1 else 2.0 - here
            across = 0.25 * (v[i - 1, j] + v[i, j] + v[i - 1, j + 1] + v[i, j + 1])
            change = viscosity / h * (left + right + below + above - 4.0 * here)
            u_new[i, j] = here + dt / h * (change - 0.5 * (here * (right - left) + across * (above - below)))
    for i, j in v:
        if 0 < j < v.shape[1] - 1:
            here, below, above = v[i, j], v[i, j - 1], v[i, j + 1]
            left = v[i - 1, j] if i > 0 else -here
            right = v[i + 1, j] if i < v.shape[0] - 1 else -here
            across = 0.25 * (u[i, j - 1] + u[i, j] + u[i + 1, j - 1] + u[i + 1, j])
            change = viscosity / h * (left + right + below + above - 4.0 * here)
            v_new[i, j] = here + dt / h * (change - 0.5 * (across * (right - left) + here * (above - below)))


@qp.kernel
def relax(u: scalars, v: scalars, p: scalars, p_new: scalars) -> None:
    """One of Jacobi's iterations for the pressure, times dt / h, whose gradient is the divergence of the velocities."""
    for i, j in p:
        total, count = u[i, j] - u[i + 1, j] + v[i, j] - v[i, j + 1], 0.0
        for di, dj in qp.static(((1, 0), (-1, 0), (0, 1), (0, -1))):
            if 0 <= i + di < p.shape[0] and 0 <= j + dj < p.shape[1]:
                total += p[i + di, j + dj]
                count += 1.0
        p_new[i, j] = total / count


@qp.kernel
def project(p: scalars, u: scalars, v: scalars) -> None:
    """Subtracts the gradient of the pressure from the velocities of all faces but the walls."""
    for i, j in u:
        if 0 < i < p.shape[0]:
            u[i, j] -= p[i, j] - p[i - 1, j]
    for i, j in v:
        if 0 < j < p.shape[1]:
            v[i, j] -= p[i, j] - p[i, j - 1]


@qp.kernel
def divergence(u: scalars, v: scalars) -> qp.f32:
    """The largest that a cell has, times the size of a cell."""
    largest = 0.0
    for i, j in qp.ndrange(v.shape[0], u.shape[1]):
        qp.atomic_max(largest, abs(u[i + 1, j] - u[i, j] + v[i, j + 1] - v[i, j]))
    return largest


class Cavity:
    """The flow in a box of ``n`` cells along each side."""

    def __init__(self, n: int, reynolds: float = 400.0, relaxations: int = 60) -> None:
        grid = qp.dist.Grid((n, n))
        self.h, self.viscosity, self.relaxations = 1 / n, 1 / reynolds, relaxations
        self.dt = min(0.5 * self.h, 0.2 * self.h**2 * reynolds)
        self.u, self.u_new = (grid.ndarray(qp.f32, staggered=(True, False)) for _ in range(2))
        self.v, self.v_new = (grid.ndarray(qp.f32, staggered=(False, True)) for _ in range(2))
        self.p, self.p_new = (grid.ndarray(qp.f32) for _ in range(2))

    def step(self) -> None:
        """One step of time."""
        move(self.u, self.v, self.u_new, self.v_new, self.h, self.dt, self.viscosity)
        self.u, self.u_new, self.v, self.v_new = self.u_new, self.u, self.v_new, self.v
        for _ in range(self.relaxations):
            relax(self.u, self.v, self.p, self.p_new)
            self.p, self.p_new = self.p_new, self.p
        project(self.p, self.u, self.v)

    def draw(self) -> Picture:
        """The speed in each cell, with the lid at the top."""
        u, v = self.u.to_numpy(), self.v.to_numpy()
        speed = np.hypot(u[1:] + u[:-1], v[:, 1:] + v[:, :-1]) / 2
        return palette(np.clip(speed / 0.8, 0, 1), COLOURS).swapaxes(0, 1)[::-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="cavity.png", steps=200, steps_help="tens of steps of time",
                       size=128, size_help="cells along each side")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        cavity = Cavity(args.size)
        play(args.steps, cavity.step, cavity.draw, sink, substeps=10)

    return run(arguments, argv, body, fast_math=False)


if __name__ == "__main__":
    sys.exit(main())
