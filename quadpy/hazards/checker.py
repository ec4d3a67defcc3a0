"""The checker: is told of all work, and compares each access with what nothing orders before it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Final

from quadpy.hazards.calls import CallSlots
from quadpy.hazards.clocks import Clock, Clocks, Lane, Snapshot, joined
from quadpy.hazards.edges import missing_edges
from quadpy.hazards.graphs import GraphPart, Graphs
from quadpy.hazards.ledger import READ, WRITE, Conflict, Ledger, Operation, Slot
from quadpy.hazards.memory import Allocations, root_of
from quadpy.hazards.model import Hazard
from quadpy.hazards.regions import Grid, Overlap, region_in
from quadpy.hazards.reports import hazard_of
from quadpy.hazards.sinks import Sinks
from quadpy.hazards.sites import call_place
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, EventHandle
from quadpy.runtime.launch.observing import ObservedAccess, ObservedCall, ObservedNode, ObservedStream
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["Checker"]

Touched = Sequence[tuple[Ledger, Slot]]


class _Submission:
    """Operations that are being submitted; until ``done`` they are in doubt."""

    __slots__ = ("_checker", "_operations", "_waits")

    def __init__(self, checker: Checker, operations: Sequence[Operation], *, waits: bool) -> None:
        self._checker, self._operations, self._waits = checker, operations, waits

    def done(self) -> None:
        """As ``Submission.done``."""
        for operation in self._operations:
            operation.doubt = ""
        if self._waits:
            self._checker.complete(self._operations[0].lane)


class Checker:
    """An ``Observer`` that reports hazards to ``sinks``.

    Its lock makes one step of each call's checks and notes, so that of two threads one comes first.
    """

    def __init__(self, sinks: Sinks) -> None:
        self._sinks = sinks
        self._lock: Final = new_lock()
        self._clocks = Clocks()
        self._memory = Allocations()
        self._calls = CallSlots(self._memory)
        self._graphs = Graphs(self._memory)

    # work

    def launching(self, on: ObservedStream, call: ObservedCall) -> _Submission:
        """As ``Observer.launching``."""
        with self._lock:
            touched, waits = self._calls.touched(call)
            lane = self._lane(on.timeline, on.device.life)
            operation = Operation(lane, self._clocks.before(lane), call.name, call.span, call_place())
            self._submit(operation, touched)
        return _Submission(self, (operation,), waits=waits or call.returns)

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        """As ``Observer.reading``: the host knows the writers of the array to be complete, and what is on the stream."""
        with self._lock:
            for writer in [] if source.memory is None else self._ledger(source).writers():
                self._clocks.complete(writer.point())
            self._clocks.complete(self._clocks.snapshot(self._lane(on.timeline, on.device.life)))

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> None:
        """As ``Observer.writing``: the write comes after all users of the array."""
        with self._lock:
            self._write(self._lane(on.timeline, on.device.life), target, what, ())

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> None:
        """As ``Observer.copying``: the copy comes after the writers of the source and the users of the target."""
        with self._lock:
            if source.memory is None:
                return
            lane, ledger = self._lane(on.timeline, on.device.life), self._ledger(source)
            for writer in ledger.writers():
                self._clocks.follow(lane, writer.point())
            read = [(ledger, slot)] if (slot := _slot(ledger, READ, source)) is not None else []
            self._write(lane, target, "copy_from", read)

    def _write(self, lane: Lane, target: ObservedAccess, what: str, more: Touched) -> None:
        if target.memory is None:
            return
        ledger = self._ledger(target)
        if (slot := _slot(ledger, WRITE, target)) is None:
            return
        for user in ledger.users():
            self._clocks.follow(lane, user.point())
        operation = Operation(lane, self._clocks.before(lane), what, None, call_place())
        self._submit(operation, [*more, (ledger, slot)])
        operation.doubt = ""

    # graphs

    def launching_graph(
        self,
        on: ObservedStream,
        graph: object,
        version: object,
        nodes: Callable[[], Sequence[ObservedNode]],
        *,
        overlap: bool,
    ) -> _Submission:
        """As ``Observer.launching_graph``: one operation for each part of the graph that an event tells apart."""
        with self._lock:
            lane = self._lane(on.timeline, on.device.life)
            known = self._graphs.of(graph, version, nodes)
            if not overlap:
                for point in known.launches.values():
                    self._clocks.follow(lane, point)
            place, before = call_place(), self._clocks.before(lane)
            operations = [self._part(lane, part, before, place) for part in known.parts]
            known.launches = {**known.launches, lane.number: self._clocks.snapshot(lane)}
        return _Submission(self, operations, waits=False)

    def _part(self, lane: Lane, part: GraphPart, before: Clock, place: tuple[str, int]) -> Operation:
        """Submit a part of a graph, which comes after what it waits for; record its events."""
        clock = before
        for event in part.waits:
            if (point := self._point(event)) is not None:
                clock = joined(clock, point.contents())
        operation = Operation(lane, clock, "a launch of a graph", None, place)
        self._submit(operation, part.touched)
        lane.clock = joined(lane.clock, clock)
        for event in part.records:
            event.observed = Snapshot(lane, operation.time, clock)
        return operation

    def graph_synchronized(self, graph: object) -> None:
        """As ``Observer.graph_synchronized``."""
        with self._lock:
            for point in self._graphs.launches_of(graph):
                self._clocks.complete(point)

    def edges(self, nodes: Sequence[ObservedNode]) -> None:
        """As ``Observer.edges``."""
        with self._lock:
            self._sinks.report(list(missing_edges(nodes)))

    # order

    def recorded(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """As ``Observer.recorded``."""
        with self._lock:
            event.observed = self._clocks.snapshot(self._lane(stream, life))

    def waited(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """As ``Observer.waited``."""
        with self._lock:
            if (point := self._point(event)) is not None:
                self._clocks.follow(self._lane(stream, life), point)

    def completed(self, event: OwnerRef[EventHandle]) -> None:
        """As ``Observer.completed``."""
        with self._lock:
            if (point := self._point(event)) is not None:
                self._clocks.complete(point)

    def synchronized(self, stream: Timeline, life: Life) -> None:
        """As ``Observer.synchronized``."""
        self.complete(self._lane(stream, life))

    def device_synchronized(self, life: Life) -> None:
        """As ``Observer.device_synchronized``."""
        with self._lock:
            for lane in tuple(self._clocks.lanes.values()):
                if lane.life is life:
                    self._clocks.complete(self._clocks.snapshot(lane))

    def released(self, block: Block) -> None:
        """As ``Observer.released``."""
        block.observed = None

    def complete(self, lane: Lane) -> None:
        """The host knows that all of ``lane`` is complete."""
        with self._lock:
            self._clocks.complete(self._clocks.snapshot(lane))

    # helpers

    def _lane(self, timeline: Timeline, life: Life) -> Lane:
        found = timeline.observed
        if isinstance(found, Lane) and found.clocks is self._clocks:
            return found
        default = type(timeline) is Timeline and timeline.stream is None and timeline.handle == DEFAULT_STREAM
        made = timeline.observed = self._clocks.lane(weakref.ref(timeline), life, default=default)
        return made

    def _point(self, event: OwnerRef[EventHandle]) -> Snapshot | None:
        """What an event stands for; None if it was never recorded while the checker was on."""
        found = event.observed
        return found if isinstance(found, Snapshot) and found.lane.clocks is self._clocks else None

    def _ledger(self, access: ObservedAccess) -> Ledger:
        memory = access.memory
        assert memory is not None
        return self._memory.of_block(memory) if isinstance(memory, Block) else self._memory.of_root(root_of(memory))

    def _submit(self, operation: Operation, touched: Touched) -> None:
        """Check ``operation`` and note it; HazardError if a hazard is certain and not collected: then nothing is noted."""
        lane, clock = operation.lane, operation.clock
        for ledger, slot in touched:
            history = ledger.touched
            if len(history) > 1 or (history and lane not in history):
                found = list(ledger.conflicts(lane, clock, slot))
                if found:
                    self._sinks.report(_hazards(found, operation, slot))
        lane.time = operation.time
        for ledger, slot in touched:
            ledger.note(operation, slot, self._clocks.host)


def _hazards(conflicts: list[Conflict], operation: Operation, slot: Slot) -> list[Hazard]:
    """The hazards of one access, those that are certain and those of the latest operations first."""
    conflicts.sort(key=lambda found: (found[2] is not Overlap.CERTAIN, bool(found[1].reason), -found[0].time))
    return [hazard_of((before, earlier), (operation, slot), how) for before, earlier, how in conflicts]


def _slot(ledger: Ledger, kind: str, access: ObservedAccess) -> Slot | None:
    """What the host touches; None for no bytes."""
    layout, where = access.layout, access.where
    where_key = None if where is None else tuple(w if isinstance(w, int) else (w.start, w.stop, w.step) for w in where)
    key = kind, layout, where_key, access.name
    found = ledger.slots.get(key)
    if found is None:
        grid = Grid(layout.start, layout.shape, layout.strides, layout.dtype.itemsize)
        region = region_in(grid, [_positions(w, n) for w, n in zip(where or (), layout.shape, strict=False)])
        if region is None:
            return None
        if len(ledger.slots) >= _MOST:
            ledger.slots = {}
        found = ledger.slots[key] = ledger.slot(kind, region, "", access.name)
    return found


_MOST: Final = 64
"""Accesses of the host to one allocation that are kept to be used again."""


def _positions(where: int | slice, extent: int) -> range:
    if isinstance(where, slice):
        return range(*where.indices(extent))
    at = where % extent
    return range(at, at + 1)
