"""Memory of other libraries that work on a device uses.  Owns: Borrowed, Lending.  Imports: blocks, timelines, the reaper.

Its owner would give the memory away as soon as nobody refers to it, while a kernel still uses it; so the owner is kept
until all streams that used the memory are seen to be through.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from quadpy.runtime.allocators.block import Block
from quadpy.runtime.reaper import Reaper
from quadpy.runtime.timeline import Mark, Timelines

__all__ = ["Borrowed", "Lending"]


class Borrowed:
    """``block`` is memory of another library, which ``owner`` keeps alive."""

    __slots__ = ("__weakref__", "block", "owner")

    def __init__(self, block: Block, owner: object) -> None:
        self.block, self.owner = block, owner


class _Leaving(NamedTuple):
    owner: object
    marks: list[Mark]


class Lending:
    """What other libraries lend to one device.  Safe from any thread."""

    def __init__(self, timelines: Timelines, reaper: Reaper) -> None:
        self._timelines, self._reaper = timelines, reaper
        self._leaving: deque[_Leaving] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many owners wait for work that uses their memory."""
        return len(self._leaving)

    def borrow(self, block: Block, owner: object) -> Borrowed:
        """``owner`` lives as long as the result, and then until the users of ``block`` are through."""
        self._reaper.drain()
        self.settle()
        borrowed = Borrowed(block, owner)
        self._reaper.adopt(borrowed, self._leave, (block, owner))
        return borrowed

    def settle(self) -> None:
        """Let those owners go whose memory nobody uses any more."""
        if self._reaper.holding:
            return  # a capture: no event may be asked
        gone = []  # dies after the lock is free, since what an owner does then is its own affair
        with self._lock:
            while self._leaving and all(map(self._timelines.passed, self._leaving[0].marks)):
                gone.append(self._leaving.popleft())
        for leaving in gone:
            for mark in leaving.marks:
                self._timelines.unmark(mark)

    def close(self) -> None:
        """Let all go; the device is idle."""
        with self._lock:
            left, self._leaving = self._leaving, deque()
        for leaving in left:
            for mark in leaving.marks:
                self._timelines.unmark(mark)

    def _leave(self, lent: tuple[Block, object]) -> None:
        block, owner = lent
        marks = [self._timelines.mark(user) for user in block.users()]
        with self._lock:
            self._leaving.append(_Leaving(owner, marks))
