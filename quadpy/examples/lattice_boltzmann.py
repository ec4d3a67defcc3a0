"""A vortex street behind a cylinder by the lattice Boltzmann method, as a class whose methods are kernels.

Nine populations of particles in each cell move to neighbouring cells and collide: they relax towards equilibrium (BGK; Y.
Qian, D. d'Humières, P. Lallemand, "Lattice BGK Models for Navier-Stokes Equation", Europhysics Letters 1992).  Lengths
are in cells and times in steps; the speed of sound is the square root of 1/3.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink, palette

populations = qp.types.vector(9, qp.f32)
velocities = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
opposite = (0, 3, 4, 1, 2, 7, 8, 5, 6)
weights = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)
COLOURS = ("16a6ff", "0b3a6b", "10131c", "7a1f3d", "ff7a3d")


@qp.data_oriented
class Flow:
    """A box that repeats at its ends, in both directions; solid cells reflect.

    With several ranks, each computes its part of the box.
    """

    def __init__(self, solid: npt.NDArray[np.bool_], viscosity: float, push: float = 0.0) -> None:
        self.shape, self.push = solid.shape, push  # push: the acceleration along x
        self.rate = 1 / (3 * viscosity + 0.5)  # of relaxation; below 2
        make: Callable[..., Any] = functools.partial(qp.field, shape=solid.shape, layout=qp.Layout.SOA)
        if qp.dist.world().size > 1:
            make = qp.dist.Grid(solid.shape, periodic=True).field
        self.f, self.streamed = make(populations), make(populations)
        self.velocity, self.solid = make(qp.math.vec2), make(qp.u8)
        self.solid.from_numpy(solid.astype(np.uint8))

    @qp.func
    def equilibrium(self, density: qp.f32, u: qp.math.vec2) -> qp.Vector:
        """The populations of a gas of this density that moves at this velocity."""
        f: qp.Vector = populations(0.0)
        for k in qp.static(range(9)):
            cu = 3.0 * (velocities[k][0] * u.x + velocities[k][1] * u.y)
            f[k] = weights[k] * density * (1.0 + cu + 0.5 * cu * cu - 1.5 * u.norm_sqr())
        return f

    @qp.func
    def moments(self, f: qp.Vector) -> tuple[qp.f32, qp.math.vec2]:
        """Density and velocity; the velocity is halfway through the push of this step."""
        momentum = qp.math.vec2(0.0)
        for k in qp.static(range(9)):
            momentum += f[k] * qp.Vector([velocities[k][0], velocities[k][1]])
        return f.sum(), momentum / f.sum() + 0.5 * qp.Vector([self.push, 0.0])

    @qp.kernel
    def start(self, velocity: qp.Array2D[qp.math.vec2]) -> None:
        """Equilibrium of density 1 at these velocities."""
        for i, j in self.f:
            self.velocity[i, j] = velocity[i, j] * (1 - self.solid[i, j])
            self.f[i, j] = self.equilibrium(1.0, self.velocity[i, j])

    @qp.kernel
    def stream(self) -> None:
        """Each population moves on by its velocity; a population that meets a solid cell turns back."""
        for i, j in self.f:
            for k in qp.static(range(9)):
                x = (i - velocities[k][0]) % self.shape[0]
                y = (j - velocities[k][1]) % self.shape[1]
                if self.solid[x, y] == 1:
                    self.streamed[i, j][k] = self.f[i, j][opposite[k]]
                else:
                    self.streamed[i, j][k] = self.f[x, y][k]

    @qp.kernel
    def collide(self) -> None:
        """Populations relax towards equilibrium, and are pushed (Z. Guo's forcing, Physical Review E 2002)."""
        for i, j in self.f:
            if self.solid[i, j] == 0:
                f = self.streamed[i, j]
                density, u = self.moments(f)
                towards = self.equilibrium(density, u)
                for k in qp.static(range(9)):
                    cx, cu = velocities[k][0], velocities[k][0] * u.x + velocities[k][1] * u.y
                    force = weights[k] * density * self.push * (3.0 * (cx - u.x) + 9.0 * cu * cx)
                    f[k] += self.rate * (towards[k] - f[k]) + (1.0 - 0.5 * self.rate) * force
                self.f[i, j] = f
                self.velocity[i, j] = u

    def step(self) -> None:
        """One step of time."""
        self.stream()
        self.collide()

    def vorticity(self) -> npt.NDArray[np.float32]:
        """The curl of the velocity; 0 inside solid cells."""
        u = self.velocity.to_numpy()
        curl = np.gradient(u[..., 1], axis=0) - np.gradient(u[..., 0], axis=1)
        return np.where(self.solid.to_numpy() == 1, 0, curl).astype(np.float32)


class Channel(Flow):
    """A cylinder in a stream that comes in at the left with a given velocity and leaves at the right."""

    speed, reynolds = 0.1, 160.0  # speed: far below that of sound

    def __init__(self, n: int) -> None:
        self.radius, (x, y) = n / 18, np.ogrid[: 3 * n, :n]
        solid = (x - n * 0.6) ** 2 + (y - n * 0.501) ** 2 < self.radius**2  # not quite in the middle
        super().__init__(solid, viscosity=2 * self.radius * self.speed / self.reynolds)
        self.start(np.tile(np.array([self.speed, 0], np.float32), (3 * n, n, 1)))

    @qp.kernel
    def renew(self) -> None:
        """The stream far away: given at the inflow, free at the outflow."""
        for j in range(self.shape[1]):
            self.f[0, j] = self.equilibrium(1.0, qp.Vector([self.speed, 0.0]))
        for j in range(self.shape[1]):
            self.f[self.shape[0] - 1, j] = self.f[self.shape[0] - 2, j]

    def step(self) -> None:
        super().step()
        self.renew()

    def draw(self) -> Picture:
        """Vorticity: one way round blue, the other red; the cylinder grey."""
        shades = 0.5 + 0.5 * np.clip(self.vorticity() * self.radius / self.speed, -1, 1)
        picture = palette(shades, COLOURS)
        picture[self.solid.to_numpy() == 1] = 90
        return picture.swapaxes(0, 1)[::-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="lattice_boltzmann.png", steps=600, steps_help="tens of steps of time",
                       size=240, size_help="cells across the stream")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        flow = Channel(args.size)
        play(args.steps, flow.step, flow.draw, sink, substeps=10)

    return run(arguments, argv, body, fast_math=False)


if __name__ == "__main__":
    sys.exit(main())
