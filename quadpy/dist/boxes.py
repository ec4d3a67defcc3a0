"""Boxes of cells: a half-open interval along each axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

Widths: TypeAlias = tuple[tuple[int, int], ...]
"""How many cells a box grows along each axis: below its first cell, and above its last."""


class Box(NamedTuple):
    """The cells from ``low`` up to, but not including, ``high``; none if ``high`` is not above ``low``."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([b - a if b > a else 0 for a, b in zip(self.low, self.high, strict=True)])

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def meet(self, other: Box) -> Box:
        """The cells that are in both."""
        return Box(tuple(map(max, self.low, other.low)), tuple(map(min, self.high, other.high)))

    def moved(self, by: Iterable[int]) -> Box:
        steps = tuple(by)
        return Box(
            tuple(a + step for a, step in zip(self.low, steps, strict=True)),
            tuple(b + step for b, step in zip(self.high, steps, strict=True)),
        )

    def grown(self, widths: Widths) -> Box:
        return Box(
            tuple(a - below for a, (below, _) in zip(self.low, widths, strict=True)),
            tuple(b + above for b, (_, above) in zip(self.high, widths, strict=True)),
        )

    def contains(self, other: Box) -> bool:
        return not other.size or (
            all(a <= b for a, b in zip(self.low, other.low, strict=True))
            and all(a >= b for a, b in zip(self.high, other.high, strict=True))
        )


def hull(one: Box | None, other: Box) -> Box:
    """The smallest box that contains both."""
    if one is None:
        return other
    return Box(tuple(map(min, one.low, other.low)), tuple(map(max, one.high, other.high)))


def difference(outer: Box, inner: Box) -> list[Box]:
    """``outer`` without ``inner``, which is inside it, as slabs: at most two for each axis."""
    if not inner.size:
        return [outer] if outer.size else []
    slabs, (low, high) = [], outer
    for axis in range(len(low)):
        slabs.append(Box(low, (*high[:axis], inner.low[axis], *high[axis + 1 :])))
        slabs.append(Box((*low[:axis], inner.high[axis], *low[axis + 1 :]), high))
        low = (*low[:axis], inner.low[axis], *low[axis + 1 :])
        high = (*high[:axis], inner.high[axis], *high[axis + 1 :])
    return [slab for slab in slabs if slab.size]
