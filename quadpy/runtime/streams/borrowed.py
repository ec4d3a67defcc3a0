"""Streams of other libraries, which lend them.  Owns: BorrowedHandle, BorrowedStreams.  Imports: the driver protocol, timelines, the reaper.

All borrowings of a stream at a time are one loan, to which each of them refers; the loan ends with the last of them.
"""

from __future__ import annotations

import weakref

from quadpy.runtime.device.life import Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, StreamHandle
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline, Timelines

__all__ = ["BorrowedHandle", "BorrowedStreams"]


class BorrowedHandle(Owner[StreamHandle]):
    """A stream of another library, as long as it is borrowed; the driver is never told to destroy it."""

    __slots__ = ("seats", "timeline")

    def __init__(self, handle: StreamHandle) -> None:
        super().__init__(handle)
        self.timeline: Timeline = _Borrowed(self)
        self.seats: list[OwnerRef[StreamHandle]] = []


class _Borrowed(Timeline):
    """The work of a loan, which ends with it."""

    __slots__ = ("_loan",)

    def __init__(self, loan: BorrowedHandle) -> None:
        self._loan = weakref.ref(loan)
        super().__init__(loan)

    @property
    def owner(self) -> BorrowedHandle | None:
        return self._loan()

    @owner.setter
    def owner(self, _: Owner[StreamHandle] | None) -> None:
        """Only the end of the loan is its end."""


class BorrowedStreams:
    """The borrowings of one device.  Safe from any thread, without a lock."""

    def __init__(self, timelines: Timelines, reaper: Reaper, life: Life) -> None:
        self._timelines, self._reaper, self._life = timelines, reaper, life

    def borrow(self, handle: StreamHandle) -> BorrowedHandle:
        """The loan of a stream of another library, which keeps it alive as long as the result."""
        known = self._timelines.live.get(handle)
        loan = None if known is None else known.owner
        if isinstance(loan, BorrowedHandle):
            return loan
        loan = BorrowedHandle(handle)  # where two threads make one each, both are right: each has its own work
        self._reaper.adopt(loan, self._forget, loan.timeline)
        self._timelines.live[handle] = loan.timeline
        return loan

    def give_back(self, seat: OwnerRef[StreamHandle]) -> None:
        """The end of one borrowing: what was submitted through it is waited for by an event."""
        self._end(seat, alive=True)

    def give_up(self, seat: OwnerRef[StreamHandle]) -> None:
        """The end of a borrowing that was dropped: the stream may be gone, so nothing is asked of it."""
        self._end(seat, alive=False)

    def _end(self, seat: OwnerRef[StreamHandle], *, alive: bool) -> None:
        loan = seat.owner
        if isinstance(loan, BorrowedHandle):
            if seat in loan.seats:
                loan.seats.remove(seat)
            if self._life.ended is None:
                if alive:
                    loan.timeline.ending = True
                    self._timelines.move_last(loan.timeline, loan)
                elif not loan.seats:
                    self._timelines.lose(loan.timeline)
            seat.owner = None

    def follow(self, foreign: StreamHandle, after: Timeline) -> None:
        """Let ``after``'s later work wait for all work so far of a stream of another library, which is not kept."""
        known = self._timelines.live.get(foreign)
        if known is None or known.owner is None:
            known = Timeline(Owner(foreign))
        if foreign != DEFAULT_STREAM or after is not self._timelines.default:
            self._timelines.order(known, after)

    def _forget(self, timeline: Timeline) -> None:
        known = self._timelines.live.get(timeline.handle)
        if known is timeline:
            self._timelines.live.pop(timeline.handle, None)  # one that another thread enters just now is only not found
