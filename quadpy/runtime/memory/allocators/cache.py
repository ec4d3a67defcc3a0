"""quadpy's own cache of device memory over the plain allocator.  Owns: CachingAllocator, size_class.

Freed memory stays with the stream it was used on last and is handed out there again without a wait; another stream gets
it only when all its users are seen complete.  An address is in one list at a time, of a block or of the cache, and goes
to another in one step; so there is no lock, and nothing to undo.  Imports: the driver protocol, timelines.
"""

from __future__ import annotations

from contextlib import suppress

from quadpy.runtime.device.reaper import give_back
from quadpy.runtime.drivers.driver import Driver, PlainPointer
from quadpy.runtime.memory.allocators.block import Block, move
from quadpy.runtime.streams.timeline import Timeline, Timelines, WaitingBlock

__all__ = ["CachingAllocator", "size_class"]

_SMALLEST = 512
_STEPS = 8


def size_class(nbytes: int) -> int:
    """The size that ``nbytes`` bytes are allocated in: eight sizes from each power of two to the next, from 512 on."""
    step = max(_SMALLEST, (1 << (nbytes - 1).bit_length()) // (2 * _STEPS))
    return -(-nbytes // step) * step


class CachingAllocator:
    """An ``Allocator`` that returns memory to the driver only when told to.

    Memory that was freed lies in the ``kept`` of its timeline, blocks that wait for others in the ``waiting`` of the one
    that is looked at first.  Who puts something there adds the timeline to a set, after it; who finds nothing there any
    more takes it out, and looks again.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._keepers: set[Timeline] = set()
        self._awaited: set[Timeline] = set()
        self._anyones: dict[int, list[PlainPointer]] = {}

    size = staticmethod(size_class)

    def kept(self) -> int:
        kept = [timeline.kept for timeline in tuple(self._keepers)]
        free = sum(size * len(pointers) for sizes in (self._anyones, *kept) for size, pointers in tuple(sizes.items()))
        waiting = (block for timeline in tuple(self._awaited) for block in tuple(timeline.waiting))
        return free + sum(block.nbytes * len(block.cell) for block in waiting)

    def fill(self, block: Block) -> None:
        if self._awaited:
            self._settle()
        size, home, cell = block.nbytes, block.home, block.cell
        move(home.kept.get(size), cell)
        if not cell:
            move(self._anyones.get(size), cell)
        if not cell and self._keepers:
            self._share_what_is_idle(home, size)
            move(self._anyones.get(size), cell)
        if not cell:
            cell.extend(map(self._driver.alloc, (size,)))

    def release(self, block: Block) -> None:
        block.marks = [self._timelines.mark(guest) for guest in tuple(block.guests) if guest is not block.home]
        self._await(block)

    def trim(self) -> None:
        self._settle()
        for timeline in tuple(self._keepers):
            if self._timelines.idle(timeline):
                self._share(timeline)
        for pointers in tuple(self._anyones.values()):
            give_back(self._driver.free, pointers)

    # how

    def _settle(self) -> None:
        """Keep what no user needs any more; of one stream's marks, the first that has not passed stops the search."""
        for timeline in tuple(self._awaited):
            waiting = timeline.waiting
            while waiting:
                with suppress(IndexError, ValueError):  # another thread took it
                    block = waiting[0]
                    if block.cell:
                        if block.marks and not self._timelines.passed(block.marks[-1]):
                            break
                        self._pass(block)
                        self._await(block)
                    waiting.remove(block)
            if not waiting:
                self._awaited.discard(timeline)
                if waiting:  # another thread has just put something there
                    self._awaited.add(timeline)

    def _pass(self, block: WaitingBlock) -> None:
        """The last mark of ``block`` has passed; forget it, and those before it that have."""
        block.marks = block.marks[:-1]
        while block.marks and self._timelines.passed(block.marks[-1]):
            block.marks = block.marks[:-1]

    def _await(self, block: WaitingBlock) -> None:
        """Put ``block`` behind the last of its marks; without any, its memory is free."""
        if block.marks:
            timeline = block.marks[-1].timeline
            timeline.waiting.append(block)
            self._awaited.add(timeline)
        else:
            home = block.home
            move(block.cell, home.kept.setdefault(block.nbytes, []))
            self._keepers.add(home)

    def _share_what_is_idle(self, home: Timeline, size: int) -> None:
        """Give to all what streams keep that have ended and are through; and of another one, memory of ``size``."""
        for other in tuple(self._keepers):
            if other is not home and (other.ended or other.kept.get(size)) and self._timelines.idle(other):
                self._share(other)
                if self._anyones.get(size):
                    return

    def _share(self, timeline: Timeline) -> None:
        for size, pointers in tuple(timeline.kept.items()):
            move(pointers, self._anyones.setdefault(size, []), len(pointers))
        if not any(timeline.kept.values()):
            self._keepers.discard(timeline)
            if any(timeline.kept.values()):  # another thread has just put something there
                self._keepers.add(timeline)
