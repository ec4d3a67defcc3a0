"""Streams for the branches of a kernel.  Owns: Branches.  Imports: errors, the driver protocol, timelines."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from quadpy.errors import DeviceError
from quadpy.runtime.driver import Driver
from quadpy.runtime.timeline import Timeline, Timelines

__all__ = ["MOST_BRANCHES", "Branches"]

MOST_BRANCHES: Final = 16
"""Streams that are kept; only a fork of more branches, or forks in several threads at once, make more."""


class Branches:
    """One device's streams for work that is forked from a stream and joined to it.  Safe from any thread.

    A fork takes those that the same stream used last, where there are any: its branches come after that stream's
    earlier work in any case.  Branches of two streams share one only when there are MOST_BRANCHES already.
    """

    def __init__(self, driver: Driver, timelines: Timelines) -> None:
        self._driver, self._timelines = driver, timelines
        self._free: list[tuple[Timeline, Timeline]] = []  # a stream and for whom it worked, the latest last
        self._made = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def fork(self, on: Timeline, count: int) -> Iterator[list[Timeline]]:
        """``count`` streams whose work comes after that of ``on`` so far; when the block ends, ``on`` waits for them.

        Also when it ends with an exception: what was submitted still uses memory that only ``on`` is known to use.
        """
        taken: list[Timeline] = []
        try:
            for _ in range(count):
                taken.append(self._take(on))
                self._timelines.order(on, taken[-1])
            yield taken
        finally:
            self._join(taken, on)
            with self._lock:
                self._free += [(stream, on) for stream in taken]

    def _take(self, on: Timeline) -> Timeline:
        with self._lock:
            for place in reversed(range(len(self._free))):
                if self._free[place][1] is on:
                    return self._free.pop(place)[0]
            if self._free and self._made >= MOST_BRANCHES:
                return self._free.pop(0)[0]
            self._made += 1
        try:
            return self._timelines.add(self._driver.stream_create(0))
        except BaseException:
            with self._lock:
                self._made -= 1
            raise

    def _join(self, streams: list[Timeline], on: Timeline) -> None:
        """Let ``on`` wait; where the driver cannot do that, the host waits."""
        try:
            for stream in streams:
                self._timelines.order(stream, on)
        except BaseException as error:
            for stream in streams:
                self._driver.stream_synchronize(stream.handle)
            if not isinstance(error, DeviceError):
                raise
