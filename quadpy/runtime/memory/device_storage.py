"""The memory of arrays on a device.  Owns: Region, zero_bytes, DeviceStorage.

Every access is a copy in the order of a stream, after all work that wrote the memory, on whatever stream that was; one
that writes comes after all that read it, too.
Imports: errors, devices, windows, noting, NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from quadpy.errors import StreamError
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.life import THREAD
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.recorded_copies import Lie, record_copies, record_values
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.host_storage import READING, Storage, Where
from quadpy.runtime.memory.numpy_storage import Numbers
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from threading import RLock

__all__ = ["DeviceStorage", "Region", "lasting_zero_bytes", "stream_of", "zero_bytes"]


_FEW: Final = 4096
"""Bytes of an element that are read by themselves."""


class Region:
    """Memory of ``device`` that one array has, or that several share; ``owner`` keeps it alive.

    ``lock`` is held by whoever writes: what lies between the numbers of one array, and is written back with them, may
    belong to another.
    """

    __slots__ = ("_lock", "block", "device", "owner", "pointer")

    def __init__(self, device: Device, block: Block | None, owner: object) -> None:
        self.device, self.block, self.owner = device, block, owner
        self.pointer = block.pointer if block else 0
        self._lock: RLock | None = None

    @property
    def lock(self) -> RLock:
        lock = self._lock
        if lock is None:  # made when it is first needed: most arrays are never written by the host
            with _region_lock:
                if self._lock is None:
                    self._lock = new_lock()
                lock = self._lock
        return lock


_region_lock: Final = new_lock()


def zero_bytes(device: Device, nbytes: int, stream: object = None) -> Region:
    """``nbytes`` zero bytes whose home is ``stream``, or the calling thread's for None.

    In a capture they belong to the graph, and are zero each time that it begins.
    """
    home = stream_of(device, stream)
    if device.life.direct or (session := session_of(home)) is None:
        timeline = home.timeline if home.timeline.handle else device.timelines.default
        return _zeroed(device, device.memory.buffer(nbytes, timeline), home)  # ``home`` is there: stream_of looked
    buffer = session.device_memory(home, nbytes)
    if nbytes:
        session.record_fill(home, buffer.pointer, b"\0", nbytes, (buffer,))
    return Region(device, buffer.block, buffer)


def lasting_zero_bytes(device: Device, nbytes: int) -> Region:
    """As ``zero_bytes`` outside of any capture, for what is made once, when it is first needed."""
    home = stream_of(device, None)
    return _zeroed(device, device.allocate_lasting(nbytes, home), home)


def _zeroed(device: Device, buffer: DeviceBuffer, home: Stream) -> Region:
    block = buffer.block
    if block is not None:
        block.writers.add(home.timeline)
        home._call(device.driver.fill, block.pointer, 0, buffer.nbytes)  # noqa: SLF001
    return Region(device, block, buffer)


class DeviceStorage:
    """The numbers of one array, in the ``window`` of ``region``."""

    __slots__ = ("block", "called", "device", "pointer", "region", "window")

    def __init__(self, region: Region, window: StridedLayout) -> None:
        self.region, self.window = region, window
        self.device, self.block, self.pointer = region.device, region.block, region.pointer + window.start
        self.called = "an array"

    def read(self, where: Where, stream: object = None) -> Numbers:
        on, window = stream_of(self.device, stream), self._window(where)
        if (session := session_of(on)) is not None:
            session.refuse(*READING)
        if where is not ... and window.dense and (few := window.reach) <= _FEW:
            self.announce(on, writes=False)
            fetched = on._call(self.device.staging.fetch, self._at(window), few)  # noqa: SLF001
            return window.over(bytearray(fetched))
        if where is ... or window.dense:
            return window.over(self._download(window, on))
        components = np.empty(window.shape, window.dtype)
        for index in np.ndindex(window.shape):
            one = window.at(index)
            components[index] = one.over(self._download(one, on))
        return components

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        on, window = stream_of(self.device, stream), self._window(where)
        if (session := session_of(on)) is not None:
            record_values(session, on, self._lie(window), values, (self.region,))
            return
        with self.region.lock:
            if where is ... or window.dense:
                self._put(window, values, on)
                return
            components = np.broadcast_to(values, window.shape)
            for index in np.ndindex(window.shape):  # what lies between them may be written by a kernel meanwhile
                self._put(window.at(index), components[index], on)

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if isinstance(source, DeviceStorage) and source.device is self.device:
            on = stream_of(self.device, stream)
            if (session := session_of(on)) is not None:
                ends = self._lie(self.window), source._lie(source.window)  # noqa: SLF001 - one of these, too
                record_copies(session, on, *ends, (self.region, source.region))
                return
            if self._is_like(source):
                self._copy_within(source, on)
                return
        there = stream if source.device is self.device else None
        self.write(..., source.read(..., there), stream)

    def _copy_within(self, source: DeviceStorage, on: Stream) -> None:
        """The bytes of ``source``, which lies as this does."""
        if source.pointer == self.pointer or not self.window.size:
            return
        source.announce(on, writes=False)
        self.announce(on, writes=True)
        ends, nbytes = (self.pointer, source.pointer), self.window.reach
        on._call(self.device.driver.copy_within, *ends, nbytes)  # noqa: SLF001

    def _lie(self, window: StridedLayout) -> Lie:
        return Lie(self._at(window), *window[1:], self.called)

    def _window(self, where: Where) -> StridedLayout:
        return self.window if where is ... else self.window.at(where)

    def _is_like(self, other: DeviceStorage) -> bool:
        """Whether a copy of the bytes is a copy of the numbers."""
        return self.window.dense and self.window[1:] == other.window[1:]

    def announce(self, stream: Stream, *, writes: bool) -> None:
        """Order ``stream``'s next work after all that wrote the memory, and keep the memory until it is done.

        Work that writes comes after all that read it, too.
        """
        if self.block is not None:
            follow = self.device.memory.follow_users if writes else self.device.memory.follow_writers
            follow(self.block, stream.timeline)
            self.device.memory.use([self.block], stream.timeline, writes=writes)

    def _download(self, window: StridedLayout, stream: Stream) -> Numbers:
        """The bytes that ``window`` reaches over."""
        data = np.empty(window.reach, np.uint8)
        if data.size:
            self.announce(stream, writes=False)
            ends = _address(data), self._at(window)
            stream._call(self.device.staging.download, *ends, data.size)  # noqa: SLF001
        return data

    def _put(self, window: StridedLayout, values: Numbers, stream: Stream) -> None:
        """``values`` into ``window``, and what lies between its numbers as it was."""
        if not window.size:
            return
        if window.dense and (byte := _one_byte(values)) is not None:
            self.announce(stream, writes=True)
            start, nbytes = self._at(window), window.reach
            stream._call(self.device.driver.fill, start, byte, nbytes)  # noqa: SLF001
            return
        data = np.empty(window.reach, np.uint8) if window.dense else self._download(window, stream)
        window.over(data)[...] = values
        self.announce(stream, writes=True)
        ends = self._at(window), _address(data)
        stream._call(self.device.staging.upload, *ends, data.size)  # noqa: SLF001

    def _at(self, window: StridedLayout) -> int:
        return self.region.pointer + window.start


def stream_of(device: Device, stream: object) -> Stream:
    """``stream``, or the calling thread's for None.

    Raises:
        DeviceError: the device was closed, or belongs to the parent of this process.
        StreamError: ``stream`` is none, was destroyed, or is of another device.
    """
    on = device.streams.thread.uses[-1].stream if stream is None else stream
    direct = device.life.direct and not THREAD.in_host_function
    if direct and type(on) is Stream and on.device is device and on._ref.owner is not None:  # noqa: SLF001
        return on
    device.life.check()
    found = device.stream_for(stream)
    if found.device is not device:
        raise StreamError(f"{found!r} cannot take work on an array of {device}", hint="use a stream of its device")
    return found


def _one_byte(values: Numbers) -> int | None:
    """The byte that a number consists of, all over, where there is one number: a fill needs no copy."""
    data = values.tobytes() if values.size == 1 else b""
    return data[0] if data and data.count(data[0]) == len(data) else None


def _address(data: Numbers) -> int:
    address: int = data.__array_interface__["data"][0]
    return address
