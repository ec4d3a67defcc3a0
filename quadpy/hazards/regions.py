"""Parts of memory, and whether two of them overlap."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from quadpy.hazards.patterns import Pattern, has_gaps, meet, pattern_of


class Overlap(enum.Enum):
    """Whether two regions have bytes in common."""

    NONE = enum.auto()
    POSSIBLE = enum.auto()
    CERTAIN = enum.auto()


@dataclass(frozen=True, slots=True)
class ByteGrid:
    """The layout of an array in memory: the address of its first number, its extents, and its strides in bytes.

    The last axes are those of an element; a number has ``item`` bytes.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item: int


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes from ``low`` to ``high``; some of them, unless it is ``dense``.

    grid, axes  if known, the elements: a range for each axis of the grid
    """

    low: int
    high: int
    dense: bool
    grid: ByteGrid | None = None
    axes: tuple[range, ...] = ()


def region_in(grid: ByteGrid, axes: Sequence[range]) -> Region | None:
    """The elements of ``grid`` in ``axes``; the last axes may be missing; None if there are no elements."""
    full = (*axes, *(range(n) for n in grid.shape[len(axes) :]))
    if not all(full):
        return None
    pattern = pattern_of(grid.pointer, zip(full, grid.strides, strict=True), grid.item)
    return Region(pattern.low, pattern.high, not has_gaps(pattern), grid, full)


def overlap(one: Region, other: Region) -> Overlap:
    """Whether ``one`` and ``other`` have bytes in common: by elements within one grid, else by bytes.

    Elements of a grid that share memory are only read: kernels that write them are refused.
    """
    if one.high <= other.low or other.high <= one.low:
        return Overlap.NONE
    if one.grid is not None and (one.grid is other.grid or one.grid == other.grid):
        meets = one.axes == other.axes or all(map(_meet, one.axes, other.axes))
        return Overlap.CERTAIN if meets else Overlap.NONE
    if one.dense and other.dense:
        return Overlap.CERTAIN
    if _interleaved(one, other):
        return Overlap.NONE
    return _by_bytes(one, other)


@lru_cache(maxsize=256)
def _by_bytes(one: Region, other: Region) -> Overlap:
    some, others = _pattern(one), _pattern(other)
    found = None if some is None or others is None else meet(some, others)
    return Overlap.POSSIBLE if found is None else Overlap.CERTAIN if found else Overlap.NONE


def _pattern(region: Region) -> Pattern | None:
    """The bytes of ``region``; None if they are not known."""
    if region.grid is not None:
        return pattern_of(region.grid.pointer, zip(region.axes, region.grid.strides, strict=True), region.grid.item)
    return Pattern(region.low, (), region.high - region.low) if region.dense else None


def _interleaved(one: Region, other: Region) -> bool:
    """Whether the two are next to each other within each period, as members of structs do."""
    periods = {abs(stride) for region in (one, other) if region.grid is not None for stride in region.grid.strides}
    return any(_apart(_within_period(one, n), _within_period(other, n), n) for n in periods if n)


def _within_period(region: Region, period: int) -> tuple[int, int]:
    """The bytes of ``region`` modulo ``period``: where they begin, and their largest possible number."""
    if region.grid is None:
        return region.low % period, region.high - region.low
    low = high = region.grid.pointer
    for positions, stride in zip(region.axes, region.grid.strides, strict=True):
        ends = positions[0] * stride, positions[-1] * stride
        low += min(ends)
        high += min(ends) if stride * positions.step % period == 0 else max(ends)
    return low % period, high - low + region.grid.item


def _apart(one: tuple[int, int], other: tuple[int, int], period: int) -> bool:
    """Whether two ranges, each a start and a length, do not overlap on a circle of ``period`` bytes."""
    return (other[0] - one[0]) % period >= one[1] and (one[0] - other[0]) % period >= other[1]


def contains(outer: Region, inner: Region) -> bool:
    """Whether every byte of ``inner`` is one of ``outer``."""
    if outer.low > inner.low or inner.high > outer.high:
        return False
    if outer.dense:
        return True
    same = outer.grid is not None and outer.grid == inner.grid
    return same and all(map(_within, inner.axes, outer.axes))


def _within(inner: range, outer: range) -> bool:
    inside = inner[0] in outer and inner[-1] in outer
    return inside and (len(inner) == 1 or inner.step % outer.step == 0)


def _meet(one: range, other: range) -> bool:
    """Whether two ranges with positive steps, neither empty, have a number in common."""
    low, high = max(one[0], other[0]), min(one[-1], other[-1])
    if low > high:
        return False
    if one.step == 1 and other.step == 1:
        return True
    step = math.gcd(one.step, other.step)
    if (other[0] - one[0]) % step:
        return False
    # the first number of both: one[0] + one.step * k with k * (one.step / step) = (other[0] - one[0]) / step
    modulus = other.step // step
    k = (other[0] - one[0]) // step * pow(one.step // step, -1, modulus) % modulus
    first, period = one[0] + one.step * k, one.step * modulus
    return first + -(-(low - first) // period) * period <= high
