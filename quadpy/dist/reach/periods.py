"""Indices along axes that wrap: footprints may reach beyond the ends of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quadpy.dist.boxes import Box
from quadpy.dist.division import Division
from quadpy.ir.footprints.model import BoxFormula, Indices
from quadpy.ir.index.numbers import Number

_PERIODS: Final = 1 << 32
"""The number of periods by which analysed indices are moved, so that none is negative."""


def wraps(grid: Division, axis: int) -> bool:
    """Whether cells of other ranks are beyond both ends of ``axis``."""
    return grid.periodic[axis] and grid.is_split[axis]


def extents_beyond(grid: Division, shape: Sequence[int]) -> list[Number]:
    """The extents within which indices of an array of this ``shape`` are, after ``moved_up``."""
    return [2 * n * _PERIODS if wraps(grid, axis) else n for axis, n in enumerate(shape)]


def moved_up(grid: Division, box: BoxFormula) -> BoxFormula:
    """``box``, moved to indices that are not negative along axes that wrap."""
    steps = [n * _PERIODS if wraps(grid, axis) else 0 for axis, n in enumerate(grid.shape)]
    moved = tuple(
        Indices(each.low + by, each.last + by, each.step, each.origin + by)
        for each, by in zip(box.axes, steps, strict=True)
    )
    return replace(box, axes=moved)


def nearest(grid: Division, indices: range, axis: int, block: Box) -> tuple[int, int]:
    """``indices`` as an interval, in the period that is nearest to ``block``."""
    low, high = indices[0], indices[-1] + 1
    if not wraps(grid, axis):
        return low, high
    n, a, b = grid.shape[axis], block.low[axis], block.high[axis]
    periods = (low + high - a - b) // (2 * n)
    moves = [-n * k for k in range(periods - 1, periods + 3)]
    best = min(moves, key=lambda move: max(a - low - move, high + move - b, 0))
    return low + best, high + best
