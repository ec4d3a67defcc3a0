"""Streams, events and stream-ordered memory by handle.

Unknown handles are refused here, before the driver is called: drivers do not check handles, and crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.errors import StreamError
from quadpy.runtime.device.faults import Faults
from quadpy.runtime.device.life import HOSTS, Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import Driver, EventHandle, StreamHandle
from quadpy.runtime.launch.capturing import CAPTURES, thread_captures
from quadpy.runtime.memory.device_memory import DeviceMemory
from quadpy.runtime.printing.device_rings import Prints
from quadpy.runtime.streams.current import CurrentStreams
from quadpy.runtime.streams.event_table import EventTable
from quadpy.runtime.streams.timeline import Timeline, Timelines, handle_text

if TYPE_CHECKING:
    from quadpy.runtime.streams.parts import ComputeUnits


@shows(
    "create_stream", "destroy_stream", "synchronize_stream", "query_stream", "set_current_stream", "current_stream",
    "create_event", "destroy_event", "record_event", "synchronize_event", "query_event", "stream_wait_event", "elapsed_time",
    "malloc_async", "free_async",
)  # fmt: skip
class StreamManager(OneProcess):
    """The streams and events of one device.  Safe from any thread.

    Handle 0 is the default stream, which can be synchronized like any other.  On the CPU every handle is 0, and the
    methods do nothing with it.

    StreamError, EventError: a handle that was destroyed or belongs to another device.
    DeviceError: the device was closed, or belongs to the parent process.
    CaptureError: the calling thread captures the stream, and the call cannot be recorded.
    KernelFault: a call waited for a kernel in which a check failed, under ``debug=True``.
    """

    error: ClassVar[type[StreamError]] = StreamError

    def __init__(
        self, driver: Driver, timelines: Timelines, memory: DeviceMemory, life: Life, reaper: Reaper, prints: Prints,
        faults: Faults,
    ) -> None:  # fmt: skip
        self._driver, self._timelines, self._memory, self._life = driver, timelines, memory, life
        self._reaper, self._prints, self._faults = reaper, prints, faults
        self.events = EventTable(driver, timelines, life, reaper)
        self._has_handles = self.events.has_handles
        self.thread = CurrentStreams(timelines.default)

    def __repr__(self) -> str:
        return f"<StreamManager of {self._driver.name}>"

    # streams

    def create_stream(self, priority: int = 0, compute_units: ComputeUnits = None) -> int:
        """Create a stream with a ``priority``, and perhaps ``compute_units`` of its own; see ``qp.create_stream``."""
        timeline = self.new_stream(priority, compute_units)
        self._timelines.enter(timeline)
        return timeline.handle

    def new_stream(self, priority: int, compute_units: ComputeUnits = None) -> Timeline:
        """The timeline of a new stream, whose handle is not known yet; the stream lives as long as the timeline."""
        if not self._life.direct or HOSTS:
            self._life.check()
        if not isinstance(priority, int):
            raise StreamError(f"the priority of a stream is {priority!r}", hint="pass an int; a lower one runs first")
        part = None if compute_units is None else self._timelines.new_part(compute_units)
        if not self._has_handles:
            return Timeline(Owner(self._driver.stream_create(priority)))
        return self._timelines.create(priority, part)

    def destroy_stream(self, stream: int) -> None:
        """Destroy ``stream``.  Submitted work still completes, and memory that it used waits for it.

        A thread whose current stream it is goes back to the default stream, with a warning.
        """
        timeline = self._uncaptured(stream, "destroy_stream")
        if not self._has_handles:
            return
        if not self._timelines.owns(timeline.handle):
            raise StreamError(
                f"stream {handle_text(stream)} is not quadpy's to destroy: it is the default one, or borrowed"
            )
        if not self._timelines.end(timeline):
            self._timelines.find(stream)  # another thread was first
        self._reaper.drain()

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all work on ``stream``."""
        owner = self._hold(stream, "synchronize_stream")
        self._driver.stream_synchronize(owner.handle)
        if (observer := CAPTURES.observer) is not None:
            observer.synchronized(self._timelines.find(stream), self._life)
        if self._prints.pending:
            self._prints.drain()
        self._faults.raise_first(owner.handle)

    def query_stream(self, stream: int) -> bool:
        """Whether all work on ``stream`` is complete."""
        owner = self._hold(stream, "query_stream")
        complete = self._driver.stream_query(owner.handle)
        if complete and (observer := CAPTURES.observer) is not None:
            observer.synchronized(self._timelines.find(stream), self._life)
        return complete

    def set_current_stream(self, stream: int) -> None:
        """Make ``stream`` current for the calling thread."""
        self.thread.change(self._timelines.find(stream), None)

    def current_stream(self) -> int:
        """The calling thread's stream: 0 until the thread sets one, and again after that one is destroyed."""
        return self.thread.timeline().handle

    # events

    def create_event(self, timing: bool = False) -> int:
        """Create an event.  ``elapsed_time`` needs two with ``timing``, which costs the device some time."""
        ref = self.events.create(timing)
        return self.events.keep(ref) if self._has_handles else EventHandle(0)

    def destroy_event(self, event: int) -> None:
        """Destroy ``event``; streams that wait for it stay ordered."""
        self.events.destroy(event)

    def record_event(self, event: int, stream: int) -> None:
        """Record ``event`` after the work on ``stream``; earlier waits keep the record that they saw."""
        mine, owner = self.events.find(event), self._hold(stream, "record_event")
        self._driver.event_record(mine.handle, owner.handle)
        if (observer := CAPTURES.observer) is not None and (ref := self.events.ref(event)) is not None:
            observer.recorded(ref, self._timelines.find(stream), self._life)

    def synchronize_event(self, event: int) -> None:
        """Wait for the last record of ``event``; an event that was never recorded is complete."""
        mine = self.events.find(event)
        self._driver.event_synchronize(mine.handle)
        if (observer := CAPTURES.observer) is not None and (ref := self.events.ref(event)) is not None:
            observer.completed(ref)
        if self._prints.pending:
            self._prints.drain()
        self._faults.raise_first()

    def query_event(self, event: int) -> bool:
        """Whether the last record of ``event`` is complete; True if there is none."""
        mine = self.events.find(event)
        complete = self._driver.event_query(mine.handle)
        if complete and (observer := CAPTURES.observer) is not None and (ref := self.events.ref(event)) is not None:
            observer.completed(ref)
        return complete

    def stream_wait_event(self, stream: int, event: int) -> None:
        """Order later work on ``stream`` after the last record of ``event``; the host does not wait."""
        owner, mine = self._hold(stream, "stream_wait_event"), self.events.find(event)
        self._driver.stream_wait(owner.handle, mine.handle)
        if (observer := CAPTURES.observer) is not None and (ref := self.events.ref(event)) is not None:
            observer.waited(ref, self._timelines.find(stream), self._life)

    def elapsed_time(self, start: int, end: int) -> float:
        """Milliseconds from the record of ``start`` to that of ``end``; 0 on the CPU, where handles have no time."""
        first, last = self.events.find(start), self.events.find(end)
        return self._driver.event_elapsed(first.handle, last.handle)

    # memory

    def malloc_async(self, nbytes: int, stream: int) -> int:
        """Allocate ``nbytes`` bytes for work on ``stream``; the result is their address.

        Another stream must wait for ``stream`` before it uses them.  The address of 0 bytes is 0.

        Raises:
            OutOfDeviceMemory: the device has too little memory, even after quadpy freed what is unused.
        """
        home = self._timelines.find(stream)
        pointer = self._memory.allocate(nbytes, home)
        if pointer and (observer := CAPTURES.observer) is not None:
            observer.allocated(home, self._life, pointer, nbytes, on_host=not self._has_handles)
        return pointer

    def free_async(self, pointer: int, stream: int) -> None:
        """Free the memory at ``pointer`` after the work so far on ``stream`` and on the stream that it was allocated on."""
        after = self._uncaptured(stream, "free_async")
        if pointer and (observer := CAPTURES.observer) is not None:
            block = self._memory.at(pointer)
            on_host = not self._has_handles
            observer.freeing(after, block.home, self._life, pointer, block.nbytes, on_host=on_host)
        self._memory.free(pointer, after)

    # lookup

    def _uncaptured(self, stream: int, verb: str) -> Timeline:
        """The timeline of a live stream; refuses one that the calling thread captures: handles are not recorded.

        If all handles are 0, they name no particular stream, and nothing is refused.
        """
        timeline = self._timelines.find(stream)
        if self._life.direct:
            return timeline
        if CAPTURES.count and self._has_handles and (session := thread_captures().streams.get(timeline)) is not None:
            session.refuse(
                f"{verb}, called with a handle",
                "capture the methods of Stream and Event, or make the call after the capture",
            )
        return timeline

    def _hold(self, stream: int, verb: str) -> Owner[StreamHandle]:
        """Like ``_uncaptured``, for the owner of the handle; the caller keeps it until its call returns."""
        owner = self._uncaptured(stream, verb).owner
        return owner if owner is not None else self._hold(stream, verb)  # raises if it was destroyed just now

    def live(self) -> dict[str, int]:
        """How many streams and events of this device are alive."""
        return {"streams": len(self._timelines.own()), "events": self.events.count()}
