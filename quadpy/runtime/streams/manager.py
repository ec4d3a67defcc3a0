"""Streams, events and stream-ordered memory by handle.  Owns: StreamManager, which everything else is built on.

A handle that is not known is refused here, before the driver is asked: drivers no longer check handles, and crash.
Imports: errors, the driver protocol, timelines, device memory.
"""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

from quadpy.copying import OneProcess
from quadpy.errors import EventError, StreamError
from quadpy.runtime.device.life import THREAD, Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import Driver, EventHandle, StreamHandle
from quadpy.runtime.launch.capturing import CAPTURES, table
from quadpy.runtime.memory.device_memory import DeviceMemory
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline, Timelines, known_by, shown

if TYPE_CHECKING:
    from quadpy.runtime.streams.stream import Stream

__all__ = ["StreamManager", "Use", "warn_of_reset"]


def warn_of_reset() -> None:
    """Tell a thread that its current stream was destroyed."""
    message = "the current stream was destroyed: this thread is back on the default stream"
    warnings.warn(message, RuntimeWarning, stacklevel=4)


class Use(weakref.ref[Any]):
    """What a thread's stream is as long as a token lives, whose death takes it from the thread's list in one step.

    ``stream`` is the Stream of ``timeline``, where it is known; what changes both takes it away first.
    """

    __slots__ = ("stream", "timeline")

    stream: Stream | None
    timeline: Timeline

    __hash__ = object.__hash__  # a reference's own is that of its object
    __eq__ = object.__eq__


def _use(token: object, uses: list[Use], timeline: Timeline, stream: Stream | None) -> Use:
    use = Use(token, uses.remove)
    use.timeline, use.stream = timeline, stream
    return use


class _Token:
    """What a ``with use_stream`` refers to as long as it lasts."""

    __slots__ = ("__weakref__",)


class _Current(threading.local):
    """A thread's streams, the innermost ``use_stream`` last; a new thread starts on the default stream."""

    def __init__(self, timeline: Timeline) -> None:
        self._token = _Token()
        self.uses: list[Use] = []
        self.uses.append(_use(self._token, self.uses, timeline, None))


