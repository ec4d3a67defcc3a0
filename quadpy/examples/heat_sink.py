"""Where a plate should conduct heat so that it stays cool, by derivatives through a solve.

The temperature solves div(k grad T) = -1 with T = 0 at a part of the edge.  Conjugate gradients find it; the derivative by
the conductivity k follows from the equation (``qp.ad.implicit``), not from their iterations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink, palette

F64x2 = qp.Array2D[qp.f64]
least, most, share = 0.02, 1.0, 0.3  # of the conductivity; share of good material
tolerance: Final = 1e-11


@qp.kernel
def residual(r: F64x2, t: F64x2, k: F64x2) -> None:
    """What flows out of each cell, less what is produced there; the sink is in the middle of the lower edge."""
    n, m = t.shape
    for i, j in t:
        out = qp.f64(0.0)
        for di, dj in qp.static(((1, 0), (-1, 0), (0, 1), (0, -1))):
            if 0 <= i + di < n and 0 <= j + dj < m:
                a, b = k[i, j], k[i + di, j + dj]
                out += 2.0 * a * b / (a + b) * (t[i, j] - t[i + di, j + dj])
        if i == n - 1 and 3 * j >= m and 3 * j < 2 * m:
            out += 2.0 * k[i, j] * t[i, j]
        r[i, j] = out - 1.0 / (n * m)


@qp.kernel
def mean(t: F64x2) -> qp.f64:
    total = qp.f64(0.0)
    for i, j in t:
        total += t[i, j]
    return total / (t.shape[0] * t.shape[1])


@qp.kernel
def turn(t: F64x2, r: F64x2, p: F64x2, q: F64x2, zero: F64x2, size: qp.f64) -> qp.f64:
    """A step along ``p``; ``q`` less the constant part ``zero`` is the matrix times ``p``."""
    left = qp.f64(0.0)
    for i, j in t:
        t[i, j] += size * p[i, j]
        r[i, j] -= size * (q[i, j] - zero[i, j])
        left += r[i, j] ** 2
    return left


@qp.kernel
def product(p: F64x2, q: F64x2, zero: F64x2) -> qp.f64:
    total = qp.f64(0.0)
    for i, j in p:
        total += p[i, j] * (q[i, j] - zero[i, j])
    return total


@qp.kernel
def direction(p: F64x2, r: F64x2, by: qp.f64) -> None:
    for i, j in p:
        p[i, j] = r[i, j] + by * p[i, j]


def conjugate_gradients(t: qp.NDArray, k: qp.NDArray) -> None:
    """``residual`` is A t - b: r = b - A t."""
    r, p, q, zero = (qp.ndarray(qp.f64, t.shape) for _ in range(4))
    residual(zero, p, k)  # -b
    t.fill(0)
    r.from_numpy(-zero.to_numpy())
    p.from_numpy(-zero.to_numpy())
    left = first = float(np.sum(r.to_numpy() ** 2))
    for _ in range(4 * t.size):
        if left <= tolerance**2 * first:
            break
        residual(q, p, k)
        now = turn(t, r, p, q, zero, left / product(p, q, zero))
        direction(p, r, now / left)
        left = now


cool = qp.ad.implicit(residual, conjugate_gradients)


class Plate:
    """A plate of ``n`` times ``n`` cells."""

    def __init__(self, n: int) -> None:
        self.k, self.t = (qp.ndarray(qp.f64, (n, n), needs_grad=True) for _ in range(2))
        self.k.fill(share * most)

    def improve(self) -> float:
        """Move good material to where it cools most, with the same amount of it; returns the mean temperature before."""
        with qp.ad.Tape() as tape:
            cool(self.t, self.k)
            tape.loss = mean(self.t)
        assert self.k.grad is not None
        k, gradient = self.k.to_numpy(), np.maximum(-self.k.grad.to_numpy(), 0)
        new = k
        low, high = 0.0, float(gradient.max()) * 1e3  # optimality criteria: k grows where it pays more than the price
        for _ in range(80):
            price = 0.5 * (low + high)
            new = np.clip(
                k * np.sqrt(gradient / max(price, 1e-300)), np.maximum(k - 0.1, least), np.minimum(k + 0.1, most)
            )
            low, high = (price, high) if new.mean() > share * most else (low, price)
        self.k.from_numpy(new)
        return float(tape.loss)


def draw(plate: Plate) -> Picture:
    """Good material is dark, beside the temperature."""
    t = plate.t.to_numpy()
    left = palette(plate.k.to_numpy(), ["f6f3ea", "b08d57", "2b1d0e"])
    right = palette(t / max(float(t.max()), 1e-12), ["0b2a6b", "b9d7ee", "f3c48a", "a02a10"])
    return np.concatenate([left, right], axis=1).repeat(6, 0).repeat(6, 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="heat_sink.png", steps=30, steps_help="steps of the design", size=40,
                       size_help="cells along each side")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        plate = Plate(args.size)
        plate.improve()  # compiles the kernels
        play(args.steps, plate.improve, lambda: draw(plate), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
