"""The checker's notes of launches of graphs, and of hazards that were found inside graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quadpy.core.conflicts import Hazard
from quadpy.hazards.clocks import Clock, Lane, Snapshot, joined
from quadpy.hazards.graphs import Graphs, GraphSegment
from quadpy.hazards.notes import Notes
from quadpy.hazards.operations import Operation
from quadpy.hazards.sinks import Sinks
from quadpy.hazards.sites import call_place
from quadpy.hazards.submissions import Submitted
from quadpy.runtime.launch.observing import ObservedNode, ObservedStream, Submission


class GraphNotes(Notes):
    """Launches of graphs."""

    def __init__(self, sinks: Sinks) -> None:
        super().__init__(sinks)
        self._graphs = Graphs(self._memory, sinks.report)

    def launching_graph(
        self,
        on: ObservedStream,
        graph: object,
        version: object,
        nodes: Callable[[], Sequence[ObservedNode]],
        *,
        overlap: bool,
    ) -> Submission:
        """Like ``Observer.launching_graph``: one operation for each part of the graph that its events separate."""
        with self._lock:
            lane = self._lane(on.timeline, on.device.life)
            known = self._graphs.of(graph, version, nodes)
            if not overlap:
                for point in known.launches.values():
                    self._clocks.follow(lane, point)
            place, before = call_place(), self._clocks.before(lane)
            operations = [self._part(lane, part, before, place) for part in known.parts]
            self._clocks.set(lane, lane.clock)  # later work comes after all parts, but these not after each other
            known.launches = {**known.launches, lane.number: self._clocks.snapshot(lane)}
        return Submitted(operations)

    def _part(self, lane: Lane, part: GraphSegment, before: Clock, place: tuple[str, int]) -> Operation:
        """Submit a part of a graph, which comes after what it waits for; record its events."""
        clock = before
        for event in part.waits:
            if (point := self._point(event)) is not None:
                clock = {**clock, **point.after(clock)}
        operation = Operation(lane, clock, "a launch of a graph", None, place)
        self._submit(operation, part.touched)
        self._clocks.set(lane, joined(lane.clock, clock))
        for event in part.records:
            event.observed = Snapshot(lane, operation.time, clock)
        return operation

    def graph_synchronized(self, graph: object) -> None:
        """Like ``Observer.graph_synchronized``."""
        with self._lock:
            for point in self._graphs.launches_of(graph):
                self._clocks.complete(point)

    def report(self, hazards: Sequence[object]) -> None:
        """Like ``Observer.report``."""
        with self._lock:
            self._sinks.report([hazard for hazard in hazards if isinstance(hazard, Hazard)])