class StreamManager(OneProcess):
    """The streams and events of one device.  Safe from any thread.

    Handle 0 is the default stream, as synchronizable as any other.  On the CPU every handle is 0 and the verbs do
    nothing with them.  StreamError and EventError: a handle that was destroyed or is not of this device.
    DeviceError: the device was closed, or belongs to the parent of this process.  CaptureError: the calling thread
    captures the stream, and the verb cannot be noted.
    """

    error: ClassVar[type[StreamError]] = StreamError

    def __init__(self, driver: Driver, timelines: Timelines, memory: DeviceMemory, life: Life, reaper: Reaper) -> None:
        self._driver, self._timelines, self._memory, self._life = driver, timelines, memory, life
        self._reaper = reaper
        self._handles = "handles" in driver.features
        self._events: dict[int, weakref.ref[OwnerRef[EventHandle]]] = {}
        """Also of events that were dropped, whose seats are gone, until their handles are used again or go back."""
        self._kept: dict[int, OwnerRef[EventHandle]] = {}
        """Of events that nobody has as an object."""
        timelines.events.destroy = self._destroy_event
        if not self._handles:
            self._keep_event(OwnerRef(Owner(EventHandle(0))))
        self.thread = _Current(timelines.default)

    # streams

    def create_stream(self, priority: int = 0) -> int:
        """A new stream; work of a lower ``priority`` goes first, one out of the device's range is clamped."""
        timeline = self.new_stream(priority)
        self._timelines.enter(timeline)
        return timeline.handle

    def new_stream(self, priority: int) -> Timeline:
        """The timeline of a new stream, of which nobody knows the handle yet; it is destroyed with it."""
        self._life.check()
        if not isinstance(priority, int):
            raise StreamError(f"{priority!r} is no priority of a stream", hint="it is an int; a lower one goes first")
        if not self._handles:
            return Timeline(Owner(self._driver.stream_create(priority)))
        return self._timelines.create(priority)

    def destroy_stream(self, stream: int) -> None:
        """Give a stream back.  Its work still completes, and memory that it used waits for it.

        A thread whose current stream it is goes back to the default one, with a warning.
        """
        timeline = self._uncaptured(stream, "destroy_stream")
        if not self._handles:
            return
        if not self._timelines.owns(timeline.handle):
            raise StreamError(f"stream {shown(stream)} is not quadpy's to destroy: the default one, or borrowed")
        if not self._timelines.end(timeline):
            self._timelines.find(stream)  # another thread was first
        self._reaper.drain()

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all work on ``stream``."""
        owner = self._hold(stream, "synchronize_stream")
        self._driver.stream_synchronize(owner.handle)

    def query_stream(self, stream: int) -> bool:
        """Whether all work on ``stream`` is complete."""
        owner = self._hold(stream, "query_stream")
        return self._driver.stream_query(owner.handle)

    def set_current_stream(self, stream: int) -> None:
        """Make ``stream`` the one that the calling thread's work goes to."""
        self.change_current(self._timelines.find(stream), None)

    def change_current(self, timeline: Timeline, stream: Stream | None) -> None:
        """Let the calling thread's stream be that of ``timeline``, until the innermost ``use_stream`` ends."""
        use = self.thread.uses[-1]
        use.stream = None
        use.timeline = timeline
        use.stream = stream

    def use(self, stream: Stream, tokens: list[object]) -> None:
        """Make ``stream`` the calling thread's as long as what is now put into ``tokens`` lives."""
        token, uses = _Token(), self.thread.uses
        uses.append(_use(token, uses, stream.timeline, stream))
        tokens.append(token)

    def current_stream(self) -> int:
        """The calling thread's stream: 0 until it sets one, and again when that one was destroyed."""
        return self.current_timeline().handle

    def current_timeline(self) -> Timeline:
        """The work of the calling thread's stream."""
        timeline = self.thread.uses[-1].timeline
        if timeline.owner is None:
            timeline = self._timelines.default
            self.change_current(timeline, None)
            warn_of_reset()
        return timeline

    # events

    def create_event(self, timing: bool = False) -> int:
        """A new event; ``elapsed_time`` needs two with ``timing``, which costs the device something."""
        seat = self.new_event(timing)
        return self._keep_event(seat) if self._handles else EventHandle(0)

    def new_event(self, timing: bool) -> OwnerRef[EventHandle]:
        """Where the owner of a new event is found, which goes with the last reference to this."""
        if not self._life.direct or THREAD.in_host_function:
            self._life.check()
        if not self._handles:
            return OwnerRef(Owner(self._driver.event_create(timing=timing)))
        owner = self._timed_event() if timing else self._timelines.events.take()
        seat = OwnerRef(owner)
        self._events[owner.handle] = weakref.ref(seat)
        return seat

    def _timed_event(self) -> Owner[EventHandle]:
        """An event that the driver has just made: of one that was recorded before, it would tell the time."""
        return self._reaper.own(self._destroy_event, functools.partial(self._driver.event_create, timing=True))

    def _destroy_event(self, event: EventHandle) -> None:
        if self._handles:  # where there are none, 0 stays an event
            self._events.pop(event, None)  # before another one can have the handle
        self._driver.event_destroy(event)

    def _keep_event(self, seat: OwnerRef[EventHandle]) -> EventHandle:
        """The handle of an event, which now lives until it is destroyed by it."""
        owner = seat.owner
        assert owner is not None
        self._kept[owner.handle] = seat
        self._events[owner.handle] = weakref.ref(seat)
        return owner.handle

    def destroy_event(self, event: int) -> None:
        """Give an event back; streams that wait for it stay ordered."""
        mine = self.find_event(event)
        if self._handles:
            seat = self._seat_of(event)
            if seat is None or not self.end_event(seat):
                self.find_event(event)  # another thread was first
            del mine
            self._reaper.drain()

    def end_event(self, seat: OwnerRef[EventHandle]) -> bool:
        """The event goes when no call uses it any more; whether it was there: of two threads one is told so."""
        owner = seat.owner  # nobody else has the handle as long as this lives
        if owner is None:
            return False
        handle = owner.handle
        found = self._events.pop(handle, None) is not None if handle else True
        if self._kept and handle:
            self._kept.pop(handle, None)
        seat.owner = None
        return found

    def record_event(self, event: int, stream: int) -> None:
        """Put ``event`` behind the work on ``stream``; waits that were made before keep the place they saw."""
        mine, owner = self.find_event(event), self._hold(stream, "record_event")
        self._driver.event_record(mine.handle, owner.handle)

    def synchronize_event(self, event: int) -> None:
        """Wait for the last record of ``event``; one that was never recorded waits for nothing."""
        mine = self.find_event(event)
        self._driver.event_synchronize(mine.handle)

    def query_event(self, event: int) -> bool:
        """Whether the last record of ``event`` is complete, or there is none."""
        mine = self.find_event(event)
        return self._driver.event_query(mine.handle)

    def stream_wait_event(self, stream: int, event: int) -> None:
        """Order later work on ``stream`` after the last record of ``event``; the host does not wait."""
        owner, mine = self._hold(stream, "stream_wait_event"), self.find_event(event)
        self._driver.stream_wait(owner.handle, mine.handle)

    def elapsed_time(self, start: int, end: int) -> float:
        """Milliseconds between two records that are complete; 0 on the CPU, where handles have no time."""
        first, last = self.find_event(start), self.find_event(end)
        return self._driver.event_elapsed(first.handle, last.handle)

    # memory

    def malloc_async(self, nbytes: int, stream: int) -> int:
        """The address of ``nbytes`` bytes that work on ``stream`` may use from now on.

        Another stream waits for ``stream`` before it uses them.  0 bytes have the address 0.

        Raises:
            OutOfDeviceMemory: the device has too little; what nobody uses any more was freed before.
        """
        home = self._timelines.find(stream)
        return self._memory.allocate(nbytes, home)

    def free_async(self, pointer: int, stream: int) -> None:
        """Give memory back after the work so far on ``stream`` and on the stream that it was allocated on."""
        behind = self._uncaptured(stream, "free_async")
        self._memory.free(pointer, behind)

    # what is there

    def _uncaptured(self, stream: int, verb: str) -> Timeline:
        """The timeline of a live stream, unless the calling thread captures it: handles are not noted.

        Where all handles are 0 they name no stream in particular, and the verbs do nothing.
        """
        timeline = self._timelines.find(stream)
        if self._life.direct:
            return timeline
        if CAPTURES.count and self._handles and (session := table().streams.get(timeline)) is not None:
            session.refuse(
                f"{verb}, called with a handle",
                "capture the methods of Stream and Event, or call it behind the capture",
            )
        return timeline

    def _hold(self, stream: int, verb: str) -> Owner[StreamHandle]:
        """The owner of a live stream's handle, as ``_uncaptured``; the caller refers to it until its call returns."""
        owner = self._uncaptured(stream, verb).owner
        return owner if owner is not None else self._hold(stream, verb)  # or the error of one that was just destroyed

    def find_event(self, event: object) -> Owner[EventHandle]:
        """The owner of a live event's handle; EventError where ``event`` is none of this device."""
        if not self._life.direct or THREAD.in_host_function:
            self._life.check()
        seat = self._seat_of(event)
        owner = None if seat is None else seat.owner
        if owner is None:
            raise EventError(
                f"{shown(event)} is no event of this device: it was destroyed, or never created here",
                hint="create_event makes one",
            )
        return owner

    def _seat_of(self, event: object) -> OwnerRef[EventHandle] | None:
        known = known_by(self._events, event)
        return None if known is None else known()

    def live(self) -> dict[str, int]:
        """How many streams and events of this device nobody has destroyed."""
        return {"streams": len(self._timelines.own()), "events": self._live_events() if self._handles else 0}

    def _live_events(self) -> int:
        seats = [known() for known in tuple(self._events.values())]
        return sum(seat is not None and seat.owner is not None for seat in seats)
