"""Dependencies of nodes, derived from the memory that they read and write.

Dependencies that follow from others are left out, so that independent nodes stay a fork.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from quadpy.graph.model.dependences import UNTOUCHED, Ancestors, History

MemoryRange: TypeAlias = tuple[int, int]
"""An address, and how many bytes."""


@dataclass(slots=True)
class _Segment:
    """Bytes from ``start`` to ``end`` with one history."""

    start: int
    end: int
    history: History = UNTOUCHED


class Order:
    """The nodes of one graph in the order in which they were made, by number, and what each comes after.

    A node of unknown effects is a barrier: it comes after all nodes before it, and before all that come later.
    """

    def __init__(self) -> None:
        self._ancestors = Ancestors()
        self._segments: list[_Segment] = []
        self._last: set[int] = set()  # nodes that nothing comes after yet
        self._barriers: list[int] = []

    def __len__(self) -> int:
        return len(self._ancestors)

    def follows(self, later: int, earlier: int) -> bool:
        """Whether ``later`` comes after ``earlier``, directly or not."""
        return self._ancestors.follows(later, earlier)

    def derive(
        self, reads: Iterable[MemoryRange], writes: Iterable[MemoryRange], *, barrier: bool = False
    ) -> tuple[int, ...]:
        """The nodes that a node with these accesses must come after, without those that follow from the rest."""
        if barrier:
            return tuple(sorted(self._last))
        found = set(self._barriers)
        for start, nbytes in reads:
            for segment in self._over(start, start + nbytes):
                found.update(segment.history.writers)
        for start, nbytes in writes:
            for segment in self._over(start, start + nbytes):
                found.update(segment.history.readers, segment.history.writers)
        return self._ancestors.without_implied(found)

    def add(
        self,
        after: Sequence[int],
        reads: Iterable[MemoryRange],
        writes: Iterable[MemoryRange],
        *,
        barrier: bool = False,
    ) -> int:
        """The number of a new node that comes after ``after``."""
        number = self._ancestors.add(after)
        self._last.difference_update(after)
        self._last.add(number)
        for start, nbytes in reads:
            for segment in self._over(start, start + nbytes):
                segment.history = segment.history.read_by(number, self._ancestors)
        for start, nbytes in writes:
            for segment in self._over(start, start + nbytes):
                segment.history = segment.history.written_by(number, self._ancestors)
        if barrier:
            self._barriers = [*self._ancestors.not_before(self._barriers, number), number]
            if self._last == {number}:  # all later nodes come after it, and so after everything
                self._segments.clear()
        return number

    def _over(self, start: int, end: int) -> list[_Segment]:
        """Segments that are together exactly the bytes from ``start`` to ``end``, made where there are none."""
        if start >= end:
            return []
        self._split(start)
        self._split(end)
        number, position, found = self._first_from(start), start, []
        while position < end:
            following = self._segments[number].start if number < len(self._segments) else end
            if following > position:
                self._segments.insert(number, _Segment(position, min(following, end)))
            found.append(self._segments[number])
            position = found[-1].end
            number += 1
        return found

    def _first_from(self, address: int) -> int:
        """The number of the first segment that starts at or after ``address``."""
        return bisect.bisect_left(self._segments, address, key=lambda segment: segment.start)

    def _split(self, address: int) -> None:
        """Split the segment that contains ``address`` inside."""
        number = self._first_from(address) - 1
        if number >= 0 and (whole := self._segments[number]).start < address < whole.end:
            rest = _Segment(address, whole.end, whole.history)
            self._segments.insert(number + 1, rest)
            whole.end = address
