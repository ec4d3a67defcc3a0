"""The Mandelbrot set, coloured by how soon each point escapes, with several samples per pixel.

An animation zooms from the whole set to the centre.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink

samples = 3  # along each side of a pixel
frames = 90  # of an animation
whole = 4.0  # width of the part of the plane that has the set
escape = 256.0  # radius; the larger, the smoother the colours

Pixel: TypeAlias = Annotated[qp.Vector, qp.types.vector(3, qp.u8)]  # a Vector for type checkers; of three bytes


@qp.func
def in_large_parts(x: qp.f64, y: qp.f64) -> qp.u1:
    """Whether c is in the main cardioid or the disc left of it, where points never escape."""
    q = (x - 0.25) ** 2 + y * y
    return q * (q + x - 0.25) <= 0.25 * y * y or (x + 1.0) ** 2 + y * y <= 0.0625


@qp.func
def potential(c_x: qp.f64, c_y: qp.f64, limit: qp.i32) -> qp.f32:
    """The step at which c escapes, with a fraction that makes it continuous; negative if it does not escape."""
    x, y, n = c_x, c_y, 0
    if in_large_parts(c_x, c_y):
        n = limit
    while x * x + y * y < escape**2 and n < limit:
        x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
        n += 1
    smooth = qp.f32(n) + 1.0 - qp.log2(qp.log2(qp.f32(x * x + y * y) + 1.0) * 0.5)
    return smooth if x * x + y * y >= escape**2 else -1.0


@qp.func
def colour(t: qp.f32) -> qp.math.vec3:
    """A cosine palette over the logarithm of the potential; black inside the set."""
    phase = 6.2831853 * (0.45 * qp.log(qp.max(t, 0.0) + 1.0) + qp.Vector([0.62, 0.53, 0.42]))
    return qp.select(t < 0.0, qp.math.vec3(0.0), 0.5 - 0.5 * qp.cos(phase))


@qp.kernel
def render(
    centre_x: qp.f64, centre_y: qp.f64, width: qp.f64, limit: qp.i32,
    picture: qp.Array2D[Pixel],
) -> None:  # fmt: skip
    """Draw the part of the plane around the centre that is ``width`` wide; row 0 is the top."""
    for i, j in picture:
        pixel = width / picture.shape[1]
        total = qp.Vector.zero(qp.f32, 3)
        for di, dj in qp.static(qp.ndrange(samples, samples)):
            c_x = centre_x + pixel * (j + (dj + 0.5) / samples - 0.5 * picture.shape[1])
            c_y = centre_y - pixel * (i + (di + 0.5) / samples - 0.5 * picture.shape[0])
            total += colour(potential(c_x, c_y, limit))
        picture[i, j] = qp.cast(total * (255.0 / samples**2) + 0.5, qp.u8)


def draw(centre: complex, width: float, limit: int, size: int) -> Picture:
    """A picture ``size`` pixels wide, with a height of three quarters of that."""
    picture = np.empty((size * 3 // 4, size, 3), np.uint8)
    render(centre.real, centre.imag, width, limit, picture)
    return picture


class Zoom:
    """From the whole set to a part of the plane of width ``last``, in ``count`` steps."""

    def __init__(self, last: float, count: int) -> None:
        self.width, self.factor = whole, (last / whole) ** (1 / count)

    def step(self) -> None:
        """Go nearer."""
        self.width *= self.factor


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(
        __doc__, out="mandelbrot.png", steps=1000, steps_help="steps after which a point counts as inside",
        size=960, size_help="width of the picture in pixels",
    )  # fmt: skip
    arguments.add_argument(
        "--centre",
        type=complex,
        default=-0.74364388 + 0.13182590j,
        metavar="C",
        help="centre of the picture (%(default)s)",
    )
    arguments.add_argument(
        "--width", type=float, default=0.008, help="width of the part of the plane that is shown (%(default)s)"
    )

    def body(args: argparse.Namespace, sink: Sink) -> None:
        count = min(frames, sink.most)
        zoom = Zoom(args.width, count)
        play(count, zoom.step, lambda: draw(args.centre, zoom.width, args.steps, args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
