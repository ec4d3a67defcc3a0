"""Jelly, snow and sand by the material point method: one law of elasticity, three ways to flow.

Stress follows from the logarithm of the stretches (Hencky), which a singular value decomposition of the deformation gives.
Jelly only stretches; snow breaks and hardens (A. Stomakhin et al., SIGGRAPH 2013); sand slides where its friction is
exceeded (G. Klar et al., "Drucker-Prager Elastoplasticity for Sand Animation", SIGGRAPH 2016).  The box has length 1.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink, dots

vec2 = qp.math.vec2
mat2 = qp.math.mat2
JELLY, SNOW, SAND = 0, 1, 2
n_grid, dt, substeps, wall = 128, 1e-4, 25, 3  # the walls are 3 cells thick
dx = 1 / n_grid
volume = (dx / 2) ** 2  # of a particle: four fill a cell
density, gravity = (1.0, 0.4, 1.6), 9.8
shear, bulk = (60.0, 220.0, 900.0), (120.0, 150.0, 600.0)  # Lamé's mu and lambda
slope = math.sqrt(2 / 3) * 2 * math.sin(math.radians(38)) / (3 - math.sin(math.radians(38)))  # friction of sand
COLOURS = np.array([[235, 92, 74], [236, 242, 250], [222, 178, 96]])


@qp.dataclass
class Particle:
    x: vec2
    v: vec2
    C: mat2  # gradient of the velocity
    F: mat2  # elastic part of the deformation
    hardness: qp.f32
    kind: qp.i32

    @qp.func
    def flow(self) -> mat2:
        """Relax the deformation to what the material bears; returns the remaining stress times the volume ratio."""
        U, sigma, V = qp.svd(self.F)
        mu, la = qp.Vector(shear)[self.kind] * self.hardness, qp.Vector(bulk)[self.kind] * self.hardness
        strain = vec2(qp.log(qp.max(sigma[0, 0], 0.05)), qp.log(qp.max(sigma[1, 1], 0.05)))
        if self.kind == SNOW:
            borne = qp.math.clamp(strain, -2.5e-2, 5e-3)
            self.hardness = qp.math.clamp(self.hardness * qp.exp(10.0 * (borne - strain).sum()), 0.05, 20.0)
            strain = borne
        elif self.kind == SAND:
            strain = slide(strain, mu, la)
        self.F = U @ mat2([[qp.exp(strain.x), 0.0], [0.0, qp.exp(strain.y)]]) @ V.transpose()
        tau = 2.0 * mu * strain + la * strain.sum()
        return U @ mat2([[tau.x, 0.0], [0.0, tau.y]]) @ U.transpose()


@qp.func
def slide(strain: vec2, mu: qp.f32, la: qp.f32) -> vec2:
    """Sand that is pulled falls apart; sand that is pressed bears as much shear as its friction allows."""
    trace = strain.sum()
    shape = strain - 0.5 * trace
    excess = shape.norm() + (la + mu) / mu * trace * slope
    result = strain
    if trace >= 0.0:
        result = vec2(0.0)
    elif excess > 0.0:
        result = strain - excess * shape.normalized(1e-12)
    return result


@qp.data_oriented
class Box:
    """Particles of three materials, and the grid on which they meet."""

    def __init__(self, count: int, pull: float = gravity) -> None:
        self.pull, self.particles = pull, qp.field(Particle, shape=count, layout=qp.Layout.SOA)
        self.momentum = qp.Vector.field(2, qp.f32, shape=(n_grid, n_grid))  # later velocity
        self.mass = qp.field(qp.f32, shape=(n_grid, n_grid))

    @qp.func
    def weights(self, x: vec2) -> tuple[qp.math.ivec2, vec2, list[vec2]]:
        """The first of three nodes along each axis, the place relative to it, and the shares of the three."""
        base = qp.cast(x / dx - 0.5, int)
        at = x / dx - base
        return base, at, [0.5 * (1.5 - at) ** 2, 0.75 - (at - 1.0) ** 2, 0.5 * (at - 0.5) ** 2]

    @qp.kernel
    def to_grid(self) -> None:
        """Mass and momentum, with the impulse of the stress."""
        self.momentum.fill(0)
        self.mass.fill(0)
        for p in self.particles:
            base, at, w = self.weights(self.particles[p].x)
            stress = self.particles[p].flow()
            mass = qp.Vector(density)[self.particles[p].kind] * volume
            affine = mass * self.particles[p].C - 4.0 * dt * volume / dx**2 * stress
            for i, j in qp.static(qp.ndrange(3, 3)):
                share, away = w[i].x * w[j].y, (vec2(i, j) - at) * dx
                self.momentum[base + qp.Vector([i, j])] += share * (mass * self.particles[p].v + affine @ away)
                self.mass[base + qp.Vector([i, j])] += share * mass

    @qp.kernel
    def on_grid(self) -> None:
        """Velocity, gravity, and walls: material that moves into a wall sticks to it."""
        for i, j in self.mass:
            if self.mass[i, j] > 0.0:
                v = self.momentum[i, j] / self.mass[i, j] - vec2(0.0, dt * self.pull)
                if qp.min(i, j) < wall or qp.max(i, j) > n_grid - wall:
                    v = vec2(0.0)
                self.momentum[i, j] = v

    @qp.kernel
    def from_grid(self) -> None:
        """Velocity and its gradient, which move and deform the particles."""
        for p in self.particles:
            base, at, w = self.weights(self.particles[p].x)
            v, C = vec2(0.0), mat2(0.0)
            for i, j in qp.static(qp.ndrange(3, 3)):
                u = w[i].x * w[j].y * self.momentum[base + qp.Vector([i, j])]
                v += u
                C += 4.0 / dx * u.outer_product(vec2(i, j) - at)
            self.particles[p].v, self.particles[p].C = v, C
            self.particles[p].x += dt * v
            self.particles[p].F = (qp.Matrix.identity(qp.f32, 2) + dt * C) @ self.particles[p].F

    def step(self) -> None:
        """Advance by dt."""
        self.to_grid()
        self.on_grid()
        self.from_grid()

    def draw(self, size: int) -> Picture:
        """Jelly red, snow white, sand yellow."""
        picture = np.full((size * 3 // 4, size, 3), (20, 24, 34), np.uint8)
        return dots(picture, self.particles.x.to_numpy() * size, COLOURS[self.particles.kind.to_numpy()], size // 400)


def blocks(count: int = 2000) -> Box:
    """A block of each material, ``count`` particles large, above the ground."""
    box, side = Box(3 * count), math.sqrt(count * volume)
    spread = np.arange(3 * count)[:, None] * [0.7548776662466927, 0.5698402910280532] % 1  # even (Roberts' R2 sequence)
    kind = np.arange(3 * count) // count
    corner = np.array([[0.36, 0.42], [0.62, 0.4], [0.33, 0.1]])[kind]
    count = len(kind)
    box.particles.from_numpy({
        "x": corner + spread * side, "v": np.zeros((count, 2)), "C": np.zeros((count, 2, 2)),
        "F": np.tile(np.eye(2), (count, 1, 1)), "hardness": np.ones(count), "kind": kind,
    })  # fmt: skip
    return box


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="materials.png", steps=180, steps_help=f"steps of {substeps * dt:g} s",
                       size=640, size_help="width of the picture in pixels")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        box = blocks()
        play(args.steps, box.step, lambda: box.draw(args.size), sink, substeps=substeps)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
