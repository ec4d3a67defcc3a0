"""Runs workloads: all systems side by side, one measurement of each per round, so that a busy minute hits all alike."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from peers.processes import Child, ChildFailure, Task
from peers.workloads import FIRST_CALLS, IMPORT, WORKLOADS, Array, Workload, disagreement


@dataclass(frozen=True)
class Plan:
    """What to run: the systems with their interpreters, in order, and how long."""

    pythons: Mapping[str, Path]
    only: tuple[str, ...]
    rounds: int
    threads: int
    quick: bool
    scratch: Path
    fastest: bool = False
    cpu_time: bool = False

    @property
    def budget(self) -> float:
        """Seconds of calls per measurement."""
        return 0.05 if self.quick else 0.3

    def task(self, system: str, workload: str, fast_math: bool, cache: Path) -> Task:
        """The child process of one system for one workload."""
        return Task(system, self.pythons[system], workload, fast_math, self.threads, self.quick, cache, self.cpu_time)

    def row(self, title: str, unit: str, *, fast_math: bool) -> Row:
        """An empty row."""
        return Row(title, unit, fast_math, min if self.fastest else statistics.median)


@dataclass
class Row:
    """One line of the table: seconds per call of each system in each round, or what went wrong."""

    title: str
    unit: str
    fast_math: bool
    summary: Callable[[Sequence[float]], float]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def time(self, system: str) -> float | None:
        """The system's time, from all rounds; None where it has no valid one."""
        times = self.seconds.get(system)
        return self.summary(times) if times and system not in self.problems else None

    def attempt(self, system: str, action: Callable[[], float]) -> None:
        """Adds one measurement, or the reason why there is none."""
        if system in self.problems:
            return
        try:
            self.seconds.setdefault(system, []).append(action())
        except ChildFailure as failure:
            self.problems[system] = str(failure)


def run(plan: Plan) -> Iterator[Row]:
    """Every selected workload, strict and with fast math, as its row becomes known."""
    for fast_math in (False, True):
        for workload in WORKLOADS.values():
            if workload.name in plan.only:
                yield _steady(plan, workload, fast_math)
    for workload in FIRST_CALLS.values():
        if workload.name in plan.only:
            yield from _first_calls(plan, workload)
    if IMPORT.name in plan.only:
        yield _imports(plan)


def _steady(plan: Plan, workload: Workload, fast_math: bool) -> Row:
    """Compiled once, compared, then measured in turns."""
    row = plan.row(workload.label(quick=plan.quick), workload.unit, fast_math=fast_math)
    results: dict[str, dict[str, Array]] = {}
    with ExitStack() as stack:
        children: dict[str, Child] = {}
        for system in plan.pythons:
            cache = plan.scratch / f"{system}-{'fast' if fast_math else 'strict'}"
            children[system] = stack.enter_context(Child(plan.task(system, workload.name, fast_math, cache)))
            try:
                results[system] = children[system].results()
            except ChildFailure as failure:
                row.problems[system] = str(failure)
        _compare(workload, results, row)
        for _ in range(plan.rounds):
            for system, child in children.items():
                row.attempt(system, lambda child=child: child.measure(plan.budget))  # type: ignore[misc]
    return row


def _compare(workload: Workload, results: Mapping[str, Mapping[str, Array]], row: Row) -> None:
    """A system whose results are not those of the first one has no time."""
    systems = list(results)
    for system in systems[1:]:
        difference = disagreement(workload, results[systems[0]], results[system])
        if difference:
            row.problems[system] = f"differs from {systems[0]}: {difference}"


def _first_calls(plan: Plan, workload: Workload) -> Iterator[Row]:
    """A process with an empty cache, then one that finds what the first has left; anew in each round."""
    cold = plan.row(f"{workload.title}, cold", workload.unit, fast_math=False)
    cached = plan.row(f"{workload.title}, cached", workload.unit, fast_math=False)
    for _ in range(plan.rounds):
        for system in plan.pythons:
            with TemporaryDirectory(dir=plan.scratch) as cache:
                task = plan.task(system, workload.name, False, Path(cache))
                cold.attempt(system, lambda task=task: _single(task))  # type: ignore[misc]
                cached.attempt(system, lambda task=task: _single(task))  # type: ignore[misc]
    yield cold
    yield cached


def _imports(plan: Plan) -> Row:
    row = plan.row(IMPORT.title, IMPORT.unit, fast_math=False)
    for _ in range(plan.rounds):
        for system in plan.pythons:
            task = plan.task(system, IMPORT.name, False, plan.scratch)
            row.attempt(system, lambda task=task: _single(task))  # type: ignore[misc]
    return row


def _single(task: Task) -> float:
    with Child(task) as child:
        seconds = child.value()
        child.finish()
        return seconds


def note(text: str) -> None:
    """Progress, away from the table."""
    print(text, file=sys.stderr, flush=True)
