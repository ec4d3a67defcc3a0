"""One allocation and who uses it.  Owns: Block, the Allocator protocol.  Imports: timelines."""

from __future__ import annotations

from itertools import repeat
from typing import Any, Final, Protocol

from quadpy.runtime.streams.timeline import Mark, Timeline

__all__ = ["Allocator", "Block", "move"]


class Block:
    """``nbytes`` bytes at ``pointer``, which belong to ``home``'s stream.

    guests   other streams that used the memory; the block is free after all of them
    writers  the streams whose work wrote it, for a host that wants to read
    lent     the memory is another library's: only then can it be that of another block, too
    cell     the address, as long as the memory is this block's; it goes from one list to another in one step, so that
             it is in one place alone, whatever breaks off or happens at once
    marks    what the block waits for, after it was released
    """

    __slots__ = ("cell", "guests", "home", "lent", "marks", "nbytes", "pointer", "writers")

    def __init__(self, pointer: int, nbytes: int, home: Timeline, *, lent: bool = False) -> None:
        self.pointer, self.nbytes, self.home, self.lent = pointer, nbytes, home, lent
        self.guests: set[Timeline] = set()
        self.writers: set[Timeline] = set()
        self.cell: list[Any] = []
        self.marks: list[Mark] = []

    def users(self) -> set[Timeline]:
        """All streams that may have used the memory."""
        return {self.home, *self.guests, *self.writers}


class Allocator(Protocol):
    """Blocks for streams.  Safe from any thread; an allocator frees what it allocated, and nothing else does."""

    def size(self, nbytes: int) -> int:
        """The size of the block in which ``nbytes`` bytes are allocated."""

    def kept(self) -> int | None:
        """Bytes taken from the driver that nobody uses; None where the driver keeps them."""

    def fill(self, block: Block) -> None:
        """Put memory that work on the home may use at once into the cell; OutOfDeviceMemory where there is none."""

    def release(self, block: Block) -> None:
        """Take the memory from the cell, whose users may still run; it is used again only after all of them.

        A block that has none any more stays as it is.
        """

    def trim(self) -> None:
        """Return to the driver what nobody uses; called when the device is idle."""


def move(source: list[Any] | None, target: list[Any], count: int = 1) -> None:
    """Take the last ``count`` of ``source``, where there are so many, to ``target``: each in one step."""
    if source:
        try:
            target.extend(map(_pop, repeat(source, count)))
        except IndexError:  # another thread took it
            return


_pop: Final = list.pop
