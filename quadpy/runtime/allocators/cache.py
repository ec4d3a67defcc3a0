"""quadpy's own cache of device memory over the plain allocator.  Owns: CachingAllocator, size_class.

Freed memory stays with the stream it was used on last and is handed out there again without a wait; another stream gets
it only when all its users are seen complete.  Imports: the driver protocol, timelines.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from quadpy.runtime.allocators.block import Block
from quadpy.runtime.driver import Driver, PlainPointer
from quadpy.runtime.timeline import Mark, Timeline, Timelines

__all__ = ["CachingAllocator", "size_class"]

_SMALLEST = 512
_STEPS = 8


def size_class(nbytes: int) -> int:
    """The size that ``nbytes`` bytes are allocated in: eight sizes from each power of two to the next, from 512 on."""
    step = max(_SMALLEST, (1 << (nbytes - 1).bit_length()) // (2 * _STEPS))
    return -(-nbytes // step) * step


class _Pending(NamedTuple):
    """Memory that waits for the users which ``marks`` stand behind; then it is ``home``'s, or anyone's for None."""

    pointer: PlainPointer
    size: int
    home: Timeline | None
    marks: list[Mark]


class CachingAllocator:
    """An ``Allocator`` that returns memory to the driver only when told to."""

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._lock = threading.Lock()
        self._free: dict[Timeline | None, dict[int, list[PlainPointer]]] = {None: {}}
        self._pending: dict[Timeline, deque[_Pending]] = {}
        self._reserved = 0

    @property
    def reserved(self) -> int:
        return self._reserved

    def allocate(self, nbytes: int, home: Timeline) -> Block:
        size = size_class(nbytes)
        with self._lock:
            self._settle()
            pointer = self._take(home, size) or self._take(None, size) or self._take_of_others(home, size)
        if pointer is None:
            pointer = self._driver.alloc(size)
            with self._lock:
                self._reserved += size
        return Block(pointer, size, home)

    def release(self, block: Block) -> None:
        users = {guest for guest in block.guests if guest is not block.home}
        home = block.home
        if home.ended:
            users.add(home)
        entry = _Pending(
            PlainPointer(block.pointer),
            block.nbytes,
            None if home.ended else home,
            [self._timelines.mark(user) for user in users],
        )
        with self._lock:
            self._await(entry)

    def trim(self) -> None:
        with self._lock:
            self._settle()
            for timeline in list(self._free):
                if timeline is not None and self._timelines.idle(timeline):
                    self._share(timeline)
            unused, self._free[None] = self._free[None], {}
            self._reserved -= sum(size * len(pointers) for size, pointers in unused.items())
        for pointers in unused.values():
            for pointer in pointers:
                self._driver.free(pointer)

    # with the lock held

    def _settle(self) -> None:
        """Keep what no user needs any more; of one stream's marks, the first that has not passed stops the search."""
        for timeline in list(self._pending):
            entries = self._pending[timeline]
            while entries and self._timelines.passed(entries[0].marks[-1]):
                entry = entries.popleft()
                while entry.marks and self._timelines.passed(entry.marks[-1]):
                    self._timelines.unmark(entry.marks.pop())
                self._await(entry)
            if not entries:
                del self._pending[timeline]

    def _await(self, entry: _Pending) -> None:
        """Put ``entry`` behind the last of its marks; without any, its memory is free."""
        if entry.marks:
            self._pending.setdefault(entry.marks[-1].timeline, deque()).append(entry)
        else:
            self._free.setdefault(entry.home, {}).setdefault(entry.size, []).append(entry.pointer)

    def _take(self, timeline: Timeline | None, size: int) -> PlainPointer | None:
        pointers = self._free.get(timeline, {}).get(size)
        return pointers.pop() if pointers else None

    def _take_of_others(self, home: Timeline, size: int) -> PlainPointer | None:
        """Memory of another stream, if that one is idle: then nobody uses any of what it freed."""
        for other, sizes in self._free.items():
            if other is not None and other is not home and sizes.get(size) and self._timelines.idle(other):
                self._share(other)
                return self._take(None, size)
        return None

    def _share(self, timeline: Timeline) -> None:
        for size, pointers in self._free.pop(timeline).items():
            self._free[None].setdefault(size, []).extend(pointers)
