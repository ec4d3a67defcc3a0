"""Blocks of device memory, and the Allocator protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from quadpy.runtime.streams.timeline import Mark, Timeline


class ObservedMemory(Protocol):
    """What the observer of work on streams knows about a block."""

    def released(self, block: Block) -> None:
        """The memory of ``block`` goes back to the allocator."""


class Block:
    """``nbytes`` bytes at ``pointer``, which belong to the stream of ``home``.

    guests   other streams that used the memory; the block is free after the work of all of them
    writers  the streams whose work wrote it, for which a read waits
    lent     the memory belongs to another library; only then can another block have the same memory
    cell     the address, while the memory belongs to this block.  It moves from list to list in one step, so it is always
             in exactly one of them
    marks    what the block waits for after its release
    observed what the observer of work on streams knows about the memory
    described    what arrays of one layout have in common here; see ``NDArray``
    """

    __slots__ = (
        "__weakref__",
        "cell",
        "described",
        "guests",
        "home",
        "lent",
        "marks",
        "nbytes",
        "observed",
        "pointer",
        "writers",
    )

    def __init__(self, pointer: int, nbytes: int, home: Timeline, *, lent: bool = False) -> None:
        self.pointer, self.nbytes, self.home, self.lent = pointer, nbytes, home, lent
        self.guests: set[Timeline] = set()
        self.writers: set[Timeline] = set()
        self.cell: list[Any] = []
        self.marks: list[Mark] = []
        self.observed: ObservedMemory | None = None
        self.described: Any = None

    def users(self) -> set[Timeline]:
        """All streams that may have used the memory."""
        return {self.home, *self.guests, *self.writers}


class DeviceBuffer:
    """Memory that is freed when the last reference to this object has died and all work that uses it is complete."""

    __slots__ = ("__weakref__", "block", "nbytes", "pointer")

    def __init__(self, block: Block | None, nbytes: int) -> None:
        self.block, self.nbytes = block, nbytes
        self.pointer = block.pointer if block else 0


class Allocator(Protocol):
    """Allocates blocks for streams.  Safe from any thread; only the allocator itself frees what it allocated."""

    def size(self, nbytes: int) -> int:
        """The size of the block for ``nbytes`` bytes."""

    def kept(self) -> int | None:
        """Unused bytes that were taken from the driver; None if the driver keeps them."""

    def fill(self, block: Block) -> None:
        """Put memory that the home's work may use at once into the cell; OutOfDeviceMemory if there is none."""

    def release(self, block: Block) -> None:
        """Take the memory from the cell; it is reused only after all work that uses it.  An empty cell is ignored."""

    def trim(self) -> None:
        """Return unused memory to the driver; called when the device is idle."""


def move(source: list[Any] | None, target: list[Any], count: int = 1) -> None:
    """Move up to ``count`` entries from the end of ``source`` to ``target``, each in one step."""
    if source:
        try:
            target.extend(map(_pop, (source,) * count))
        except IndexError:  # another thread took it
            return


_pop: Final = list.pop
