"""Two beams of electrons that pass through each other, by the particle-in-cell method; the picture is phase space.

Particles carry charge to a grid (in linear shares), Gauss's law gives the field there, and the field accelerates them: C.
Birdsall and A. Langdon, "Plasma Physics via Computer Simulation", 1985.  Time is in units of the inverse plasma frequency;
the box repeats, has length 1, and a background of fixed positive charge.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink

Floats = npt.NDArray[np.float64]
dt = 0.1
beam_speed = 0.1
thermal = 0.002  # spread of the speeds
substeps = 2  # of time dt in each step that --steps counts


@qp.dataclass
class Electron:
    x: qp.f64
    v: qp.f64


@qp.data_oriented
class Plasma:
    """Electrons in a line, and the electric field at the points of a grid."""

    def __init__(self, x: Floats, v: Floats, cells: int) -> None:
        self.cells, self.dx, self.charge = cells, 1 / cells, 1 / len(x)  # all electrons together have charge -1
        self.electrons = qp.field(Electron, shape=len(x), layout=qp.Layout.SOA)
        self.density, self.field = qp.field(qp.f64, shape=cells), qp.field(qp.f64, shape=cells)
        self.electrons.from_numpy({"x": x % 1, "v": v})
        self.solve()
        self.kick(-0.5 * dt)  # velocities are half a step behind positions

    @qp.func
    def share(self, x: qp.f64) -> tuple[qp.i32, qp.i32, qp.f64]:
        """The point of the grid to the left, that to the right, and the share of the latter."""
        i = qp.cast(qp.floor(x * self.cells), int)
        return i % self.cells, (i + 1) % self.cells, x * self.cells - i

    @qp.kernel
    def deposit(self) -> None:
        """The charge density of electrons and background."""
        for i in self.density:
            self.density[i] = 1.0
        for p in self.electrons:
            left, right, part = self.share(self.electrons[p].x)
            self.density[left] -= self.charge / self.dx * (1.0 - part)
            self.density[right] -= self.charge / self.dx * part

    @qp.kernel
    def integrate(self) -> None:
        """Gauss's law: the field grows by the charge between two points; its mean is 0.

        It is the centred difference of the potential, so that the electrons exert no net force on themselves.
        """
        field, mean = qp.f64(0.0), qp.f64(0.0)
        qp.loop_config(serialize=True)
        for i in range(self.cells):
            field = field + 0.5 * self.dx * (self.density[i - 1 if i > 0 else self.cells - 1] + self.density[i])
            self.field[i] = field
            mean += field / self.cells
        for i in self.field:
            self.field[i] -= mean

    @qp.kernel
    def kick(self, h: qp.f64) -> None:
        """Accelerate the electrons for a time h."""
        for p in self.electrons:
            left, right, part = self.share(self.electrons[p].x)
            self.electrons[p].v -= h * ((1.0 - part) * self.field[left] + part * self.field[right])

    @qp.kernel
    def drift(self, h: qp.f64) -> None:
        """Move the electrons for a time h."""
        for p in self.electrons:
            x = self.electrons[p].x + h * self.electrons[p].v
            self.electrons[p].x = x - qp.floor(x)

    def solve(self) -> None:
        """The field of the electrons where they are."""
        self.deposit()
        self.integrate()

    def step(self) -> None:
        """Advance by a time dt (leapfrog)."""
        self.kick(dt)
        self.drift(dt)
        self.solve()

    def energies(self) -> tuple[float, float]:
        """Kinetic and electric, at about the same time."""
        v = self.electrons.v.to_numpy()
        return 0.5 * float((v**2).mean()), 0.5 * float((self.field.to_numpy() ** 2).mean())


def beams(count: int, cells: int, seed: int = 1) -> Plasma:
    """Half of the electrons go right and half go left, evenly spread, but for a ripple that sets the instability off."""
    rng, half = np.random.default_rng(seed), count // 2
    x = (np.arange(half) + 0.5) / half
    x = np.concatenate([x, x + 0.5 / half])
    v = np.repeat([beam_speed, -beam_speed], half) + rng.normal(0, thermal, 2 * half)
    return Plasma(x + 1e-4 * np.sin(2 * np.pi * x), v, cells)


def draw(plasma: Plasma, size: int) -> Picture:
    """Position to the right, velocity upwards; each beam in its colour."""
    electrons = plasma.electrons.to_numpy()
    half, light = len(electrons["x"]) // 2, np.zeros((size, size, 2))
    rows = ((0.5 - electrons["v"] / (6 * beam_speed)) * size).astype(int).clip(0, size - 1)
    columns = (electrons["x"] * size).astype(int) % size
    beam = np.repeat([0, 1], half)
    np.add.at(light, (rows, columns, beam), 1)
    light = 1 - np.exp(-light * size**2 / len(electrons["x"]) / 4)
    colours = np.array([[255, 150, 60], [60, 150, 255]])
    picture: Picture = (np.array([10, 12, 20]) + light @ colours).clip(0, 255).astype(np.uint8)
    return picture


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="two_stream.png", steps=130, steps_help=f"steps of time {substeps * dt:g}",
                       size=480, size_help="width of the picture in pixels")  # fmt: skip
    arguments.add_argument("--electrons", type=int, default=400_000, metavar="N", help="(%(default)s)")

    def body(args: argparse.Namespace, sink: Sink) -> None:
        plasma = beams(args.electrons, 256)
        play(args.steps, plasma.step, lambda: draw(plasma, args.size), sink, substeps=substeps)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
