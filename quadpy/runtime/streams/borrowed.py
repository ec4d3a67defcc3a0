"""Streams borrowed from other libraries.

All objects that borrow a stream at one time share a ``BorrowedHandle``, which ends with the last of them.
"""

from __future__ import annotations

import weakref

from quadpy.runtime.device.life import Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, StreamHandle
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline, Timelines


class BorrowedHandle(Owner[StreamHandle]):
    """A stream of another library while it is borrowed.  quadpy never destroys it."""

    __slots__ = ("refs", "timeline")

    def __init__(self, handle: StreamHandle) -> None:
        super().__init__(handle)
        self.timeline: Timeline = _BorrowedTimeline(self)
        self.refs: list[OwnerRef[StreamHandle]] = []


class _BorrowedTimeline(Timeline):
    """The work of a borrowed stream, which ends with its ``BorrowedHandle``."""

    __slots__ = ("_handle",)

    def __init__(self, handle: BorrowedHandle) -> None:
        self._handle = weakref.ref(handle)
        super().__init__(handle)

    @property
    def owner(self) -> BorrowedHandle | None:
        return self._handle()

    @owner.setter
    def owner(self, _: Owner[StreamHandle] | None) -> None:
        """Does nothing: only the end of the handle ends the timeline."""


class BorrowedStreams:
    """The borrowed streams of one device.  Safe from any thread, without a lock."""

    def __init__(self, timelines: Timelines, reaper: Reaper, life: Life) -> None:
        self._timelines, self._reaper, self._life = timelines, reaper, life

    def borrow(self, handle: StreamHandle) -> tuple[Timeline, OwnerRef[StreamHandle]]:
        """Borrow a stream of another library, until the reference in the result is given to ``give_back`` or ``drop``."""
        known = self._timelines.live.get(handle)
        borrowed = None if known is None else known.owner
        if not isinstance(borrowed, BorrowedHandle):
            borrowed = BorrowedHandle(handle)  # two threads may each make one: each then has its own work
            self._reaper.adopt(borrowed, self._forget, borrowed.timeline)
            self._timelines.live[handle] = borrowed.timeline
        ref: OwnerRef[StreamHandle] = OwnerRef(borrowed)
        borrowed.refs.append(ref)
        return borrowed.timeline, ref

    def give_back(self, ref: OwnerRef[StreamHandle]) -> None:
        """End one borrowing; memory waits for its work through an event."""
        self._end(ref, alive=True)

    def drop(self, ref: OwnerRef[StreamHandle]) -> None:
        """End a borrowing that was dropped: the stream may be gone, so nothing more is submitted to it."""
        self._end(ref, alive=False)

    def _end(self, ref: OwnerRef[StreamHandle], *, alive: bool) -> None:
        borrowed = ref.owner
        if isinstance(borrowed, BorrowedHandle):
            if ref in borrowed.refs:
                borrowed.refs.remove(ref)
            if self._life.ended is None:
                if alive:
                    borrowed.timeline.ending = True
                    self._timelines.move_last(borrowed.timeline, borrowed)
                elif not borrowed.refs:
                    self._timelines.lose(borrowed.timeline)
            ref.owner = None

    def follow(self, foreign: StreamHandle, after: Timeline) -> None:
        """Order later work of ``after`` after the work so far of a stream of another library, without borrowing it."""
        known = self._timelines.live.get(foreign)
        if known is None or known.owner is None:
            known = Timeline(Owner(foreign))
        if foreign != DEFAULT_STREAM or after is not self._timelines.default:
            self._timelines.order(known, after)

    def _forget(self, timeline: Timeline) -> None:
        known = self._timelines.live.get(timeline.handle)
        if known is timeline:
            self._timelines.live.pop(timeline.handle, None)  # an entry that another thread just made is only not found
