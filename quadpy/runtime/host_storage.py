"""The memory of one array, wherever it lies.  Owns: the Storage protocol, and HostStorage.  Imports: devices, captures, NumPy."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from quadpy.runtime.allocators.block import Block
from quadpy.runtime.capturing import CAPTURES, Session, session_of
from quadpy.runtime.device import Device
from quadpy.runtime.devices import current_device
from quadpy.runtime.storage import Numbers
from quadpy.runtime.stream import Stream

__all__ = ["READING", "HostStorage", "Storage", "Where", "check_stream", "fill_pattern_of"]

Where: TypeAlias = "tuple[int, ...] | EllipsisType"
"""One element, by a position for each axis of the array; or ``...``, all of them."""


READING: Final = ("reading an array", "read it behind a launch of the graph; a kernel can read it inside")
"""What a capture cannot note, and what to do: numbers are not there before the graph runs."""


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
                self._note(session, on, _part(self.view, where), values)
                return
        self.view[where] = values

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if CAPTURES.count and isinstance(source, HostStorage):
            on = check_stream(stream)
            session = session_of(on)
            if session is not None and session.host:
                _note_copy(session, on, self.view, source.view)
                return
        self.write(..., source.read(..., stream), stream)

    def _note(self, session: Session, on: Stream, target: Numbers, values: Numbers) -> None:
        """``values`` into ``target``, a part of the memory, each time that the graph runs."""
        if not target.size:
            return
        pointer, keep = _address(target), (self.view,)
        together = target.flags.c_contiguous
        if together and (pattern := fill_pattern_of(values)) is not None:
            session.note_fill(on, pointer, pattern, target.nbytes, keep)
        elif together:
            data = np.empty(target.shape, target.dtype)
            data[...] = values
            session.note_constant(on, pointer, data, keep)
        else:
            values = np.broadcast_to(values, target.shape)
            for row in np.ndindex(target.shape[:-1] or target.shape):
                self._note(session, on, _part(target, row), values[row])


def check_stream(stream: object) -> Stream:
    """``stream``, or the calling thread's for None; StreamError where it cannot be used.

    What the host does is done at once, whatever the stream, unless that is captured.
    """
    return current_device().stream_for(stream)


def _note_copy(session: Session, on: Stream, target: Numbers, source: Numbers) -> None:
    """All numbers of ``source`` into ``target``, of the same shape, each time that the graph runs."""
    if target.flags.c_contiguous and source.flags.c_contiguous:
        ends = _address(target), _address(source)
        if target.size and ends[0] != ends[1]:
            session.note_copy(on, *ends, target.nbytes, (target, source))
        return
    for row in np.ndindex(target.shape[:-1] or target.shape):
        _note_copy(session, on, _part(target, row), _part(source, row))


def fill_pattern_of(values: Numbers) -> bytes | None:
    """The 1, 2 or 4 bytes that a number repeats, where there is one number that does."""
    data = values.tobytes() if values.size == 1 else b""
    for size in (1, 2, 4):
        if data and data == data[:size] * (len(data) // size):
            return data[:size]
    return None


def _part(view: Numbers, where: Where) -> Numbers:
    """What is at ``where``, as a view, though it be one number."""
    index: Any = where if where is ... else (*where, ...)
    part: Numbers = view[index]
    return part


def _address(data: Numbers) -> int:
    address: int = data.__array_interface__["data"][0]
    return address
