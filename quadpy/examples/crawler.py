"""A soft body that learns to walk: the material point method, differentiated through all its time steps.

Four muscles pull together with strengths that a small controller computes from the time; gradient descent on the
distance trains it.  (Y. Hu et al., "ChainQueen: A Real-Time Differentiable Physical Simulator for Soft Robotics", ICRA 2019.)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._descent import Adam
from quadpy.examples._pictures import Picture, Sink, dots, palette

n_grid: Final = 32
dx: Final = 1 / n_grid
dt: Final = 1e-3
gravity, stiffness, strength = 4.0, 10.0, 4.0
muscles, waves, pitch = 4, 4, 40.0  # of the controller: a sum of waves for each muscle
volume: Final = (dx / 2) ** 2
slots: Final = 16

Points = qp.Array1D[qp.math.vec2]
Tensors = qp.Array1D[qp.math.mat2]
Nodes = qp.Array2D[qp.math.vec2]


@qp.func
def spline(fx: qp.math.vec2) -> list[qp.math.vec2]:
    """The quadratic B-spline at the three nodes around a particle."""
    return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]


@qp.kernel
def act(weights: qp.Array2D[qp.f32], time: qp.f32, pull: qp.Array1D[qp.f32]) -> None:
    """How strongly each muscle pulls."""
    for m in pull:
        total = weights[m, waves]
        for k in qp.static(range(waves)):
            total += weights[m, k] * qp.sin(pitch * time + 2.0 * qp.math.pi * k / waves)
        pull[m] = qp.tanh(total)


@qp.kernel
def to_grid(
    x: Points, v: Points, C: Tensors, F: Tensors, muscle: qp.Array1D[qp.i32], pull: qp.Array1D[qp.f32], new_F: Tensors,
    momentum: Nodes, mass: qp.Array2D[qp.f32],
) -> None:  # fmt: skip
    """Particles to grid, with the stress of an elastic body and of its muscles."""
    for p in x:
        base = qp.floor(x[p] / dx - 0.5, qp.i32)
        fx = x[p] / dx - base
        w = spline(fx)
        A = (qp.Matrix.identity(qp.f32, 2) + dt * C[p]) @ F[p]
        new_F[p] = A
        J = A.determinant()
        turn = qp.Vector([A[0, 0] + A[1, 1], A[1, 0] - A[0, 1]])
        c, s = turn[0] / turn.norm(), turn[1] / turn.norm()
        R = qp.Matrix([[c, -s], [s, c]])
        tau = 2.0 * stiffness * (A - R) @ A.transpose() + qp.Matrix.identity(qp.f32, 2) * (stiffness * (J - 1.0) * J)
        if muscle[p] >= 0:
            along = strength * pull[qp.max(muscle[p], 0)]
            tau += A @ qp.Matrix([[0.0, 0.0], [0.0, along]]) @ A.transpose()
        affine = -dt * 4.0 * volume / dx**2 * tau + volume * C[p]
        for i, j in qp.static(qp.ndrange(3, 3)):
            offset = qp.Vector([i, j])
            weight = w[i][0] * w[j][1]
            momentum[base[0] + i, base[1] + j] += weight * (volume * v[p] + affine @ ((offset - fx) * dx))
            mass[base[0] + i, base[1] + j] += weight * volume


@qp.kernel
def on_grid(momentum: Nodes, mass: qp.Array2D[qp.f32], velocity: Nodes) -> None:
    """Momentum to velocity; the floor holds what touches it, walls stop what runs into them."""
    for i, j in mass:
        u = momentum[i, j] / (mass[i, j] + 1e-10)
        u[1] -= dt * gravity
        if i < 3:
            u[0] = qp.max(u[0], 0.0)
        if i > n_grid - 3:
            u[0] = qp.min(u[0], 0.0)
        if j < 3 and u[1] < 0.0:
            u = qp.Vector([0.0, 0.0])
        velocity[i, j] = u


@qp.kernel
def to_particles(x: Points, velocity: Nodes, new_x: Points, new_v: Points, new_C: Tensors) -> None:
    for p in x:
        base = qp.floor(x[p] / dx - 0.5, qp.i32)
        fx = x[p] / dx - base
        w = spline(fx)
        u, G = qp.Vector.zero(qp.f32, 2), qp.Matrix.zero(qp.f32, 2, 2)
        for i, j in qp.static(qp.ndrange(3, 3)):
            offset = qp.Vector([i, j])
            g = w[i][0] * w[j][1] * velocity[base[0] + i, base[1] + j]
            u += g
            G += 4.0 / dx * g.outer_product(offset - fx)
        new_v[p], new_C[p], new_x[p] = u, G, x[p] + dt * u


@qp.kernel
def backwardness(x: Points, loss: qp.Array0D[qp.f32]) -> None:
    for p in x:
        loss[None] -= x[p][0] / x.shape[0]


class Crawler:
    """A body on four legs of muscle, and its controller; ``steps`` time steps are one walk."""

    def __init__(self, steps: int, seed: int = 0) -> None:
        y, x = np.mgrid[0 : 0.14 : dx / 2, 0 : 0.28 : dx / 2].reshape(2, -1)
        legs = y < 0.07
        kept = ~legs | (x < 0.08) | (x > 0.2)
        x, y, legs = x[kept], y[kept], legs[kept]
        self.body = np.stack([0.15 + x, 3 * dx + y], 1).astype(np.float32)
        n = len(self.body)
        self.steps, self.x0 = steps, float(self.body[:, 0].mean())
        self.muscle = qp.ndarray(qp.i32, n)
        self.muscle.from_numpy(np.where(legs, (x / 0.04).astype(int) % 2 + 2 * (x > 0.14), -1).astype(np.int32))
        self.weights = qp.ndarray(qp.f32, (muscles, waves + 1), needs_grad=True)
        self.weights.from_numpy(np.random.default_rng(seed).normal(0, 0.1, self.weights.shape).astype(np.float32))
        kinds = (qp.math.vec2, qp.math.vec2, qp.math.mat2, qp.math.mat2)
        self.state = [[qp.ndarray(kind, n, needs_grad=True) for kind in kinds] for _ in range(2)]
        self.pull = qp.ndarray(qp.f32, muscles, needs_grad=True)
        self.momentum, self.velocity = (qp.ndarray(qp.math.vec2, (n_grid, n_grid), needs_grad=True) for _ in range(2))
        self.mass = qp.ndarray(qp.f32, (n_grid, n_grid), needs_grad=True)
        self.loss, self.adam = qp.ndarray(qp.f32, (), needs_grad=True), Adam(0.1)
        self._run: qp.graph.GraphExec | None = None

    def start(self) -> None:
        x, v, C, F = self.state[0]
        x.from_numpy(self.body)
        v.fill(0)
        C.fill(0)
        F.from_numpy(np.tile(np.eye(2, dtype=np.float32), (len(self.body), 1, 1)))

    def step(self, number: int) -> None:
        (x, v, C, F), (new_x, new_v, new_C, new_F) = self.state[number % 2], self.state[1 - number % 2]
        self.momentum.fill(0)
        self.mass.fill(0)
        act(self.weights, number * dt, self.pull)
        to_grid(x, v, C, F, self.muscle, self.pull, new_F, self.momentum, self.mass)
        on_grid(self.momentum, self.mass, self.velocity)
        to_particles(x, self.velocity, new_x, new_v, new_C)

    def walk(self) -> None:
        """A walk and the gradient of the distance, with few kept states."""
        self.start()
        self.loss.fill(0)
        with qp.ad.Tape(self.loss):
            qp.ad.checkpoint(self.step, self.steps, slots=slots)
            backwardness(self.state[self.steps % 2][0], self.loss)

    def prepare(self) -> qp.graph.GraphExec:
        """All that the device does for a walk and its gradient, as one graph."""
        if self._run is None:
            with qp.graph.capture() as graph:
                self.walk()
            self._run = graph.instantiate()
        return self._run

    def improve(self) -> float:
        """Walk once, and learn from it; returns the distance."""
        self.prepare().launch()
        assert self.weights.grad is not None
        weights, gradient = (each.to_numpy().astype(float) for each in (self.weights, self.weights.grad))
        self.weights.from_numpy(self.adam.step(weights, gradient).astype(np.float32))
        return -float(self.loss[None]) - self.x0


def draw(crawler: Crawler, size: int) -> Picture:
    """The body at the end of its last walk; muscles are red where they pull."""
    picture = palette(np.zeros((size // 2, size)), ["10161f", "10161f"])
    x, muscle = crawler.state[crawler.steps % 2][0].to_numpy(), crawler.muscle.to_numpy()
    pull = np.append(crawler.pull.to_numpy(), 0)[muscle]
    colours = np.where(
        muscle[:, None] < 0, [90, 160, 220], np.stack([150 + 100 * pull, 110 - 60 * pull, 90 + 0 * pull], 1)
    )
    return dots(picture, x * size, colours.astype(np.uint8), max(1, size // 150))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="crawler.png", steps=40, steps_help="walks", size=480,
                       size_help="width of the picture in pixels")  # fmt: skip
    arguments.add_argument("--time-steps", type=int, default=600, help="time steps of a walk (%(default)s)")

    def body(args: argparse.Namespace, sink: Sink) -> None:
        crawler = Crawler(args.time_steps)
        crawler.prepare()
        play(args.steps, crawler.improve, lambda: draw(crawler, args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
