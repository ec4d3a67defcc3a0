"""Indices of elements, as users write them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

__all__ = ["users_index"]


def users_index(index: Sequence[int], offset: Sequence[int], blocks: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The index of an element as users write it; ``offset`` and ``blocks`` as in ``ir.ArrayParam``."""
    left = iter(index)
    whole = [_joined(left, levels) for levels in blocks] if blocks else [*index]
    return tuple(map(operator.add, whole, offset)) if offset else tuple(whole)


def _joined(parts: Iterator[int], levels: Sequence[int]) -> int:
    """The next ``parts``, one for each of ``levels``, as one number."""
    number = 0
    for extent in levels:
        number = number * extent + next(parts)
    return number
