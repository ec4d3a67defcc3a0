"""The entry of a kernel on the CPU that measures its tasks, for profiles."""

from __future__ import annotations

import time
from collections.abc import Callable

from quadpy.runtime.launch.observing import TaskTimes

__all__ = ["TimedEntry"]


class TimedEntry:
    """Calls ``entry`` once for each task, where it can run them ``apart``, and tells ``times`` when each began and ended.

    Machine code is asked for a single task by the complement of the task's number.
    """

    __slots__ = ("_apart", "_entry", "_times")

    def __init__(self, entry: Callable[..., int], times: TaskTimes, *, apart: bool) -> None:
        self._entry, self._times, self._apart = entry, times, apart

    def __call__(self, block: bytes, scratch: object, first: int) -> int:
        while True:
            begin = time.perf_counter_ns()
            following = self._entry(block, scratch, ~first if self._apart else first)
            self._times(first, begin, time.perf_counter_ns())
            if following < 0:  # all is done, or there is no memory
                return following
            first = following
