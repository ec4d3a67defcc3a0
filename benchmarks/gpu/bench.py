"""What one system offers to be measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Bench:
    """A workload as one system runs it, on the device.

    `run` is one run, or several ways of it by name: the fastest counts.
    `reset` restores the inputs and `trial` does the work whose results are compared; both are not timed.
    `once`: every timed run begins with a reset, because the work changes with its own results.
    `skip_failing_variants`: a way that cannot be compiled is left out, as long as one is left.
    """

    run: Callable[[], object] | Mapping[str, Callable[[], object]]
    result: Callable[[], Arrays]
    trial: Callable[[], object] | None = None
    reset: Callable[[], object] = nothing
    once: bool = False
    skip_failing_variants: bool = False

    @property
    def variants(self) -> dict[str, Callable[[], object]]:
        return {"": self.run} if callable(self.run) else dict(self.run)


@dataclass(frozen=True)
class HostBench:
    """Work whose cost to the host is measured: `submit` does it `count` times, a synchronisation follows.

    `waits`: that synchronisation counts.  `inside`: `submit` measures itself and gives seconds a time.
    `check` says what is wrong with what the work left, or None.
    """

    submit: Callable[[int], float | None]
    count: int = 500
    waits: bool = False
    inside: bool = False
    check: Callable[[], str | None] = lambda: None


@dataclass(frozen=True)
class OverlapBench:
    """Two one-block kernels, on one stream and on two.  `result` are the states that they end in."""

    one: Callable[[], object]
    two: Callable[[], object]
    result: Callable[[], Arrays]
