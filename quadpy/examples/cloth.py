"""A cloth falls over a sphere: masses and springs, with large steps of time by the implicit Euler method.

Each step solves a linear system for the velocities at its end, by conjugate gradients that never form the matrix (D. Baraff,
A. Witkin, "Large Steps in Cloth Simulation", SIGGRAPH 1998).  Lengths are in metres; y points upwards.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink, dots, palette

vec3 = qp.math.vec3
dt, tolerance, gravity = 1 / 120, 1e-4, 9.81
ball, radius = (0.0, 0.0, 0.0), 0.35
COLOURS = ("1a0f24", "7d2248", "e0604e", "ffd9a0")


@qp.dataclass
class Spring:
    a: qp.i32
    b: qp.i32
    length: qp.f32  # at rest
    stiffness: qp.f32


@qp.data_oriented
class Cloth:
    """Masses of ``mass`` each at ``x``, and springs between them; masses with ``free`` 0 stay where they are."""

    def __init__(self, x: npt.NDArray[np.float32], springs: Sequence[tuple[int, int, float]], free: npt.ArrayLike,
                 mass: float, pull: float = gravity) -> None:  # fmt: skip
        n, self.mass, self.pull = len(x), mass, pull
        self.x, self.v, self.change, self.residual, self.search, self.image = (
            qp.field(vec3, shape=n) for _ in range(6)
        )
        self.free, self.springs = qp.field(qp.f32, shape=n), qp.field(Spring, shape=len(springs))
        self.x.from_numpy(x)
        self.free.from_numpy(np.asarray(free, np.float32))
        a, b, k = np.array(springs).T
        a, b = a.astype(int), b.astype(int)
        self.springs.from_numpy({
            "a": a, "b": b, "length": np.linalg.norm(x[a] - x[b], axis=1), "stiffness": k,
        })  # fmt: skip

    @qp.func
    def stiffness_times(self, spring: Spring, w: vec3) -> vec3:
        """The change of a spring's force along w, without the part that would push sideways (so A is definite)."""
        d: vec3 = self.x[spring.a] - self.x[spring.b]
        along = d.normalized(1e-9)
        sideways = qp.max(0.0, 1.0 - spring.length / (d.norm() + 1e-9))
        return spring.stiffness * (sideways * w + (1.0 - sideways) * along.dot(w) * along)

    @qp.kernel
    def begin(self) -> None:
        """The right side of the system, b = dt (f - dt K v), as the residual of no change."""
        for i in self.x:
            self.change[i] = vec3(0.0)
            self.residual[i] = vec3(0.0, -dt * self.mass * self.pull, 0.0) * self.free[i]
        for s in self.springs:
            spring = self.springs[s]
            d = self.x[spring.a] - self.x[spring.b]
            force = -spring.stiffness * (d.norm() - spring.length) * d.normalized(1e-9)
            push = dt * (force - dt * self.stiffness_times(spring, self.v[spring.a] - self.v[spring.b]))
            self.residual[spring.a] += self.free[spring.a] * push
            self.residual[spring.b] -= self.free[spring.b] * push
        for i in self.x:
            self.search[i] = self.residual[i]

    @qp.kernel
    def apply(self) -> qp.f32:
        """The matrix A = M + dt^2 K times the search direction; their product with it."""
        for i in self.x:
            self.image[i] = self.mass * self.search[i]
        for s in self.springs:
            spring = self.springs[s]
            change = dt**2 * self.stiffness_times(spring, self.search[spring.a] - self.search[spring.b])
            self.image[spring.a] += self.free[spring.a] * change
            self.image[spring.b] -= self.free[spring.b] * change
        product = 0.0
        for i in self.x:
            product += self.search[i].dot(self.image[i])
        return product

    @qp.kernel
    def advance(self, length: qp.f32) -> qp.f32:
        """Go along the search direction; the square of the residual."""
        square = 0.0
        for i in self.x:
            self.change[i] += length * self.search[i]
            self.residual[i] -= length * self.image[i]
            square += self.residual[i].norm_sqr()
        return square

    @qp.kernel
    def turn(self, share: qp.f32) -> None:
        """The next search direction."""
        for i in self.x:
            self.search[i] = self.residual[i] + share * self.search[i]

    @qp.kernel
    def move(self) -> None:
        """The end of the step; masses inside the ball move to its surface, and stick to it a little."""
        for i in self.x:
            v = self.v[i] + self.change[i]
            away = self.x[i] + dt * v - vec3(ball)
            if self.free[i] > 0.0 and away.norm() < radius:
                n = away.normalized()
                v = 0.9 * (v - n * qp.min(v.dot(n), 0.0)) + n * (radius - away.norm()) / dt * 0.2
            self.v[i] = v
            self.x[i] += dt * v

    def step(self) -> None:
        """Advance by dt."""
        self.begin()
        before = first = self.advance(0.0)
        while before > tolerance**2 * first:
            after = self.advance(before / self.apply())
            self.turn(after / before)
            before = after
        self.move()


def draw(cloth: Cloth, size: int) -> Picture:
    """From the front and a little from above; far points first."""
    x, n, fine = cloth.x.to_numpy(), round(len(cloth.x.to_numpy()) ** 0.5), size  # points along each side
    places = np.linspace(0, n - 1, fine)
    x = x.reshape(n, -1)
    x = np.stack([np.interp(places, np.arange(n), column) for column in x.T], axis=1).reshape(fine, n, 3)
    x = np.stack([[np.interp(places, np.arange(n), line[:, k]) for line in x] for k in range(3)], axis=-1)
    normal = np.cross(np.gradient(x, axis=0), np.gradient(x, axis=1))
    shade = np.abs(normal @ [0.3, 0.8, 0.52]) / np.linalg.norm(normal, axis=-1)
    turned = x.reshape(-1, 3) @ np.array([[0.8, 0, 0.6], [-0.25, 0.91, 0.33], [-0.55, -0.41, 0.73]]).T
    order = np.argsort(turned[:, 2])
    colours = palette(0.1 + 0.9 * shade.ravel()[order], COLOURS)
    picture = np.full((size, size, 3), (20, 14, 28), np.uint8)
    return dots(picture, ((turned[order, :2] + [0, 0.15]) * 0.62 + 0.5) * size, colours, 1)


def square(n: int, stiffness: float = 400.0) -> Cloth:
    """A cloth of n x n masses, of 1 m and 200 g, above the ball; springs along threads, across, and against bending."""
    i, j = (axis.ravel() for axis in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    x = np.stack([i / (n - 1) - 0.5, np.full(n * n, radius + 0.02), j / (n - 1) - 0.5], axis=1).astype(np.float32)
    x[:, 1] += np.random.default_rng(1).normal(0, 1e-4, n * n)  # so that it may fold

    def springs() -> Iterator[tuple[int, int, float]]:
        for di, dj, k in ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.3), (1, -1, 0.3), (0, 2, 0.05), (2, 0, 0.05)):
            there = (i + di < n) & (j + dj >= 0) & (j + dj < n)
            for a in np.flatnonzero(there):
                yield int(a), int(a + di * n + dj), k * stiffness

    return Cloth(x, list(springs()), np.ones(n * n), 0.2 / n**2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="cloth.png", steps=120, steps_help="steps of 1/120 s",
                       size=480, size_help="width of the picture in pixels")  # fmt: skip
    arguments.add_argument("--threads", type=int, default=48, metavar="N", help="masses along each side (%(default)s)")

    def body(args: argparse.Namespace, sink: Sink) -> None:
        cloth = square(args.threads)
        play(args.steps, cloth.step, lambda: draw(cloth, args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
