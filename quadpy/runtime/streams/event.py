"""Events as users hold them.  Owns: Event.  Imports: errors, Owned, streams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from quadpy.errors import CaptureError, EventError, StreamError
from quadpy.runtime.device.life import THREAD, refuse_in_host_function
from quadpy.runtime.device.reaper import Owner
from quadpy.runtime.drivers.driver import EventHandle
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.launch.capturing import Captured, session_of, table
from quadpy.runtime.streams.owned import Owned, OwnerRef
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device

__all__ = ["Event"]


class Event(Owned[EventHandle]):
    """A place in a stream's work that others can wait for; ``qp.create_event`` makes one.  Safe from any thread.

    An event that was never recorded is complete, and waiting for it waits for nothing.  Recording again replaces the
    place; waits that were made before keep the one they saw.  ``with`` destroys the event at its end.

    Recorded on a stream that is captured, it is a place in that graph: another stream that waits for it is captured from
    there on, and it says nothing outside of that capture.
    """

    __slots__ = ("_stamp", "captured", "timing")

    kind: ClassVar[str] = "event"
    error: ClassVar[type[EventError]] = EventError

    def __init__(self, device: Device, seat: OwnerRef[EventHandle], *, timing: bool) -> None:
        self.device, self._ref, self.timing = device, seat, timing
        self._holds: list[Owner[EventHandle]] = []
        self.captured: Captured | None = None  # where in a capture it was recorded last
        self._stamp: float | None = None  # when the host last recorded it, for timing where work runs at once; else 0

    def destroy(self) -> None:
        """Give the event back; streams that wait for it stay ordered.  Doing it again does nothing.

        Raises:
            DeviceError: called from within a host function of a graph.
        """
        if THREAD.in_host_function:
            refuse_in_host_function()
        device = self.device
        device.streams.end_event(self._ref)
        device.reaper.drain()

    @property
    def recorded(self) -> bool:
        return self._stamp is not None

    def record(self, stream: object = None) -> None:
        """Put the event behind the work so far on ``stream``, by default the calling thread's.

        Raises:
            StreamError: ``stream`` was destroyed or belongs to another device.
            EventError: the event was destroyed.
            CaptureError: ``stream`` is captured by another thread.
        """
        device = self.device
        on = stream if type(stream) is Stream else device.stream_for(stream)
        mine, theirs = self._ref.owner, on._ref.owner  # noqa: SLF001 - both handles live as long as these
        if (
            mine is not None
            and theirs is not None
            and on.device is device
            and device.life.direct
            and self.captured is None
            and not THREAD.in_host_function
        ):  # as ``_goes_straight_to``, of which a call would take as long as all of this
            device.driver.event_record(mine.handle, theirs.handle)
            self._stamp = time.perf_counter() if self.timing else 0.0
            if self._ref.owner is None or on._ref.owner is None:  # noqa: SLF001 - another thread destroyed it
                del mine, theirs
                device.reaper.drain()
        else:
            self._record_with_care(on)

    def _goes_straight_to(self, stream: Stream) -> bool:
        """Whether nothing is captured, and both are of one device, which is there."""
        return (
            stream.device is self.device
            and self.device.life.direct
            and self.captured is None
            and not THREAD.in_host_function
        )

    def _record_with_care(self, target: Stream) -> None:
        device = self.device
        mine, theirs = self._take(), target._take()  # noqa: SLF001
        if target.device is not device:
            hint = "record one that was created on the stream's device: event.wait takes streams of both"
            raise StreamError(f"an event of {device} cannot be recorded on a stream of {target.device}", hint=hint)
        if (session := session_of(target)) is not None:
            session.record_event(target, self)
            return
        device.driver.event_record(mine.handle, theirs.handle)
        self.captured = None
        self._stamp = time.perf_counter()

    def mark_recorded(self) -> None:
        """Remember that a graph, which was launched just now, records the event."""
        self.captured = None
        self._stamp = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """Let later work on ``stream``, by default the calling thread's, wait for the event; the host does not wait.

        The stream may belong to another device of the same kind.

        Raises:
            EventError: the event was destroyed, or the stream's device cannot wait for events of this one.
            StreamError: the stream was destroyed.
            CaptureError: one of the two is in a capture, and the other one is not, and cannot be.
        """
        device = self.device
        on = stream if type(stream) is Stream else device.stream_for(stream)
        mine, theirs = self._ref.owner, on._ref.owner  # noqa: SLF001 - both handles live as long as these
        if mine is not None and theirs is not None and self._goes_straight_to(on):
            device.driver.stream_wait(theirs.handle, mine.handle)
            if self._ref.owner is None or on._ref.owner is None:  # noqa: SLF001 - another thread destroyed it
                del mine, theirs
                device.reaper.drain()
        else:
            self._wait_with_care(on)

    def _wait_with_care(self, target: Stream) -> None:
        mine, theirs = self._take(), target._take()  # noqa: SLF001
        driver = target.device.driver
        if driver.name != self.device.driver.name:
            hint = "wait on the host: event.synchronize()"
            raise EventError(f"a stream of {target.device} cannot wait for an event of {self.device}", hint=hint)
        if not self._wait_in_capture(target):
            driver.stream_wait(theirs.handle, mine.handle)

    def _wait_in_capture(self, target: Stream) -> bool:
        """Whether the wait is part of a capture, and noted there."""
        place, here = self.captured, table()
        mine = here.streams.get(target.timeline)
        if place is not None and (session := place.session) is not None:
            if session not in here.sessions:
                what = f"a wait of {target!r} for an event that another thread's capture has recorded"
                hint = "end that capture first, and wait for a stream that its graph was launched on"
                if mine is not None:
                    mine.refuse(what, hint)
                raise CaptureError(what, call_site(), hint=hint)
            if mine not in (None, session) or target.device is not self.device:
                session.refuse(
                    f"a wait of {target!r}, which is no part of it, for an event that was recorded in it",
                    "end the capture first, and wait for a stream that its graph was launched on",
                )
            session.wait_event(target, self)
            return True
        self._need_work()
        session = session_of(target)
        if session is not None and self.recorded:
            session.refuse(
                f"a wait of {target!r}, which is captured, for an event that was recorded outside of the capture",
                "wait before the capture begins, on the stream that the graph will be launched on; or add_event_wait",
            )
        return session is not None  # one that was never recorded waits for nothing

    def _need_work(self) -> None:
        """Refuse an event that was a place in a capture, and of which no record is known since."""
        if self.captured is not None:
            raise CaptureError(
                "the event was recorded in a capture that has ended, and stands for no work of a stream",
                call_site(),
                hint="record it again behind the launch of the graph, or add it to the graph: add_event_record",
            )

    def _need_outside(self, what: str) -> None:
        """Refuse a question to which only a launch of the graph could give an answer, or not even that."""
        place = self.captured
        if place is not None and (session := place.session) is not None:
            hint = "ask behind a launch of the graph"
            if session in table().sessions:
                session.refuse(f"{what} of an event that was recorded in this capture", hint)
            raise CaptureError(f"{what} of an event that another thread captures", call_site(), hint=hint)
        self._need_work()

    def synchronize(self) -> None:
        """Wait on the host for the last record.

        Raises:
            EventError: the event was destroyed.
            CaptureError: it was recorded last in a capture.
        """
        self._need_outside("synchronize()")
        owner = self._take()
        self.device.driver.event_synchronize(owner.handle)

    def query(self) -> bool:
        """Whether the last record is complete; True where there is none.

        Raises:
            EventError: the event was destroyed.
            CaptureError: it was recorded last in a capture.
        """
        self._need_outside("query()")
        owner = self._take()
        return self.device.driver.event_query(owner.handle)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from the last record of this event to that of ``end``.

        Raises:
            EventError: one of the two was destroyed, made without ``timing``, never recorded or is not complete yet,
                or they belong to two devices.
            CaptureError: one of the two was recorded last in a capture.
        """
        if not isinstance(end, Event):
            raise EventError(f"{end!r} is no event", hint="give the event that was recorded last")
        for event in (self, end):
            event._check()  # noqa: SLF001
            event._need_outside("elapsed_time()")  # noqa: SLF001
        if self.device is not end.device:
            raise EventError("elapsed_time needs two events of one device", hint="record both on one device")
        if not (self.timing and end.timing):
            raise EventError("elapsed_time needs events made with timing", hint="qp.create_event(timing=True)")
        if self._stamp is None or end._stamp is None:
            raise EventError("elapsed_time of an event that was never recorded", hint="call record() of both first")
        if not (self.query() and end.query()):
            raise EventError("elapsed_time of an event that is not complete yet", hint="call its synchronize() first")
        if "timing" not in self.device.driver.features:
            return (end._stamp - self._stamp) * 1e3
        start, last = self._take(), end._take()
        return self.device.driver.event_elapsed(start.handle, last.handle)
