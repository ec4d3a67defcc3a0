"""Parts of arrays as numbers on the host, before they are sent and after they are received.

Numbers of the host stay where they are.  Those of a GPU go through pinned memory, on the stream of the operation; an MPI
that reads and writes device memory gets them in place.
The pinned memory is kept for the next exchange.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from quadpy.dist.transport.parts import storage_of
from quadpy.errors import TransportError
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, Storage
from quadpy.runtime.memory.strided_layout import StridedLayout

if TYPE_CHECKING:
    from quadpy.dist.transport.protocol import FlatPart
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import StreamHandle
    from quadpy.runtime.elements.numpy_types import Numbers
    from quadpy.runtime.streams.stream import Stream

_IN_CAPTURE: Final = ("an exchange between ranks", "capture the work before and after it as graphs of their own")


class DeviceNumbers:
    """Numbers in device memory, as libraries take them: bytes with ``__cuda_array_interface__``."""

    __slots__ = ("nbytes", "pointer")

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.pointer, self.nbytes = pointer, nbytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.pointer, False), "version": 3, "strides": None}


class Departure(Protocol):
    """Numbers that are sent; ``ready`` if the host need not wait for them."""

    ready: bool

    def wait(self) -> Numbers | DeviceNumbers:
        """The numbers, when the work that wrote them is complete."""


class Arrival(Protocol):
    """Room for numbers that are received; ``ready`` if the host need not wait for earlier work on it."""

    ready: bool

    def wait(self) -> Numbers | DeviceNumbers:
        """The room, when earlier work on it is complete."""

    def deliver(self) -> None:
        """Order later work on the stream after the received numbers."""


def departure(part: FlatPart, stream: Stream, *, in_place: bool = False) -> Departure:
    """The numbers of ``part`` after the work so far on ``stream``; ``in_place`` for an engine that reads device memory."""
    _refuse_capture(stream)
    storage = storage_of(part)
    if not isinstance(storage, DeviceStorage):
        return _OnHost(storage.read(..., stream))
    return _InPlace(storage, stream, writes=False) if in_place else _PinnedDeparture(storage, stream)


def arrival(part: FlatPart, stream: Stream, *, in_place: bool = False) -> Arrival:
    """Room for the numbers of ``part``, which earlier work may still use; ``in_place`` as for ``departure``."""
    _refuse_capture(stream)
    storage = storage_of(part)
    if isinstance(storage, DeviceStorage):
        return _InPlace(storage, stream, writes=True) if in_place else _PinnedArrival(storage, stream)
    assert isinstance(storage, HostPart)
    if (observer := CAPTURES.observer) is not None and "host" in stream.device.driver.features:
        view = storage.view
        layout = StridedLayout(storage.pointer, view.dtype, view.shape, view.strides)
        observer.writing(stream, ObservedAccess(storage.whole, layout, None, storage.name), "receive from another rank")
    return _OnHost(storage.view)


def announce_send(part: FlatPart, stream: Stream) -> int:
    """The address of ``part``, on a GPU, for work that reads it on ``stream``."""
    return _announce(part, stream, writes=False)


def announce_receive(part: FlatPart, stream: Stream) -> int:
    """The address of ``part``, on a GPU, for work that writes it on ``stream``."""
    return _announce(part, stream, writes=True)


def _announce(part: FlatPart, stream: Stream, *, writes: bool) -> int:
    _refuse_capture(stream)
    storage = storage_of(part)
    if not isinstance(storage, DeviceStorage):
        raise TransportError(
            f"{part.array!r} is in the host's memory, and the ranks are connected by GPUs",
            hint="make it after qp.init(arch=qp.gpu)",
        )
    _observe(storage, stream, writes=writes)
    storage.announce(stream, writes=writes)
    return storage.pointer


def _refuse_capture(stream: Stream) -> None:
    if (session := session_of(stream)) is not None:
        session.refuse(*_IN_CAPTURE)


class _OnHost:
    """Numbers of the host, where all work is complete when a call returns."""

    __slots__ = ("_numbers",)

    ready = True

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def wait(self) -> Numbers:
        return self._numbers

    def deliver(self) -> None:
        """Has nothing left to do: the engine wrote to the array."""


class _PinnedDeparture:
    """Numbers of a GPU on their way to pinned memory."""

    __slots__ = ("_buffer", "_storage")

    ready = False

    def __init__(self, storage: DeviceStorage, stream: Stream) -> None:
        self._storage, nbytes = storage, storage.layout.reach
        self._buffer: PinnedBuffer = pinned_buffer(storage.device, nbytes)
        _observe(storage, stream, writes=False)
        storage.announce(stream, writes=False)
        self._buffer.copy_from(storage.pointer, nbytes, stream)

    def wait(self) -> Numbers:
        self._buffer.wait()
        return self._buffer.numbers(self._storage.layout.dtype, self._storage.layout.size)


class _PinnedArrival:
    """Pinned memory that is copied to a GPU when the numbers are there."""

    __slots__ = ("_buffer", "_storage", "_stream")

    ready = True

    def __init__(self, storage: DeviceStorage, stream: Stream) -> None:
        self._storage, self._stream = storage, stream
        self._buffer: PinnedBuffer = pinned_buffer(storage.device, storage.layout.reach)

    def wait(self) -> Numbers:
        return self._buffer.numbers(self._storage.layout.dtype, self._storage.layout.size)

    def deliver(self) -> None:
        _observe(self._storage, self._stream, writes=True)
        self._storage.announce(self._stream, writes=True)
        self._buffer.copy_to(self._storage.pointer, self._storage.layout.reach, self._stream)


class _InPlace:
    """Numbers in device memory that the engine itself accesses, when the work so far on the stream is complete."""

    __slots__ = ("_event", "_storage")

    ready = False

    def __init__(self, storage: DeviceStorage, stream: Stream, *, writes: bool) -> None:
        self._storage = storage
        _observe(storage, stream, writes=writes)
        storage.announce(stream, writes=writes)
        self._event = storage.device.create_event()
        self._event.record(stream)

    def wait(self) -> DeviceNumbers:
        self._event.synchronize()
        return DeviceNumbers(self._storage.pointer, self._storage.layout.reach)

    def deliver(self) -> None:
        """Has nothing left to do: the engine wrote to the array, and the host has waited for it."""


def _observe(storage: Storage, stream: Stream, *, writes: bool) -> None:
    if (observer := CAPTURES.observer) is not None and isinstance(storage, DeviceStorage):
        layout = storage.layout._replace(start=storage.pointer)
        access = ObservedAccess(storage.block, layout, None, storage.name)
        if writes:
            observer.writing(stream, access, "receive from another rank")
        else:
            observer.reading(stream, access)


_LEAST: Final = 4096
_kept: Final[weakref.WeakKeyDictionary[Device, list[_Memory]]] = weakref.WeakKeyDictionary()


class _Memory:
    """Pinned memory of ``nbytes`` bytes, and the event after the last copy that uses it."""

    def __init__(self, device: Device, nbytes: int) -> None:
        driver, reaper = device.driver, device.reaper
        self._event = reaper.own(driver.event_destroy, functools.partial(driver.event_create, timing=False))
        self._memory = reaper.own(driver.free_pinned, driver.alloc_pinned, nbytes)
        self.nbytes, self.event, self.pointer = nbytes, self._event.handle, self._memory.handle
        self.pending = False


class PinnedBuffer:
    """Pinned memory for one message; when this object dies, another message may have it after the last copy."""

    __slots__ = ("__weakref__", "_device", "_memory")

    def __init__(self, device: Device, memory: _Memory) -> None:
        self._device, self._memory = device, memory
        weakref.finalize(self, _kept.setdefault(device, []).append, memory)

    def copy_from(self, address: int, nbytes: int, stream: Stream) -> None:
        """Copy from the device, after the work so far on ``stream``."""
        stream._call(functools.partial(self._copy, self._device.driver.copy_out), self._memory.pointer, address, nbytes)  # noqa: SLF001 - keeps the stream alive for the call

    def copy_to(self, address: int, nbytes: int, stream: Stream) -> None:
        """Copy to the device; later work on ``stream`` comes after it."""
        stream._call(functools.partial(self._copy, self._device.driver.copy_in), address, self._memory.pointer, nbytes)  # noqa: SLF001 - as above

    def _copy(self, copy: Any, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        self._memory.pending = True
        if nbytes:
            copy(target, source, nbytes, stream)
        self._device.driver.event_record(self._memory.event, stream)

    def wait(self) -> None:
        """Wait on the host for the last copy, and raise what checks of kernels before it found."""
        _settle(self._device, self._memory)
        self._device.faults.raise_first()

    def numbers(self, dtype: np.dtype[Any], count: int) -> Numbers:
        """The first ``count`` numbers of the memory, which live as long as this object."""
        raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(self._memory.pointer)
        numbers: Numbers = np.frombuffer(memoryview(raw), dtype)
        return numbers


def pinned_buffer(device: Device, nbytes: int) -> PinnedBuffer:
    """Pinned memory of at least ``nbytes`` bytes that no copy uses any more."""
    kept = _kept.setdefault(device, [])
    for memory in tuple(kept):
        if nbytes <= memory.nbytes <= max(_LEAST, 2 * nbytes):
            try:
                kept.remove(memory)
            except ValueError:  # another thread took it
                continue
            _settle(device, memory)
            return PinnedBuffer(device, memory)
    return PinnedBuffer(device, _Memory(device, max(_LEAST, nbytes)))


def _settle(device: Device, memory: _Memory) -> None:
    if memory.pending:
        device.driver.event_synchronize(memory.event)
        memory.pending = False
