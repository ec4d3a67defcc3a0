"""The driver's memory pool, used so that it is safe.  Owns: PoolAllocator.  Imports: the driver protocol, timelines."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Final

from quadpy.errors import StreamError
from quadpy.runtime.device.reaper import give_back, give_back_one
from quadpy.runtime.drivers.driver import Driver
from quadpy.runtime.memory.allocators.block import Block, move
from quadpy.runtime.streams.timeline import Timeline, Timelines

__all__ = ["PoolAllocator"]

_SMALL: Final = 1 << 16
"""Bytes of the largest block that is kept."""
_SIZES: Final = 16
_EACH: Final = 4
"""Blocks of one size, and sizes, that one stream keeps."""


class PoolAllocator:
    """``alloc_async`` on the home stream, and ``free_async`` there after it waits for every guest.

    A pool hands a block to the stream that allocated it without a wait, though it was freed on another one whose work
    still runs; so no other stream ever frees.

    A few small blocks that no other stream used stay in the ``kept`` of their timelines, where the next allocation of
    that size finds them: the driver takes longer to free and allocate one than a small array takes otherwise.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._waiting: deque[Block] = deque()
        """Blocks of which nobody knows when their users are through before the whole device is synchronized."""
        self._keepers: set[Timeline] = set()

    def size(self, nbytes: int) -> int:
        return nbytes

    def kept(self) -> None:
        return None

    def fill(self, block: Block) -> None:
        home = block.home
        owner = home.owner
        if home.kept and owner is not None:
            move(home.kept.get(block.nbytes), block.cell)
            if block.cell:
                return
        if self._waiting or len(self._keepers) > 1:
            self._settle()
        if owner is None:
            raise StreamError("the stream was destroyed", hint="create it anew, or destroy it later")
        block.cell.extend(map(self._driver.alloc_async, (block.nbytes,), (owner.handle,)))

    def release(self, block: Block) -> None:
        owner = block.home.owner
        if owner is not None and not block.guests and block.writers <= {block.home}:  # mostly it ends here
            if block.nbytes > _SMALL or not self._keep(block):
                give_back_one(self._driver.free_async, block.cell, owner.handle)
            return
        users = block.users()
        if not all(map(self._timelines.known, users)):
            self._waiting.append(block)
            return
        owner = block.home.owner
        if owner is None:  # its memory goes back on the default stream, behind its last work
            owner = self._timelines.default.owner
            assert owner is not None
        else:
            users.discard(block.home)
        for user in users:
            self._timelines.order_on(user, owner)
        give_back(self._driver.free_async, block.cell, owner.handle)

    def _keep(self, block: Block) -> bool:
        """Whether the memory of ``block`` stays with its home."""
        kept = block.home.kept
        pointers = kept.get(block.nbytes)
        if pointers is None:
            if len(kept) >= _SIZES:
                return False
            pointers = kept.setdefault(block.nbytes, [])
        if len(pointers) >= _EACH:
            return False
        self._keepers.add(block.home)  # before there is anything: who frees what is kept looks there
        move(block.cell, pointers)
        return True

    def trim(self) -> None:
        self._settle()
        if self._keepers:
            for timeline in tuple(self._keepers):
                self._free_kept(timeline)
            self._timelines.synchronize()  # what is not yet free cannot be returned
        self._driver.trim_pool()

    def _free_kept(self, timeline: Timeline) -> None:
        """Free what ``timeline`` keeps: on its stream, or after its last work."""
        owner = timeline.owner
        if owner is None:
            owner = self._timelines.default.owner
            assert owner is not None
            self._timelines.order_on(timeline, owner)
        for pointers in tuple(timeline.kept.values()):
            give_back(self._driver.free_async, pointers, owner.handle)
        if timeline.owner is None and not any(timeline.kept.values()):
            self._keepers.discard(timeline)

    def _settle(self) -> None:
        """Free what waits for users that are known to be through by now, and what streams kept that have ended."""
        for timeline in tuple(self._keepers):
            if timeline.owner is None and self._timelines.known(timeline):
                self._free_kept(timeline)
        for block in tuple(self._waiting):
            if all(map(self._timelines.known, block.users())):
                self.release(block)
                with suppress(ValueError):  # another thread did
                    self._waiting.remove(block)
