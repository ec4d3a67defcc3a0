"""One allocation and who uses it.  Owns: Block, the Allocator protocol.  Imports: timelines."""

from __future__ import annotations

from typing import Protocol

from quadpy.runtime.timeline import Timeline

__all__ = ["Allocator", "Block"]


class Block:
    """``nbytes`` bytes at ``pointer``, which belong to ``home``'s stream.

    guests   other streams that used the memory; the block is free after all of them
    writers  the streams whose work wrote it, for a host that wants to read
    lent     the memory is another library's: only then can it be that of another block, too
    """

    __slots__ = ("guests", "home", "lent", "nbytes", "pointer", "writers")

    def __init__(self, pointer: int, nbytes: int, home: Timeline, *, lent: bool = False) -> None:
        self.pointer, self.nbytes, self.home, self.lent = pointer, nbytes, home, lent
        self.guests: set[Timeline] = set()
        self.writers: set[Timeline] = set()

    def users(self) -> set[Timeline]:
        """All streams that may have used the memory."""
        return {self.home, *self.guests, *self.writers}


class Allocator(Protocol):
    """Blocks for streams.  Safe from any thread; an allocator frees what it allocated, and nothing else does."""

    @property
    def reserved(self) -> int | None:
        """Bytes taken from the driver, in use or kept; None where the driver keeps what nobody uses."""

    def allocate(self, nbytes: int, home: Timeline) -> Block:
        """``nbytes`` bytes, at least 1, that work on ``home`` may use at once; OutOfDeviceMemory where there are none."""

    def release(self, block: Block) -> None:
        """Take a block back whose users may still run; it is used again only after all of them."""

    def trim(self) -> None:
        """Return to the driver what nobody uses; called when the device is idle."""
