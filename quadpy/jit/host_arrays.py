"""Host arrays among the arguments of a kernel on a GPU: copied in before it, and out after it where it wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
from quadpy.runtime.streams.stream import Stream

__all__ = ["copied_host_arrays"]


@dataclass(slots=True)
class _Range:
    """Host memory from ``start`` to ``end`` with one copy on the device; arrays that overlap share it."""

    start: int
    end: int
    written: bool
    members: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _DeviceCopy:
    """The copy of a host array, in a buffer."""

    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    block: Block | None
    device: Device
    buffer: DeviceBuffer
    wide: bool
    writable: bool = True


def copied_host_arrays(
    device: Device, on: Stream, values: Values, views: Views, arguments: ArrayArguments, session: Session | None = None
) -> AbstractContextManager[Views]:
    """Context manager: ``views`` with copies on the device for host arrays, copied back at its end where they are written.

    ``values`` get the addresses of the copies.  With a ``session`` the copies belong to its graph, and each run of the
    graph copies in and out.
    """
    ranges = _ranges(views, arguments.written)
    if not ranges:  # a launch of arrays on the device must not pay for a generator
        return nullcontext(views)
    return _copied(ranges, device, on, values, views, arguments, session)


@contextmanager
def _copied(
    ranges: list[_Range],
    device: Device,
    on: Stream,
    values: Values,
    views: Views,
    arguments: ArrayArguments,
    session: Session | None,
) -> Iterator[Views]:
    there: list[ArrayView] = list(views)
    copies: list[tuple[_Range, DeviceBuffer, tuple[object, ...]]] = []
    for part in ranges:
        nbytes = part.end - part.start
        buffer = device.allocate(nbytes, on) if session is None else session.device_memory(on, nbytes)
        keep = (buffer, *(views[member] for member in part.members))
        _transfer(device, on, Copy(buffer.pointer, part.start, nbytes, "in"), session, keep)
        copies.append((part, buffer, keep))
        for member in part.members:
            view = views[member]
            start, first = (buffer.pointer + address - part.start for address in (view.pointer, view.abi[0]))
            abi, where = (first, *view.abi[1:]), (buffer.block, device, buffer)
            there[member] = _DeviceCopy(view.type_key, abi, start, view.nbytes, *where, view.wide)
            values[arguments.pointers[member]] = first
    yield there
    for part, buffer, keep in copies:
        if part.written:
            _transfer(device, on, Copy(part.start, buffer.pointer, buffer.nbytes, "out"), session, keep)
    if session is None and any(part.written for part in ranges):  # the kernel is done
        device.faults.raise_first(on.handle)


def _transfer(device: Device, on: Stream, work: Copy, session: Session | None, keep: tuple[object, ...]) -> None:
    """Does ``work`` on ``on``, or records it; the graph then holds ``keep``."""
    if session is not None:
        session.record(on, work, keep)
        return
    transfer = device.staging.upload if work.direction == "in" else device.staging.download
    transfer(work.target, work.source, work.nbytes, on.handle)


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
