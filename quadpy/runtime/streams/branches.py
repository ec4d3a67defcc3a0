"""Streams for the branches of a kernel.  Owns: Branches.  Imports: errors, the driver protocol, timelines, the reaper."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from quadpy.errors import DeviceError
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import Driver
from quadpy.runtime.streams.timeline import Timeline, Timelines

__all__ = ["MOST_BRANCHES", "Branches"]

MOST_BRANCHES: Final = 16
"""Streams that are kept; only a fork of more branches, or forks in several threads at once, make more."""


class _Branch:
    """A stream for branches, and ``ends``: its timeline, and that of the stream that it works for, or did last.

    It is joined and ends when nobody refers to it, whatever broke off the call that had it.
    """

    __slots__ = ("__weakref__", "ends")

    def __init__(self, timeline: Timeline, on: Timeline) -> None:
        self.ends = [timeline, on]

    @property
    def timeline(self) -> Timeline:
        return self.ends[0]


class Branches:
    """One device's streams for work that is forked from a stream and joined to it.  Safe from any thread.

    A fork takes those that the same stream used last, where there are any: its branches come after that stream's
    earlier work in any case.  Branches of two streams share one only when there are MOST_BRANCHES already.
    """

    def __init__(self, driver: Driver, timelines: Timelines, reaper: Reaper) -> None:
        self._driver, self._timelines, self._reaper = driver, timelines, reaper
        self._free: list[_Branch] = []  # the latest last

    @contextlib.contextmanager
    def fork(self, on: Timeline, count: int) -> Iterator[list[Timeline]]:
        """``count`` streams whose work comes after that of ``on`` so far; when the block ends, ``on`` waits for them.

        Also when it ends with an exception: what was submitted still uses memory that only ``on`` is known to use.
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
        while len(self._free) >= MOST_BRANCHES:
            branch = self._free[0]
            if self._claim(branch):
                branch.ends[1] = on
                return branch
        branch = _Branch(self._timelines.create(0), on)
        self._reaper.adopt(branch, self._lost, branch.ends)
        self._timelines.enter(branch.timeline)
        return branch

    def _claim(self, branch: _Branch) -> bool:
        """Whether this thread gets ``branch``, which lies free."""
        try:
            self._free.remove(branch)
        except ValueError:
            return False
        return True

    def _join(self, ends: list[Timeline]) -> None:
        """Let the stream wait that forked; where the driver cannot do that, the host waits."""
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
