"""The work of each stream, in terms that outlive the stream.  Owns: Timeline, Mark, Timelines.

Memory remembers the timelines that used it.  A stream that is destroyed leaves a last event behind on its timeline, so
memory can wait for it whether or not the driver's destroy waits, and though its handle may name another stream by now.
Who submits work while another thread destroys the stream moves that event behind the work.
Imports: errors, the driver protocol, seats, the reaper.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from quadpy.errors import StreamError
from quadpy.runtime.device.handle_pool import HandlePool
from quadpy.runtime.device.life import THREAD, Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, Driver, EventHandle, PlainPointer, StreamHandle
from quadpy.runtime.streams.owned import OwnerRef

if TYPE_CHECKING:
    from quadpy.runtime.memory.allocators.block import Block
    from quadpy.runtime.streams.stream import Stream

__all__ = ["Mark", "Timeline", "Timelines", "known_by", "shown"]


T = TypeVar("T")


class Timeline(OwnerRef[StreamHandle]):
    """The work of one stream, until ``owner`` is None; before that, ``last`` is the event behind all of it.

    ``lost`` stands for ``last`` where the stream may be gone and nobody could record an event: the number that a
    synchronize of the whole device must have.
    ``ending`` says that somebody is about to give the stream back, or has: who submits work just then, moves ``last``.
    ``shown`` finds the object that users hold of the stream, where there is one.
    ``captured`` is the capture that has the stream for itself, where one has.
    ``kept`` and ``waiting`` are the allocator's: memory that was freed on the stream, by size, and such that waits for
    what this stream does.
    """

    __slots__ = ("captured", "ending", "handle", "kept", "last", "lost", "shown", "waiting")

    def __init__(self, owner: Owner[StreamHandle]) -> None:
        super().__init__(owner)
        self.handle = owner.handle
        self.last: Owner[EventHandle] | None = None
        self.lost = 0
        self.ending = False
        self.shown: weakref.ref[Stream] | None = None
        self.captured: object = None
        self.kept: dict[int, list[PlainPointer]] = {}
        self.waiting: deque[Block] = deque()

    @property
    def ended(self) -> bool:
        return self.owner is None


class Mark(NamedTuple):
    """A place in ``timeline``: ``owner``'s event stands behind the work that was there; None for a lost one's."""

    owner: Owner[EventHandle] | None
    timeline: Timeline


class Timelines:
    """The streams of one device that may be used: its default one and its own.  Safe from any thread, without a lock."""

    def __init__(self, driver: Driver, reaper: Reaper, life: Life) -> None:
        self._driver, self._reaper, self._life = driver, reaper, life
        self.default = Timeline(Owner(DEFAULT_STREAM))
        self.live: dict[int, Timeline] = {DEFAULT_STREAM: self.default}
        self._spare: list[Owner[EventHandle]] = []
        self.events = HandlePool(
            reaper, driver.event_destroy, driver.event_query, functools.partial(driver.event_create, timing=False)
        )
        """Those that are made without timing."""
        self._streams = HandlePool(reaper, driver.stream_destroy, driver.stream_query, driver.stream_create, 0)
        self._numbers = itertools.count(1)
        self._synchronized = 0  # the number of the last synchronize of the device

    def find(self, handle: object) -> Timeline:
        """The timeline of a live stream; StreamError where ``handle`` is none of this device."""
        if not self._life.direct or THREAD.in_host_function:
            self._life.check()
        timeline = known_by(self.live, handle)
        if timeline is None or timeline.owner is None:
            raise StreamError(
                f"{shown(handle)} is no stream of this device: it was destroyed, or never created here",
                hint="Stream.from_handle borrows a stream of another library",
            )
        return timeline

    def create(self, priority: int) -> Timeline:
        """The timeline of a new stream, which is destroyed with it; ``enter`` makes it known by its handle."""
        if not priority:
            return Timeline(self._streams.take())
        return Timeline(self._reaper.own(self._driver.stream_destroy, self._driver.stream_create, priority))

    def enter(self, timeline: Timeline) -> None:
        """Let ``find`` answer ``timeline``, until it ends; the default stream's handle always stands for that one."""
        if timeline.handle != DEFAULT_STREAM:
            self.live[timeline.handle] = timeline

    def owns(self, handle: StreamHandle) -> bool:
        """Whether the stream was created here."""
        timeline = self.live.get(handle)
        return handle != DEFAULT_STREAM and type(timeline) is Timeline

    def own(self) -> list[StreamHandle]:
        """The streams that were created here and are still there."""
        return [StreamHandle(handle) for handle in tuple(self.live) if self.owns(StreamHandle(handle))]

    def end(self, timeline: Timeline) -> bool:
        """Forget the stream of ``timeline``, which goes when no call uses it any more, and leave a last event behind its work.

        There is none where the work is complete.  Whether the stream was there: of two threads that end it, one is told
        so.
        """
        owner = timeline.owner  # nobody else has the handle as long as this lives
        if owner is None:
            return False
        found = timeline.handle == DEFAULT_STREAM or self.live.pop(timeline.handle, None) is timeline
        timeline.ending = True
        if timeline.handle == DEFAULT_STREAM or self._life.ended is not None:
            timeline.owner = None
            return found
        self.lose(timeline)  # until more is known
        timeline.owner = None  # who finds the stream from here on is too late
        if self._driver.stream_query(owner.handle):
            timeline.lost = 0
        else:
            self.move_last(timeline, owner)
        return found

    def move_last(self, timeline: Timeline, owner: Owner[StreamHandle]) -> None:
        """Let the last event of ``timeline`` stand behind all work that its stream was given so far."""
        last = timeline.last or self._event()
        self._driver.event_record(last.handle, owner.handle)
        timeline.last = last

    def lose(self, timeline: Timeline) -> None:
        """Nothing more is asked of the stream of ``timeline``, which may be gone: the next ``synchronize`` waits for it."""
        timeline.last, timeline.lost = None, next(self._numbers)

    def synchronize(self) -> None:
        """Wait for all work on the device."""
        number = next(self._numbers)
        self._driver.synchronize()
        self._synchronized = max(self._synchronized, number)

    # order

    def mark(self, timeline: Timeline) -> Mark:
        """A mark behind all work so far; ``unmark`` takes it back when it is no longer asked."""
        owner = timeline.owner
        if owner is None:
            return Mark(timeline.last, timeline)
        event = self._event()
        self._driver.event_record(event.handle, owner.handle)
        return Mark(event, timeline)

    def _event(self) -> Owner[EventHandle]:
        """An event that nobody uses; one that is dropped is destroyed."""
        try:
            return self._spare.pop()
        except IndexError:
            return self.events.take()

    def unmark(self, mark: Mark) -> None:
        """Use the event of ``mark`` again, which the caller does no more; once."""
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
        """Let ``after``'s later work wait on the device for all work of ``before`` so far.

        Raises:
            StreamError: ``after`` has ended.
        """
        owner = after.owner
        if owner is None:
            raise StreamError("the stream was destroyed", hint="create it anew, or destroy it later")
        self.order_on(before, owner)

    def order_on(self, before: Timeline, owner: Owner[StreamHandle]) -> None:
        """As ``order``, for a stream whose handle lives as long as ``owner``, though it may have been destroyed."""
        mark = self.mark(before)
        if mark.owner is None:
            self.wait(mark)
            return
        self._driver.stream_wait(owner.handle, mark.owner.handle)
        self.unmark(mark)  # a wait keeps the place it saw, so the event may be recorded again

    def known(self, timeline: Timeline) -> bool:
        """Whether there is an event to wait for the work of ``timeline``, or can be, or none is needed."""
        return timeline.owner is not None or timeline.last is not None or timeline.lost <= self._synchronized

    def idle(self, timeline: Timeline) -> bool:
        """Whether all work of ``timeline`` is complete."""
        owner = timeline.owner
        if owner is not None:
            return self._driver.stream_query(owner.handle)
        return self.passed(Mark(timeline.last, timeline))


def shown(handle: object) -> str:
    """A handle as messages tell it, or what was given in its place."""
    return f"{handle:#x}" if isinstance(handle, int) else repr(handle)


def known_by(table: Mapping[Any, T], handle: object) -> T | None:
    """What ``table`` has for ``handle``, which a user gave and may be anything."""
    try:
        return table.get(handle)
    except TypeError:  # it has no hash
        return None
