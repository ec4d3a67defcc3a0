"""The order of the measurements: workload by workload, all systems prepare at once, then they take turns."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpu.options import Options
from gpu.processes import MEASURE, PREPARE, START, Child, ChildFailure, Place
from gpu.workloads import FIRST_CALLS, WORKLOADS, Workload

PEERS = ("CUDA C", "cuda-bindings", "Quadrants", "numba-cuda", "Triton", "torch")
SYSTEMS = (*PEERS, "quadpy", "quadpy fast")


@dataclass(frozen=True)
class Plan:
    """What to run.  `budget` is the seconds of one measurement."""

    arch: str
    scale: str
    systems: Sequence[str]
    only: Sequence[str]
    rounds: int
    budget: float
    cuda_c: Path
    scratch: Path
    path: str = ""

    def options(self, system: str, cache: Path, first: str | None = None) -> Options:
        arch = self.arch if system.startswith("quadpy") or self.arch == "cpu" else "cuda"
        return Options(system, arch, self.scale, str(cache), first)


@dataclass
class Row:
    """A line of the table: seconds of each round (of `overlap`, a ratio), which way was the fastest, what failed."""

    workload: Workload
    title: str
    size: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    ways: dict[str, dict[str, float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def time(self, system: str) -> float | None:
        return statistics.median(self.seconds[system]) if self.seconds.get(system) else None

    def spread(self, system: str) -> float | None:
        """How far the rounds lie apart, as a part of their median."""
        values = self.seconds.get(system)
        return (max(values) - min(values)) / statistics.median(values) if values else None


@dataclass
class Measured:
    """All rows; the rate of fused multiply-adds where CUDA C could measure it; systems that are not there, and why."""

    rows: list[Row] = field(default_factory=list)
    multiply_adds: float | None = None
    absent: dict[str, str] = field(default_factory=dict)


def run(plan: Plan, absent: dict[str, str]) -> Measured:
    """Runs everything; `absent` are systems that are known not to be there."""
    measured = Measured(absent=dict(absent))
    with started(plan, measured.absent) as children:
        if "CUDA C" in children:
            measured.multiply_adds = children["CUDA C"].ask("peak", MEASURE)["value"]
        for name in plan.only:
            if name in WORKLOADS:
                measured.rows.append(_measure(plan, WORKLOADS[name], children))
    for name in plan.only:
        if name in FIRST_CALLS:
            measured.rows += _first_calls(
                plan, FIRST_CALLS[name], [s for s in plan.systems if s not in measured.absent]
            )
    return measured


@contextmanager
def started(plan: Plan, absent: dict[str, str]) -> Iterator[dict[str, Child]]:
    """A child of each system but those in `absent`, to which those are added that turn out not to be there."""
    cache = plan.scratch / "cache"
    cache.mkdir()
    place = Place(plan.cuda_c, cache, plan.path)
    with ExitStack() as stack:
        children = {
            system: stack.enter_context(closing(Child(plan.options(system, cache), place)))
            for system in plan.systems
            if system not in absent
        }
        _start(children, absent)
        yield children


def _start(children: dict[str, Child], absent: dict[str, str]) -> None:
    """Starts all at once; those whose systems are not there are dropped, and `absent` says why."""
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


def _measure(plan: Plan, workload: Workload, children: dict[str, Child]) -> Row:
    row = Row(workload, workload.label(plan.scale), workload.elements(plan.scale))
    taking_part = {s: c for s, c in children.items() if s != "quadpy fast" or workload.modes}
    ready = prepare(workload, taking_part, row)
    for _ in range(plan.rounds):
        for system in list(ready):
            try:
                value = children[system].ask("measure", MEASURE, budget=plan.budget)["value"]
                row.seconds.setdefault(system, []).append(value)
            except ChildFailure as failure:  # noqa: PERF203 - likewise
                row.problems[system] = str(failure)
                ready.remove(system)
    for system, child in taking_part.items():
        clear(child, failed=system in row.problems)
    note(f"{row.title}: {_brief(row)}")
    return row


def prepare(workload: Workload, children: dict[str, Child], row: Any) -> list[str]:
    """Lets all children prepare at once; gives the systems that can be measured, and leaves in `row` what they say."""
    ready: list[str] = []
    asked: list[str] = []
    for system, child in children.items():
        try:
            if not child.running:
                child.start()
                child.receive(START)
            child.send("prepare", workload=workload.name)
            asked.append(system)
        except ChildFailure as failure:  # noqa: PERF203 - likewise
            row.problems[system] = str(failure)
    for system in asked:
        try:
            answer = children[system].receive(PREPARE)
        except ChildFailure as failure:
            row.problems[system] = str(failure)
            continue
        _take(answer, system, row, ready)
    return ready


def _take(answer: dict[str, Any], system: str, row: Any, ready: list[str]) -> None:
    if problem := answer.get("problem"):
        row.problems[system] = problem
    elif not answer.get("absent"):
        ready.append(system)
        if "steps" in answer:
            row.take(system, answer)
        if answer.get("way"):
            row.ways[system] = {answer["way"]: answer["ways"].pop(answer["way"]), **answer["ways"]}
        if answer.get("note"):
            note(f"{row.title}, {system}: one way is left out: {answer['note']}")


def clear(child: Child, *, failed: bool) -> None:
    """Drops the workload; a child that failed, and whose device may be lost, starts anew when it is next needed."""
    if failed:
        child.close()
        return
    try:
        child.ask("drop", MEASURE)
    except ChildFailure:
        child.close()


def _first_calls(plan: Plan, workload: Workload, systems: Sequence[str]) -> Iterator[Row]:
    """A process with an empty cache, then one that finds what the first has left; anew in each round."""
    kinds = [Row(workload, f"{workload.title}, {kind}", workload.elements(plan.scale)) for kind in ("cold", "cached")]
    takers = [s for s in systems if s in ("Quadrants", "numba-cuda", "Triton", "quadpy")]
    for _ in range(min(plan.rounds, 2)):
        for system in takers:
            with TemporaryDirectory(dir=plan.scratch) as folder:
                for row in kinds:
                    if system not in row.problems:
                        _first_call(plan, workload, system, Path(folder), row)
    for row in kinds:
        note(f"{row.title}: {_brief(row)}")
    yield from kinds


def _first_call(plan: Plan, workload: Workload, system: str, folder: Path, row: Row) -> None:
    name = workload.name.removeprefix("first_")
    with closing(Child(plan.options(system, folder, name), Place(plan.cuda_c, folder, plan.path))) as child:
        try:
            child.start()
            child.receive(START)
            answer = child.ask("first", PREPARE, workload=name)
            if "value" in answer:
                row.seconds.setdefault(system, []).append(answer["value"])
            child.finish()
        except ChildFailure as failure:
            row.problems[system] = str(failure)


def _brief(row: Row) -> str:
    factor = {"ms": 1e3, "µs": 1e6, "x": 1.0}[row.workload.unit]
    parts = [f"{s} {(row.time(s) or 0.0) * factor:.4g}" for s in row.seconds]
    return ", ".join(parts + [f"{system}: {text}" for system, text in row.problems.items()]) + f" [{row.workload.unit}]"


def note(text: str) -> None:
    """Progress, away from the table."""
    print(text, file=sys.stderr, flush=True)
