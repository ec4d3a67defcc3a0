"""Things that pending work may still use, after their owner is gone.  Owns: Retired.  Imports: timelines."""

from __future__ import annotations

import threading
from collections.abc import Callable

from quadpy.runtime.timeline import Mark, Timelines

__all__ = ["Retired"]


class Retired:
    """What a destroyed graph held: kept until the launches before its marks are complete, then given back.

    Nothing here waits: ``sweep`` looks at what is complete, and is called where that costs little.
    """

    def __init__(self, timelines: Timelines) -> None:
        self._timelines = timelines
        self._waiting: list[tuple[list[Mark], Callable[[], None]]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, marks: list[Mark], give_back: Callable[[], None]) -> None:
        """Call ``give_back``, which refers to all that must stay until then, after ``marks``."""
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
