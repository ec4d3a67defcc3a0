"""Streams, events and stream-ordered memory by handle.  Owns: StreamManager, which everything else is built on.

A handle that is not known is refused here, before the driver is asked: drivers no longer check handles, and crash.
Imports: errors, the driver protocol, timelines, device memory.
"""

from __future__ import annotations

import threading
import warnings

from quadpy.errors import EventError, StreamError
from quadpy.runtime.capturing import CAPTURES, table
from quadpy.runtime.device_memory import DeviceMemory
from quadpy.runtime.driver import Driver, EventHandle
from quadpy.runtime.life import THREAD, Life
from quadpy.runtime.timeline import Timeline, Timelines

__all__ = ["StreamManager", "warn_of_reset"]


def warn_of_reset() -> None:
    """Tell a thread that its current stream was destroyed."""
    message = "the current stream was destroyed: this thread is back on the default stream"
    warnings.warn(message, RuntimeWarning, stacklevel=4)


class _Current(threading.local):
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline  # a new thread starts on the default stream
        self.stream: object = None
        """The Stream of ``timeline``, once ``Device.current_stream`` has found it here."""


class StreamManager:
    """The streams and events of one device.  Safe from any thread.

    Handle 0 is the default stream, as synchronizable as any other.  On the CPU every handle is 0 and the verbs do
    nothing with them.  StreamError and EventError: a handle that was destroyed or is not of this device.
    DeviceError: the device was closed, or belongs to the parent of this process.  CaptureError: the calling thread
    captures the stream, and the verb cannot be noted.
    """

    def __init__(self, driver: Driver, timelines: Timelines, memory: DeviceMemory, life: Life) -> None:
        self._driver, self._timelines, self._memory, self._life = driver, timelines, memory, life
        self._handles = "handles" in driver.features
        self.events: set[EventHandle] = set() if self._handles else {EventHandle(0)}
        self.thread = _Current(timelines.default)

    # streams

    def create_stream(self, priority: int = 0) -> int:
        """A new stream; work of a lower ``priority`` goes first, one out of the device's range is clamped."""
        self._life.check()
        return self._timelines.add(self._driver.stream_create(priority)).handle

    def destroy_stream(self, stream: int) -> None:
        """Give a stream back.  Its work still completes, and memory that it used waits for it.

        A thread whose current stream it is goes back to the default one, with a warning.
        """
        handle = self._uncaptured(stream, "destroy_stream").handle
        if not self._handles:
            return
        if not self._timelines.owns(handle):
            raise StreamError(f"stream {stream:#x} is not quadpy's to destroy: the default one, or borrowed")
        self._timelines.end(handle)
        self._driver.stream_destroy(handle)

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all work on ``stream``."""
        self._driver.stream_synchronize(self._uncaptured(stream, "synchronize_stream").handle)

    def query_stream(self, stream: int) -> bool:
        """Whether all work on ``stream`` is complete."""
        return self._driver.stream_query(self._uncaptured(stream, "query_stream").handle)

    def set_current_stream(self, stream: int) -> None:
        """Make ``stream`` the one that the calling thread's work goes to."""
        self.thread.timeline, self.thread.stream = self._timelines.find(stream), None

    def current_stream(self) -> int:
        """The calling thread's stream: 0 until it sets one, and again when that one was destroyed."""
        return self.current_timeline().handle

    def current_timeline(self) -> Timeline:
        """The work of the calling thread's stream."""
        if self.thread.timeline.ended:
            self.thread.timeline, self.thread.stream = self._timelines.default, None
            warn_of_reset()
        return self.thread.timeline

    # events

    def create_event(self, timing: bool = False) -> int:
        """A new event; ``elapsed_time`` needs two with ``timing``, which costs the device something."""
        self._life.check()
        event = self._driver.event_create(timing=timing)
        self.events.add(event)
        return event

    def destroy_event(self, event: int) -> None:
        """Give an event back; streams that wait for it stay ordered."""
        handle = self.find_event(event)
        if self._handles:
            self.events.discard(handle)
            self._driver.event_destroy(handle)

    def record_event(self, event: int, stream: int) -> None:
        """Put ``event`` behind the work on ``stream``; waits that were made before keep the place they saw."""
        self._driver.event_record(self.find_event(event), self._uncaptured(stream, "record_event").handle)

    def synchronize_event(self, event: int) -> None:
        """Wait for the last record of ``event``; one that was never recorded waits for nothing."""
        self._driver.event_synchronize(self.find_event(event))

    def query_event(self, event: int) -> bool:
        """Whether the last record of ``event`` is complete, or there is none."""
        return self._driver.event_query(self.find_event(event))

    def stream_wait_event(self, stream: int, event: int) -> None:
        """Order later work on ``stream`` after the last record of ``event``; the host does not wait."""
        self._driver.stream_wait(self._uncaptured(stream, "stream_wait_event").handle, self.find_event(event))

    def elapsed_time(self, start: int, end: int) -> float:
        """Milliseconds between two records that are complete; 0 on the CPU, where handles have no time."""
        return self._driver.event_elapsed(self.find_event(start), self.find_event(end))

    # memory

    def malloc_async(self, nbytes: int, stream: int) -> int:
        """The address of ``nbytes`` bytes that work on ``stream`` may use from now on.

        Another stream waits for ``stream`` before it uses them.  0 bytes have the address 0.

        Raises:
            OutOfDeviceMemory: the device has too little; what nobody uses any more was freed before.
        """
        home = self._timelines.live.get(stream)  # as ``find``, where all is well
        if home is None or not self._life.direct or THREAD.in_host_function:
            home = self._timelines.find(stream)
        block = self._memory.allocate(nbytes, home)
        return block.pointer if block else 0

    def free_async(self, pointer: int, stream: int) -> None:
        """Give memory back after the work so far on ``stream`` and on the stream that it was allocated on."""
        behind = self._timelines.live.get(stream)
        if behind is None or not self._life.direct or THREAD.in_host_function:
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

    def find_event(self, event: int) -> EventHandle:
        """The handle of a live event; EventError where ``event`` is none of this device."""
        if not self._life.direct or THREAD.in_host_function:
            self._life.check()
        if event not in self.events:
            raise EventError(
                f"{event:#x} is no event of this device: it was destroyed, or never created here",
                hint="create_event makes one",
            )
        return EventHandle(event)

    def live(self) -> dict[str, int]:
        """How many streams and events of this device nobody has destroyed."""
        return {"streams": len(self._timelines.own()), "events": len(self.events) if self._handles else 0}

    def close(self) -> None:
        """Destroy every stream and event; no work is pending."""
        for stream in self._timelines.own():
            self.destroy_stream(stream)
        for event in list(self.events) if self._handles else ():
            self.destroy_event(event)
