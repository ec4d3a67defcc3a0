"""The driver's memory pool, used so that it is safe.  Owns: PoolAllocator.  Imports: the driver protocol, timelines."""

from __future__ import annotations

from quadpy.runtime.allocators.block import Block
from quadpy.runtime.driver import Driver, PoolPointer
from quadpy.runtime.timeline import Timeline, Timelines

__all__ = ["PoolAllocator"]


class PoolAllocator:
    """``alloc_async`` on the home stream, and ``free_async`` there after it waits for every guest.

    A pool hands a block to the stream that allocated it without a wait, though it was freed on another one whose work
    still runs; so no other stream ever frees.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines

    @property
    def reserved(self) -> None:
        return None

    def allocate(self, nbytes: int, home: Timeline) -> Block:
        return Block(self._driver.alloc_async(nbytes, home.handle), nbytes, home)

    def release(self, block: Block) -> None:
        home = block.home
        if home.last is not None:  # its memory goes back on the default stream, behind its last work
            home = self._timelines.default
            self._timelines.order(block.home, home)
        if block.guests:
            for guest in block.guests - {home}:
                self._timelines.order(guest, home)
        self._driver.free_async(PoolPointer(block.pointer), home.handle)

    def trim(self) -> None:
        self._driver.trim_pool()
