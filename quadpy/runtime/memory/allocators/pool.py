"""Safe use of the driver's memory pool."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Final

from quadpy.errors import StreamError
from quadpy.runtime.device.reaper import give_back, give_back_one
from quadpy.runtime.drivers.driver import Driver
from quadpy.runtime.memory.allocators.block import Block, move
from quadpy.runtime.streams.timeline import Timeline, Timelines

_SMALL: Final = 1 << 16
"""Bytes of the largest block that is kept."""
_SIZES: Final = 16
"""How many different sizes of blocks one stream keeps."""
_EACH: Final = 4
"""How many blocks of one size one stream keeps."""


class PoolAllocator:
    """Allocates and frees on the home stream; the free waits for every guest.

    A pool gives a block back to the stream that allocated it without a wait, even if it was freed on another stream whose
    work still runs; so only the home stream frees.

    A few small blocks that only the home used stay in ``kept`` of its timeline for the next allocation of the same size:
    a free and an allocation by the driver would take longer than all other work for a small array.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._waiting: deque[Block] = deque()
        """Blocks whose work can only be waited for by a synchronize of the whole device."""
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
        if self._waiting or len(self._keepers) > (home in self._keepers):  # others keep something, and may have ended
            self._settle()
        if owner is None:
            raise StreamError("the stream was destroyed", hint="create a new one, or destroy it later")
        block.cell.extend(map(self._driver.alloc_async, (block.nbytes,), (owner.handle,)))

    def release(self, block: Block) -> None:
        owner = block.home.owner
        if owner is not None and not block.guests and block.writers <= {block.home}:  # the usual case
            if block.nbytes > _SMALL or not self._keep(block):
                give_back_one(self._driver.free_async, block.cell, owner.handle)
            return
        users = block.users()
        if not all(map(self._timelines.known, users)):
            self._waiting.append(block)
            return
        owner = block.home.owner
        if owner is None:  # freed on the default stream, after the last work of its home
            owner = self._timelines.default.owner
            assert owner is not None
        else:
            users.discard(block.home)
        for user in users:
            self._timelines.order_on(user, owner)
        give_back(self._driver.free_async, block.cell, owner.handle)

    def _keep(self, block: Block) -> bool:
        """Keep the memory of ``block`` with its home, if there is room; returns whether it was kept."""
        kept = block.home.kept
        pointers = kept.get(block.nbytes)
        if pointers is None:
            if len(kept) >= _SIZES:
                return False
            pointers = kept.setdefault(block.nbytes, [])
        if len(pointers) >= _EACH:
            return False
        self._keepers.add(block.home)  # first, so that ``trim`` finds what is kept
        move(block.cell, pointers)
        return True

    def trim(self) -> None:
        self._settle()
        if self._keepers:
            for timeline in list(self._keepers):
                self._free_kept(timeline)
            self._timelines.synchronize()  # pending frees cannot be returned to the system
        self._driver.trim_pool()

    def _free_kept(self, timeline: Timeline) -> None:
        """Free what ``timeline`` keeps, on its stream or, if that has ended, after its last work."""
        owner = timeline.owner
        if owner is None:
            owner = self._timelines.default.owner
            assert owner is not None
            self._timelines.order_on(timeline, owner)
        for pointers in list(timeline.kept.values()):
            give_back(self._driver.free_async, pointers, owner.handle)
        if timeline.owner is None and not any(timeline.kept.values()):
            self._keepers.discard(timeline)

    def _settle(self) -> None:
        """Free the waiting blocks whose work can be waited for now, and what ended streams keep."""
        for timeline in list(self._keepers):
            if timeline.owner is None and self._timelines.known(timeline):
                self._free_kept(timeline)
        for block in list(self._waiting):
            if all(map(self._timelines.known, block.users())):
                self.release(block)
                with suppress(ValueError):  # another thread did
                    self._waiting.remove(block)
