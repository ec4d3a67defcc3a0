"""What must come before what.  Owns: Order, which derives dependencies from the memory that nodes read and write.

Reads come after the writes before them, writes after the reads and writes before them.  A dependency that follows from
others is left out, so that what is independent stays a fork.  Imports: the standard library only.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["MemoryRange", "Order"]

MemoryRange: TypeAlias = tuple[int, int]
"""An address, and how many bytes."""


@dataclass(slots=True)
class _Segment:
    """Bytes from ``start`` to ``end`` with one history: the nodes that wrote them last, and have read them since."""

    start: int
    end: int
    writers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


class Order:
    """The nodes of one graph in the order of their making, by number, and what each comes after.

    A node of unknown effects comes after all nodes before it, and before all that come later.
    """

    def __init__(self) -> None:
        self._ancestors: list[int] = []  # a bit for each node that must have run before
        self._segments: list[_Segment] = []
        self._leaves: set[int] = set()
        self._barriers: set[int] = set()

    def __len__(self) -> int:
        return len(self._ancestors)

    def follows(self, later: int, earlier: int) -> bool:
        """Whether ``later`` comes after ``earlier``, directly or not."""
        return bool(self._ancestors[later] >> earlier & 1)

    def derive(
        self, reads: Iterable[MemoryRange], writes: Iterable[MemoryRange], *, barrier: bool = False
    ) -> tuple[int, ...]:
        """What the next node must come after, if it reads and writes so; nothing that follows from the rest."""
        if barrier:
            return tuple(sorted(self._leaves))
        found = set(self._barriers)
        for start, nbytes in reads:
            for segment in self._over(start, start + nbytes):
                found.update(segment.writers)
        for start, nbytes in writes:
            for segment in self._over(start, start + nbytes):
                found.update(segment.readers, segment.writers)
        implied = 0
        for node in found:
            implied |= self._ancestors[node]
        return tuple(sorted(node for node in found if not implied >> node & 1))

    def add(
        self,
        after: Sequence[int],
        reads: Iterable[MemoryRange],
        writes: Iterable[MemoryRange],
        *,
        barrier: bool = False,
    ) -> int:
        """The number of a new node behind ``after``."""
        number, ancestors = len(self._ancestors), 0
        for node in after:
            ancestors |= self._ancestors[node] | 1 << node
        self._ancestors.append(ancestors)
        self._leaves.difference_update(after)
        self._leaves.add(number)
        for start, nbytes in reads:
            for segment in self._over(start, start + nbytes):
                segment.readers = [*self._unordered(segment.readers, ancestors), number]
        for start, nbytes in writes:
            for segment in self._over(start, start + nbytes):
                segment.writers = [*self._unordered(segment.writers, ancestors), number]
                segment.readers = [node for node in self._unordered(segment.readers, ancestors) if node != number]
        if barrier:
            self._barriers = {node for node in self._barriers if not ancestors >> node & 1} | {number}
            if self._leaves == {number}:  # all that comes later comes after it, and so after everything
                self._segments.clear()
        return number

    @staticmethod
    def _unordered(nodes: Iterable[int], ancestors: int) -> list[int]:
        """Those of ``nodes`` that are not among ``ancestors``: what comes after these need not come after the new one."""
        return [node for node in nodes if not ancestors >> node & 1]

    def _over(self, start: int, end: int) -> list[_Segment]:
        """Segments that are together exactly the bytes from ``start`` to ``end``, made where there are none."""
        if start >= end:
            return []
        self._split(start)
        self._split(end)
        place, position, found = self._place(start), start, []
        while position < end:
            following = self._segments[place].start if place < len(self._segments) else end
            if following > position:
                self._segments.insert(place, _Segment(position, min(following, end)))
            found.append(self._segments[place])
            position = found[-1].end
            place += 1
        return found

    def _place(self, address: int) -> int:
        """Which segment is the first that starts at ``address`` or behind."""
        return bisect.bisect_left(self._segments, address, key=lambda segment: segment.start)

    def _split(self, address: int) -> None:
        """No segment reaches over ``address``."""
        place = self._place(address) - 1
        if place >= 0 and (whole := self._segments[place]).start < address < whole.end:
            rest = _Segment(address, whole.end, list(whole.writers), list(whole.readers))
            self._segments.insert(place + 1, rest)
            whole.end = address
