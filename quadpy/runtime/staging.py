"""Host copies in stream order.  Owns: Staging, the ring of pinned buffers.  Imports: errors, the driver protocol.

Only pinned memory is copied asynchronously, and in its stream's order whatever its size; so what a user passes goes
through buffers of quadpy's own.  The user's memory is free again when the call returns.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Final

from quadpy.errors import DeviceError
from quadpy.runtime.driver import Driver, EventHandle, PinnedPointer, StreamHandle

__all__ = ["Staging"]

CHUNK: Final = 1 << 20
"""Bytes of one half of a lane."""
LANES: Final = 4
"""How many threads copy at once; the next one waits for a lane."""


class _Half:
    """A pinned buffer, and the event behind the last copy that uses it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.event: EventHandle = driver.event_create(timing=False)
        try:
            self.pointer: PinnedPointer = driver.alloc_pinned(CHUNK)
        except DeviceError:
            driver.event_destroy(self.event)
            raise

    def wait(self) -> None:
        self._driver.event_synchronize(self.event)

    def close(self) -> None:
        self.wait()
        self._driver.event_destroy(self.event)
        self._driver.free_pinned(self.pointer)


class _Lane:
    """Two halves: the host fills or empties one while the device copies the other."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        first = _Half(driver)
        try:
            self.halves = (first, _Half(driver))
        except DeviceError:
            first.close()
            raise

    def upload(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        for number, start in enumerate(range(0, nbytes, CHUNK)):
            half, size = self.halves[number % 2], min(CHUNK, nbytes - start)
            half.wait()
            ctypes.memmove(half.pointer, source + start, size)
            self._driver.copy_in(target + start, half.pointer, size, stream)
            self._driver.event_record(half.event, stream)

    def download(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        starts = range(0, nbytes, CHUNK)
        for number, start in enumerate([*starts, nbytes]):
            if start < nbytes:
                half = self.halves[number % 2]
                half.wait()
                self._driver.copy_out(half.pointer, source + start, min(CHUNK, nbytes - start), stream)
                self._driver.event_record(half.event, stream)
            if number:
                before, half = starts[number - 1], self.halves[(number - 1) % 2]
                half.wait()
                ctypes.memmove(target + before, half.pointer, min(CHUNK, nbytes - before))


class Staging:
    """Copies between any memory of the host and a device, ordered on a stream."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._direct = "host" in driver.features
        self._free: queue.LifoQueue[_Lane] = queue.LifoQueue()
        self._made: list[_Lane] = []
        self._lock = threading.Lock()

    def upload(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        """Copy ``nbytes`` bytes at ``source`` to the device after the work on ``stream``; ``source`` may then change."""
        self._copy(_Lane.upload, self._driver.copy_in, target, source, nbytes, stream)

    def download(self, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        """Copy from the device after the work on ``stream``, and wait until the bytes are at ``target``."""
        self._copy(_Lane.download, self._driver.copy_out, target, source, nbytes, stream)

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
                with contextlib.suppress(DeviceError):  # a copy with no event behind it must not meet the lane's next
                    self._driver.stream_synchronize(stream)
                raise
            finally:
                self._free.put(lane)

    def _take(self) -> _Lane:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            with self._lock:
                if len(self._made) < LANES:
                    self._made.append(_Lane(self._driver))
                    return self._made[-1]
        return self._free.get()

    def close(self) -> None:
        """Free the buffers; no copy is under way."""
        made, self._made = self._made, []
        for lane in made:
            for half in lane.halves:
                half.close()
