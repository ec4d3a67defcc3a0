"""Times of calls in this process: compared calls take turns, because a machine is never quiet for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def seconds(work: Work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_turns(works: Mapping[str, Work], rounds: int, before: Work = lambda: None) -> dict[str, list[float]]:
    """Seconds of each work in each round; `before` runs before each, and is not timed."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            before()
            times[name].append(seconds(work))
    return times


def repeat(call: Work, times: int) -> None:
    for _ in range(times):
        call()
