"""A dam breaks: smoothed particle hydrodynamics, with a grid in which each particle finds its neighbours.

Each particle carries a mass of water that is spread over its surroundings; where particles crowd, pressure drives them apart
(J. Monaghan, "Smoothed Particle Hydrodynamics", Reports on Progress in Physics 2005; H. Wendland's kernel).  The tank has
length 2 and a lower left corner at (0, 0); density and gravity are those of water, lengths are in metres.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink, dots, palette

vec2 = qp.math.vec2
density0, gravity = 1000.0, 9.81
sound = 20.0  # ten times as fast as the water would do, so that density changes by about a percent
tank = (2.0, 1.25)
substeps = 20
COLOURS = ("0a3d7a", "1f7fd0", "7cd0f5", "ffffff")


@qp.dataclass
class Particle:
    x: vec2
    v: vec2
    density: qp.f32
    pressure: qp.f32


@qp.data_oriented
class Water:
    """Particles at a ``spacing``, and the cells of a grid, as large as the reach of a particle."""

    def __init__(self, x: npt.NDArray[np.float32], spacing: float, pull: float = gravity) -> None:
        self.h, self.mass, self.pull = 1.3 * spacing, density0 * spacing**2, pull
        self.reach, self.dt = 2 * self.h, 0.2 * self.h / sound
        self.moving, x = len(x), np.concatenate([x, walls(spacing)])
        self.cells = tuple(math.ceil(length / self.reach) + 4 for length in tank)
        self.particles = qp.field(Particle, shape=len(x), layout=qp.Layout.SOA)
        self.force = qp.Vector.field(2, qp.f32, shape=self.moving)
        self.begin = qp.field(qp.i32, shape=self.cells[0] * self.cells[1] + 1)  # of each cell in ``order``
        self.filled = qp.field(qp.i32, shape=self.cells[0] * self.cells[1])
        self.order = qp.field(qp.i32, shape=len(x))
        self.particles.x.from_numpy(x)

    @qp.func
    def cell(self, x: vec2) -> qp.math.ivec2:
        """The column and row of a place."""
        return qp.math.clamp(qp.cast(x / self.reach + 2.0, int), 0, qp.Vector(self.cells) - 1)

    @qp.kernel
    def sort(self) -> None:
        """Counting sort by cells: how many are in each, where each begins, and who is in it."""
        self.filled.fill(0)
        for p in self.particles:
            c = self.cell(self.particles[p].x)
            self.filled[c.x * self.cells[1] + c.y] += 1
        total = 0
        qp.loop_config(serialize=True)
        for number in range(self.filled.shape[0]):
            self.begin[number] = total
            total += self.filled[number]
            self.filled[number] = 0
        self.begin[self.filled.shape[0]] = total
        for p in self.particles:
            c = self.cell(self.particles[p].x)
            number = c.x * self.cells[1] + c.y
            self.order[self.begin[number] + qp.atomic_add(self.filled[number], 1)] = p

    @qp.func
    def for_neighbours(self, p: qp.i32, pair: qp.Template, total: qp.Template) -> None:
        """Add ``pair`` of this particle and each within reach to ``total``; a column of three cells is contiguous."""
        c = self.cell(self.particles[p].x)
        for column in range(qp.max(c.x - 1, 0), qp.min(c.x + 2, self.cells[0])):
            row = column * self.cells[1]
            low, high = qp.max(c.y - 1, 0), qp.min(c.y + 2, self.cells[1])
            for k in range(self.begin[row + low], self.begin[row + high]):
                q = self.order[k]
                away = self.particles[p].x - self.particles[q].x
                if away.norm_sqr() < self.reach**2:
                    total += pair(p, q, away)

    @qp.func
    def share(self, p: qp.i32, q: qp.i32, away: vec2) -> qp.f32:
        """The contribution of a neighbour to the density: Wendland's kernel."""
        r = away.norm() / self.h
        return self.mass * 7.0 / (4.0 * math.pi * self.h**2) * (1.0 - 0.5 * r) ** 4 * (1.0 + 2.0 * r)

    @qp.func
    def push(self, p: qp.i32, q: qp.i32, away: vec2) -> vec2:
        """The acceleration by a neighbour: pressure, and friction of those that approach; minus that of q by p."""
        one: Particle = self.particles[p]
        other: Particle = self.particles[q]
        slope = -35.0 / (4.0 * math.pi * self.h**4) * (1.0 - 0.5 * away.norm() / self.h) ** 3
        approach = qp.min((one.v - other.v).dot(away), 0.0)
        friction = -0.1 * sound * self.h * approach / (away.norm_sqr() + 0.01 * self.h**2) * 2.0
        pressure = one.pressure / one.density**2 + other.pressure / other.density**2
        return -self.mass * (pressure + friction / (one.density + other.density)) * slope * away

    @qp.kernel
    def compress(self) -> None:
        """Density, and pressure by Tait's equation; water that is stretched does not pull."""
        for p in self.particles:
            total = 0.0
            self.for_neighbours(p, self.share, total)
            self.particles[p].density = total
            self.particles[p].pressure = density0 * sound**2 / 7.0 * qp.max((total / density0) ** 7 - 1.0, 0.0)

    @qp.kernel
    def accelerate(self) -> None:
        """Pressure, friction, gravity."""
        for p in self.force:
            total = vec2(0.0, -self.pull)
            self.for_neighbours(p, self.push, total)
            self.force[p] = total

    @qp.kernel
    def move(self, h: qp.f32) -> None:
        """Symplectic Euler."""
        for p in self.force:
            self.particles[p].v += h * self.force[p]
            self.particles[p].x += h * self.particles[p].v

    def step(self) -> None:
        """Advance by dt."""
        self.sort()
        self.compress()
        self.accelerate()
        self.move(self.dt)

    def draw(self, size: int) -> Picture:
        """Faster water is lighter."""
        picture = np.full((int(size * tank[1] / tank[0]), size, 3), (12, 14, 22), np.uint8)
        x, v = (field.to_numpy()[: self.moving] for field in (self.particles.x, self.particles.v))
        colours = palette(np.linalg.norm(v, axis=1) / 4, COLOURS)
        return dots(picture, x * (size / tank[0]), colours, round(0.4 * self.h * size / tank[0]))


def walls(spacing: float) -> npt.NDArray[np.float32]:
    """Three layers of particles that stay where they are, around the tank; it is open above."""
    i, j = np.meshgrid(*(np.arange(-3, round(length / spacing) + 3) for length in tank), indexing="ij")
    outside = (i < 0) | (j < 0) | (i >= round(tank[0] / spacing))
    return ((np.stack([i[outside], j[outside]], -1) + 0.5) * spacing).astype(np.float32)


def dam(spacing: float) -> Water:
    """A column of water at the left."""
    columns, rows = np.meshgrid(np.arange(0.6 / spacing), np.arange(0.8 / spacing), indexing="ij")
    return Water((np.stack([columns, rows], -1).reshape(-1, 2) * spacing + spacing / 2).astype(np.float32), spacing)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="sph.png", steps=200, steps_help=f"{substeps} steps of time each",
                       size=640, size_help="width of the picture in pixels")  # fmt: skip
    arguments.add_argument("--spacing", type=float, default=0.01, metavar="M", help="of particles (%(default)s)")

    def body(args: argparse.Namespace, sink: Sink) -> None:
        water = dam(args.spacing)
        play(args.steps, water.step, lambda: water.draw(args.size), sink, substeps=substeps)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
