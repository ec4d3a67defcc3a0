"""The speed of waves inside a plate, from what receivers on one side hear: an inverse problem.

Shots at the top send waves down; receivers at the top record what comes back.  The gradient of the misfit by the speed at each
point is computed with few kept states (``qp.ad.checkpoint``), and all of it is one graph.  (A. Tarantola, "Inversion of
seismic reflection data in the acoustic approximation", Geophysics 49, 1984.)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink, palette

F32x2 = qp.Array2D[qp.f32]
courant: Final = 0.5  # of waves with the speed 1: distance in a time step, in cells
depth: Final = 2  # of shots and receivers
slots: Final = 8


@qp.kernel
def propagate(speed: F32x2, before: F32x2, now: F32x2, after: F32x2, shot: qp.i32, pulse: qp.f32) -> None:
    """A time step of the wave equation with rigid edges."""
    n, m = now.shape
    for i, j in now:
        middle = now[i, j]
        up = now[i - 1, j] if i > 0 else middle
        down = now[i + 1, j] if i < n - 1 else middle
        left = now[i, j - 1] if j > 0 else middle
        right = now[i, j + 1] if j < m - 1 else middle
        curvature = up + down + left + right - 4.0 * middle
        source = pulse if i == depth and j == shot else 0.0
        after[i, j] = 2.0 * middle - before[i, j] + (courant * speed[i, j]) ** 2 * curvature + source


@qp.kernel
def listen(now: F32x2, heard: F32x2, number: qp.i32, misfit: qp.Array0D[qp.f32]) -> None:
    """Add the misfit at one time."""
    for j in range(heard.shape[1]):
        misfit[None] += 0.5 * (now[depth, j] - heard[number, j]) ** 2


@qp.kernel
def record(now: F32x2, heard: F32x2, number: qp.i32) -> None:
    for j in range(heard.shape[1]):
        heard[number, j] = now[depth, j]


@qp.kernel
def descend(speed: F32x2, direction: F32x2, size: qp.f32) -> None:
    for i, j in speed:
        change = size * direction[i, j] if i > 2 * depth else 0.0  # what shots and receivers touch is known
        speed[i, j] = qp.min(qp.max(speed[i, j] - change, 0.4), 1.4)


class Plate:
    """A plate of ``n`` times ``n`` points, heard for ``times`` time steps, with one shot."""

    def __init__(self, n: int, times: int, slots: int = slots) -> None:
        self.n, self.times, self.slots, self.shot = n, times, slots, n // 2
        self.speed = qp.ndarray(qp.f32, (n, n), needs_grad=True)
        self.levels = [qp.ndarray(qp.f32, (n, n), needs_grad=True) for _ in range(3)]
        self.heard, self.misfit = qp.ndarray(qp.f32, (times, n)), qp.ndarray(qp.f32, (), needs_grad=True)
        self._run: qp.graph.GraphExec | None = None

    def pulse(self, number: int) -> float:
        """Ricker's wavelet."""
        t = (np.pi * 0.05 * (number - 25)) ** 2
        return float((1 - 2 * t) * np.exp(-t))

    def step(self, number: int) -> None:
        """A time step: three arrays hold the last states in turn."""
        before, now, after = (self.levels[(number + k) % 3] for k in range(3))
        propagate(self.speed, before, now, after, self.shot, self.pulse(number))

    def start(self) -> None:
        for level in self.levels:
            level.fill(0)

    def hear(self) -> None:
        """Record what the receivers hear with the present speed."""
        self.start()
        for number in range(self.times):
            self.step(number)
            record(self.levels[(number + 2) % 3], self.heard, number)

    def misfit_and_gradient(self) -> None:
        self.start()
        self.misfit.fill(0)

        def step(number: int) -> None:
            self.step(number)
            listen(self.levels[(number + 2) % 3], self.heard, number, self.misfit)

        with qp.ad.Tape(self.misfit):
            qp.ad.checkpoint(step, self.times, slots=self.slots)

    def prepare(self) -> qp.graph.GraphExec:
        """The graph of the misfit and its gradient."""
        if self._run is None:
            with qp.graph.capture() as graph:
                self.misfit_and_gradient()
            self._run = graph.instantiate()
        return self._run

    def improve(self, size: float) -> float:
        """A step of gradient descent that changes the speed by at most ``size``; returns the misfit before it."""
        self.prepare().launch()
        assert self.speed.grad is not None
        steepest = float(np.abs(self.speed.grad.to_numpy()[2 * depth + 1 :]).max())
        descend(self.speed, self.speed.grad, size / max(steepest, 1e-30))
        return float(self.misfit[None])


def hidden(n: int) -> Floats:
    """A plate with a slow and a fast inclusion."""
    y, x = np.mgrid[:n, :n] / n
    speed = np.full((n, n), 0.8)
    speed[(x - 0.35) ** 2 + (y - 0.35) ** 2 < 0.012] = 0.65
    speed[(x - 0.7) ** 2 + (y - 0.45) ** 2 < 0.012] = 0.95
    return speed.astype(np.float32)


def problem(n: int) -> Plate:
    """A plate that has heard the hidden inclusions, and begins without any."""
    plate = Plate(n, 4 * n)
    plate.speed.from_numpy(hidden(n))
    plate.hear()
    plate.speed.fill(0.8)
    return plate


def draw(plate: Plate) -> Picture:
    """The speed that was found, beside the hidden one."""
    both = np.concatenate([plate.speed.to_numpy(), hidden(plate.n)], axis=1)
    picture = palette((both - 0.6) / 0.4, ["0b2a6b", "6ea5dc", "f6f3ea", "e79a55", "7a2208"])
    return picture.repeat(4, 0).repeat(4, 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="seismic.png", steps=40, steps_help="steps of gradient descent", size=64,
                       size_help="points along each side")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        plate = problem(args.size)
        plate.prepare()
        play(args.steps, lambda: plate.improve(0.01), lambda: draw(plate), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
