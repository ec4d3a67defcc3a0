"""Host arrays in a kernel of a GPU: copied in before, and out behind what wrote them.

What lies between the numbers of an array is another's, perhaps another thread's: it is never written.
Owns: HostArrays, noted_host_arrays.  Imports: ``runtime``, NumPy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quadpy.jit.places import Places
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.capturing import Session
from quadpy.runtime.device import Device
from quadpy.runtime.device_memory import DeviceBuffer
from quadpy.runtime.storage import Numbers
from quadpy.runtime.stream import Stream

__all__ = ["HostArrays"]


@dataclass(slots=True)
class _Range:
    """Host memory from ``start`` to ``end`` that one buffer stands for; arrays that overlap share one.

    ``whole`` says that it is one array, with nothing between its numbers.
    """

    start: int
    end: int
    written: bool
    whole: bool
    members: list[int] = field(default_factory=list)

    def numbers(self, there: Numbers, views: Sequence[Any], written: Sequence[bool]) -> list[tuple[Numbers, Numbers]]:
        """Of each array that is written, its numbers, and the same ones in the bytes ``there``, a copy of the range."""
        found = []
        for member in self.members:
            if written[member]:
                own = views[member].owner
                first = own.__array_interface__["data"][0] - self.start
                found.append((own, np.ndarray(own.shape, own.dtype, there.data, first, own.strides)))
        return found


class HostArrays:
    """The device's copies of the host arrays of one launch."""

    def __init__(self, device: Device, stream: Stream, views: Sequence[Any], written: Sequence[bool]) -> None:
        self._device, self._stream, self._views, self._written = device, stream, views, written
        self._copies: list[tuple[_Range, DeviceBuffer]] = []
        self.addresses: dict[int, int] = {}
        for part in _ranges(views, written):
            buffer = device.allocate(part.end - part.start, stream)
            device.staging.upload(buffer.pointer, part.start, buffer.nbytes, stream.handle)
            self._copies.append((part, buffer))
            for member in part.members:
                self.addresses[member] = buffer.pointer + views[member].abi[0] - part.start

    def copy_back(self) -> None:
        """Brings what the kernel wrote to the host, and waits for it."""
        download, handle = self._device.staging.download, self._stream.handle
        for part, buffer in self._copies:
            if part.written and part.whole:
                download(part.start, buffer.pointer, buffer.nbytes, handle)
            elif part.written:
                there = np.empty(buffer.nbytes, np.uint8)
                download(there.__array_interface__["data"][0], buffer.pointer, buffer.nbytes, handle)
                _put(part.numbers(there, self._views, self._written))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A host array's place in a buffer of a graph's."""

    pointer: int
    nbytes: int
    block: Block | None
    device: Device
    buffer: DeviceBuffer


@contextlib.contextmanager
def noted_host_arrays(
    session: Session, on: Stream, values: list[Any], views: Sequence[Any], places: Places
) -> Iterator[list[Any]]:
    """What stands for ``views`` inside the block: host arrays are copied each time that the graph runs, in and out.

    ``values`` get the addresses of the graph's copies.
    """
    there, copies = list(views), []
    for part in _ranges(views, places.written):
        nbytes, keep = part.end - part.start, tuple(views[member] for member in part.members)
        buffer = session.device_memory(on, nbytes)
        session.note_transfer(on, buffer.pointer, part.start, nbytes, (buffer, *keep), out=False)
        copies.append((part, buffer, keep))
        for member in part.members:
            view = views[member]
            start, first = (buffer.pointer + place - part.start for place in (view.pointer, view.abi[0]))
            there[member] = _Copy(start, view.nbytes, buffer.block, session.device, buffer)
            values[places.pointers[member]] = first
    yield there
    for part, buffer, keep in copies:
        if part.written and part.whole:
            session.note_transfer(on, part.start, buffer.pointer, buffer.nbytes, (buffer, *keep), out=True)
        elif part.written:
            memory = session.host_memory(buffer.nbytes)
            session.note_transfer(on, memory.pointer, buffer.pointer, buffer.nbytes, (buffer, memory), out=True)
            session.note_host(on, _put, (part.numbers(memory.bytes, views, places.written),))


def _put(numbers: list[tuple[Numbers, Numbers]]) -> None:
    for own, found in numbers:
        np.copyto(own, found)


def _ranges(views: Sequence[Any], written: Sequence[bool]) -> list[_Range]:
    """The memory of the views that lie on the host, ranges that overlap as one."""
    host = [(view.pointer, k) for k, view in enumerate(views) if getattr(view, "block", None) is None and view.nbytes]
    merged: list[_Range] = []
    for start, k in sorted(host):
        end = start + views[k].nbytes
        if merged and start < merged[-1].end:
            last = merged[-1]
            last.end, last.written, last.whole = max(last.end, end), last.written or written[k], False
        else:
            whole = views[k].type_key[0] == "nd"
            last = _Range(start, end, written[k], whole)
            merged.append(last)
        last.members.append(k)
    return merged
