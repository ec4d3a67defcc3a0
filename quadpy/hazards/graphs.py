"""Launches of graphs: the memory that they touch, and the parts that their events separate."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quadpy.core.conflicts import Hazard
from quadpy.hazards.calls import node_entries
from quadpy.hazards.clocks import Snapshot
from quadpy.hazards.edges import ancestors_of, missing_edges
from quadpy.hazards.ledger import Ledger
from quadpy.hazards.memory import Allocations
from quadpy.hazards.operations import Entry
from quadpy.runtime.drivers.driver import EventHandle
from quadpy.runtime.launch.observing import ObservedNode
from quadpy.runtime.streams.owned import OwnerRef


@dataclass(slots=True)
class GraphSegment:
    """Nodes of a graph that come after the same waits for events, and before the same records."""

    touched: list[tuple[Ledger, Entry]] = field(default_factory=list)
    waits: tuple[OwnerRef[EventHandle], ...] = ()
    records: list[OwnerRef[EventHandle]] = field(default_factory=list)


@dataclass(slots=True)
class KnownGraph:
    """The state of a graph at its last launch.

    version   the version of the nodes: they stay the same while it does
    parts     in an order in which they can run
    launches  for each lane, the point after the last launch there
    """

    version: object
    parts: Sequence[GraphSegment]
    launches: dict[int, Snapshot]


class Graphs:
    """The graphs that were launched, each for as long as it lives."""

    def __init__(self, memory: Allocations, report: Callable[[Sequence[Hazard]], None]) -> None:
        self._memory, self._report = memory, report
        self._known: weakref.WeakKeyDictionary[object, KnownGraph] = weakref.WeakKeyDictionary()

    def of(self, graph: object, version: object, nodes: Callable[[], Sequence[ObservedNode]]) -> KnownGraph:
        """What is known about ``graph``; its nodes stay the same while ``version`` does.

        Raises:
            HazardError: the edges of new nodes do not order them, and hazards are not collected.
        """
        found = self._known.get(graph)
        if found is None or found.version != version:
            launches, known = {} if found is None else found.launches, nodes()
            self._report(list(missing_edges(known)))  # nodes may have other arrays than when the graph was made
            found = self._known[graph] = KnownGraph(version, _parts(known, self._memory), launches)
        return found

    def launches_of(self, graph: object) -> list[Snapshot]:
        """The points of the last launches of ``graph``."""
        found = self._known.get(graph)
        return [] if found is None else list(found.launches.values())


def _parts(nodes: Sequence[ObservedNode], memory: Allocations) -> list[GraphSegment]:
    """``nodes`` in parts: those before the first record of an event, those before the next one, …, and the rest."""
    ancestors = ancestors_of(nodes)
    records = sorted((n for n, node in enumerate(nodes) if node.records), key=lambda n: ancestors[n].bit_count())
    waits = sum(1 << number for number, node in enumerate(nodes) if node.waits)
    found: dict[tuple[int, int], GraphSegment] = {}
    for number, node in enumerate(nodes):
        stage = next((k for k, record in enumerate(records) if ancestors[record] >> number & 1), len(records))
        awaited = ancestors[number] & waits
        part = found.get((stage, awaited))
        if part is None:
            events = tuple(event for n, one in enumerate(nodes) if awaited >> n & 1 for event in one.waits)
            part = found[stage, awaited] = GraphSegment(waits=events)
        for access in node.accesses():
            for entry in node_entries(access):
                handle = memory.of_bytes(entry.region.low, node.memory)
                if handle is not None:
                    part.touched.append((handle.ledger, handle.ledger.adopt(entry, handle)))
    ordered = [found[key] for key in sorted(found)]
    for k, record in enumerate(records):
        stages = [part for key, part in sorted(found.items()) if key[0] <= k]
        last = stages[-1] if stages else GraphSegment()
        if not stages:
            ordered.insert(0, last)
        last.records += nodes[record].records
    return ordered
