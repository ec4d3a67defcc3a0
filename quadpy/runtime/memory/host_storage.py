"""The memory of one array, wherever it lies.  Owns: the Storage protocol, HostStorage and Shown.

Imports: devices, captures, noting.
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any, Final, Protocol, TypeAlias

from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.launch.recorded_copies import Lie, record_copies, record_values
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.filling import fill
from quadpy.runtime.memory.numpy_storage import Numbers
from quadpy.runtime.streams.stream import Stream

__all__ = ["READING", "HostStorage", "Exports", "Storage", "Where", "check_stream", "is_exported"]

Where: TypeAlias = "tuple[int, ...] | EllipsisType"
"""One element, by a position for each axis of the array; or ``...``, all of them."""


READING: Final = ("reading an array", "read it behind a launch of the graph; a kernel can read it inside")
"""What a capture cannot note, and what to do: numbers are not there before the graph runs."""


class Storage(Protocol):
    """Numbers as they are stored, of shape ``(*shape, *element_shape)``, as the host reads and writes them.

    device   where the memory lies; None for the host
    block    its allocation on the device, which a launch must say that it uses; None for the host and for no bytes
    pointer  the address of the first number; memory of no bytes has no address on a device, and 0 stands for it
    called   what messages call it

    ``stream`` is where a copy takes its place; None is the calling thread's.
    """

    called: str

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


class Exports:
    """How much memory is shown to others: what is known of a storage holds as long as this stays."""

    count: int = 0


class HostStorage:
    """A NumPy view of memory of the process; ``shown`` says that others may read and write it at any time."""

    __slots__ = ("called", "exported", "pointer", "view")

    device: Final = None
    block: Final = None

    def __init__(self, view: Numbers, pointer: int) -> None:
        self.view, self.pointer, self.called = view, pointer, "an array"
        self.exported = False

    def mark_exported(self) -> None:
        """Others have the memory from now on."""
        if not self.exported:
            self.exported = True
            Exports.count += 1

    def read(self, where: Where, stream: object = None) -> Numbers:
        if stream is not None or CAPTURES.count:
            session = session_of(check_stream(stream))
            if session is not None and session.host:
                session.refuse(*READING)
        numbers: Numbers = self.view[where]
        return numbers

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        if stream is not None or CAPTURES.count:
            on = check_stream(stream)
            session = session_of(on)
            if session is not None and session.host:
                record_values(session, on, self._lie(_part(self.view, where)), values, (self.view,))
                return
        if where is ... and values.ndim < self.view.ndim:
            fill(self.view, values)
        else:
            self.view[where] = values

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if CAPTURES.count and isinstance(source, HostStorage):
            on = check_stream(stream)
            session = session_of(on)
            if session is not None and session.host:
                ends = self._lie(self.view), source._lie(source.view)  # noqa: SLF001 - one of these, too
                record_copies(session, on, *ends, (self.view, source.view))
                return
        self.write(..., source.read(..., stream), stream)

    def _lie(self, view: Numbers) -> Lie:
        """Where ``view``, a part of the memory, lies."""
        return Lie(_address(view), view.dtype, view.shape, view.strides, self.called)


def is_exported(array: object) -> bool:
    """Whether others than quadpy may read and write an array's memory of the host at any time."""
    memory = getattr(array, "_memory", None)
    return memory is not None and isinstance(found := memory(), HostStorage) and found.exported


def check_stream(stream: object) -> Stream:
    """``stream``, or the calling thread's for None; StreamError where it cannot be used.

    What the host does is done at once, whatever the stream, unless that is captured.
    """
    return current_device().stream_for(stream)


def _part(view: Numbers, where: Where) -> Numbers:
    """What is at ``where``, as a view, though it be one number."""
    index: Any = where if where is ... else (*where, ...)
    part: Numbers = view[index]
    return part


def _address(data: Numbers) -> int:
    address: int = data.__array_interface__["data"][0]
    return address
