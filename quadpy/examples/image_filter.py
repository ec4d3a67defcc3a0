"""Filters for a picture: noise removal that keeps edges, edges alone, or both combined as a cartoon.

``python -m quadpy.examples.image_filter photo.jpg --filter cartoon``; without a picture, it filters a noisy test card.
The bilateral filter is that of Tomasi and Manduchi ("Bilateral filtering for gray and color images", ICCV 1998); the edges
are found by Sobel's operator.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink, read_picture

pixels = qp.Array2D[qp.math.vec3]
luma = (0.299, 0.587, 0.114)  # perceived brightness of red, green and blue (ITU-R BT.601)


@qp.kernel
def bilateral(radius: qp.i32, reach: qp.f32, contrast: qp.f32, source: pixels, out: pixels) -> None:
    """The mean of the pixels around, weighted by distance in space (``reach``) and in colour (``contrast``)."""
    for i, j in source:
        here = source[i, j]
        total, weights = qp.Vector.zero(qp.f32, 3), 0.0
        for a in range(qp.max(i - radius, 0), qp.min(i + radius + 1, source.shape[0])):
            for b in range(qp.max(j - radius, 0), qp.min(j + radius + 1, source.shape[1])):
                away = ((a - i) ** 2 + (b - j) ** 2) / reach**2
                unlike = (source[a, b] - here).norm_sqr() / contrast**2
                weight = qp.exp(-0.5 * (away + unlike))
                total += weight * source[a, b]
                weights += weight
        out[i, j] = total / weights


@qp.func
def brightness(source: pixels, i: qp.i32, j: qp.i32) -> qp.f32:
    """The brightness of a pixel; outside the picture, of the nearest pixel."""
    a = qp.min(qp.max(i, 0), source.shape[0] - 1)
    b = qp.min(qp.max(j, 0), source.shape[1] - 1)
    return source[a, b].dot(qp.Vector(luma))


@qp.kernel
def sobel(source: pixels, edge: qp.Array2D[qp.f32]) -> None:
    """The gradient of the brightness per pixel."""
    for i, j in source:
        down, right = 0.0, 0.0
        for k in qp.static((-1, 1)):
            for m, weight in qp.static(((-1, 1.0), (0, 2.0), (1, 1.0))):
                down += k * weight * brightness(source, i + k, j + m)
                right += k * weight * brightness(source, i + m, j + k)
        edge[i, j] = qp.sqrt(down**2 + right**2) / 8.0


@qp.kernel
def ink(levels: qp.f32, strength: qp.f32, edge: qp.Array2D[qp.f32], source: pixels,
        out: pixels) -> None:  # fmt: skip
    """Reduce brightness to a few levels with soft steps between them, and draw dark lines at the edges."""
    for i, j in source:
        bright = brightness(source, i, j)
        scaled = bright * levels
        step = qp.math.smoothstep(0.35, 0.65, qp.math.fract(scaled))
        flat = (qp.floor(scaled) + step) / levels
        line = qp.math.smoothstep(0.5, 1.5, edge[i, j] * strength)
        out[i, j] = source[i, j] * ((0.4 * bright + 0.6 * flat) / qp.max(bright, 0.001)) * (1.0 - line)


class Filter:
    """A picture of shape (height, width, 3) in [0, 1], and its filtered state."""

    def __init__(self, picture: Floats, kind: str) -> None:
        self.kind, self.now = kind, picture.copy()
        self._next = np.empty_like(picture)

    def step(self) -> None:
        """Apply the bilateral filter once."""
        bilateral(5, 3.0, 0.12, self.now, self._next)
        self.now, self._next = self._next, self.now

    def draw(self) -> Picture:
        """The present picture after the last stage of the filter."""
        edge = np.empty(self.now.shape[:2], np.float32)
        shown = self.now
        if self.kind != "smooth":
            sobel(self.now, edge)
        if self.kind == "edges":
            shown = 1 - np.repeat(np.clip(edge * 6, 0, 1)[..., None], 3, axis=2)
        elif self.kind == "cartoon":
            shown = np.empty_like(self.now)
            ink(8.0, 22.0, edge, self.now, shown)
        return (255 * np.clip(shown, 0, 1) + 0.5).astype(np.uint8)


def test_card(width: int) -> Floats:
    """A noisy picture of the sun over hills."""
    rng = np.random.default_rng(0)
    height = width * 5 // 8
    y, x = np.mgrid[0:height, 0:width] / width
    card = np.stack([0.98 - 0.9 * y, 0.62 - 0.25 * y, 0.45 + 0.4 * y], axis=2)
    card[(x - 0.68) ** 2 + (y - 0.24) ** 2 < 0.09**2] = [1.0, 0.93, 0.7]
    for k, colour in enumerate(([0.42, 0.45, 0.62], [0.27, 0.36, 0.42], [0.12, 0.22, 0.2])):
        ridge = 0.3 + 0.09 * k + 0.05 * np.sin((7 - k) * x * 3 + 2 * k) + 0.018 * np.sin(31 * x + k)
        card[y > ridge] = colour
    return np.clip(card + rng.normal(0, 0.06, card.shape), 0, 1).astype(np.float32)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="image_filter.png", steps=3, steps_help="passes of the bilateral filter", size=1200,
                  size_help="maximum length of the longer side; larger pictures are scaled down")  # fmt: skip
    arguments.add_argument("picture", type=Path, nargs="?", help="a file that pillow can read; by default a test card")
    arguments.add_argument(
        "--filter", choices=("smooth", "edges", "cartoon"), default="cartoon", help="the filter (%(default)s)"
    )

    def body(args: argparse.Namespace, sink: Sink) -> None:
        source = read_picture(args.picture, args.size) if args.picture else test_card(args.size)
        work = Filter(source, args.filter)
        play(args.steps, work.step, work.draw, sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
