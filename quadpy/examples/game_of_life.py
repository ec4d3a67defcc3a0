"""Conway's game of life on a torus; dead cells glow for a while."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink, palette

soup = 0.3  # fraction of the cells that live at the start
cooling = 0.94  # fraction of its glow that a dead cell keeps in each step
zoom = 2  # pixels along each side of a cell

board = qp.Array2D[qp.u8]


@qp.kernel
def generation(now: board, after: board, glow: qp.Array2D[qp.f32]) -> None:
    """A cell survives with two or three neighbours, and is born with three."""
    for i, j in now:
        neighbours = 0
        for di, dj in qp.static(qp.ndrange((-1, 2), (-1, 2))):
            if qp.static(di != 0 or dj != 0):
                neighbours += now[(i + di) % now.shape[0], (j + dj) % now.shape[1]]
        alive = neighbours == 3 or (now[i, j] == 1 and neighbours == 2)
        after[i, j] = qp.u8(alive)
        glow[i, j] = 1.0 if alive else cooling * glow[i, j]


class Life:
    """A board of cells, 0 or 1, and the glow of each."""

    def __init__(self, cells: npt.NDArray[np.uint8]) -> None:
        self.cells, self._spare = cells.copy(), np.empty_like(cells)
        self.glow: Floats = cells.astype(np.float32)

    def step(self) -> None:
        """One generation."""
        generation(self.cells, self._spare, self.glow)
        self.cells, self._spare = self._spare, self.cells

    def draw(self) -> Picture:
        """Living cells are light, dead ones fade from orange to dark."""
        trail = palette(self.glow, ["0a0e18", "2b1444", "7a1f5c", "d2503c", "ffb347"])
        picture = np.where(self.cells[..., None] == 1, np.array([255, 247, 224], np.uint8), trail)
        return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="game_of_life.png", steps=400, steps_help="generations", size=360,
                  size_help="cells along each side")  # fmt: skip
    arguments.add_argument("--seed", type=int, default=1, help="seed of the random start (%(default)s)")

    def body(args: argparse.Namespace, sink: Sink) -> None:
        start = np.random.default_rng(args.seed).random((args.size, args.size)) < soup
        life = Life(start.astype(np.uint8))
        play(args.steps, life.step, life.draw, sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
