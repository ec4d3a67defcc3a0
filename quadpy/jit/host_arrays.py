"""Host arrays among the arguments of a kernel on a GPU: copied in before it, and out after it if it wrote them.

Only the numbers of an array are copied back.  The memory between them, such as the other columns of a matrix, may be
written by the host or another thread in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import Protocol

import numpy as np

from quadpy.core.light import dataclass
from quadpy.jit.plan import Values, Views
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayView, TypeKey
from quadpy.runtime.device.device import Device
from quadpy.runtime.elements.numpy_types import address_of
from quadpy.runtime.launch.captured_work import Copy
from quadpy.runtime.launch.capturing import Session
from quadpy.runtime.launch.recorded_copies import CopiedArray, pieces_of
from quadpy.runtime.memory.allocators.block import Block, DeviceBuffer
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream


@dataclass(slots=True)
class _Range:
    """Host memory from ``start`` to ``end`` with one copy on the device; arrays that overlap share it."""

    start: int
    end: int
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


class Places(Protocol):
    """What copies need to know: ``ArrayArguments`` has it of a kernel."""

    @property
    def pointers(self) -> Sequence[int]:
        """The index of each array's address among the values."""

    @property
    def written(self) -> Sequence[bool]:
        """Whether each array is written."""


def copied_host_arrays(
    device: Device, on: Stream, values: Values, views: Views, arguments: Places, session: Session | None = None
) -> AbstractContextManager[Views]:
    """Context manager: ``views`` with copies on the device for host arrays, copied back at its end if they are written.

    ``values`` get the addresses of the copies.  With a ``session`` the copies belong to its graph, and each run of the
    graph copies in and out.
    """
    ranges = _ranges(views)
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
    arguments: Places,
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
    written = [(part, buffer, keep, m) for part, buffer, keep in copies for m in part.members if arguments.written[m]]
    for part, buffer, keep, member in written:
        _copy_back(device, on, views[member], buffer.pointer - part.start, session, keep)
    if session is None and written:  # the kernel is done
        device.faults.raise_first(on.handle)


def _copy_back(
    device: Device, on: Stream, view: ArrayView, offset: int, session: Session | None, keep: tuple[object, ...]
) -> None:
    """Copy the numbers of ``view`` back, whose copies are ``offset`` bytes further on."""
    if not isinstance(view, HostView) or view.type_key[0] != "strided":
        _transfer(device, on, Copy(view.pointer, view.pointer + offset, view.nbytes, "out"), session, keep)
    elif session is None:
        data, array = np.empty(view.nbytes, np.uint8), view.owner
        device.staging.download(address_of(data), view.pointer + offset, view.nbytes, on.handle)
        array[...] = np.ndarray(array.shape, array.dtype, data, view.abi[0] - view.pointer, array.strides)
    else:
        strides = tuple(map(abs, view.owner.strides))  # the same memory, from its first byte on
        memory = CopiedArray(
            StridedLayout(view.pointer, view.owner.dtype, view.owner.shape, strides), "a host array", keep
        )
        for start, nbytes in pieces_of(session, memory):
            _transfer(device, on, Copy(start, start + offset, nbytes, "out"), session, keep)


def _transfer(device: Device, on: Stream, work: Copy, session: Session | None, keep: tuple[object, ...]) -> None:
    """Does ``work`` on ``on``, or records it; the graph then holds ``keep``."""
    if session is not None:
        session.record(on, work, keep)
        return
    transfer = device.staging.upload if work.direction == "in" else device.staging.download
    transfer(work.target, work.source, work.nbytes, on.handle)


def _ranges(views: Views) -> list[_Range]:
    """The memory of the views on the host; ranges that overlap are one."""
    host = [(view.pointer, k) for k, view in enumerate(views) if view.block is None and view.nbytes]
    merged: list[_Range] = []
    for start, k in sorted(host):
        end = start + views[k].nbytes
        if merged and start < merged[-1].end:
            last = merged[-1]
            last.end = max(last.end, end)
        else:
            last = _Range(start, end)
            merged.append(last)
        last.members.append(k)
    return merged
