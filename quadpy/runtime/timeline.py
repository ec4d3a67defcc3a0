"""The work of each stream, in terms that outlive the stream.  Owns: Timeline, Timelines.

Memory remembers the timelines that used it.  A stream that is destroyed leaves a last event behind on its timeline, so
memory can wait for it whether or not the driver's destroy waits, and though its handle may name another stream by now.
Imports: errors, the driver protocol, the reaper.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import NamedTuple

from quadpy.errors import DeviceError, StreamError
from quadpy.runtime.driver import DEFAULT_STREAM, Driver, EventHandle, StreamHandle
from quadpy.runtime.life import THREAD, Life
from quadpy.runtime.reaper import Reaper

__all__ = ["Mark", "Timeline", "Timelines"]


class Timeline:
    """The work of one stream.  ``last`` is None as long as the stream is there, then the event behind its work.

    ``captured`` is the capture that has the stream for itself, where one has.
    """

    __slots__ = ("__weakref__", "captured", "handle", "last")

    def __init__(self, handle: StreamHandle) -> None:
        self.handle = handle
        self.last: EventHandle | None = None
        self.captured: object = None

    @property
    def ended(self) -> bool:
        return self.last is not None


class Mark(NamedTuple):
    """A place in ``timeline``: ``event`` stands behind the work that was there."""

    event: EventHandle
    timeline: Timeline


class Timelines:
    """The streams of one device that may be used: its default one, its own and those borrowed from other libraries."""

    def __init__(self, driver: Driver, reaper: Reaper, life: Life) -> None:
        self._driver, self._reaper, self._life = driver, reaper, life
        self.default = Timeline(DEFAULT_STREAM)
        self.live: dict[int, Timeline] = {DEFAULT_STREAM: self.default}
        self._own: set[StreamHandle] = set()
        self._lasts: set[EventHandle] = set()
        self._borrowed: Counter[StreamHandle] = Counter()
        self._spare: list[EventHandle] = []
        self._lock = threading.Lock()

    def find(self, handle: int) -> Timeline:
        """The timeline of a live stream; StreamError where ``handle`` is none of this device."""
        if not self._life.direct or THREAD.in_host_function:
            self._life.check()
        timeline = self.live.get(handle)
        if timeline is None:
            raise StreamError(
                f"{handle:#x} is no stream of this device: it was destroyed, or never created here",
                hint="Stream.from_handle borrows a stream of another library",
            )
        return timeline

    def add(self, handle: StreamHandle) -> Timeline:
        """Begin the timeline of a stream that was just created; the default stream's is always there."""
        if handle == DEFAULT_STREAM:
            return self.default
        timeline = Timeline(handle)
        with self._lock:
            self.live[handle] = timeline
            self._own.add(handle)
        return timeline

    def owns(self, handle: StreamHandle) -> bool:
        """Whether the stream was created here."""
        return handle in self._own

    def own(self) -> list[StreamHandle]:
        """The streams that were created here and are still there."""
        with self._lock:
            return list(self._own)

    def end(self, handle: StreamHandle, *, alive: bool = True) -> None:
        """Leave a last event on the timeline of a stream that is about to go, and forget its handle.

        Of one that is not ``alive`` any more, whose work is complete, the event is never recorded.
        """
        timeline = self.find(handle)
        last = self._new_event(handle if alive else None)
        with self._lock:
            timeline.last = last
            self._lasts.add(last)
            self.live.pop(handle, None)
            self._own.discard(handle)
        self._reaper.adopt(timeline, self._destroy_last, last)

    def _destroy_last(self, last: EventHandle) -> None:
        with self._lock:
            self._lasts.discard(last)
        self._driver.event_destroy(last)

    # streams of other libraries

    def borrow(self, handle: StreamHandle) -> Timeline:
        """The timeline of a stream of another library, which keeps it alive until ``give_back``; as often as wished."""
        with self._lock:
            timeline = self.live.setdefault(handle, Timeline(handle))
            self._borrowed[handle] += 1
            return timeline

    def give_back(self, handle: StreamHandle) -> None:
        """The end of one borrowing; the last one leaves the timeline's last event."""
        self._end_borrowing(handle, alive=True)

    def _end_borrowing(self, handle: StreamHandle, *, alive: bool) -> None:
        with self._lock:
            self._borrowed[handle] -= 1
            more = self._borrowed[handle] > 0
            if not more:
                del self._borrowed[handle]
        if not more:
            self.end(handle, alive=alive)

    def give_up(self, handle: StreamHandle) -> None:
        """The end of a borrowing that was dropped: the stream may be gone, so nothing is asked of it."""
        with self._lock:
            last = self._borrowed[handle] == 1
        if last:
            self._driver.synchronize()  # all that it was given is complete, and an event never recorded says so
        self._end_borrowing(handle, alive=False)

    def follow(self, foreign: StreamHandle, after: Timeline) -> None:
        """Let ``after``'s later work wait for all work so far of a stream of another library, which is not kept."""
        self.order(self.live.get(foreign) or Timeline(foreign), after)

    # order

    def mark(self, timeline: Timeline) -> Mark:
        """A mark behind all work so far; ``unmark`` takes it back when it is no longer asked."""
        if timeline.last is not None:
            return Mark(timeline.last, timeline)
        with self._lock:
            event = self._spare.pop() if self._spare else None
        if event is None:
            return Mark(self._new_event(timeline.handle), timeline)
        try:
            self._driver.event_record(event, timeline.handle)
        except DeviceError:
            with self._lock:
                self._spare.append(event)
            raise
        return Mark(event, timeline)

    def _new_event(self, stream: StreamHandle | None) -> EventHandle:
        """An event behind the work so far on ``stream``; for None, one that is complete."""
        event = self._driver.event_create(timing=False)
        if stream is not None:
            try:
                self._driver.event_record(event, stream)
            except DeviceError:
                self._driver.event_destroy(event)
                raise
        return event

    def unmark(self, mark: Mark) -> None:
        if mark.event != mark.timeline.last:
            with self._lock:
                self._spare.append(mark.event)

    def passed(self, mark: Mark) -> bool:
        """Whether the work before ``mark`` is complete."""
        return self._driver.event_query(mark.event)

    def order(self, before: Timeline, after: Timeline) -> None:
        """Let ``after``'s later work wait on the device for all work of ``before`` so far."""
        mark = self.mark(before)
        try:
            self._driver.stream_wait(after.handle, mark.event)
        finally:
            self.unmark(mark)  # a wait keeps the place it saw, so the event may be recorded again

    def idle(self, timeline: Timeline) -> bool:
        """Whether all work of ``timeline`` is complete."""
        if timeline.last is not None:
            return self._driver.event_query(timeline.last)
        return self._driver.stream_query(timeline.handle)

    def close(self) -> None:
        """Destroy the events; no mark is out, and every stream is gone."""
        with self._lock:
            events = [*self._spare, *self._lasts]
            self._spare, self._lasts = [], set()
        for event in events:
            self._driver.event_destroy(event)
