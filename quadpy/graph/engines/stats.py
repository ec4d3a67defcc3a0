"""Counters of executable graphs and graph kernels."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, fields

_log = logging.getLogger("quadpy.graph")


@dataclass(frozen=True, slots=True)
class GraphStats:
    """Counters of an executable graph.

    launches  how often it was launched
    updates   how many nodes were changed
    rebuilds  how often changes rebuilt the driver's graph
    """

    launches: int = 0
    updates: int = 0
    rebuilds: int = 0


@dataclass(frozen=True, slots=True)
class GraphKernelStats:
    """Counters of a graph kernel's calls on GPUs.

    calls     the number of calls
    launches  launches of graphs: one a call, more where the host repeats a loop
    builds    graphs that were made
    rebuilds  graphs made to replace another, since a change was refused or there were many
    updates   nodes that were given other arguments
    copies    launches that put arguments into memory, where the nodes read them
    waits     how often the host waited for a loop's condition
    eager     calls that ran launch by launch, and ``reasons`` why; each is logged once
    """

    calls: int = 0
    launches: int = 0
    builds: int = 0
    rebuilds: int = 0
    updates: int = 0
    copies: int = 0
    waits: int = 0
    eager: int = 0
    reasons: tuple[str, ...] = ()


class Counts:
    """The counters while they grow; ``expected`` has the iterations that loops needed last, by node and number of the loop."""

    def __init__(self) -> None:
        self.expected: dict[tuple[str, int], int] = {}
        self.calls = self.launches = self.builds = self.rebuilds = 0
        self.updates = self.copies = self.waits = self.eager = 0
        self.reasons: dict[str, None] = {}

    def explain(self, reason: str, name: str) -> None:
        """Log once why calls of ``name`` are slower than they could be."""
        if reason not in self.reasons:
            self.reasons[reason] = None
            _log.warning("%s: %s", name, reason)

    @staticmethod
    def sum(counts: Iterable[Counts]) -> GraphKernelStats:
        """The sums of all ``counts``."""
        found = list(counts)
        names = [each.name for each in fields(GraphKernelStats) if each.name != "reasons"]
        totals = {name: sum(getattr(one, name) for one in found) for name in names}
        return GraphKernelStats(**totals, reasons=tuple(dict.fromkeys(r for one in found for r in one.reasons)))
