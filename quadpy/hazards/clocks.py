"""Vector clocks: which work of which stream is known to be complete, or comes before, at each point of a program."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

Clock: TypeAlias = Mapping[int, int]
"""Lane -> the number of its last operation that comes before.  A clock is never changed: joining makes a new one."""

_EMPTY: Final[Clock] = {}
_MANY: Final = 64
"""Entries of a clock above which those of dead lanes are dropped, if these are half of them."""


class Lane:
    """The operations of one stream, in order, each with a number.

    number  identifies the lane in clocks
    time    the number of the last operation
    clock   what comes before the next operation, on other lanes
    since   operations after this time came after all of ``clock``
    stream  gives the timeline of the stream while it exists; ``default`` says whether it is a device's default stream
    life    that of its device
    """

    __slots__ = ("__weakref__", "clock", "clocks", "default", "host", "life", "number", "since", "stream", "time")

    def __init__(
        self, clocks: Clocks, number: int, stream: Callable[[], object], life: object, *, default: bool
    ) -> None:
        self.clocks, self.number, self.stream, self.life, self.default = clocks, number, stream, life, default
        self.time = self.since = 0
        self.clock: Clock = _EMPTY
        self.host: Clock = _EMPTY
        """The host's clock that ``clock`` contains."""


class Snapshot(NamedTuple):
    """A point of a lane: its operations up to ``time``, and what came before them."""

    lane: Lane
    time: int
    clock: Clock

    def after(self, clock: Clock) -> dict[int, int]:
        """The part of the point's past that is not in ``clock``."""
        known, number = clock.get, self.lane.number
        found = {each: time for each, time in self.clock.items() if known(each, 0) < time}
        if known(number, 0) < self.time:
            found[number] = self.time
        return found


class Clocks:
    """The lanes of a program, and the work that the host knows to be complete.

    All threads of the host share one clock: once one thread has waited for work, later calls of any thread come after
    it.  quadpy does not see how threads wait for each other, so it takes the order in which they call.
    """

    def __init__(self) -> None:
        self.host: Clock = _EMPTY
        self._numbers = itertools.count(1)
        self.lanes: weakref.WeakValueDictionary[int, Lane] = weakref.WeakValueDictionary()

    def lane(self, stream: Callable[[], object], life: object, *, default: bool) -> Lane:
        """A new lane for ``stream``, which may be the default one of the device of ``life``."""
        number = next(self._numbers)
        made = self.lanes[number] = Lane(self, number, stream, life, default=default)
        return made

    def before(self, lane: Lane) -> Clock:
        """The clock of an operation that is submitted to ``lane`` now."""
        if lane.host is not self.host:
            host = self.host
            self.set(lane, joined(lane.clock, host))
            lane.host = host
        return lane.clock

    def snapshot(self, lane: Lane) -> Snapshot:
        """The point of ``lane`` after all operations so far."""
        return Snapshot(lane, lane.time, self.before(lane))

    def follow(self, lane: Lane, point: Snapshot) -> None:
        """Order later operations of ``lane`` after ``point``."""
        if point.lane is lane:
            return
        clock = self.before(lane)
        if point.clock.get(lane.number, 0) > lane.since:  # then it contains ``clock``, and no entry is compared
            self.set(lane, {**point.clock, point.lane.number: point.time})
        elif newer := point.after(clock):
            self.set(lane, {**clock, **newer})

    def set(self, lane: Lane, clock: Clock) -> None:
        """Let later operations of ``lane`` come after ``clock``, which contains what they came after before."""
        lane.since = lane.time  # first, for interrupts
        lane.clock = self._of_lanes_there(clock)

    def complete(self, point: Snapshot) -> None:
        """Note that the host knows that all work before ``point`` is complete."""
        if newer := point.after(self.host):
            self.host = self._of_lanes_there({**self.host, **newer})

    def _of_lanes_there(self, clock: Clock) -> Clock:
        """``clock``; if it is long, without the lanes that nothing refers to, once these are many."""
        if len(clock) > _MANY and len(clock) > 2 * len(self.lanes):
            return {number: time for number, time in clock.items() if number in self.lanes}
        return clock


def joined(one: Clock, other: Clock) -> Clock:
    """The smallest clock that contains both; ``one`` itself if it contains ``other``."""
    known = one.get
    for number, time in other.items():
        if known(number, 0) < time:
            return {**one, **{number: time for number, time in other.items() if known(number, 0) < time}}
    return one
