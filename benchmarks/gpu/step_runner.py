"""The order of the measurements of steps: systems take turns, and in each its ways do."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpu.processes import MEASURE, Child, ChildFailure
from gpu.runner import Plan, clear, note, prepare, started
from gpu.workloads import STEPS, Workload

BASE = ("launches", "host loop")  # what other ways of the same system are compared with


@dataclass
class StepRow:
    """A step: seconds of the host and in all, of each round, by system and way; what failed; what ways say."""

    workload: Workload
    title: str
    times: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    pictures: dict[tuple[str, str], str] = field(default_factory=dict)
    ways: dict[str, Any] = field(default_factory=dict)

    def take(self, system: str, answer: dict[str, Any]) -> None:
        """What a child says of its ways."""
        self.problems |= {f"{system}, {way}": text for way, text in answer["problems"].items()}
        self.remarks |= {f"{system}, {way}": text for way, text in answer["remarks"].items()}
        self.pictures |= {(system, way): "" for way in answer["pictures"]}

    def host(self, system: str, way: str) -> float | None:
        return self._median(system, way, 0)

    def total(self, system: str, way: str) -> float | None:
        return self._median(system, way, 1)

    def spread(self, system: str, way: str) -> float | None:
        """How far the rounds lie apart, as a part of their median."""
        totals = [total for _, total in self.times.get((system, way), [])]
        return (max(totals) - min(totals)) / statistics.median(totals) if totals else None

    def base(self, system: str) -> float | None:
        """The whole time of the launches one by one."""
        return next((time for name in BASE if (time := self.total(system, name)) is not None), None)

    def slower(self) -> Iterator[tuple[str, str]]:
        """The ways of quadpy that take longer than its launches, by more than the rounds lie apart."""
        base = self.base("quadpy")
        for system, way in self.times:
            total, spread = self.total(system, way), self.spread(system, way)
            if system == "quadpy" and base and total and total > base * (1 + (spread or 0.0)) and way not in BASE:
                yield system, way

    def _median(self, system: str, way: str, part: int) -> float | None:
        found = self.times.get((system, way))
        return statistics.median(times[part] for times in found) if found else None


@dataclass
class MeasuredSteps:
    """All rows, and the systems that are not there."""

    rows: list[StepRow] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)


def run(plan: Plan, absent: dict[str, str]) -> MeasuredSteps:
    """Runs everything; `absent` are systems that are known not to be there."""
    measured = MeasuredSteps(absent=dict(absent))
    with started(plan, measured.absent) as children:
        for name in plan.only:
            measured.rows.append(_measure(plan, STEPS[name], children))
    return measured


def _measure(plan: Plan, workload: Workload, children: dict[str, Child]) -> StepRow:
    row = StepRow(workload, workload.label(plan.scale))
    ready = prepare(workload, children, row)
    for _ in range(plan.rounds):
        for system in list(ready):
            try:
                found = children[system].ask("measure", MEASURE, budget=plan.budget)["value"]
            except ChildFailure as failure:
                row.problems[system] = str(failure)
                ready.remove(system)
                continue
            for way, (host, total) in found.items():
                row.times.setdefault((system, way), []).append((host, total))
    for system, way in row.slower():
        if (system, way) in row.pictures:
            row.pictures[system, way] = children[system].ask("picture", MEASURE, way=way)["value"]
    for system, child in children.items():
        clear(child, failed=system in row.problems)
    note(f"{row.title}: " + ", ".join(f"{s} {w} {(row.total(s, w) or 0) * 1e6:.1f}" for s, w in row.times) + " [µs]")
    return row
