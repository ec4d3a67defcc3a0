"""The footprints of a loop over a grid, for the blocks of all ranks; the cells that it writes decide which ranks run it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quadpy.dist.boxes import Box, Widths
from quadpy.dist.localise import CELLS, LocalTask, parameter
from quadpy.dist.reach.model import Reaches, largest
from quadpy.dist.reach.periods import extents_beyond, moved_up, nearest, wraps
from quadpy.dist.reach.reads import reach_of
from quadpy.errors import DistributedError
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import footprints_of
from quadpy.ir.footprints.evaluate import boxes_function
from quadpy.ir.footprints.model import Box as Touched, BoxFormula, Footprint
from quadpy.ir.footprints.ways import ways_of
from quadpy.ir.index.numbers import Given, Number
from quadpy.ir.index.polynomials import atom_poly

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from quadpy.dist.division import Division
    from quadpy.dist.lattice import Lattice
    from quadpy.dist.races import LoopRaces
    from quadpy.ir.footprints.accesses import Reached

_MOST_KNOWN: Final = 1000


class LoopReach:
    """The footprints of one loop over a grid and its ``arrays``, evaluated for the blocks of its ranks.

    ``numbers`` says where the scalars and extents of the kernel's arguments are among the values of a call, which has
    ``count`` of them; ``called`` what the source calls an array; ``races`` warns of those that the loop certainly has.
    """

    def __init__(
        self, task: LocalTask, grid: Division, arrays: Mapping[str, Lattice], numbers: Mapping[Given, int], count: int,
        called: Callable[[str], str], races: LoopRaces,
    ) -> None:  # fmt: skip
        assert task.analysed is not None
        self._races = races
        self._grid, self._arrays, self._called = grid, arrays, called
        self._axes = {along: axis for axis, along in enumerate(task.axes) if along is not None}
        names = [parameter(name, axis) for name in ("low", "high", "first") for axis in range(grid.ndim)]
        self._footprints = [each for each in footprints_of(task.analysed, self._ways) if self._matters(each)]
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
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:  # a number that differs at each call decides it
                self._known.clear()
            found = self._known[key] = self._found(values)
        return found

    # ------------------------------------------------------------------- the boxes of one call

    def _found(self, values: Sequence[float]) -> Reaches:
        grid = self._grid
        lattice = self._iterations(values)
        touched = [self._touched(values, block, block) for block in lattice.blocks]
        for rank in range(grid.world.size):
            written = [
                (each, box, self._arrays[each.array].blocks[rank])
                for each, box in touched[rank]
                if self._is_write(each)
            ]
            if not runs(grid, self._axes.keys(), written, self._called):
                touched[rank] = [(each, None) for each in self._footprints]
        runs_here = any(box is not None for _, box in touched[grid.world.rank])
        here = lattice.block if runs_here else Box(grid.block.low, grid.block.low)
        reads: dict[str, dict[Widths, None]] = {}
        for number_, footprint in enumerate(self._footprints):
            boxes = [each[number_][1] for each in touched]
            name = footprint.array
            if name not in self._arrays:
                if not _is_partial(footprint):
                    refuse_replicated(footprint, self._called(name))
            elif footprint.access is ir.Access.READ:
                if reach := reach_of(grid, self._arrays[name], footprint, boxes, self._called(name)):
                    reads.setdefault(name, {})[reach] = None
            else:
                require_own(grid, self._arrays[name], footprint, boxes, self._called(name))
        writes = frozenset(each.array for each in self._footprints if self._is_write(each))
        found = {name: largest(reads[name]) for name in sorted(reads)}
        if writes & found.keys():
            self._races.warn(values)
        inner = self._inner(values, here, found)
        return Reaches(lattice, here, found, writes, self._covers(touched[grid.world.rank], here), inner)

    def _touched(self, values: Sequence[float], block: Box, cells: Box) -> list[tuple[Footprint, Touched | None]]:
        """Each footprint with what it covers where iterations run over ``cells`` of ``block``; None for nothing."""
        boxes = iter(self._boxes([*values, *cells.low, *cells.high, *block.low]))
        return [(each, _UNKNOWN if each.box is None else next(boxes)) for each in self._footprints]

    def _extents(self, footprint: Footprint) -> list[Number]:
        if _is_partial(footprint):
            return [3 * n + 2 for n in self._grid.shape]
        if footprint.array not in self._arrays:
            axes = len(footprint.box.axes) if footprint.box is not None else 0
            return [atom_poly(Given(footprint.array, "extent", axis)) for axis in range(axes)]
        return extents_beyond(self._grid, self._arrays[footprint.array].shape)

    def _moved(self, footprint: Footprint, box: BoxFormula) -> BoxFormula:
        return moved_up(self._grid, box) if footprint.array in self._arrays else box

    def _ways(self, reached: Reached) -> list[Reached]:
        """A choice of branches along a divided axis, such as ``i + 1 if i + 1 < n else 0``, reads near at each side."""
        if reached.place.array not in self._arrays:
            return [reached]
        grid = self._grid
        divided = [axis for axis, is_split in enumerate(grid.is_split) if is_split]
        return ways_of(reached, divided, lambda axis, by: wraps(grid, axis) and by == grid.shape[axis])

    def _matters(self, footprint: Footprint) -> bool:
        """Each rank makes its own reads of arrays that every rank has."""
        return footprint.array in self._arrays or footprint.access is not ir.Access.READ

    def _is_write(self, footprint: Footprint) -> bool:
        return footprint.array in self._arrays and footprint.access is not ir.Access.READ

    def _iterations(self, values: Sequence[float]) -> Lattice:
        """The lattice of the loop, so that each iteration has a rank on which it runs."""
        shape, staggered = self._grid.shape, [False] * self._grid.ndim
        below, above = tuple(-n for n in shape), tuple(2 * n + 2 for n in shape)
        for footprint, box in self._touched(values, Box(below, above), Box(below, above)):
            if footprint.array == CELLS and box is not None and box.axes is not None:
                for axis in self._axes.keys() & range(len(shape)):
                    first, last = box.axes[axis][0] - shape[axis], box.axes[axis][-1] - shape[axis]
                    staggered[axis] = last == shape[axis] and not self._grid.periodic[axis]
                    if first < 0 or last >= shape[axis] + staggered[axis]:
                        raise DistributedError(
                            f"this loop has iterations outside of the {shape[axis]} cells along axis {axis} of the grid, "
                            "and of the faces between them, which no rank runs",
                            footprint.location, hint="let it run over the cells or the faces of the grid",
                        )  # fmt: skip
        return self._grid.lattice(staggered)

    # ------------------------------------------------------------------- the parts of a launch

    def _covers(self, touched: Sequence[tuple[Footprint, Touched | None]], here: Box) -> bool:
        """Whether each cell of ``here`` certainly has an iteration."""
        for footprint, box in touched:
            if _is_partial(footprint):
                full = box is not None and box.axes is not None and box.exact and box.always
                if not full or tuple(map(len, box.axes or ())) != here.shape:  # type: ignore[union-attr]  # ``full``
                    return False
        return True

    def _inner(self, values: Sequence[float], here: Box, reads: Mapping[str, Sequence[Widths]]) -> Box:
        grid, below, above = self._grid, [0] * self._grid.ndim, [0] * self._grid.ndim
        for reach in (each for reaches in reads.values() for each in reaches):
            for axis, (a, b) in enumerate(reach):
                ends = grid.block.low[axis] == 0, grid.block.high[axis] == grid.shape[axis]
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
            if is_read and box is not None and not self._stays(box, self._arrays[footprint.array].block):
                return empty
        return inner

    def _stays(self, box: Touched, block: Box) -> bool:
        if box.axes is None:
            return False
        for axis, indices in enumerate(box.axes):
            if self._grid.is_split[axis]:
                low, high = nearest(self._grid, indices, axis, block)
                if low < block.low[axis] or high > block.high[axis]:
                    return False
        return True


def _is_partial(footprint: Footprint) -> bool:
    """Whether it is of an array for what iterations add up."""
    return footprint.array.startswith("partial.")


_UNKNOWN: Final = Touched(None, exact=False, always=False)
"""The cells that a footprint covers if nothing is known about it."""


def runs(
    grid: Division, along: Collection[int], written: Sequence[tuple[Footprint, Touched | None, Box]],
    called: Callable[[str], str],
) -> bool:  # fmt: skip
    """Whether a rank runs a loop along these axes: it owns what is ``written``, with its block, along the others.

    Raises:
        DistributedError: it owns only some of that.
    """
    answers = [(footprint, _owns(grid, along, box, block)) for footprint, box, block in written if box is not None]
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


def require_own(
    grid: Division, lattice: Lattice, footprint: Footprint, boxes: Sequence[Touched | None], called: str
) -> None:
    """Refuses writes of other elements than the iteration's own in an array of this ``lattice``."""
    for box, block in zip(boxes, lattice.blocks, strict=True):
        if box is None:
            continue
        for axis in range(grid.ndim):
            if not grid.is_split[axis]:
                continue
            low, high = nearest(grid, box.axes[axis], axis, block) if box.axes is not None else (-1, -1)
            if low < block.low[axis] or high > block.high[axis]:
                raise DistributedError(
                    f"{called} is distributed, and an iteration writes elements of other cells along axis {axis}",
                    footprint.location, hint="each iteration may only write the elements of its own cell; read from neighbours instead, or add (+=) to elements "
                    "of an array that the loop only adds to, at indices that are sums of its variables and constants",
                )  # fmt: skip


def refuse_replicated(footprint: Footprint, called: str) -> None:
    """Refuses writes of an array of which each rank has its own."""
    raise DistributedError(
        f"each rank has its own {called}, and this would write it differently on each",
        footprint.location, hint="accumulate with +=, or by atomic_min and atomic_max, at a constant index; or write an array of the grid",
    )  # fmt: skip
