"""The entry of a kernel on the CPU that measures its tasks, for profiles."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from quadpy.core.artifact import CHECKED
from quadpy.runtime.launch.observing import TaskTimes


class _Timed(threading.local):
    """The receiver of times of the tasks that the calling thread runs next."""

    times: TaskTimes | None = None


TIMED: Final = _Timed()


class TimedEntry:
    """Calls ``entry`` once for each task, if it can run them ``apart``, and reports each to ``TIMED.times``.

    Machine code is asked for a single task by the complement of the task's number.
    """

    __slots__ = ("_apart", "_entry")

    def __init__(self, entry: Callable[..., int], *, apart: bool) -> None:
        self._entry, self._apart = entry, apart

    def __call__(self, block: bytes, scratch: object, first: int) -> int:
        times = TIMED.times
        assert times is not None
        while True:
            begin = time.perf_counter_ns()
            following = self._entry(block, scratch, ~first if self._apart else first)
            times(first & ~CHECKED, begin, time.perf_counter_ns())
            if following < 0:  # all is done, or there is no memory
                return following
            first = following
