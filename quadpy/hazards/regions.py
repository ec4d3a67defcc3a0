"""Parts of memory, and whether two of them overlap.

Strided bytes may leave gaps, or overlap those of another pattern.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


_MOST: Final = 1 << 24
"""Units of memory in which two patterns are compared one by one."""


class Pattern(NamedTuple):
    """``item`` bytes at ``low`` plus each sum of multiples of strides.

    steps  the strides, none negative, the largest first, each with the number of its multiples
    """

    low: int
    steps: tuple[tuple[int, int], ...]
    item: int

    @property
    def extent(self) -> int:
        """From the first byte to the end of the last one."""
        return sum(stride * (count - 1) for stride, count in self.steps) + self.item

    @property
    def high(self) -> int:
        return self.low + self.extent

    def within(self, begin: int, end: int) -> Pattern | None:
        """Without multiples of the largest stride that have no bytes from ``begin`` to ``end``; None if none are left."""
        if not self.steps or not self.steps[0][0]:
            return self
        (stride, count), *rest = self.steps
        inner = Pattern(self.low, tuple(rest), self.item)
        first = max(0, -(-(begin - inner.high + 1) // stride))
        last = min(count - 1, (end - 1 - self.low) // stride)
        if last < first:
            return None
        return Pattern(self.low + first * stride, ((stride, last - first + 1), *rest), self.item)


def pattern_of(pointer: int, axes: Iterable[tuple[range, int]], item: int) -> Pattern:
    """The elements of an array at these positions along axes with these strides in bytes."""
    low, steps = pointer, []
    for positions, stride in axes:
        low += min(positions[0] * stride, positions[-1] * stride)
        if len(positions) > 1:
            steps.append((abs(positions.step * stride), len(positions)))
    return Pattern(low, tuple(sorted(steps, reverse=True)), item)


def has_gaps(pattern: Pattern) -> bool:
    """Whether some byte from its first to its last one is not in it."""
    covered = pattern.item
    for stride, count in reversed(pattern.steps):
        if stride > covered:
            return True
        covered += stride * (count - 1)
    return False


def meet(one: Pattern, other: Pattern) -> bool | None:
    """Whether two patterns have a byte in common; None if they are too large to tell."""
    some, others = one.within(other.low, other.high), other.within(one.low, one.high)
    return some is not None and others is not None and _meeting(some, others)


def _meeting(one: Pattern, other: Pattern) -> bool | None:
    low = min(one.low, other.low)
    strides = (stride for pattern in (one, other) for stride, _ in pattern.steps)
    unit = math.gcd(one.low - low, other.low - low, one.item, other.item, *strides)
    size = (max(one.high, other.high) - low) // unit
    if max(size, *(math.prod(count for _, count in pattern.steps) for pattern in (one, other))) > _MOST:
        return None
    marks = np.zeros(size, np.uint8)
    _view(marks, one, low, unit)[...] = 1
    return bool(_view(marks, other, low, unit).any())


def _view(marks: np.ndarray, pattern: Pattern, low: int, unit: int) -> np.ndarray:
    """The ``marks``, one for each ``unit`` of memory from ``low`` on, that are in ``pattern``."""
    shape = *(count for _, count in pattern.steps), pattern.item // unit
    strides = *(stride // unit for stride, _ in pattern.steps), 1
    return np.lib.stride_tricks.as_strided(marks[(pattern.low - low) // unit :], shape, strides)
