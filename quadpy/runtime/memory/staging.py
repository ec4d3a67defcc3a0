"""Copies between host and device memory in stream order.

Drivers copy only pinned memory asynchronously and in stream order.  Therefore, users' memory is copied through pinned buffers,
and may be reused when the call returns.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Callable, Sized
from typing import Final, Protocol, TypeAlias, TypeVar

from quadpy.errors import DeviceError
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import Driver, EventHandle, PinnedPointer, StreamHandle

T = TypeVar("T")

CHUNK: Final = 1 << 20
"""Bytes of one pinned buffer."""
MAX_KEPT: Final = 4
"""Double buffers that are kept for later copies; each thread that copies needs one."""


class _Buffer:
    """A pinned buffer, and the event after the last copy that uses it."""

    def __init__(self, driver: Driver, reaper: Reaper) -> None:
        self._driver = driver
        self._event = reaper.own(driver.event_destroy, functools.partial(driver.event_create, timing=False))
        self._buffer = reaper.own(driver.free_pinned, driver.alloc_pinned, CHUNK)
        self.event: EventHandle = self._event.handle
        self.pointer: PinnedPointer = self._buffer.handle
        self.view = memoryview((ctypes.c_ubyte * CHUNK).from_address(self.pointer)).cast("B")
        """The bytes of the buffer, which lives longer than this object."""
        self.pending = False
        """Whether a copy may still use the buffer."""

    def wait(self) -> None:
        if self.pending:
            self._driver.event_synchronize(self.event)
            self.pending = False


class _DoubleBuffer:
    """Two pinned buffers: the host fills or empties one while the device copies the other."""

    def __init__(self, driver: Driver, reaper: Reaper) -> None:
        self._driver = driver
        self.buffers = (_Buffer(driver, reaper), _Buffer(driver, reaper))

    def upload(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        for number, start in enumerate(range(0, nbytes, CHUNK)):
            buffer, size = self.buffers[number % 2], min(CHUNK, nbytes - start)
            buffer.wait()
            ctypes.memmove(buffer.pointer, source + start, size)
            buffer.pending = True
            self._driver.copy_in(target + start, buffer.pointer, size, stream)
            self._driver.event_record(buffer.event, stream)

    def download(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        starts = range(0, nbytes, CHUNK)
        for number, start in enumerate([*starts, nbytes]):
            if start < nbytes:
                buffer = self.buffers[number % 2]
                buffer.wait()
                buffer.pending = True
                self._driver.copy_out(buffer.pointer, source + start, min(CHUNK, nbytes - start), stream)
                self._driver.event_record(buffer.event, stream)
            if number:
                before, buffer = starts[number - 1], self.buffers[(number - 1) % 2]
                buffer.wait()
                ctypes.memmove(target + before, buffer.pointer, min(CHUNK, nbytes - before))

    def put(self, target: int, data: bytes, stream: StreamHandle) -> None:
        buffer, nbytes = self.buffers[0], len(data)
        if buffer.pending:
            buffer.wait()
        buffer.view[:nbytes] = data
        buffer.pending = True
        self._driver.copy_in(target, buffer.pointer, nbytes, stream)
        self._driver.event_record(buffer.event, stream)

    def fetch(self, source: int, nbytes: int, stream: StreamHandle) -> memoryview:
        buffer = self.buffers[0]
        if buffer.pending:
            buffer.wait()
        self._driver.copy_out(buffer.pointer, source, nbytes, stream)
        self._driver.stream_synchronize(stream)  # an event would cost one more call
        return buffer.view


Landing: TypeAlias = _DoubleBuffer


class Reports(Protocol):
    """The reports of complete work, which the host reads after each wait; see ``Prints``."""

    @property
    def pending(self) -> Sized: ...
    def drain(self) -> None: ...


class Staging:
    """Copies between any host memory and a device, in stream order."""

    def __init__(self, driver: Driver, reaper: Reaper, reports: Reports | None = None) -> None:
        """``reports`` are drained after each wait."""
        self._driver, self._reaper, self._reports = driver, reaper, reports
        self._direct = "host" in driver.features
        self._free: list[_DoubleBuffer] = []

    def upload(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        """Copy ``nbytes`` bytes at ``source`` to the device after the work on ``stream``; ``source`` may then change."""
        if self._direct:
            self._driver.copy_in(target, source, nbytes, stream)
        elif nbytes:
            self._staged(_DoubleBuffer.upload, stream, target, source, nbytes)

    def download(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        """Copy from the device after the work on ``stream``, and wait until the bytes are at ``target``."""
        if self._direct:
            self._driver.copy_out(target, source, nbytes, stream)
        elif nbytes:
            self._staged(_DoubleBuffer.download, stream, target, source, nbytes)
            if self._reports is not None and self._reports.pending:
                self._reports.drain()

    def put(self, target: int, data: bytes, stream: StreamHandle) -> None:
        """Write up to ``CHUNK`` bytes to the device, after the work on ``stream``."""
        if self._direct:
            ctypes.memmove(target, data, len(data))
        else:
            buffers = self._unused()
            try:
                buffers.put(target, data, stream)
            except BaseException:
                self.settle(stream)
                raise
            self._keep(buffers)

    def fetch(self, source: int, nbytes: int, stream: StreamHandle) -> bytes:
        """Read up to ``CHUNK`` bytes from the device, after the work on ``stream``."""
        if self._direct:
            return ctypes.string_at(source, nbytes)
        buffers = self._unused()
        try:
            found = bytes(buffers.fetch(source, nbytes, stream)[:nbytes])
        except BaseException:
            self.settle(stream)
            raise
        self._keep(buffers)
        if self._reports is not None and self._reports.pending:
            self._reports.drain()
        return found

    def landing(self) -> Landing:
        """Pinned memory for up to ``CHUNK`` bytes that a kernel writes; on every way, ``landed`` or ``settle`` comes next."""
        buffers = self._unused()
        buffers.buffers[0].wait()
        return buffers

    def landed(self, landing: Landing, nbytes: int, stream: StreamHandle) -> bytes:
        """The bytes that the work on ``stream`` has written there."""
        self._driver.stream_synchronize(stream)
        found = bytes(landing.buffers[0].view[:nbytes])
        self._keep(landing)
        if self._reports is not None and self._reports.pending:
            self._reports.drain()
        return found

    def number(self, source: int, packing: struct.Struct, stream: StreamHandle) -> int | float:
        """As ``fetch``, for one number; a copy as bytes in between would make reading an element 4% slower."""
        found: int | float
        if self._direct:
            (found,) = packing.unpack(ctypes.string_at(source, packing.size))
            return found
        buffers = self._unused()
        try:
            (found,) = packing.unpack_from(buffers.fetch(source, packing.size, stream))
        except BaseException:
            self.settle(stream)
            raise
        self._keep(buffers)
        if self._reports is not None and self._reports.pending:
            self._reports.drain()
        return found

    def _staged(self, copy: Callable[..., T], stream: StreamHandle, *arguments: int) -> T:
        """Run ``copy`` with an unused double buffer.  If it breaks off, wait for its last copy, which may lack an event."""
        buffers = self._unused()
        try:
            result = copy(buffers, *arguments, stream)
        except BaseException:
            self.settle(stream)
            raise
        self._keep(buffers)
        return result

    def _unused(self) -> _DoubleBuffer:
        try:
            return self._free.pop()
        except IndexError:
            return _DoubleBuffer(self._driver, self._reaper)

    def settle(self, stream: StreamHandle) -> None:
        """Wait for copies and kernels that were broken off, which may still use pinned memory."""
        with contextlib.suppress(DeviceError):
            self._driver.stream_synchronize(stream)

    def _keep(self, buffers: _DoubleBuffer) -> None:
        if len(self._free) < MAX_KEPT:
            self._free.append(buffers)
