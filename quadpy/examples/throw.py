"""A spinning ball that must hit a target after it has bounced: a rigid body with contact, and its gradient.

The floor pushes the ball back where they overlap, and rubs against its spin up to Coulomb's limit.  Gradient descent finds
the velocity and the spin with which to throw it.
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

steps: Final = 400
dt: Final = 0.005
radius: Final = 0.1
gravity: Final = 9.8
push, loss_of_push, rub, friction = 4000.0, 12.0, 30.0, 0.4  # of the floor, for a mass of 1
target: Final = (3.0, 0.6)

F64 = qp.Array1D[qp.f64]


@qp.kernel
def fly(throw: F64, path: qp.Array2D[qp.f64]) -> qp.f64:
    """The path from (0, 1) with the velocity and spin ``throw``; returns the square of the distance to the target at its end.

    One thread goes through all time steps: their values depend on each other.
    """
    miss = qp.f64(0.0)
    for _ in range(1):
        x, y, angle = qp.f64(0.0), qp.f64(1.0), qp.f64(0.0)
        u, v, spin = throw[0], throw[1], throw[2]
        for k in range(steps):
            overlap = radius - y
            normal, tangent = qp.f64(0.0), qp.f64(0.0)
            if overlap > 0.0:
                normal = qp.max(push * overlap - loss_of_push * v, 0.0)
                slip = u + radius * spin
                limit = friction * normal
                tangent = -qp.min(qp.max(rub * slip, -limit), limit)
            u += dt * tangent
            v += dt * (normal - gravity)
            spin += dt * tangent * radius / (0.4 * radius**2)  # a solid ball
            x += dt * u
            y += dt * v
            angle += dt * spin
            path[k, 0], path[k, 1], path[k, 2] = x, y, angle
        miss += (x - target[0]) ** 2 + (y - target[1]) ** 2
    return miss


class Thrower:
    """Learns to throw."""

    def __init__(self) -> None:
        self.throw = qp.ndarray(qp.f64, 3, needs_grad=True)
        self.path = qp.ndarray(qp.f64, (steps, 3))
        self.throw.from_numpy(np.array([1.5, 2.5, 5.0]))
        self.adam = Adam(0.03, 0.98)

    def improve(self) -> float:
        """Throw once, and learn from it; returns the distance from the target."""
        with qp.ad.Tape() as tape:
            tape.loss = fly(self.throw, self.path)
        assert self.throw.grad is not None
        self.throw.from_numpy(self.adam.step(self.throw.to_numpy(), self.throw.grad.to_numpy()))
        return float(np.sqrt(float(tape.loss)))


def draw(thrower: Thrower, size: int) -> Picture:
    """The path, brighter towards its end, and the target."""
    picture = palette(np.zeros((size // 2, size)), ["10161f", "10161f"])
    path, scale = thrower.path.to_numpy()[:, :2], size / 4
    light = np.linspace(60, 250, steps).astype(np.uint8)[:, None].repeat(3, 1)
    flip = np.array([1, -1]) * scale
    picture = dots(picture, path * flip + [scale / 4, size // 2 - 1], light, max(1, size // 200))
    goal = np.array([target]) * flip + [scale / 4, size // 2 - 1]
    return dots(picture, goal, np.array([[240, 110, 60]], np.uint8), max(2, size // 60))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="throw.png", steps=120, steps_help="throws", size=600,
                       size_help="width of the picture in pixels")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        thrower = Thrower()
        thrower.improve()  # compiles the kernels
        play(args.steps, thrower.improve, lambda: draw(thrower, args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
