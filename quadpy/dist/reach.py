"""How far a loop over the grid reads around the cells of a rank, and where each rank runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from quadpy.dist.boxes import Box, Widths
from quadpy.dist.division import Division
from quadpy.dist.localise import CELLS, LocalTask, parameter
from quadpy.errors import DistributedError
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import footprints_of
from quadpy.ir.footprints.evaluate import boxes_function
from quadpy.ir.footprints.model import Box as Touched, BoxFormula, Footprint, Indices
from quadpy.ir.footprints.numbers import Given, Number, given, number

__all__ = ["LoopReach", "Reaches"]

_PERIODS: Final = 1 << 32
"""By how many periods analysed indices of periodic axes are moved, so that none is negative."""
_SMALL: Final = 4
"""Axes with so few cells may be read as a whole."""


@dataclass(frozen=True, slots=True)
class Reaches:
    """What a loop does at a launch, on every rank.

    here    the cells for which this rank runs iterations; it has none where other ranks run the loop alone
    reads   for each array the distances at which it is read, one for each way in which it is read
    writes  the arrays that are written
    covers  whether this rank has an iteration for each of its cells, for certain
    inner   the cells whose iterations read no other rank's cells
    """

    here: Box
    reads: Mapping[str, tuple[Widths, ...]]
    writes: frozenset[str]
    covers: bool
    inner: Box


class LoopReach:
    """The footprints of one loop over a grid, evaluated for the blocks of its ranks.

    ``numbers`` says where the scalars and extents of the kernel's arguments are among the values of a call.
    """

    def __init__(
        self, task: LocalTask, grid: Division, arrays: Sequence[str], numbers: Mapping[Given, int], count: int
    ) -> None:
        assert task.analysed is not None
        self._task, self._grid, self._arrays = task, grid, frozenset(arrays)
        self._axes = {along: axis for axis, along in enumerate(task.axes) if along is not None}
        names = [parameter(name, axis) for name in ("low", "high", "first") for axis in range(grid.ndim)]
        self._footprints = [each for each in footprints_of(task.analysed) if self._matters(each)]
        known = [each for each in self._footprints if each.box is not None]
        indices = {**numbers, **{Given(name): count + k for k, name in enumerate(names)}}
        self._boxes, used = boxes_function(
            [(self._moved(each, each.box), self._extents(each)) for each in known if each.box is not None], indices
        )
        used = [k for k in used if k < count]
        self._key: Callable[[Sequence[float]], object] = itemgetter(*used) if used else lambda _: None
        self._known: dict[object, Reaches] = {}

    def at(self, values: Sequence[float]) -> Reaches:
        """What the loop does with these values; the identical object for equal numbers.

        Raises:
            DistributedError: it reads or writes what ranks cannot reach, with its line.
        """
        key = self._key(values)
        if key not in self._known:
            self._known[key] = self._found(values)
        return self._known[key]

    # ------------------------------------------------------------------- the boxes of one call

    def _found(self, values: Sequence[float]) -> Reaches:
        grid = self._grid
        self._require_cells(values)
        touched = [self._touched(values, block, block) for block in grid.blocks]
        for rank, block in enumerate(grid.blocks):
            if not self._runs(touched[rank], block):
                touched[rank] = [(each, None) for each in self._footprints]
        runs = any(box is not None for _, box in touched[grid.world.rank])
        here = grid.block if runs else Box(grid.block.low, grid.block.low)
        reads: dict[str, dict[Widths, None]] = {}
        for number_, footprint in enumerate(self._footprints):
            boxes = [each[number_][1] for each in touched]
            if footprint.array not in self._arrays:
                self._refuse_replicated(footprint)
            elif footprint.access is ir.Access.READ:
                if reach := self._reach(footprint, boxes):
                    reads.setdefault(footprint.array, {})[reach] = None
            else:
                self._require_own(footprint, boxes)
        writes = frozenset(
            f.array for f in self._footprints if f.access is not ir.Access.READ and f.array in self._arrays
        )
        found = {name: _largest(reaches) for name, reaches in reads.items()}
        inner = self._inner(values, here, found)
        return Reaches(here, found, writes, self._covers(touched[grid.world.rank], here), inner)

    def _touched(self, values: Sequence[float], block: Box, cells: Box) -> list[tuple[Footprint, Touched | None]]:
        """Each footprint with what it covers where iterations run over ``cells`` of ``block``; None for nothing."""
        boxes = iter(self._boxes([*values, *cells.low, *cells.high, *block.low]))
        return [(each, _UNKNOWN if each.box is None else next(boxes)) for each in self._footprints]

    def _extents(self, footprint: Footprint) -> list[Number]:
        grid = self._grid
        if footprint.array.startswith("partial."):
            return [number(3 * n) for n in grid.shape]
        if footprint.array not in self._arrays:
            axes = len(footprint.box.axes) if footprint.box is not None else 0
            return [given(Given(footprint.array, "extent", axis)) for axis in range(axes)]
        return [
            number(2 * n * _PERIODS if self._wraps(axis) else n) for axis, n in enumerate(grid.shape)
        ]  # fmt: skip

    def _moved(self, footprint: Footprint, box: BoxFormula) -> BoxFormula:
        """``box``, moved to indices that are not negative along axes that repeat."""
        if footprint.array not in self._arrays:
            return box
        steps = [number(n * _PERIODS if self._wraps(axis) else 0) for axis, n in enumerate(self._grid.shape)]
        moved = tuple(
            Indices(each.low + by, each.last + by, each.step, each.origin + by)
            for each, by in zip(box.axes, steps, strict=True)
        )
        return replace(box, axes=moved)

    def _matters(self, footprint: Footprint) -> bool:
        """Reads of arrays that every rank has are left to each rank."""
        return footprint.array in self._arrays or footprint.access is not ir.Access.READ

    def _wraps(self, axis: int) -> bool:
        return self._grid.periodic[axis] and self._grid.is_split[axis]

    def _runs(self, touched: Sequence[tuple[Footprint, Touched | None]], block: Box) -> bool:
        """Whether a rank runs the loop: it owns what is written along axes that the loop does not run along.

        Raises:
            DistributedError: it owns only some of that.
        """
        answers = [
            (footprint, self._own_axes(box, block))
            for footprint, box in touched
            if footprint.access is not ir.Access.READ and footprint.array in self._arrays and box is not None
        ]
        for footprint, own in answers:
            if own != answers[0][1]:
                raise DistributedError(
                    f"{footprint.array} is distributed, and one iteration writes elements of several ranks",
                    footprint.location, hint="write each of them in a loop of its own",
                )  # fmt: skip
        return all(own for _, own in answers)

    def _require_cells(self, values: Sequence[float]) -> None:
        """Each iteration has a cell, on whose rank it runs."""
        shape = self._grid.shape
        below, above = tuple(-n for n in shape), tuple(2 * n for n in shape)
        for footprint, box in self._touched(values, Box(below, above), Box(below, above)):
            if footprint.array == CELLS and box is not None and box.axes is not None:
                for axis in self._axes.keys() & range(len(shape)):
                    if box.axes[axis][0] < shape[axis] or box.axes[axis][-1] >= 2 * shape[axis]:
                        raise DistributedError(
                            f"this loop has iterations outside of the {shape[axis]} cells along axis {axis} of the grid, which no rank runs",
                            footprint.location, hint="let it run over the cells of the grid",
                        )  # fmt: skip

    # ------------------------------------------------------------------- reads

    def _reach(self, footprint: Footprint, boxes: Sequence[Touched | None]) -> Widths | None:
        """How far the read goes beyond a block, on any rank."""
        found = [(0, 0)] * self._grid.ndim
        if all(box is None for box in boxes):
            return None
        for axis in range(self._grid.ndim):
            if self._grid.is_split[axis]:
                found[axis] = self._width(footprint, axis, boxes)
        return tuple(found)

    def _width(self, footprint: Footprint, axis: int, boxes: Sequence[Touched | None]) -> tuple[int, int]:
        n, below, above = self._grid.shape[axis], 0, 0
        everywhere = True
        for box, block in zip(boxes, self._grid.blocks, strict=True):
            if box is None:
                continue
            if box.axes is None:
                raise self._unknown(footprint, axis)
            low, high = self._nearest(box.axes[axis], axis, block)
            everywhere &= high - low >= n and not (block.low[axis] == 0 and block.high[axis] == n)
            below, above = max(below, block.low[axis] - low), max(above, high - block.high[axis])
        exact = all(box is None or box.exact for box in boxes)
        if everywhere and not (exact and n <= _SMALL):
            raise self._unknown(footprint, axis)
        return below, above

    def _nearest(self, indices: range, axis: int, block: Box) -> tuple[int, int]:
        """``indices`` as an interval, in the period that is nearest to ``block``."""
        low, high = indices[0], indices[-1] + 1
        if not self._wraps(axis):
            return low, high
        n, a, b = self._grid.shape[axis], block.low[axis], block.high[axis]
        periods = (low + high - a - b) // (2 * n)
        moves = [-n * k for k in range(periods - 1, periods + 3)]
        best = min(moves, key=lambda move: max(a - low - move, high + move - b, 0))
        return low + best, high + best

    def _unknown(self, footprint: Footprint, axis: int) -> DistributedError:
        exact = footprint.box is not None and footprint.exact
        what = "reads all of" if exact else "reads at an index that data decide, along"
        return DistributedError(
            f"{footprint.array} is distributed, and this {what} axis {axis}, which is divided among ranks",
            footprint.location,
            hint=f"do not divide axis {axis} (ranks=…), pass an array that every rank has, or let the index be near the "
            "loop's own" + (" (write i % n for axes that repeat)" if self._grid.periodic[axis] else ""),
        )  # fmt: skip

    # ------------------------------------------------------------------- writes

    def _own_axes(self, box: Touched | None, block: Box) -> bool:
        """Whether the cells that an iteration writes, along axes that the loop does not run along, are this rank's."""
        if box is None or box.axes is None:
            return True
        for axis, indices in enumerate(box.axes):
            if axis not in self._axes and self._grid.is_split[axis]:
                low, high = self._nearest(indices, axis, block)
                if low >= block.high[axis] or high <= block.low[axis]:
                    return False
        return True

    def _require_own(self, footprint: Footprint, boxes: Sequence[Touched | None]) -> None:
        for box, block in zip(boxes, self._grid.blocks, strict=True):
            if box is None:
                continue
            for axis in range(self._grid.ndim):
                if not self._grid.is_split[axis]:
                    continue
                low, high = self._nearest(box.axes[axis], axis, block) if box.axes is not None else (-1, -1)
                if low < block.low[axis] or high > block.high[axis]:
                    raise DistributedError(
                        f"{footprint.array} is distributed, and an iteration writes elements of other cells along axis {axis}",
                        footprint.location, hint="each iteration may write the elements of its own cell only; read from neighbours instead",
                    )  # fmt: skip

    def _refuse_replicated(self, footprint: Footprint) -> None:
        if not footprint.array.startswith("partial."):
            raise DistributedError(
                f"each rank has its own {footprint.array}, and this would write it differently on each",
                footprint.location, hint="accumulate with +=, or by atomic_min and atomic_max, at a constant index; or write an array of the grid",
            )  # fmt: skip

    # ------------------------------------------------------------------- the parts of a launch

    def _covers(self, touched: Sequence[tuple[Footprint, Touched | None]], here: Box) -> bool:
        """Whether each cell of ``here`` certainly has an iteration."""
        for footprint, box in touched:
            if footprint.array.startswith("partial."):
                full = box is not None and box.axes is not None and box.exact and box.always
                if not full or tuple(map(len, box.axes or ())) != here.shape:  # type: ignore[union-attr]  # ``full``
                    return False
        return True

    def _inner(self, values: Sequence[float], here: Box, reads: Mapping[str, Sequence[Widths]]) -> Box:
        grid, below, above = self._grid, [0] * self._grid.ndim, [0] * self._grid.ndim
        for reach in (each for reaches in reads.values() for each in reaches):
            for axis, (a, b) in enumerate(reach):
                ends = here.low[axis] == 0, here.high[axis] == grid.shape[axis]
                repeats = grid.periodic[axis]
                below[axis] = max(below[axis], a if repeats or not ends[0] else 0)
                above[axis] = max(above[axis], b if repeats or not ends[1] else 0)
        inner = Box(
            tuple(a + width for a, width in zip(here.low, below, strict=True)),
            tuple(b - width for b, width in zip(here.high, above, strict=True)),
        )
        empty = Box(here.low, here.low)
        if not inner.size or len(self._axes) < grid.ndim:
            return empty
        for footprint, box in self._touched(values, grid.block, inner):
            is_read = footprint.array in self._arrays and footprint.access is ir.Access.READ
            if is_read and box is not None and not self._stays(box, here):
                return empty
        return inner

    def _stays(self, box: Touched, here: Box) -> bool:
        if box.axes is None:
            return False
        for axis, indices in enumerate(box.axes):
            if self._grid.is_split[axis]:
                low, high = self._nearest(indices, axis, here)
                if low < here.low[axis] or high > here.high[axis]:
                    return False
        return True


def _largest(reaches: Mapping[Widths, None]) -> tuple[Widths, ...]:
    """Those that no other covers."""
    kept: list[Widths] = []
    for reach in reaches:
        if not any(other != reach and _within(reach, other) for other in reaches):
            kept.append(reach)
    return tuple(kept)


@functools.cache
def _within(one: Widths, other: Widths) -> bool:
    return all(a <= c and b <= d for (a, b), (c, d) in zip(one, other, strict=True))


_UNKNOWN: Final = Touched(None, exact=False, always=False)
"""What is covered by a footprint of which nothing is known."""
