"""Memory of other libraries that work on a device uses.  Owns: Borrowed, Lending.  Imports: blocks, the reaper, DeferredRelease.

Its owner would give the memory away as soon as nobody refers to it, while a kernel still uses it; so the owner is kept
until all streams that used the memory are seen to be through.
"""

from __future__ import annotations

from quadpy.runtime.device.deferred_release import DeferredRelease
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.memory.allocators.block import Block

__all__ = ["Borrowed", "Lending"]


class Borrowed:
    """``block`` is memory of another library, which ``owner`` keeps alive."""

    __slots__ = ("__weakref__", "block", "owner")

    def __init__(self, block: Block, owner: object) -> None:
        self.block, self.owner = block, owner


class Lending:
    """What other libraries lend to one device.  Safe from any thread."""

    def __init__(self, retired: DeferredRelease, reaper: Reaper) -> None:
        self._retired, self._reaper = retired, reaper

    def borrow(self, block: Block, owner: object) -> Borrowed:
        """``owner`` lives as long as the result, and then until the users of ``block`` are through."""
        self._reaper.drain()
        self._retired.sweep()
        borrowed = Borrowed(block, owner)
        self._reaper.adopt(borrowed, self._leave, (block, owner))
        return borrowed

    def _leave(self, lent: tuple[Block, object]) -> None:
        block, owner = lent
        self._retired.add(block.users(), _nothing, keep=(owner,))


def _nothing() -> None:
    """There is nothing to give back but what is kept."""
