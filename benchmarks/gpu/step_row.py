"""A row of the comparison of graphs: every way in which each system launches a step."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.workload import Workload

BASE = ("launches", "host loop")  # what other ways of the same system are compared with


@dataclass
class StepRow:
    """A step: the host's seconds and all seconds of each round, by system and way; failures; remarks of the ways."""

    workload: Workload
    title: str
    times: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    pictures: dict[tuple[str, str], str] = field(default_factory=dict)

    def take(self, system: str, answer: dict[str, Any]) -> None:
        """Records what a child reports about its ways."""
        self.problems |= {f"{system}, {way}": text for way, text in answer["problems"].items()}
        self.remarks |= {f"{system}, {way}": text for way, text in answer["remarks"].items()}
        self.pictures |= {(system, way): "" for way in answer["pictures"]}

    def add(self, system: str, value: dict[str, tuple[float, float]]) -> None:
        """One measurement of each way of a system."""
        for way, (host, total) in value.items():
            self.times.setdefault((system, way), []).append((host, total))

    def host(self, system: str, way: str) -> float | None:
        return self._median(system, way, 0)

    def total(self, system: str, way: str) -> float | None:
        return self._median(system, way, 1)

    def spread(self, system: str, way: str) -> float | None:
        """The distance between the slowest and the fastest round, relative to the median."""
        totals = [total for _, total in self.times.get((system, way), [])]
        return (max(totals) - min(totals)) / statistics.median(totals) if totals else None

    def base(self, system: str) -> float | None:
        """The whole time of separate launches."""
        return next((time for name in BASE if (time := self.total(system, name)) is not None), None)

    def slower(self) -> Iterator[tuple[str, str]]:
        """The ways of quadpy that take longer than separate launches, by more than the spread of the rounds."""
        base = self.base("quadpy")
        for system, way in self.times:
            total, spread = self.total(system, way), self.spread(system, way)
            if system == "quadpy" and base and total and total > base * (1 + (spread or 0.0)) and way not in BASE:
                yield system, way

    def record(self) -> dict[str, Any]:
        """The row for JSON."""
        ways = [
            {
                "system": system,
                "way": way,
                "host": self.host(system, way),
                "total": self.total(system, way),
                "spread": self.spread(system, way),
                "rounds": times,
            }
            for (system, way), times in self.times.items()
        ]
        return {
            "workload": self.workload.name,
            "title": self.title,
            "ways": ways,
            "remarks": self.remarks,
            "problems": self.problems,
        }

    def _median(self, system: str, way: str, part: int) -> float | None:
        found = self.times.get((system, way))
        return statistics.median(times[part] for times in found) if found else None
