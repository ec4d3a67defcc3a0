"""What a loop over a grid does at a launch."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quadpy.dist.boxes import Box, Widths, difference
from quadpy.dist.lattice import Lattice


@dataclass(frozen=True, slots=True)
class Reaches:
    """What a loop does at a launch, on every rank.

    lattice  where its iterations are: at the cells, or up to one above the last along some axes
    here     the cells for which this rank runs iterations; none if only other ranks run the loop
    reads    for each array, in the order of names, the distances at which it is read, one for each way in which it is read
    writes   the arrays that are written
    covers   whether this rank certainly has an iteration for each of its cells
    inner    the cells whose iterations read no other rank's cells
    whole    ``here``, if it has a cell, as a call runs it if no halo is stale
    first    ``inner``, if it has a cell, as a call runs it while halos are exchanged
    then     the rest, which it runs after that
    """

    lattice: Lattice
    here: Box
    reads: Mapping[str, tuple[Widths, ...]]
    writes: frozenset[str]
    covers: bool
    inner: Box
    whole: tuple[Box, ...] = field(init=False)
    first: tuple[Box, ...] = field(init=False)
    then: tuple[Box, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name, boxes in (
            ("whole", [self.here]),
            ("first", [self.inner]),
            ("then", difference(self.here, self.inner)),
        ):
            object.__setattr__(self, name, tuple(box for box in boxes if box.size))  # it is frozen from now on


def largest(reaches: Iterable[Widths]) -> tuple[Widths, ...]:
    """The reaches that no other covers."""
    given = dict.fromkeys(reaches)
    return tuple(reach for reach in given if not any(other != reach and _within(reach, other) for other in given))


@functools.cache
def _within(one: Widths, other: Widths) -> bool:
    return all(a <= c and b <= d for (a, b), (c, d) in zip(one, other, strict=True))
