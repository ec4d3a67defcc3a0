"""Resources that pending work may still use after their owner died."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import field
from typing import Protocol

from quadpy.core.light import dataclass
from quadpy.runtime.streams.timeline import Mark, Timeline, Timelines


class Releasable(Protocol):
    """Something to release before its device closes."""

    def release(self) -> None:
        """Release everything; releasing twice does nothing."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A release that waits for ``marks``, and for marks still to be made on ``unmarked``."""

    unmarked: list[Timeline]
    give_back: Callable[[], None]
    keep: object
    marks: list[Mark] = field(default_factory=list)


class DeferredRelease:
    """Releases resources of one device once the work that uses them is complete, and the rest when the device closes.

    Nothing here waits: ``sweep`` checks which work is complete, and is called where that costs little.
    """

    def __init__(self, timelines: Timelines) -> None:
        self._timelines = timelines
        self._live: dict[int, Releasable] = {}
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        """How many releases wait for work to complete."""
        return len(self._waiting)

    def register(self, thing: Releasable) -> None:
        """Release ``thing`` when the device closes, unless it is unregistered before."""
        self._live[id(thing)] = thing

    def unregister(self, thing: Releasable) -> None:
        """``thing`` was released."""
        self._live.pop(id(thing), None)

    def add(self, users: Iterable[Timeline], give_back: Callable[[], None], keep: object = None) -> None:
        """Call ``give_back`` after the work so far of ``users``; until then, it and ``keep`` stay alive.

        Nothing is lost if this call raises: a later ``sweep`` continues where this one ended.  ``give_back`` is called
        again if it was interrupted, and must then do the rest.
        """
        self._waiting.append(_Waiting(list(users), give_back, keep))
        self.sweep()

    def sweep(self) -> None:
        """Release what no work uses any more."""
        busy: set[Timeline] = set()
        for _ in range(len(self._waiting)):
            self._take_one(busy)

    def close(self) -> None:
        """Release everything; the device is idle."""
        for thing in list(self._live.values()):
            thing.release()
        while self._waiting:  # there is no more work, whether or not the marks have passed
            self._take_one(None)

    def _take_one(self, busy: set[Timeline] | None) -> None:
        """Finish the first waiting release if its work is complete, or ``busy`` is None; else move it to the end."""
        taken: list[_Waiting] = []
        try:
            with suppress(IndexError):  # another thread, or a finalizer, took it
                taken.extend(map(deque.popleft, (self._waiting,)))  # one step: it is in the queue or here
            for one in taken:
                if busy is None or self._is_complete(one, busy):
                    one.give_back()
                    taken.clear()
        finally:
            self._waiting.extend(taken)

    def _is_complete(self, one: _Waiting, busy: set[Timeline]) -> bool:
        """Whether all marks have passed; the timelines in ``busy`` have an earlier mark that has not."""
        while one.unmarked:
            one.marks.append(self._timelines.mark(one.unmarked[-1]))
            one.unmarked.pop()
        for mark in one.marks:
            if mark.timeline in busy or not self._timelines.passed(mark):
                busy.add(mark.timeline)
                return False
        return True
