"""Host arrays among the arguments of a kernel on a GPU: copied in before it, and out after it where it wrote them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from quadpy.jit.array_arguments import ArrayArguments
from quadpy.jit.plan import Values, Views
from quadpy.runtime.arrays.foreign_host import TypeKey
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.captured_work import Copy
from quadpy.runtime.launch.capturing import Session
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.streams.owned import OwningDevice
from quadpy.runtime.streams.stream import Stream

__all__ = ["HostArrays", "recorded_host_arrays"]


@dataclass(slots=True)
class _Range:
    """Host memory from ``start`` to ``end`` with one copy on the device; arrays that overlap share it."""

    start: int
    end: int
    written: bool
    members: list[int] = field(default_factory=list)


class HostArrays:
    """The device's copies of the host arrays of one launch."""

    def __init__(self, device: Device, stream: Stream, views: Views, written: Sequence[bool]) -> None:
        self._device, self._stream = device, stream
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
        for part, buffer in self._copies:
            if part.written:
                self._device.staging.download(part.start, buffer.pointer, buffer.nbytes, self._stream.handle)


@dataclass(frozen=True, slots=True)
class _Copy:
    """The copy of a host array in a buffer that belongs to a graph."""

    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    block: Block | None
    device: OwningDevice
    buffer: DeviceBuffer
    wide: bool
    writable: bool = True


@contextlib.contextmanager
def recorded_host_arrays(
    session: Session, on: Stream, values: Values, views: Views, arguments: ArrayArguments
) -> Iterator[list[ArrayView]]:
    """Context manager: gives ``views`` with the graph's copies of host arrays, which each run of the graph copies in and out.

    ``values`` get the addresses of the copies.
    """
    there: list[ArrayView] = list(views)
    copies = []
    for part in _ranges(views, arguments.written):
        nbytes, keep = part.end - part.start, tuple(views[member] for member in part.members)
        buffer = session.device_memory(on, nbytes)
        session.record(on, Copy(buffer.pointer, part.start, nbytes, "in"), (buffer, *keep))
        copies.append((part, buffer, keep))
        for member in part.members:
            view = views[member]
            start, first = (buffer.pointer + address - part.start for address in (view.pointer, view.abi[0]))
            abi, where = (first, *view.abi[1:]), (buffer.block, session.device, buffer)
            there[member] = _Copy(view.type_key, abi, start, view.nbytes, *where, view.wide)
            values[arguments.pointers[member]] = first
    yield there
    for part, buffer, keep in copies:
        if part.written:
            session.record(on, Copy(part.start, buffer.pointer, buffer.nbytes, "out"), (buffer, *keep))


def _ranges(views: Views, written: Sequence[bool]) -> list[_Range]:
    """The memory of the views on the host; ranges that overlap are one."""
    host = [(view.pointer, k) for k, view in enumerate(views) if view.block is None and view.nbytes]
    merged: list[_Range] = []
    for start, k in sorted(host):
        end = start + views[k].nbytes
        if merged and start < merged[-1].end:
            last = merged[-1]
            last.end, last.written = max(last.end, end), last.written or written[k]
        else:
            last = _Range(start, end, written[k])
            merged.append(last)
        last.members.append(k)
    return merged
