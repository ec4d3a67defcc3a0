"""Things that pending work may still use, after their owner is gone.  Owns: DeferredRelease.  Imports: timelines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from quadpy.runtime.streams.timeline import Mark, Timeline, Timelines

__all__ = ["Releasable", "DeferredRelease"]


class Releasable(Protocol):
    """What must be given back before its device closes."""

    def release(self) -> None:
        """Give everything back; doing it again does nothing."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """Something to give back after the work before ``marks``; those of ``unmarked`` are still to be made."""

    unmarked: list[Timeline]
    give_back: Callable[[], None]
    keep: object
    marks: list[Mark] = field(default_factory=list)


class DeferredRelease:
    """What graphs hold of one device, and what they held until the launches that use it are complete.

    Nothing here waits: ``sweep`` looks at what is complete, and is called where that costs little.
    """

    def __init__(self, timelines: Timelines) -> None:
        self._timelines = timelines
        self._live: dict[int, Releasable] = {}
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        """How many things wait for work to complete."""
        return len(self._waiting)

    def register(self, thing: Releasable) -> None:
        """Release ``thing`` when the device closes, if nobody did before."""
        self._live[id(thing)] = thing

    def unregister(self, thing: Releasable) -> None:
        """``thing`` was released."""
        self._live.pop(id(thing), None)

    def add(self, users: Iterable[Timeline], give_back: Callable[[], None], keep: object = None) -> None:
        """Call ``give_back`` after the work so far of ``users``; it and ``keep`` refer to all that must stay until then.

        From the first step on nothing is lost, whatever is raised here: a later ``sweep`` goes on where this one ended.
        ``give_back`` is called again where it was interrupted, and then does the rest.
        """
        self._waiting.append(_Waiting(list(users), give_back, keep))
        self.sweep()

    def sweep(self) -> None:
        """Give back what nothing uses any more."""
        busy: set[Timeline] = set()
        for _ in range(len(self._waiting)):
            self._take_one(busy)

    def close(self) -> None:
        """Release everything; the device is idle."""
        for thing in list(self._live.values()):
            thing.release()
        while self._waiting:  # after which there is no work, whether or not its marks have been passed
            self._take_one(None)

    def _take_one(self, busy: set[Timeline] | None) -> None:
        """Finish the first that waits if it is through, or in any case for None; else it waits on, as the last."""
        taken: list[_Waiting] = []
        try:
            with suppress(IndexError):  # another thread, or a finalizer, took it
                taken.extend(map(deque.popleft, (self._waiting,)))  # one step: it is there or here
            for one in taken:
                if busy is None or self._is_through(one, busy):
                    one.give_back()
                    taken.clear()
        finally:
            self._waiting.extend(taken)

    def _is_through(self, one: _Waiting, busy: set[Timeline]) -> bool:
        """Whether all work before it is complete; of a timeline in ``busy`` an earlier mark has not been passed."""
        while one.unmarked:
            one.marks.append(self._timelines.mark(one.unmarked[-1]))
            one.unmarked.pop()
        for mark in one.marks:
            if mark.timeline in busy or not self._timelines.passed(mark):
                busy.add(mark.timeline)
                return False
        return True
