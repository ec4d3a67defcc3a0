"""The checker: it is told of all work, and compares each access with earlier ones that nothing orders before it.

For launches of graphs, it notes the memory that they touch, the parts that their events separate, and the hazards that
were found inside.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from quadpy.core.conflicts import Hazard
from quadpy.hazards.calls import Calls, node_entries
from quadpy.hazards.clocks import Clock, Lane, Snapshot, joined
from quadpy.hazards.edges import ancestors_of, missing_edges
from quadpy.hazards.host_notes import HostNotes
from quadpy.hazards.notes import Notes
from quadpy.hazards.operations import ALLOCATION, FREE, READ, Entry, Operation
from quadpy.hazards.regions import Region
from quadpy.hazards.sites import call_place
from quadpy.hazards.submissions import Submitted
from quadpy.runtime.device.devices import current_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quadpy.hazards.ledger import Ledger, Named
    from quadpy.hazards.memory import Allocations
    from quadpy.hazards.sinks import Sinks
    from quadpy.runtime.device.life import Life
    from quadpy.runtime.drivers.driver import EventHandle
    from quadpy.runtime.launch.host_access import HostMemory
    from quadpy.runtime.launch.observing import ObservedCall, ObservedNode, ObservedStream, Submission
    from quadpy.runtime.memory.allocators.block import Block
    from quadpy.runtime.streams.owned import OwnerRef
    from quadpy.runtime.streams.timeline import Timeline


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


class Checker(HostNotes, GraphNotes):
    """Notes all work: this class itself calls of kernels, what orders work, and where memory begins and ends for the user."""

    def __init__(self, sinks: Sinks) -> None:
        super().__init__(sinks)
        self._calls = Calls(self._memory)

    def launching(self, on: ObservedStream, call: ObservedCall) -> Submission:
        """Like ``Observer.launching``."""
        with self._lock:
            lane = self._lane(on.timeline, on.device.life)
            run = self._calls.run(call, lane)
            if run is None:
                return self._launching_alone(call, lane)
            operation = self._call(call, lane, lent=run.lent)
            if run.follows_all(operation.clock):
                lane.time = operation.time
                run.add(call.values, operation)
            else:
                self._submit(operation, run.touched(call.values))
        return self._submitted(operation, waits=True) if call.returns else operation

    def _launching_alone(self, call: ObservedCall, lane: Lane) -> Submission:
        """A call that belongs to no run, as only the call refers to its arrays of the host."""
        touches = self._calls.touches(call)
        operation = self._call(call, lane, lent=touches.lent)
        for entry in touches.of_host:
            self._check_host(operation, entry)
        self._submit(operation, touches.touched)
        return self._submitted(operation, waits=touches.waits or call.returns)

    def _submitted(self, operation: Operation, *, waits: bool) -> Submission:
        return Submitted((operation,), partial(self.complete, operation.lane)) if waits else operation

    def _call(self, call: ObservedCall, lane: Lane, *, lent: bool) -> Operation:
        """The operation of ``call``; with ``lent`` arrays, it comes after the thread's current stream."""
        if lent:
            current = current_device().current_stream()
            self._clocks.follow(lane, self._clocks.snapshot(self._lane(current.timeline, current.device.life)))
        return Operation(lane, self._clocks.before(lane), call.name, call.span, call_place())

    def _check_host(self, operation: Operation, entry: Entry) -> None:
        """A call reads an array of the host at once, and writes it when its work is complete; it keeps none."""
        if entry.kind == READ:
            operation = Operation(self._host, self._clocks.host, operation.what, operation.kernel, operation.place)
        for ledger in self._memory.at(entry.region.low, entry.region.high, on_host=True):
            self._check(operation, ledger, entry)

    def recorded(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """Like ``Observer.recorded``."""
        with self._lock:
            event.observed = self._clocks.snapshot(self._lane(stream, life))

    def waited(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """Like ``Observer.waited``."""
        with self._lock:
            if (point := self._point(event)) is not None:
                self._clocks.follow(self._lane(stream, life), point)

    def completed(self, event: OwnerRef[EventHandle]) -> None:
        """Like ``Observer.completed``."""
        with self._lock:
            if (point := self._point(event)) is not None:
                self._clocks.complete(point)

    def synchronized(self, stream: Timeline, life: Life) -> None:
        """Like ``Observer.synchronized``."""
        self.complete(self._lane(stream, life))

    def device_synchronized(self, life: Life) -> None:
        """Like ``Observer.device_synchronized``."""
        with self._lock:
            for lane in tuple(self._clocks.lanes.values()):
                if lane.life is life:
                    self._clocks.complete(self._clocks.snapshot(lane))

    def complete(self, lane: Lane) -> None:
        """Note that the host knows that all of ``lane`` is complete."""
        with self._lock:
            self._clocks.complete(self._clocks.snapshot(lane))

    def allocated(self, stream: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool) -> None:
        """Like ``Observer.allocated``."""
        with self._lock:
            handle = self._memory.allocated(pointer, nbytes, on_host=on_host)
            self._whole(self._lane(stream, life), handle, ALLOCATION, "malloc_async", pointer, nbytes)

    def freeing(
        self, stream: Timeline, home: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool
    ) -> None:
        """Like ``Observer.freeing``: after the work on both streams."""
        with self._lock:
            lane = self._lane(stream, life)
            self._clocks.follow(lane, self._clocks.snapshot(self._lane(home, life)))
            for ledger in self._memory.at(pointer, pointer + nbytes, on_host=on_host):
                for handle in ledger.handles[:1]:
                    self._whole(lane, handle, FREE, "free_async", pointer, nbytes)

    def _whole(self, lane: Lane, handle: Named, kind: str, what: str, pointer: int, nbytes: int) -> None:
        """Note that ``lane`` begins or ends the memory of ``handle``."""
        ledger = handle.ledger
        entry = ledger.entry(None, kind, Region(pointer, pointer + nbytes, True), "", "memory")
        operation = self._operation(lane, what)
        self._submit(operation, [(ledger, entry)])
        operation.doubt = ""

    def followed(self, before: Timeline, stream: Timeline, life: Life) -> None:
        """Like ``Observer.followed``."""
        with self._lock:
            self._clocks.follow(self._lane(stream, life), self._clocks.snapshot(self._lane(before, life)))

    def exported(self, consumer: Timeline, life: Life, memory: Block | HostMemory) -> None:
        """Like ``Observer.exported``."""
        with self._lock:
            lane, handle = self._lane(consumer, life), self._name(memory)
            for user in handle.ledger.users(handle):
                self._clocks.follow(lane, user.point())
