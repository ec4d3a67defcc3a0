"""The work of each stream, in objects that outlive the stream.

Memory remembers the timelines that used it.  A destroyed stream leaves a last event on its timeline, so memory can wait
for it whether or not the driver's destroy waits, and even if another stream has its handle by now.  A call that submits
work while another thread destroys the stream records that event again, after the work.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Mapping
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from quadpy.core.importing import import_late
from quadpy.errors import StreamError
from quadpy.runtime.device.handle_pool import ALONE, HandlePool
from quadpy.runtime.device.life import HOSTS, THREAD, Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, Driver, EventHandle, PlainPointer, StreamHandle
from quadpy.runtime.streams.owned import OwnerRef

if TYPE_CHECKING:
    from quadpy.runtime.streams.parts import ComputeUnits, Part

T = TypeVar("T")


class Timeline(OwnerRef[StreamHandle]):
    """The work of one stream.  ``owner`` is None once the stream has ended.

    last      the event after all work of an ended stream; None if its work is complete
    lost      in place of ``last``, for a stream that may be gone without an event: the number that a synchronize of
              the whole device must reach
    ending    a thread destroys the stream, or has done so: a call that submits work meanwhile records ``last`` again
    stream    the Stream object that users hold, if there is one
    captured  the capture that has the stream to itself, if any
    part      the compute units on which its kernels run; None if they run on all
    kept      for the allocator: memory freed on the stream, by size
    waiting   for the allocator: blocks that wait for work of this stream
    """

    __slots__ = ("captured", "ending", "handle", "kept", "last", "lost", "part", "stream", "waiting")

    def __init__(self, owner: Owner[StreamHandle], part: Part | None = None) -> None:
        self.owner, self.observed, self.handle = owner, None, owner.handle  # as the base class, inlined
        self.part = part
        self.last: Owner[EventHandle] | None = None
        self.lost = 0
        self.ending = False
        self.stream: weakref.ref[object] | None = None
        self.captured: object = None
        self.kept: dict[int, list[PlainPointer]] = {}
        self.waiting: list[WaitingBlock] = []

    @property
    def ended(self) -> bool:
        return self.owner is None


class Mark(NamedTuple):
    """A point in ``timeline``: the event of ``owner`` comes after the work so far; None if the stream was lost."""

    owner: Owner[EventHandle] | None
    timeline: Timeline


class WaitingBlock(Protocol):
    """A block of memory that was released and waits for ``marks``; see ``Block``."""

    home: Timeline
    nbytes: int
    cell: list[PlainPointer]
    marks: list[Mark]


class Timelines:
    """The live streams of one device: the default stream and its own.  Safe from any thread, without a lock."""

    def __init__(self, driver: Driver, reaper: Reaper, life: Life) -> None:
        self._driver, self._reaper, self._life = driver, reaper, life
        self.default = Timeline(Owner(DEFAULT_STREAM))
        self.live: dict[int, Timeline] = {DEFAULT_STREAM: self.default}
        self._spare: list[Owner[EventHandle]] = []
        self.events = HandlePool(
            reaper, driver.event_destroy, driver.event_query, functools.partial(driver.event_create, timing=False)
        )
        """Events without timing."""
        self._streams = HandlePool(reaper, driver.stream_destroy, driver.stream_query, driver.stream_create, 0)
        self.parts_off = ""
        """Why quadpy does without streams on a part of the device; empty if it does not."""
        self._numbers = itertools.count(1)
        self._synchronized = 0  # the number of the last synchronize of the device

    def find(self, handle: object) -> Timeline:
        """The timeline of a live stream; StreamError if ``handle`` is not a stream of this device."""
        if not self._life.direct or (HOSTS and THREAD.in_host_function):
            self._life.check()
        timeline = lookup(self.live, handle)
        if timeline is None or timeline.owner is None:
            raise StreamError(
                f"{handle_text(handle)} is not a stream of this device: it was destroyed, or never created here",
                hint="Stream.from_handle borrows a stream of another library",
            )
        return timeline

    def create(self, priority: int, part: Part | None = None) -> Timeline:
        """The timeline of a new stream, which lives as long as the timeline; ``enter`` makes it known by handle."""
        if part is not None:
            create, destroy = self._driver.stream_create_on, self._driver.stream_destroy
            return Timeline(self._reaper.own(destroy, create, priority, part.groups), part)
        if not priority:
            return Timeline(self._streams.take())
        return Timeline(self._reaper.own(self._driver.stream_destroy, self._driver.stream_create, priority))

    def new_part(self, wanted: ComputeUnits) -> Part | None:
        """The part of a new stream; None for all units, and where work runs on the host.

        Raises:
            StreamError: ``wanted`` does not fit the device, or its driver has no such streams.
        """
        parts = import_late("quadpy.runtime.streams.parts")
        units = parts.checked_units(wanted)
        if units is None or "host" in self._driver.features:
            return None
        if self.parts_off:
            raise StreamError(
                f"streams on a part of {self._driver.info.name} are switched off: {self.parts_off}",
                hint="create the stream without compute_units; see `quadpy selftest`",
            )
        if "parts" not in self._driver.features:
            raise StreamError(
                f"the driver of {self._driver.info.name} has no streams on a part of the compute units",
                hint="this needs CUDA 12.4, or HIP with hipExtStreamCreateWithCUMask",
            )
        others = [each.part for each in list(self.live.values())]
        found: Part = parts.part_of(units, self._driver.unit_groups(), others)
        return found

    def enter(self, timeline: Timeline) -> None:
        """Make ``timeline`` known to ``find`` until it ends; handle 0 always means the default stream."""
        if timeline.handle != DEFAULT_STREAM:
            self.live[timeline.handle] = timeline

    def owns(self, handle: StreamHandle) -> bool:
        """Whether the stream was created here."""
        timeline = self.live.get(handle)
        return handle != DEFAULT_STREAM and type(timeline) is Timeline

    def own(self) -> list[StreamHandle]:
        """The live streams that were created here."""
        return [StreamHandle(handle) for handle in list(self.live) if self.owns(StreamHandle(handle))]

    def end(self, timeline: Timeline) -> bool:
        """End the stream of ``timeline``; its handle goes back when no call uses it any more.

        Records a last event unless all work is complete.  True for one of the threads that end the stream.
        """
        owner = timeline.owner  # nobody else gets the handle while this lives
        if owner is None:
            return False
        found = timeline.handle == DEFAULT_STREAM or self.live.pop(timeline.handle, None) is timeline
        timeline.ending = True
        if timeline.handle == DEFAULT_STREAM or self._life.ended is not None:
            timeline.owner = None
            return found
        self.lose(timeline)  # until more is known
        timeline.owner = None  # from here on, a thread that looks the stream up is too late
        if self._driver.stream_query(owner.handle):
            timeline.lost = 0
            if getrefcount(owner) == ALONE and self._streams.keep(owner):
                return found
        else:
            self.move_last(timeline, owner)
        del owner
        self._reaper.drain()
        return found

    def move_last(self, timeline: Timeline, owner: Owner[StreamHandle]) -> None:
        """Record the last event of ``timeline`` after all work submitted to its stream so far."""
        last = timeline.last or self._event()
        self._driver.event_record(last.handle, owner.handle)
        timeline.last = last

    def lose(self, timeline: Timeline) -> None:
        """Stop using the stream of ``timeline``, which may be gone; the next ``synchronize`` waits for its work."""
        timeline.last, timeline.lost = None, next(self._numbers)

    def synchronize(self) -> None:
        """Wait for all work on the device."""
        number = next(self._numbers)
        self._driver.synchronize()
        self._synchronized = max(self._synchronized, number)

    # order

    def mark(self, timeline: Timeline) -> Mark:
        """A mark after all work so far; ``unmark`` recycles it."""
        owner = timeline.owner
        if owner is None:
            return Mark(timeline.last, timeline)
        event = self._event()
        self._driver.event_record(event.handle, owner.handle)
        return Mark(event, timeline)

    def _event(self) -> Owner[EventHandle]:
        """An unused event; it is destroyed if it is dropped."""
        try:
            return self._spare.pop()
        except IndexError:
            return self.events.take()

    def unmark(self, mark: Mark) -> None:
        """Recycle the event of ``mark``, which the caller must not use again."""
        if mark.owner is not None and mark.owner is not mark.timeline.last:
            self._spare.append(mark.owner)

    def passed(self, mark: Mark) -> bool:
        """Whether the work before ``mark`` is complete."""
        if mark.owner is not None:
            return self._driver.event_query(mark.owner.handle)
        return mark.timeline.lost <= self._synchronized

    def wait(self, mark: Mark) -> None:
        """Wait on the host for the work before ``mark``."""
        if mark.owner is not None:
            self._driver.event_synchronize(mark.owner.handle)
        elif not self.passed(mark):
            self.synchronize()

    def order(self, before: Timeline, after: Timeline) -> None:
        """Order later work of ``after`` after all work of ``before`` so far; the host does not wait.

        Raises:
            StreamError: ``after`` has ended.
        """
        owner = after.owner
        if owner is None:
            raise StreamError("the stream was destroyed", hint="create a new one, or destroy it later")
        self.order_on(before, owner)

    def order_on(self, before: Timeline, owner: Owner[StreamHandle]) -> None:
        """Like ``order``, for a stream that may have been destroyed, but whose handle lives as long as ``owner``."""
        mark = self.mark(before)
        if mark.owner is None:
            self.wait(mark)
            return
        self._driver.stream_wait(owner.handle, mark.owner.handle)
        self.unmark(mark)  # a wait keeps the record it saw, so the event may be recorded again

    def known(self, timeline: Timeline) -> bool:
        """Whether the work of ``timeline`` can be waited for by an event, or is complete."""
        return timeline.owner is not None or timeline.last is not None or timeline.lost <= self._synchronized

    def idle(self, timeline: Timeline) -> bool:
        """Whether all work of ``timeline`` is complete."""
        owner = timeline.owner
        if owner is not None:
            return self._driver.stream_query(owner.handle)
        return self.passed(Mark(timeline.last, timeline))


def handle_text(handle: object) -> str:
    """A handle in a message, or the object that was passed in its place."""
    return f"{handle:#x}" if isinstance(handle, int) else repr(handle)


def lookup(table: Mapping[Any, T], handle: object) -> T | None:
    """The entry of ``table`` for ``handle``, which comes from a user and may be anything."""
    try:
        return table.get(handle)
    except TypeError:  # it is not hashable
        return None
