"""Hares and lynxes: the parameters of an equation from counts, through a solver that chooses its own steps.

The kernel integrates with an embedded pair of Runge-Kutta formulas in a ``while`` loop whose length the error decides; its
gradient goes back through the steps that were taken.  (P. Bogacki and L. F. Shampine, "A 3(2) pair of Runge-Kutta formulas",
Appl. Math. Lett. 2, 1989.)
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
from quadpy.examples._pictures import Floats, Picture, Sink, dots, palette

F64 = qp.Array1D[qp.f64]
truth: Final = np.array([1.0, 0.6, 0.8, 0.4])  # birth of hares, hunt; death of lynxes, their food
start: Final = (2.0, 1.0)
tolerance: Final = 1e-6
times: Final = 24
duration: Final = 12.0


@qp.func
def slope(p: F64, hares: qp.f64, lynxes: qp.f64) -> qp.types.vector(2, qp.f64):  # type: ignore[valid-type] # pyright: ignore[reportInvalidTypeForm] # a type of quadpy's
    meals = hares * lynxes
    return qp.Vector([p[0] * hares - p[1] * meals, p[3] * meals - p[2] * lynxes])


@qp.kernel
def integrate(p: F64, found: qp.Array2D[qp.f64]) -> None:
    """The counts of hares and lynxes at each time, each from the start."""
    for k in range(found.shape[0]):
        end = qp.f64(duration) * (k + 1) / found.shape[0]
        t, step = qp.f64(0.0), qp.f64(0.01)
        y = qp.Vector([start[0], start[1]], dt=qp.f64)
        while t < end:
            h = qp.min(step, end - t)
            k1 = slope(p, y[0], y[1])
            y2 = y + 0.5 * h * k1
            k2 = slope(p, y2[0], y2[1])
            y3 = y + 0.75 * h * k2
            k3 = slope(p, y3[0], y3[1])
            new = y + h * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
            k4 = slope(p, new[0], new[1])
            error = qp.ad.stop((h * (-5.0 / 72.0 * k1 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0)).norm())
            if error < tolerance:
                t += h
                y = new
            step = h * qp.min(2.0, qp.max(0.3, 0.9 * (tolerance / (error + 1e-30)) ** (1.0 / 3.0)))
        found[k, 0], found[k, 1] = y[0], y[1]


@qp.kernel
def misfit(found: qp.Array2D[qp.f64], counted: qp.Array2D[qp.f64]) -> qp.f64:
    total = qp.f64(0.0)
    for k in range(found.shape[0]):
        total += (found[k, 0] - counted[k, 0]) ** 2 + (found[k, 1] - counted[k, 1]) ** 2
    return total


class Fit:
    """The parameters ``p`` that fit the counts; gradient descent finds them."""

    def __init__(self, seed: int = 1) -> None:
        self.p = qp.ndarray(qp.f64, 4, needs_grad=True)
        self.found, self.counted = (qp.ndarray(qp.f64, (times, 2), needs_grad=True) for _ in range(2))
        self.p.from_numpy(truth)
        integrate(self.p, self.counted)
        noise = np.random.default_rng(seed).normal(0, 0.02, (times, 2))
        self.counted.from_numpy(self.counted.to_numpy() * (1 + noise))
        self.p.from_numpy(truth * [0.85, 1.15, 1.1, 0.9])
        self.adam = Adam(0.01)

    def loss(self) -> float:
        integrate(self.p, self.found)
        return misfit(self.found, self.counted)

    def improve(self) -> float:
        """One step; returns the misfit before it."""
        with qp.ad.Tape() as tape:
            tape.loss = self.loss()
        assert self.p.grad is not None
        self.p.from_numpy(self.adam.step(self.p.to_numpy(), self.p.grad.to_numpy()))
        return float(tape.loss)


def draw(fit: Fit, size: int) -> Picture:
    """Counts as rings of colour, the solution between them; hares above."""
    picture = palette(np.zeros((size, 2 * size)), ["10161f", "10161f"])
    for numbers, radius in ((fit.counted.to_numpy(), 4), (fit.found.to_numpy(), 2)):
        x = (np.arange(times) + 0.5) * 2 * size / times
        for column, bright in enumerate(([230, 150, 60], [90, 160, 240])):
            y = size - 1 - numbers[:, column] / 6 * size
            colours = np.tile(np.array(bright if radius == 4 else [250, 250, 250], np.uint8), (times, 1))
            picture = dots(picture, np.stack([x, y], 1), colours, radius)
    return picture


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="predator_prey.png", steps=150, steps_help="steps of the fit", size=300,
                       size_help="height of the picture in pixels")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        fit = Fit()
        fit.improve()  # compiles the kernels
        play(args.steps, fit.improve, lambda: draw(fit, args.size), sink)

    return run(arguments, argv, body)


def residuals(fit: Fit) -> Floats:
    """The relative errors of the parameters."""
    return np.asarray(fit.p.to_numpy() / truth - 1, np.float32)


if __name__ == "__main__":
    sys.exit(main())
