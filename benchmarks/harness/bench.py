"""The work of one system that can be measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Work = Callable[[], object]


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Bench:
    """A workload as one system runs it.

    `run` is one run, or several ways of it by name: the fastest counts, and one that fails is left out as long as
    another is there.
    `reset` restores the inputs, and `trial` does the work whose results are compared; neither is timed.
    `finish` waits for what `run` started, and `batch` calls make one sample, if the host's clock measures.
    `once`: every timed run begins with a reset, because the work changes with its own results.
    `keep` lives as long as the workload.
    """

    run: Work | Mapping[str, Work]
    result: Callable[[], Arrays]
    reset: Work = nothing
    trial: Work | Mapping[str, Work] | None = None
    finish: Work = nothing
    batch: int = 1
    once: bool = False
    keep: tuple[object, ...] = ()

    def ways(self) -> dict[str, tuple[Work, Work]]:
        """Each way to run it: a run, and a trial."""
        runs = {"": self.run} if callable(self.run) else dict(self.run)
        trials = dict.fromkeys(runs, self.trial) if callable(self.trial) else dict(self.trial or runs)
        return {name: (runs[name], trials[name]) for name in runs}


@dataclass(frozen=True)
class HostBench:
    """Work whose cost to the host is measured: `submit` does it `count` times, then the host waits for the device.

    `waits`: that wait counts.  `inside`: `submit` measures itself and returns the seconds for one time.
    `check` says what is wrong with what the work left, or None.
    """

    submit: Callable[[int], float | None]
    count: int = 500
    waits: bool = False
    inside: bool = False
    check: Callable[[], str | None] = lambda: None


@dataclass(frozen=True)
class OverlapBench:
    """Two one-block kernels, on one stream and on two, each time with a wait for both.

    `result` has the states that they end in.
    """

    one: Work
    two: Work
    result: Callable[[], Arrays]


@dataclass(frozen=True)
class Way:
    """One way to do a step.

    `run` submits it to the device: alone, its time is the host's cost; with a wait after it, the whole cost.
    `inside` measures several runs itself, and returns the means of both; `trial` is compared if `run` takes too long for that.
    `picture` is the step as a graph in Graphviz' language, for graphs that are slower.
    """

    run: Work
    result: Callable[[], Arrays]
    reset: Work = nothing
    trial: Work | None = None
    inside: Callable[[int], tuple[float, float]] | None = None
    picture: Callable[[], str] | None = None


@dataclass(frozen=True)
class StepBench:
    """A step that can be launched in several ways, which take turns; the others are compared with the first.

    `exact`: all must leave the same bytes.  `once`: each run begins with a reset, which is not timed.
    `steps`: how many a run does; times are for one.  `remarks` say more about a way.
    """

    ways: dict[str, Way]
    exact: bool = True
    once: bool = False
    steps: int = 1
    remarks: Mapping[str, str] = field(default_factory=dict)
