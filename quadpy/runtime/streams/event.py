"""Events as users hold them."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from quadpy.core.completion import shows
from quadpy.core.public import call_site, called_often, made_by, shortened
from quadpy.errors import CaptureError, EventError, QuadpyError, StreamError
from quadpy.runtime.device.life import HOSTS, THREAD, refuse_in_host_function
from quadpy.runtime.drivers.driver import EventHandle
from quadpy.runtime.launch.capturing import CAPTURES, CapturedRecord, session_of, thread_captures
from quadpy.runtime.streams.owned import Owned, OwnerRef
from quadpy.runtime.streams.stream import Stream, StreamDevice


@made_by("qp.create_event() makes one")
@shows(
    "destroy", "destroyed", "device", "elapsed_time", "handle", "query", "record", "recorded", "synchronize",
    "timing", "wait",
)  # fmt: skip
class Event(Owned[EventHandle]):
    """A point in a stream's work that others can wait for; ``qp.create_event`` makes one.  Safe from any thread.

    An event that was never recorded is complete.  Recording it again replaces the record; earlier waits keep the record
    that they saw.  A ``with`` block destroys the event at its end.

    An event that is recorded on a captured stream is a point in that graph: another stream that waits for it is
    captured from there on, and outside that capture the event has no meaning.
    """

    __slots__ = ("_stamp", "captured", "timing")

    kind: ClassVar[str] = "event"
    error: ClassVar[type[EventError]] = EventError
    device: StreamDevice

    def __init__(self, device: StreamDevice, ref: OwnerRef[EventHandle], *, timing: bool) -> None:
        self.device, self._ref, self.timing = device, ref, timing
        self.captured: CapturedRecord | None = None  # the last record, if it was captured
        self._stamp: float | None = None  # the time of the last record, for the CPU; 0 without timing

    @staticmethod
    def made(device: StreamDevice, ref: OwnerRef[EventHandle], timing: bool) -> Event:
        """As a call of the class, which takes three times as long."""
        event = _new_event(Event)
        event.device, event._ref, event.timing, event.captured, event._stamp = device, ref, timing, None, None  # noqa: SLF001 - of this class
        return event

    def destroy(self) -> None:
        """Destroy the event; streams that wait for it stay ordered.  Destroying twice does nothing.

        Raises:
            DeviceError: a host function of a graph made the call.
        """
        if HOSTS:
            refuse_in_host_function()
        self.device.streams.events.end_of(self)

    @property
    def recorded(self) -> bool:
        """Whether it was recorded."""
        return self._stamp is not None

    @called_often
    def record(self, stream: object = None) -> None:
        """Record the event after the work so far on ``stream``, by default the calling thread's stream.

        Raises:
            StreamError: ``stream`` was destroyed or belongs to another device.
            EventError: the event was destroyed.
            CaptureError: another thread captures ``stream``.
        """
        try:
            device = self.device
            on = device.streams.thread.uses[-1].stream if stream is None else stream
            if type(on) is not Stream:
                on = device.stream_for(stream)
            mine, theirs = self._ref.owner, on._ref.owner  # noqa: SLF001 - they keep both handles valid
            if (
                mine is not None
                and theirs is not None
                and on.device is device
                and device.life.direct
                and self.captured is None
                and not (HOSTS and THREAD.in_host_function)
            ):  # as ``_is_direct``, inlined: a call would double the time
                device.driver.event_record(mine.handle, theirs.handle)
                self._stamp = time.perf_counter() if self.timing else 0.0
                if self._ref.owner is None or on._ref.owner is None:  # noqa: SLF001 - another thread destroyed it
                    del mine, theirs
                    device.reaper.drain()
            else:
                self._record_checked(on)
        except QuadpyError as error:
            raise shortened(error)

    def _is_direct(self, stream: Stream) -> bool:
        """Whether nothing is captured, and both belong to one open device."""
        return (
            stream.device is self.device
            and self.device.life.direct
            and self.captured is None
            and not (HOSTS and THREAD.in_host_function)
        )

    def _record_checked(self, target: Stream) -> None:
        device = self.device
        mine, theirs = self._take(), target._take()  # noqa: SLF001 - another owner of handles
        if target.device is not device:
            hint = "record an event of the stream's device; event.wait takes streams of other devices"
            raise StreamError(f"an event of {device} cannot be recorded on a stream of {target.device}", hint=hint)
        if (session := session_of(target)) is not None:
            session.record_event(target, self)
            return
        device.driver.event_record(mine.handle, theirs.handle)
        if (observer := CAPTURES.observer) is not None:
            observer.recorded(self._ref, target.timeline, device.life)
        self.captured = None
        self._stamp = time.perf_counter()

    def mark_recorded(self) -> None:
        """Remember that a graph that was just launched records the event."""
        self.captured = None
        self._stamp = time.perf_counter()

    @called_often
    def wait(self, stream: object = None) -> None:
        """Order later work on ``stream``, by default the calling thread's, after the event; the host does not wait.

        The stream may belong to another device of the same kind.

        Raises:
            EventError: the event was destroyed, or the stream's device cannot wait for events of this device.
            StreamError: the stream was destroyed.
            CaptureError: only one of the two is captured, and the other cannot join the capture.
        """
        try:
            device = self.device
            on = device.streams.thread.uses[-1].stream if stream is None else stream
            if type(on) is not Stream:
                on = device.stream_for(stream)
            mine, theirs = self._ref.owner, on._ref.owner  # noqa: SLF001 - they keep both handles valid
            if mine is not None and theirs is not None and self._is_direct(on):
                device.driver.stream_wait(theirs.handle, mine.handle)
                if self._ref.owner is None or on._ref.owner is None:  # noqa: SLF001 - another thread destroyed it
                    del mine, theirs
                    device.reaper.drain()
            else:
                self._wait_checked(on)
        except QuadpyError as error:
            raise shortened(error)

    def _wait_checked(self, target: Stream) -> None:
        mine, theirs = self._take(), target._take()  # noqa: SLF001 - another owner of handles
        driver = target.device.driver
        if driver.name != self.device.driver.name:
            hint = "wait on the host: event.synchronize()"
            raise EventError(f"a stream of {target.device} cannot wait for an event of {self.device}", hint=hint)
        if not self._wait_in_capture(target):
            driver.stream_wait(theirs.handle, mine.handle)
            if (observer := CAPTURES.observer) is not None:
                observer.waited(self._ref, target.timeline, target.device.life)

    def _wait_in_capture(self, target: Stream) -> bool:
        """Record the wait, if it belongs to a capture; returns whether it does."""
        record, here = self.captured, thread_captures()
        mine = here.streams.get(target.timeline)
        if record is not None and (session := record.session) is not None:
            if session not in here.sessions:
                what = f"a wait of {target!r} for an event that another thread's capture recorded"
                hint = "end that capture first, then wait for a stream that its graph was launched on"
                if mine is not None:
                    mine.refuse(what, hint)
                raise CaptureError(what, call_site(), hint=hint)
            if mine not in (None, session) or target.device is not self.device:
                session.refuse(
                    f"a wait of {target!r}, which is not captured, for an event that was recorded in the capture",
                    "end the capture first, then wait for a stream that its graph was launched on",
                )
            session.wait_event(target, self)
            return True
        self._refuse_stale()
        session = session_of(target)
        if session is not None and self.recorded:
            session.refuse(
                f"a wait of {target!r}, which is captured, for an event that was recorded outside of the capture",
                "wait before the capture, on the stream that the graph will be launched on; or use add_event_wait",
            )
        return session is not None  # an event that was never recorded is complete

    def _refuse_stale(self) -> None:
        """Refuse an event whose last known record is in a capture that has ended."""
        if self.captured is not None:
            raise CaptureError(
                "the event was recorded in a capture that has ended, and no longer stands for work of a stream",
                call_site(),
                hint="record it again after the launch of the graph, or add it to the graph: add_event_record",
            )

    def _refuse_captured(self, what: str) -> None:
        """Refuse a query whose answer is known only after a launch of the graph."""
        record = self.captured
        if record is not None and (session := record.session) is not None:
            hint = "call it after a launch of the graph"
            if session in thread_captures().sessions:
                session.refuse(f"{what} of an event that was recorded in this capture", hint)
            raise CaptureError(f"{what} of an event that another thread captures", call_site(), hint=hint)
        self._refuse_stale()

    @called_often
    def synchronize(self) -> None:
        """Wait on the host for the last record.

        Raises:
            EventError: the event was destroyed.
            CaptureError: the last record is in a capture.
            KernelFault: a check of a kernel failed, under ``debug=True``.
        """
        try:
            self._refuse_captured("synchronize()")
            owner = self._take()
            self.device.driver.event_synchronize(owner.handle)
            if (observer := CAPTURES.observer) is not None:
                observer.completed(self._ref)
            if self.device.prints.pending:
                self.device.prints.drain()
            self.device.faults.raise_first()
        except QuadpyError as error:
            raise shortened(error)

    @called_often
    def query(self) -> bool:
        """Whether the last record is complete; True if there is none.

        Raises:
            EventError: the event was destroyed.
            CaptureError: the last record is in a capture.
        """
        try:
            self._refuse_captured("query()")
            owner = self._take()
            complete = self.device.driver.event_query(owner.handle)
            if complete and (observer := CAPTURES.observer) is not None:
                observer.completed(self._ref)
        except QuadpyError as error:
            raise shortened(error)
        return complete

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from the last record of this event to that of ``end``.

        Raises:
            EventError: one of the two was destroyed, has no timing, was never recorded or is not complete, or they
                belong to two devices.
            CaptureError: the last record of one of the two is in a capture.
        """
        if not isinstance(end, Event):
            raise EventError(f"{end!r} is not an event", hint="pass the event that was recorded last")
        for event in (self, end):
            event._check()  # noqa: SLF001 - another owner of handles
            event._refuse_captured("elapsed_time()")  # noqa: SLF001 - another owner of handles
        if self.device is not end.device:
            raise EventError("elapsed_time needs two events of one device", hint="record both on one device")
        if not (self.timing and end.timing):
            raise EventError("elapsed_time needs events with timing", hint="qp.create_event(timing=True)")
        if self._stamp is None or end._stamp is None:
            raise EventError("elapsed_time of an event that was never recorded", hint="record both events first")
        if not (self.query() and end.query()):
            raise EventError("elapsed_time of an event that is not complete", hint="call its synchronize() first")
        if "timing" not in self.device.driver.features:
            return (end._stamp - self._stamp) * 1e3
        start, last = self._take(), end._take()
        return self.device.driver.event_elapsed(start.handle, last.handle)


_new_event: Final = Event.__new__
