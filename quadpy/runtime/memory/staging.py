"""Host copies in stream order.  Owns: Staging, the ring of pinned buffers.  Imports: errors, the driver protocol, the reaper.

Only pinned memory is copied asynchronously, and in its stream's order whatever its size; so what a user passes goes
through buffers of quadpy's own.  The user's memory is free again when the call returns.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from typing import Final

from quadpy.errors import DeviceError
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import Driver, EventHandle, PinnedPointer, StreamHandle

__all__ = ["Staging"]

CHUNK: Final = 1 << 20
"""Bytes of one half of a lane."""
LANES: Final = 4
"""Lanes that are kept for the next copies; each thread that copies at the same time has one of its own."""


class _Half:
    """A pinned buffer, and the event behind the last copy that uses it."""

    def __init__(self, driver: Driver, reaper: Reaper) -> None:
        self._driver = driver
        self._event = reaper.own(driver.event_destroy, functools.partial(driver.event_create, timing=False))
        self._buffer = reaper.own(driver.free_pinned, driver.alloc_pinned, CHUNK)
        self.event: EventHandle = self._event.handle
        self.pointer: PinnedPointer = self._buffer.handle
        self.pending = False
        """Whether a copy may use the buffer."""

    def wait(self) -> None:
        if self.pending:
            self._driver.event_synchronize(self.event)
            self.pending = False


class _Lane:
    """Two halves: the host fills or empties one while the device copies the other."""

    def __init__(self, driver: Driver, reaper: Reaper) -> None:
        self._driver = driver
        self.halves = (_Half(driver, reaper), _Half(driver, reaper))

    def upload(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        for number, start in enumerate(range(0, nbytes, CHUNK)):
            half, size = self.halves[number % 2], min(CHUNK, nbytes - start)
            half.wait()
            ctypes.memmove(half.pointer, source + start, size)
            half.pending = True
            self._driver.copy_in(target + start, half.pointer, size, stream)
            self._driver.event_record(half.event, stream)

    def download(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        starts = range(0, nbytes, CHUNK)
        for number, start in enumerate([*starts, nbytes]):
            if start < nbytes:
                half = self.halves[number % 2]
                half.wait()
                half.pending = True
                self._driver.copy_out(half.pointer, source + start, min(CHUNK, nbytes - start), stream)
                self._driver.event_record(half.event, stream)
            if number:
                before, half = starts[number - 1], self.halves[(number - 1) % 2]
                half.wait()
                ctypes.memmove(target + before, half.pointer, min(CHUNK, nbytes - before))


class Staging:
    """Copies between any memory of the host and a device, ordered on a stream."""

    def __init__(self, driver: Driver, reaper: Reaper) -> None:
        self._driver, self._reaper = driver, reaper
        self._direct = "host" in driver.features
        self._free: list[_Lane] = []

    def upload(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        """Copy ``nbytes`` bytes at ``source`` to the device after the work on ``stream``; ``source`` may then change."""
        self._copy(_Lane.upload, self._driver.copy_in, target, source, nbytes, stream)

    def download(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        """Copy from the device after the work on ``stream``, and wait until the bytes are at ``target``."""
        self._copy(_Lane.download, self._driver.copy_out, target, source, nbytes, stream)

    def fetch(self, source: int, nbytes: int, stream: StreamHandle) -> bytes:
        """No more than ``CHUNK`` bytes of the device, after the work on ``stream``."""
        if self._direct:
            return ctypes.string_at(source, nbytes)
        lane = self._take()
        half = lane.halves[0]
        try:
            half.wait()
            self._driver.copy_out(half.pointer, source, nbytes, stream)
            self._driver.stream_synchronize(stream)  # behind the copy an event would cost a call more
            found = ctypes.string_at(half.pointer, nbytes)
        except BaseException:
            self._calm(stream)
            raise
        self._keep(lane)
        return found

    def _copy(
        self,
        staged: Callable[[_Lane, int, int, int, StreamHandle], None],
        direct: Callable[[int, int, int, StreamHandle], None],
        target: int,
        source: int,
        nbytes: int,
        stream: StreamHandle,
    ) -> None:
        if self._direct:
            direct(target, source, nbytes, stream)
        elif nbytes:
            lane = self._take()
            try:
                staged(lane, target, source, nbytes, stream)
            except BaseException:
                self._calm(stream)
                raise
            self._keep(lane)

    def _calm(self, stream: StreamHandle) -> None:
        """Wait for a copy that was broken off, which has no event behind it: the lane's buffers go back."""
        with contextlib.suppress(DeviceError):
            self._driver.stream_synchronize(stream)

    def _keep(self, lane: _Lane) -> None:
        if len(self._free) < LANES:
            self._free.append(lane)

    def _take(self) -> _Lane:
        """A lane that nobody uses; one that is dropped gives its buffers back."""
        try:
            return self._free.pop()
        except IndexError:
            return _Lane(self._driver, self._reaper)
