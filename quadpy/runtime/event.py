"""Events as users hold them.  Owns: Event.  Imports: errors, Owned, streams."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from quadpy.errors import EventError, StreamError
from quadpy.runtime.driver import EventHandle
from quadpy.runtime.owned import Owned

if TYPE_CHECKING:
    from quadpy.runtime.device import Device

__all__ = ["Event"]


class Event(Owned[EventHandle]):
    """A place in a stream's work that others can wait for; ``qp.create_event`` makes one.  Safe from any thread.

    An event that was never recorded is complete, and waiting for it waits for nothing.  Recording again replaces the
    place; waits that were made before keep the one they saw.  ``with`` destroys the event at its end.
    """

    __slots__ = ("_stamp", "timing")

    kind: ClassVar[str] = "event"
    error: ClassVar[type[EventError]] = EventError

    def __init__(
        self, device: Device, handle: EventHandle, free: Callable[[EventHandle], None], *, timing: bool
    ) -> None:
        super().__init__(device, handle, free)
        self.timing = timing
        self._stamp: float | None = None  # when the host last recorded it; the time itself where work runs at once

    @property
    def recorded(self) -> bool:
        return self._stamp is not None

    def record(self, stream: object = None) -> None:
        """Put the event behind the work so far on ``stream``, by default the calling thread's.

        Raises:
            StreamError: ``stream`` was destroyed or belongs to another device.
            EventError: the event was destroyed.
        """
        self._check()
        target = self.device.stream_for(stream)
        if target.device is not self.device:
            hint = "record one that was created on the stream's device: event.wait takes streams of both"
            raise StreamError(f"an event of {self.device} cannot be recorded on a stream of {target.device}", hint=hint)
        self._call(lambda event: target._call(lambda on: self.device.streams.record_event(event, on)))  # noqa: SLF001
        self._stamp = time.perf_counter()

    def mark_recorded(self) -> None:
        """Remember that a graph, which was launched just now, records the event."""
        self._stamp = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """Let later work on ``stream``, by default the calling thread's, wait for the event; the host does not wait.

        The stream may belong to another device of the same kind.

        Raises:
            EventError: the event was destroyed, or the stream's device cannot wait for events of this one.
            StreamError: the stream was destroyed.
        """
        self._check()
        target = self.device.stream_for(stream)
        if target.device.driver.name != self.device.driver.name:
            hint = "wait on the host: event.synchronize()"
            raise EventError(f"a stream of {target.device} cannot wait for an event of {self.device}", hint=hint)
        wait = target.device.driver.stream_wait
        self._call(lambda event: target._call(lambda on: wait(on, event)))  # noqa: SLF001

    def synchronize(self) -> None:
        """Wait on the host for the last record."""
        self._call(self.device.streams.synchronize_event)

    def query(self) -> bool:
        """Whether the last record is complete; True where there is none."""
        return self._call(self.device.streams.query_event)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from the last record of this event to that of ``end``.

        Raises:
            EventError: one of the two was destroyed, made without ``timing``, never recorded or is not complete yet,
                or they belong to two devices.
        """
        for event in (self, end):
            event._check()  # noqa: SLF001
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
        return self._call(lambda start: end._call(lambda last: self.device.streams.elapsed_time(start, last)))
