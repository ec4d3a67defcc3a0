"""The driver's memory pool, used so that it is safe.  Owns: PoolAllocator.  Imports: the driver protocol, timelines."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from quadpy.errors import StreamError
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.driver import Driver
from quadpy.runtime.reaper import give_back, give_back_one
from quadpy.runtime.timeline import Timelines

__all__ = ["PoolAllocator"]


class PoolAllocator:
    """``alloc_async`` on the home stream, and ``free_async`` there after it waits for every guest.

    A pool hands a block to the stream that allocated it without a wait, though it was freed on another one whose work
    still runs; so no other stream ever frees.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._waiting: deque[Block] = deque()
        """Blocks of which nobody knows when their users are through before the whole device is synchronized."""

    def size(self, nbytes: int) -> int:
        return nbytes

    def kept(self) -> None:
        return None

    def fill(self, block: Block) -> None:
        if self._waiting:
            self._settle()
        owner = block.home.owner
        if owner is None:
            raise StreamError("the stream was destroyed", hint="create it anew, or destroy it later")
        block.cell.extend(map(self._driver.alloc_async, (block.nbytes,), (owner.handle,)))

    def release(self, block: Block) -> None:
        owner = block.home.owner
        if owner is not None and not block.guests and block.writers <= {block.home}:  # mostly it ends here
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

    def trim(self) -> None:
        self._settle()
        self._driver.trim_pool()

    def _settle(self) -> None:
        """Free what waits for users that are known to be through by now."""
        for block in tuple(self._waiting):
            if all(map(self._timelines.known, block.users())):
                self.release(block)
                with suppress(ValueError):  # another thread did
                    self._waiting.remove(block)
