"""Two galaxies that collide: gravity between all pairs of bodies.

The units make the gravitational constant 1.  The leapfrog method (drift, kick, drift) conserves the energy over long times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import quadpy as qp
from quadpy.examples._common import count, parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink

softening = 0.03  # length below which gravity grows no further
dt = 4e-3
core = 0.9  # fraction of the mass of a galaxy in its heaviest body

vectors = qp.Array1D[qp.math.vec3]
numbers = qp.Array1D[qp.f32]


@qp.kernel
def kick(h: qp.f32, x: vectors, v: vectors, m: numbers) -> None:
    """Advance the velocities by a time h under the gravity of all bodies."""
    for i in x:
        here = x[i]
        acceleration = qp.Vector.zero(qp.f32, 3)
        for j in range(x.shape[0]):
            d = x[j] - here
            r2 = d.norm_sqr() + softening**2
            acceleration += d * (m[j] / (r2 * qp.sqrt(r2)))
        v[i] += h * acceleration


@qp.kernel
def drift(h: qp.f32, x: vectors, v: vectors) -> None:
    """Advance the positions by a time h without forces."""
    for i in x:
        x[i] += h * v[i]


@qp.kernel
def energies(x: vectors, v: vectors, m: numbers, energy: qp.Array1D[qp.f64]) -> None:
    """The kinetic energy and half the potential energy of each body, so that their sum is the total."""
    for i in x:
        potential = qp.f64(0.0)
        for j in range(x.shape[0]):
            if i != j:
                potential -= m[j] / qp.sqrt((x[j] - x[i]).norm_sqr() + softening**2)
        energy[i] = 0.5 * m[i] * (v[i].norm_sqr() + potential)


@qp.kernel
def expose(x: vectors, scale: qp.f32, glow: qp.f32, picture: qp.Array2D[qp.math.vec3]) -> None:
    """Add the light of each body, a spot with a halo; the second half of the bodies has warmer colours."""
    for i in x:
        tint = qp.Vector([0.55, 0.75, 1.0]) if i < x.shape[0] // 2 else qp.Vector([1.0, 0.72, 0.45])
        column = x[i].x * scale + 0.5 * picture.shape[1]
        row = 0.5 * picture.shape[0] - x[i].y * scale
        reach = qp.i32(5.0 * glow) + 1
        for a, b in qp.ndrange((-reach, reach + 1), (-reach, reach + 1)):
            r, c = qp.cast(qp.floor(row), qp.i32) + a, qp.cast(qp.floor(column), qp.i32) + b
            if 0 <= r < picture.shape[0] and 0 <= c < picture.shape[1]:
                distance2 = (r + 0.5 - row) ** 2 + (c + 0.5 - column) ** 2
                picture[r, c] += tint / (1.0 + distance2 / glow**2) ** 2


class Galaxies:
    """Positions, velocities and masses of the bodies, of shape (n, 3), (n, 3) and (n,)."""

    def __init__(self, bodies: int, seed: int = 0) -> None:
        """Two galaxies of ``bodies`` bodies each."""
        rng = np.random.default_rng(seed)
        parts = [
            disc(rng, bodies, [-0.8, -0.45, 0.0], [0.66, 0.0, 0.0], tilt=0.3),
            disc(rng, bodies, [0.8, 0.45, 0.0], [-0.66, 0.0, 0.0], tilt=-0.7),
        ]
        self.x, self.v, self.m = (np.concatenate(column).astype(np.float32) for column in zip(*parts, strict=True))
        self.v -= (self.m[:, None] * self.v).sum(0) / self.m.sum()

    def step(self) -> None:
        """Advance by a time dt."""
        drift(dt / 2, self.x, self.v)
        kick(dt, self.x, self.v, self.m)
        drift(dt / 2, self.x, self.v)

    def energy(self) -> float:
        """Kinetic plus potential energy, which a step conserves up to an error of second order."""
        each = np.empty(len(self.x))
        energies(self.x, self.v, self.m, each)
        return float(each.sum())

    def draw(self, size: int) -> Picture:
        """The view from above, as a photograph."""
        light: Floats = np.zeros((size * 5 // 8, size, 3), np.float32)
        expose(self.x, size / 3.6, size / 1000, light)
        exposed = 1 - np.exp(-0.9 * light * (8192 / len(self.x)))
        shown: Picture = (255 * exposed**0.7).astype(np.uint8)
        return shown


def disc(
    rng: np.random.Generator, n: int, centre: Sequence[float], velocity: Sequence[float], *, tilt: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bodies in circular orbits around a heavy one, in a plane tilted (radians) about the x axis; the total mass is 1."""
    m = np.full(n, (1 - core) / max(n - 1, 1))
    m[0] = 1 if n == 1 else core
    spread = rng.random(n)
    radius = 0.06 + 0.44 * spread**0.7
    angle = rng.random(n) * 2 * np.pi
    inside = core + (1 - core) * spread
    speed = np.sqrt(inside * radius**2 / (radius**2 + softening**2) ** 1.5)
    radius[0] = speed[0] = 0
    height = rng.normal(0, 0.01, n)
    height[0] = 0
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    v = np.stack([-speed * np.sin(angle), speed * np.cos(angle), np.zeros(n)], axis=1)
    c, s = np.cos(tilt), np.sin(tilt)
    turn = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return x @ turn.T + centre, v @ turn.T + velocity, m


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="nbody.png", steps=340, steps_help=f"steps of time {dt}", size=960,
                  size_help="width of the picture in pixels")  # fmt: skip
    arguments.add_argument(
        "--bodies", type=count, default=4096, metavar="N", help="bodies in each galaxy (%(default)s)"
    )

    def body(args: argparse.Namespace, sink: Sink) -> None:
        galaxies = Galaxies(args.bodies)
        play(args.steps, galaxies.step, lambda: galaxies.draw(args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
