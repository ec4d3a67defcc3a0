"""How far a read goes beyond the blocks of a grid."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final

from quadpy.core.source import Span
from quadpy.dist.boxes import Widths
from quadpy.dist.division import Division
from quadpy.dist.lattice import Lattice
from quadpy.dist.reach.periods import nearest
from quadpy.errors import DistributedError
from quadpy.ir.footprints.model import Box as Touched, Footprint

_SMALL: Final = 4
"""Axes with so few cells may be read as a whole."""


def reach_of(
    grid: Division, lattice: Lattice, footprint: Footprint, boxes: Sequence[Touched | None], called: str
) -> Widths | None:
    """How far a read of the array ``called`` goes beyond a block of its ``lattice``, on any rank; None if no rank reads.

    ``boxes`` has the cells that each rank reads.

    A halo that is half of an axis or more is a RuntimeWarning, on rank 0.

    Raises:
        DistributedError: it reads all of a divided axis, or what data decide.
    """
    if all(box is None for box in boxes):
        return None
    return tuple(
        _width(grid, lattice, footprint, axis, boxes, called) if grid.is_split[axis] else (0, 0)
        for axis in range(grid.ndim)
    )


def _width(
    grid: Division, lattice: Lattice, footprint: Footprint, axis: int, boxes: Sequence[Touched | None], called: str
) -> tuple[int, int]:
    n, below, above = lattice.shape[axis], 0, 0
    everywhere = True
    for box, block in zip(boxes, lattice.blocks, strict=True):
        if box is None:
            continue
        if box.axes is None:
            raise _unknown(grid, footprint, axis, called)
        low, high = nearest(grid, box.axes[axis], axis, block)
        everywhere &= high - low >= n and not (block.low[axis] == 0 and block.high[axis] == n)
        below, above = max(below, block.low[axis] - low), max(above, high - block.high[axis])
    exact = all(box is None or box.exact for box in boxes)
    if everywhere and not (exact and n <= _SMALL):
        raise _unknown(grid, footprint, axis, called)
    if (most := max(below, above)) > _SMALL and 2 * most >= n and grid.world.rank == 0:
        _warn(footprint.location, f"{called} is distributed, and this reads it up to {most} cells beyond a block along "
              f"axis {axis}, which has {n}: each rank gets such a halo. An element that all iterations need can be an "
              f"argument instead, which the host reads")  # fmt: skip
    return below, above


def _warn(location: Span | None, message: str) -> None:
    """Warn once, at the kernel's own line."""
    if location is not None:
        warnings.warn_explicit(message, RuntimeWarning, location.file, location.line)


def _unknown(grid: Division, footprint: Footprint, axis: int, called: str) -> DistributedError:
    exact = footprint.box is not None and footprint.exact
    what = "reads all of" if exact else "reads at an index that data decide, along"
    periodic = "" if grid.periodic[axis] else ", and make the axis periodic"
    return DistributedError(
        f"{called} is distributed, and this {what} axis {axis}, which is divided among ranks",
        footprint.location,
        hint=f"do not divide axis {axis} (ranks=…), pass an array that every rank has, or let the index be near the "
        f"loop's own; where it wraps, write i % {called}.shape[{axis}]{periodic}",
    )
