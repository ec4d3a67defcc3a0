"""Things that pending work may still use, after their owner is gone.  Owns: Retired.  Imports: timelines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from quadpy.runtime.timeline import Mark, Timeline, Timelines

__all__ = ["Releasable", "Retired"]


class Releasable(Protocol):
    """What must be given back before its device closes."""

    def release(self) -> None:
        """Give everything back; doing it again does nothing."""


class Retired:
    """What graphs hold of one device, and what they held until the launches that use it are complete.

    Nothing here waits: ``sweep`` looks at what is complete, and is called where that costs little.
    """

    def __init__(self, timelines: Timelines) -> None:
        self._timelines = timelines
        self._live: dict[int, Releasable] = {}
        self._waiting: list[tuple[list[Mark], Callable[[], None]]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many things wait for work to complete."""
        return len(self._waiting)

    def enter(self, thing: Releasable) -> None:
        """Release ``thing`` when the device closes, if nobody did before."""
        self._live[id(thing)] = thing

    def leave(self, thing: Releasable) -> None:
        """``thing`` was released."""
        self._live.pop(id(thing), None)

    def add(self, users: Iterable[Timeline], give_back: Callable[[], None]) -> None:
        """Call ``give_back``, which refers to all that must stay until then, after the work so far of ``users``."""
        marks = [self._timelines.mark(user) for user in users]
        with self._lock:
            self._waiting.append((marks, give_back))
        self.sweep()

    def sweep(self) -> None:
        """Give back what nothing uses any more."""
        if not self._waiting:
            return
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for marks, give_back in waiting:
            if all(map(self._timelines.passed, marks)):
                for mark in marks:
                    self._timelines.unmark(mark)
                give_back()
            else:
                with self._lock:
                    self._waiting.append((marks, give_back))

    def close(self) -> None:
        """Release everything; the device is idle."""
        for thing in list(self._live.values()):
            thing.release()
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for marks, give_back in waiting:  # behind which there is no work, whether or not they have been passed
            for mark in marks:
                self._timelines.unmark(mark)
            give_back()
