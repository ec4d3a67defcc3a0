"""What a loop over a grid does at a launch."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quadpy.dist.boxes import Box, Widths

__all__ = ["Reaches", "largest"]


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


def largest(reaches: Iterable[Widths]) -> tuple[Widths, ...]:
    """Those that no other covers."""
    given = dict.fromkeys(reaches)
    return tuple(reach for reach in given if not any(other != reach and _within(reach, other) for other in given))


@functools.cache
def _within(one: Widths, other: Widths) -> bool:
    return all(a <= c and b <= d for (a, b), (c, d) in zip(one, other, strict=True))
