"""Times of work on a GPU, from events around it, on the clock of the host."""

from __future__ import annotations

import functools
import time
from collections import deque
from typing import Final, NamedTuple

from quadpy.errors import DriverError
from quadpy.profiler.records import Work
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.reaper import Owner
from quadpy.runtime.drivers.driver import EventHandle, StreamHandle

_TRIES: Final = 5
"""Repetitions of a measurement; the shortest one counts."""
_MANY: Final = 512
"""When this many works wait for their times, the complete ones get them."""

Mark = Owner[EventHandle]
"""The event of a point in a stream's work."""


class _Timed(NamedTuple):
    """``ours`` says whether the marks may be used again; else they are a graph's."""

    work: Work
    begin: Mark
    end: Mark
    ours: bool


class DeviceTimer:
    """Works of ``device``, each between two events.

    empty  nanoseconds between two events with nothing between them, which the device itself adds to each time
    error  the largest shift, in nanoseconds, of the device's times against the host's
    """

    def __init__(self, device: Device) -> None:
        self._device, self._driver = device, device.driver
        self._spare: list[Mark] = []
        self._pending: deque[_Timed] = deque()
        self._lock: Final = new_lock()
        self._record = self._driver.event_record  # before it is replaced
        self._wait = self._driver.event_synchronize
        self.empty = self.error = 0
        self._origin, self._origin_ns = self._calibrated()

    def mark(self, stream: StreamHandle) -> Mark | None:
        """A point after the work so far on ``stream``; None if the driver refuses, as in another library's capture."""
        event = self._event()
        try:
            self._record(event.handle, stream)
        except DriverError:
            return None
        return event

    def add(self, work: Work, begin: Mark | None, end: Mark | None, *, ours: bool = True) -> None:
        """Note that ``work`` runs between two marks, which belong to the timer only if they are ``ours``."""
        if begin is None or end is None:
            return
        self._pending.append(_Timed(work, begin, end, ours))
        if len(self._pending) > _MANY:
            self.settle(wait=False)

    def settle(self, *, wait: bool) -> None:
        """Give the works that are complete their times; with ``wait``, all of them."""
        with self._lock:
            while self._pending:
                timed = self._pending.popleft()  # first, as a finalizer may come here, too
                if self._device.life.ended is not None:
                    continue
                try:
                    if wait:
                        self._wait(timed.end.handle)
                    elif not self._driver.event_query(timed.end.handle):
                        self._pending.appendleft(timed)
                        return
                    self._set(timed)
                except DriverError:  # a lost device, or a record in another library's capture: its time stays unknown
                    continue
                if timed.ours:
                    self._spare += timed.begin, timed.end

    def _set(self, timed: _Timed) -> None:
        """Durations are exact to the events' resolution; starts, to the resolution of a float of milliseconds."""
        begin = self._origin_ns + self._ns(self._origin, timed.begin)
        timed.work.begin, timed.work.end = begin, begin + self._ns(timed.begin, timed.end)

    def _ns(self, start: Mark, end: Mark) -> int:
        return round(self._driver.event_elapsed(start.handle, end.handle) * 1e6)

    def _event(self) -> Mark:
        try:
            return self._spare.pop()
        except IndexError:
            create = functools.partial(self._driver.event_create, timing=True)
            return self._device.reaper.own(self._driver.event_destroy, create)

    def _calibrated(self) -> tuple[Mark, int]:
        """An event, and when it took place on the host's clock; it is recorded on a stream that has no other work."""
        driver = self._driver
        stream = self._device.reaper.own(driver.stream_destroy, driver.stream_create, 0)
        found: list[tuple[int, int, Mark]] = []
        gaps: list[int] = []
        for _ in range(_TRIES):
            mark, after = self._event(), self._event()
            began = time.perf_counter_ns()
            self._record(mark.handle, stream.handle)
            self._wait(mark.handle)
            took = time.perf_counter_ns() - began
            found.append((took, began + took // 2, mark))
            between = self._event()
            self._record(between.handle, stream.handle)
            self._record(after.handle, stream.handle)
            self._wait(after.handle)
            gaps.append(self._ns(between, after))
        took, moment, mark = min(found, key=lambda each: each[0])
        self.empty, self.error = min(gaps), took // 2
        return mark, moment
