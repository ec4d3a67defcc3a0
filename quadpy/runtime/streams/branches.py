"""Streams for the parallel branches of a kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from quadpy.errors import DeviceError
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import Driver
from quadpy.runtime.streams.timeline import Timeline, Timelines

MOST_BRANCHES: Final = 16
"""Branch streams that are kept for reuse.  Larger forks, and forks on several threads at once, create more."""


class _Branch:
    """A branch stream.  ``ends`` are its timeline and that of the stream that forked it last.

    When the last reference to the branch dies, even after an interrupted call, it is joined and ends.
    """

    __slots__ = ("__weakref__", "ends")

    def __init__(self, timeline: Timeline, on: Timeline) -> None:
        self.ends = [timeline, on]

    @property
    def timeline(self) -> Timeline:
        return self.ends[0]


class Branches:
    """One device's streams for work that is forked from a stream and joined to it.  Safe from any thread.

    A fork prefers branch streams that the same stream used last, whose earlier work it comes after in any case.  Two
    streams share a branch stream only once MOST_BRANCHES exist.  A branch has the compute units of the stream.
    """

    def __init__(self, driver: Driver, timelines: Timelines, reaper: Reaper) -> None:
        self._driver, self._timelines, self._reaper = driver, timelines, reaper
        self._free: list[_Branch] = []  # the most recently used last

    @contextlib.contextmanager
    def fork(self, on: Timeline, count: int) -> Iterator[list[Timeline]]:
        """Yield ``count`` streams ordered after the work so far of ``on``; at the end of the block, ``on`` waits for them.

        The same holds if an exception ends the block: submitted work uses memory that is known to be used by ``on`` only.
        """
        taken: list[_Branch] = []
        try:
            for _ in range(count):
                taken.append(self._take(on))
                self._timelines.order(on, taken[-1].timeline)
            yield [branch.timeline for branch in taken]
        finally:
            for branch in taken:
                self._join(branch.ends)
            self._free += taken[: max(0, MOST_BRANCHES - len(self._free))]

    def _take(self, on: Timeline) -> _Branch:
        for branch in reversed(tuple(self._free)):
            if branch.ends[1] is on and self._claim(branch):
                return branch
        while len(free := tuple(self._free)) >= MOST_BRANCHES:
            alike = next((branch for branch in free if branch.timeline.part == on.part), None)
            if alike is None:
                break
            if self._claim(alike):
                alike.ends[1] = on
                return alike
        branch = _Branch(self._timelines.create(0, on.part), on)
        self._reaper.adopt(branch, self._lost, branch.ends)
        self._timelines.enter(branch.timeline)
        return branch

    def _claim(self, branch: _Branch) -> bool:
        """Take ``branch`` from the free branches; returns whether this thread got it."""
        try:
            self._free.remove(branch)
        except ValueError:
            return False
        return True

    def _join(self, ends: list[Timeline]) -> None:
        """Let the forking stream wait for the branch; if the driver cannot, the host waits."""
        branch, on = ends
        owner = branch.owner
        try:
            self._timelines.order(branch, on)
        except DeviceError:
            if owner is not None:
                self._driver.stream_synchronize(owner.handle)

    def _lost(self, ends: list[Timeline]) -> None:
        branch, on = ends
        if on.owner is not None:
            self._join(ends)
        self._timelines.end(branch)
