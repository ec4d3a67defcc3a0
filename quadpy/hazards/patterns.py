"""Strided bytes: whether they leave gaps, or overlap those of another pattern."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

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
    return some is not None and others is not None and _meet(some, others)


def _meet(one: Pattern, other: Pattern) -> bool | None:
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
