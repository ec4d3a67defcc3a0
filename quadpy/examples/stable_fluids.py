"""Coloured ink in a box of fluid, by Stam's stable fluids on a staggered grid.

Velocities are on the faces of cells and pressure is at their centres, so that the projection removes the divergence
exactly (J. Stam, "Stable Fluids", SIGGRAPH 1999; staggered grid: Harlow and Welch 1965).  Lengths are in cells; the indices
(i, j) go right and up.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink

dt = 0.01
sweeps = 40  # of the pressure solver in each step, which starts from the last pressure
over_relaxation = 1.85  # the best factor for many sweeps, near 2, is worse for a few
jet_speed = 1.1  # box lengths per unit of time

scalars = qp.Array2D[qp.f32]
colours = qp.Array2D[qp.math.vec3]
Value = TypeVar("Value", float, qp.Vector)  # of a grid: a number or a colour


@qp.func
def sample(q: qp.Array2D[Value], x: qp.f32, y: qp.f32) -> Value:
    """Bilinear interpolation of q; outside, the value at the edge."""
    x = qp.math.clamp(x, 0.0, q.shape[0] - 1.0)
    y = qp.math.clamp(y, 0.0, q.shape[1] - 1.0)
    i = qp.min(qp.i32(x), q.shape[0] - 2)
    j = qp.min(qp.i32(y), q.shape[1] - 2)
    s, t = x - i, y - j
    return (1.0 - s) * ((1.0 - t) * q[i, j] + t * q[i, j + 1]) + s * ((1.0 - t) * q[i + 1, j] + t * q[i + 1, j + 1])


@qp.func
def velocity(u: scalars, v: scalars, x: qp.f32, y: qp.f32) -> qp.math.vec2:
    """The velocity at (x, y): face i of u is at x = i, at half the height of the cell; v likewise."""
    return qp.Vector([sample(u, x, y - 0.5), sample(v, x - 0.5, y)])


@qp.func
def origin(u: scalars, v: scalars, x: qp.f32, y: qp.f32, h: qp.f32) -> qp.math.vec2:
    """Where the fluid at (x, y) was a time h ago, by the midpoint rule."""
    here = qp.Vector([x, y])
    middle = here - 0.5 * h * velocity(u, v, x, y)
    return here - h * velocity(u, v, middle.x, middle.y)


@qp.kernel
def advect_velocity(h: qp.f32, u: scalars, v: scalars, new_u: scalars, new_v: scalars) -> None:
    """Advect the velocity by itself; it is 0 through the walls."""
    for i, j in u:
        p = origin(u, v, qp.f32(i), j + 0.5, h)
        wall = i == 0 or i == u.shape[0] - 1
        new_u[i, j] = 0.0 if wall else sample(u, p.x, p.y - 0.5)
    for i, j in v:
        p = origin(u, v, i + 0.5, qp.f32(j), h)
        wall = j == 0 or j == v.shape[1] - 1
        new_v[i, j] = 0.0 if wall else sample(v, p.x - 0.5, p.y)


@qp.kernel
def advect_ink(h: qp.f32, u: scalars, v: scalars, ink: colours, new_ink: colours) -> None:
    """Advect the ink."""
    for i, j in ink:
        p = origin(u, v, i + 0.5, j + 0.5, h)
        new_ink[i, j] = sample(ink, p.x - 0.5, p.y - 0.5)


@qp.kernel
def jet(
    centre: qp.math.vec2, radius: qp.f32, push: qp.math.vec2,
    colour: qp.math.vec3, u: scalars, v: scalars, ink: colours,
) -> None:  # fmt: skip
    """Set velocity and ink in a disc."""
    for i, j in ink:
        if (qp.Vector([i, j]) + 0.5 - centre).norm() < radius:
            u[i, j] = push.x
            v[i, j] = push.y
            ink[i, j] = colour


@qp.kernel
def divergence(u: scalars, v: scalars, div: scalars) -> None:
    """The outflow of each cell."""
    for i, j in div:
        div[i, j] = u[i + 1, j] - u[i, j] + v[i, j + 1] - v[i, j]


@qp.kernel
def relax(parity: qp.i32, over: qp.f32, div: scalars, p: scalars) -> None:
    """Half a sweep of successive over-relaxation: the cells of one colour of a chessboard, which read only the others."""
    for i, j in p:
        if (i + j) % 2 == parity:
            total, neighbours = 0.0, 0
            for di, dj in qp.static(((1, 0), (-1, 0), (0, 1), (0, -1))):
                if 0 <= i + di < p.shape[0] and 0 <= j + dj < p.shape[1]:
                    total += p[i + di, j + dj]
                    neighbours += 1
            p[i, j] += over * ((total - div[i, j]) / neighbours - p[i, j])


@qp.kernel
def subtract_gradient(p: scalars, u: scalars, v: scalars) -> None:
    """Subtract the pressure difference of the cells on both sides from the inner faces."""
    for i, j in qp.ndrange((1, p.shape[0]), p.shape[1]):
        u[i, j] -= p[i, j] - p[i - 1, j]
    for i, j in qp.ndrange(p.shape[0], (1, p.shape[1])):
        v[i, j] -= p[i, j] - p[i, j - 1]


class Fluid:
    """A square box of n x n cells: velocity u, v on faces, pressure p, and ink of three colours."""

    def __init__(self, n: int) -> None:
        self.n, self.time = n, 0.0
        self.u, self._u = np.zeros((2, n + 1, n), np.float32)
        self.v, self._v = np.zeros((2, n, n + 1), np.float32)
        self.p, self.div = np.zeros((2, n, n), np.float32)
        self.ink, self._ink = np.zeros((2, n, n, 3), np.float32)

    def step(self) -> None:
        """Advance by a time dt: advection, jets, projection."""
        advect_velocity(dt, self.u, self.v, self._u, self._v)
        self.u, self._u, self.v, self._v = self._u, self.u, self._v, self.v
        self.blow()
        self.project(sweeps)
        advect_ink(dt, self.u, self.v, self.ink, self._ink)
        self.ink, self._ink = self._ink, self.ink
        self.time += dt

    def blow(self) -> None:
        """Three jets of ink that swing a little and meet in the middle."""
        n = self.n
        for k, colour in enumerate(((1.0, 0.28, 0.12), (0.1, 0.75, 0.65), (0.35, 0.25, 1.0))):
            place = math.radians(90 + 120 * k)
            aim = place + math.pi + 0.35 * math.sin(3 * self.time + 2 * k)
            centre = qp.math.vec2(*(n * (0.5 + 0.4 * f(place)) for f in (math.cos, math.sin)))
            push = qp.math.vec2(*(n * jet_speed * f(aim) for f in (math.cos, math.sin)))
            jet(centre, 0.035 * n, push, qp.math.vec3(*colour), self.u, self.v, self.ink)

    def project(self, count: int) -> None:
        """Remove the divergence with ``count`` sweeps."""
        divergence(self.u, self.v, self.div)
        for _ in range(count):
            relax(0, over_relaxation, self.div, self.p)
            relax(1, over_relaxation, self.div, self.p)
        subtract_gradient(self.p, self.u, self.v)

    def draw(self) -> Picture:
        """Glowing ink on black, one pixel for each cell."""
        light: Floats = self.ink[:, ::-1].transpose(1, 0, 2)
        return (255 * np.clip(light, 0, 1) ** 0.6).astype(np.uint8)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="stable_fluids.png", steps=300, steps_help=f"steps of time {dt}", size=480,
                  size_help="cells along each side")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        fluid = Fluid(args.size)
        play(args.steps, fluid.step, fluid.draw, sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
