"""quadpy's own cache of device memory, over the driver's plain allocator.

Freed memory stays with its home stream and is reused there without a wait; another stream gets it only when all work
that used it is known to be complete.  An address is always in exactly one list, of a block or of the cache, and moves
in one step; so there is no lock, and nothing to undo.
"""

from __future__ import annotations

import functools
from contextlib import suppress

from quadpy.runtime.device.reaper import give_back
from quadpy.runtime.drivers.driver import Driver, PlainPointer
from quadpy.runtime.memory.allocators.block import Block, move
from quadpy.runtime.streams.timeline import Timeline, Timelines, WaitingBlock

_SMALLEST = 512
_STEPS = 8


@functools.lru_cache(maxsize=1024)
def size_class(nbytes: int) -> int:
    """The block size for ``nbytes`` bytes: eight sizes between consecutive powers of two, from 512 on."""
    step = max(_SMALLEST, (1 << (nbytes - 1).bit_length()) // (2 * _STEPS))
    return -(-nbytes // step) * step


class CachingAllocator:
    """An ``Allocator`` that returns memory to the driver only in ``trim``.

    Free memory is in ``kept`` of its home timeline.  Released blocks are in ``waiting`` of the timeline that they wait for
    next.  A timeline is added to a set after something was put there; it is removed when nothing is left, and then
    checked again.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._keepers: set[Timeline] = set()
        self._awaited: set[Timeline] = set()
        self._anyones: dict[int, list[PlainPointer]] = {}

    size = staticmethod(size_class)

    def kept(self) -> int:
        kept = [timeline.kept for timeline in list(self._keepers)]
        free = sum(size * len(pointers) for sizes in (self._anyones, *kept) for size, pointers in list(sizes.items()))
        waiting = (block for timeline in list(self._awaited) for block in list(timeline.waiting))
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
        if block.guests:
            block.marks = [self._timelines.mark(guest) for guest in list(block.guests) if guest is not block.home]
        self._await(block)

    def trim(self) -> None:
        self._settle()
        for timeline in list(self._keepers):
            if self._timelines.idle(timeline):
                self._share(timeline)
        for pointers in list(self._anyones.values()):
            give_back(self._driver.free, pointers)

    # helpers

    def _settle(self) -> None:
        """Free the blocks whose marks have passed; on each stream, stop at the first mark that has not.

        Sets that finalizers change are copied by ``list``, as everywhere in the runtime: ``tuple`` allocates memory when it
        has begun to iterate, and the collector may run finalizers then.
        """
        for timeline in list(self._awaited):
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
        """Remove the last mark of ``block``, which has passed, and those before it that have, too."""
        block.marks = block.marks[:-1]
        while block.marks and self._timelines.passed(block.marks[-1]):
            block.marks = block.marks[:-1]

    def _await(self, block: WaitingBlock) -> None:
        """Let ``block`` wait for the last of its marks; if it has none, free its memory.

        The timeline is noted before, as Ctrl-C may come right after, and again afterwards, as another thread may have
        seen nothing there meanwhile.
        """
        if block.marks:
            timeline = block.marks[-1].timeline
            self._awaited.add(timeline)
            timeline.waiting.append(block)
            self._awaited.add(timeline)
        else:
            home = block.home
            self._keepers.add(home)
            move(block.cell, home.kept.setdefault(block.nbytes, []))
            self._keepers.add(home)

    def _share_what_is_idle(self, home: Timeline, size: int) -> None:
        """Share the memory of ended streams that are idle, and memory of ``size`` from any other idle stream."""
        for other in list(self._keepers):
            if other is not home and (other.ended or other.kept.get(size)) and self._timelines.idle(other):
                self._share(other)
                if self._anyones.get(size):
                    return

    def _share(self, timeline: Timeline) -> None:
        for size, pointers in list(timeline.kept.items()):
            move(pointers, self._anyones.setdefault(size, []), len(pointers))
        if not any(timeline.kept.values()):
            self._keepers.discard(timeline)
            if any(timeline.kept.values()):  # another thread has just put something there
                self._keepers.add(timeline)
