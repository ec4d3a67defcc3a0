"""Which ranks run a loop, by the cells that it writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from quadpy.dist.boxes import Box
from quadpy.dist.division import Division
from quadpy.dist.reach.periods import nearest
from quadpy.errors import DistributedError
from quadpy.ir.footprints.model import Box as Touched, Footprint


def runs(
    grid: Division, along: Collection[int], written: Sequence[tuple[Footprint, Touched | None]], block: Box,
    called: Callable[[str], str],
) -> bool:  # fmt: skip
    """Whether the rank of ``block`` runs a loop along these axes: it owns what is written along the others.

    Raises:
        DistributedError: it owns only some of that.
    """
    answers = [(footprint, _owns(grid, along, box, block)) for footprint, box in written if box is not None]
    for footprint, own in answers:
        if own != answers[0][1]:
            raise DistributedError(
                f"{called(footprint.array)} is distributed, and one iteration writes elements of several ranks",
                footprint.location, hint="write each of them in a separate loop",
            )  # fmt: skip
    return all(own for _, own in answers)


def _owns(grid: Division, along: Collection[int], box: Touched | None, block: Box) -> bool:
    """Whether the cells that an iteration writes, along axes that the loop does not run along, are of ``block``."""
    if box is None or box.axes is None:
        return True
    for axis, indices in enumerate(box.axes):
        if axis not in along and grid.is_split[axis]:
            low, high = nearest(grid, indices, axis, block)
            if low >= block.high[axis] or high <= block.low[axis]:
                return False
    return True


def require_own(grid: Division, footprint: Footprint, boxes: Sequence[Touched | None], called: str) -> None:
    """Refuses writes of other cells than the iteration's own."""
    for box, block in zip(boxes, grid.blocks, strict=True):
        if box is None:
            continue
        for axis in range(grid.ndim):
            if not grid.is_split[axis]:
                continue
            low, high = nearest(grid, box.axes[axis], axis, block) if box.axes is not None else (-1, -1)
            if low < block.low[axis] or high > block.high[axis]:
                raise DistributedError(
                    f"{called} is distributed, and an iteration writes elements of other cells along axis {axis}",
                    footprint.location, hint="each iteration may only write the elements of its own cell; read from neighbours instead",
                )  # fmt: skip


def refuse_replicated(footprint: Footprint, called: str) -> None:
    """Refuses writes of an array of which each rank has its own."""
    raise DistributedError(
        f"each rank has its own {called}, and this would write it differently on each",
        footprint.location, hint="accumulate with +=, or by atomic_min and atomic_max, at a constant index; or write an array of the grid",
    )  # fmt: skip
