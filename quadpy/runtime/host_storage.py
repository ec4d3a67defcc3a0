"""The memory of one array, wherever it lies.  Owns: the Storage protocol, and HostStorage.  Imports: devices, storage."""

from __future__ import annotations

from types import EllipsisType
from typing import Final, Protocol, TypeAlias

from quadpy.runtime.allocators.block import Block
from quadpy.runtime.device import Device
from quadpy.runtime.devices import current_device
from quadpy.runtime.storage import Numbers

__all__ = ["HostStorage", "Storage", "Where", "check_stream"]

Where: TypeAlias = "tuple[int, ...] | EllipsisType"
"""One element, by a position for each axis of the array; or ``...``, all of them."""


class Storage(Protocol):
    """Numbers as they are stored, of shape ``(*shape, *element_shape)``, as the host reads and writes them.

    device   where the memory lies; None for the host
    block    its allocation on the device, which a launch must say that it uses; None for the host and for no bytes
    pointer  the address of the first number; memory of no bytes has no address on a device, and 0 stands for it

    ``stream`` is where a copy takes its place; None is the calling thread's.
    """

    @property
    def device(self) -> Device | None: ...
    @property
    def block(self) -> Block | None: ...
    @property
    def pointer(self) -> int: ...

    def read(self, where: Where, stream: object = None) -> Numbers:
        """The numbers at ``where``: of the host the memory itself, of a device a copy."""

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        """``values``, broadcast to the shape of what is at ``where``; they may change when the call returns."""

    def copy_from(self, source: Storage, stream: object = None) -> None:
        """All numbers of ``source``, which has the same shape and dtype."""


class HostStorage:
    """A NumPy view of memory of the process."""

    __slots__ = ("pointer", "view")

    device: Final = None
    block: Final = None

    def __init__(self, view: Numbers, pointer: int) -> None:
        self.view, self.pointer = view, pointer

    def read(self, where: Where, stream: object = None) -> Numbers:
        if stream is not None:
            check_stream(stream)
        numbers: Numbers = self.view[where]
        return numbers

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        if stream is not None:
            check_stream(stream)
        self.view[where] = values

    def copy_from(self, source: Storage, stream: object = None) -> None:
        self.write(..., source.read(..., stream))


def check_stream(stream: object) -> None:
    """StreamError where ``stream`` cannot be used: what the host does is done at once, and is alike otherwise."""
    current_device().stream_for(stream)
