"""The order of the measurements: all systems prepare a workload at once, then they take turns."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from harness.processes import MEASURE, PREPARE, START, Child, ChildFailure, Command
from harness.workload import Workload

W = TypeVar("W", bound=Workload)
Times: TypeAlias = Mapping[str, float]
"""Seconds that a child took: "import" of its system, and "start", which is that and all until it can take work."""
SCALE = {"ms": 1e3, "µs": 1e6, "x": 1.0}


class CommandOf(Protocol):
    """How to start the child of a system, with its caches in a folder."""

    def __call__(self, system: str, cache: Path, *, fast_math: bool = False) -> Command: ...


@dataclass(frozen=True)
class Plan:
    """What to run.  `budget` is the seconds of one measurement; `summary` combines the times of all rounds into one."""

    systems: Sequence[str]
    only: Sequence[str]
    scale: str
    rounds: int
    budget: float
    scratch: Path
    command: CommandOf
    summary: Callable[[Sequence[float]], float] = statistics.median


@dataclass
class Row(Generic[W]):
    """A line of a table: seconds of each round (of `overlap`, a ratio), which ways there were, what failed."""

    workload: W
    title: str
    size: int = 0
    fast_math: bool = False
    summary: Callable[[Sequence[float]], float] = statistics.median
    seconds: dict[str, list[float]] = field(default_factory=dict)
    ways: dict[str, dict[str, float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def take(self, system: str, answer: dict[str, Any]) -> None:
        """Records what a child reports after it has prepared."""
        if way := answer.get("way"):
            self.ways[system] = {way: answer["ways"].pop(way), **answer["ways"]}
        if answer.get("note"):
            note(f"{self.title}, {system}: one way is left out: {answer['note']}")

    def add(self, system: str, value: Any) -> None:
        """One measurement."""
        self.seconds.setdefault(system, []).append(value)

    def time(self, system: str) -> float | None:
        """The system's time, from all rounds; None if it has no valid one."""
        times = self.seconds.get(system)
        return self.summary(times) if times and system not in self.problems else None

    def spread(self, system: str) -> float | None:
        """The distance between the slowest and the fastest round, relative to the median."""
        values = self.seconds.get(system)
        return (max(values) - min(values)) / statistics.median(values) if values else None

    def brief(self) -> str:
        unit = self.workload.unit
        parts = [f"{s} {(self.time(s) or 0.0) * SCALE[unit]:.4g}" for s in self.seconds if s not in self.problems]
        return f"{self.title}: {', '.join(parts + [f'{s}: {text}' for s, text in self.problems.items()])} [{unit}]"


def start(children: dict[str, Child]) -> dict[str, str]:
    """Starts all at once; drops those whose systems are missing, and returns why."""
    absent = {}
    for child in children.values():
        child.start()
    for system, child in list(children.items()):
        try:
            child.receive(START)
        except ChildFailure as failure:  # noqa: PERF203 - one that fails leaves the others
            absent[system] = str(failure)
            note(f"{system} is not there: {failure}")
            child.close()
            del children[system]
    return absent


def prepare(row: Any, children: dict[str, Child], results: Callable[[str], str | None] = lambda _: None) -> list[str]:
    """Lets all children prepare at once; returns the systems that can be measured, and stores their reports in `row`.

    `results` names the file in which a system leaves its results, for one that does not check them itself.
    """
    ready: list[str] = []
    asked: list[str] = []
    for system, child in children.items():
        try:
            if not child.running:
                child.start()
                child.receive(START)
            child.send("prepare", workload=row.workload.name, results=results(system))
            asked.append(system)
        except ChildFailure as failure:  # noqa: PERF203 - likewise
            row.problems[system] = str(failure)
    for system in asked:
        try:
            answer = children[system].receive(PREPARE)
        except ChildFailure as failure:
            row.problems[system] = str(failure)
            continue
        if problem := answer.get("problem"):
            row.problems[system] = problem
        elif not answer.get("absent"):
            ready.append(system)
            row.take(system, answer)
    return ready


def take_turns(plan: Plan, row: Any, children: dict[str, Child], ready: Sequence[str]) -> None:
    """One measurement of each system per round; one that fails is dropped."""
    for _ in range(plan.rounds):
        for system in ready:
            if system not in row.problems:
                try:
                    row.add(system, children[system].ask("measure", MEASURE, budget=plan.budget)["value"])
                except ChildFailure as failure:
                    row.problems[system] = str(failure)


def clear(row: Any, children: dict[str, Child]) -> None:
    """Drops the workload; a child that failed, and whose device may be lost, starts again when it is next needed."""
    for system, child in children.items():
        try:
            if system in row.problems:
                child.close()
            else:
                child.ask("drop", MEASURE)
        except ChildFailure:  # noqa: PERF203 - likewise
            child.close()


def first_calls(plan: Plan, workload: W, systems: Sequence[str], rounds: int) -> Iterator[Row[W]]:
    """A process with an empty cache, then one that finds what the first has left; both again in each round.

    Each has a row for the call, and one for everything from the system's import on: some systems import their
    compilers in the call.
    """
    size = workload.elements(plan.scale)
    titles = [(f"{workload.title}, {kind}", f"import to {workload.title}, {kind}") for kind in ("cold", "cached")]
    kinds = [[Row(workload, title, size, summary=plan.summary) for title in pair] for pair in titles]

    def measure(child: Child, times: Times) -> tuple[float, float]:
        call = child.ask("first", PREPARE, workload=workload.name)["value"]
        return call, times["start"] + call

    for _ in range(rounds):
        for system in systems:
            with TemporaryDirectory(dir=plan.scratch) as folder:
                for rows in kinds:
                    _alone(plan, rows, system, Path(folder), measure)
    yield from chain.from_iterable(kinds)


def imports(plan: Plan, workload: W) -> Row[W]:
    """Each system's import in processes of its own."""
    row = Row(workload, workload.title, summary=plan.summary)
    for _ in range(plan.rounds):
        for system in plan.systems:
            _alone(plan, [row], system, plan.scratch / "imports", lambda _, times: (times["import"],))
    return row


def _alone(
    plan: Plan, rows: Sequence[Row[W]], system: str, cache: Path, measure: Callable[[Child, Times], Sequence[float]]
) -> None:
    """One measurement for each of `rows` in a new process; `measure` is given the child and how long it took to start."""
    if system in rows[0].problems:
        return
    with closing(Child(plan.command(system, cache))) as child:
        try:
            child.start()
            for row, value in zip(rows, measure(child, child.receive(START)), strict=True):
                row.add(system, value)
            child.finish()
        except ChildFailure as failure:
            for row in rows:
                row.problems[system] = str(failure)


def note(text: str) -> None:
    """Prints progress, apart from the table."""
    print(text, file=sys.stderr, flush=True)
