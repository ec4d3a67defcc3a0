"""The checker: is told of all work, and compares each access with what nothing orders before it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from quadpy.conflicts import Hazard
from quadpy.hazards.calls import Calls
from quadpy.hazards.clocks import Clock, Clocks, Lane, Snapshot, joined
from quadpy.hazards.graphs import GraphPart, Graphs
from quadpy.hazards.ledger import ALLOCATION, FREE, READ, WRITE, Conflict, Ledger, Named, Operation, Slot, covers
from quadpy.hazards.memory import Allocations, Handle, bounds_of
from quadpy.hazards.regions import Grid, Overlap, Region, region_in
from quadpy.hazards.reports import hazard_of
from quadpy.hazards.sinks import Sinks
from quadpy.hazards.sites import call_place
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, EventHandle
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.observing import (
    HostMemory,
    NodeTimer,
    ObservedAccess,
    ObservedCall,
    ObservedNode,
    ObservedStream,
    Observer,
    Submission,
    TaskTimes,
)
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["Checker"]

Touched = Sequence[tuple[Ledger, Slot]]


class _Submission:
    """Operations that are being submitted; until ``done`` they are in doubt."""

    __slots__ = ("_checker", "_operations", "_waits")

    task_times: ClassVar[TaskTimes | None] = None
    node_timer: ClassVar[NodeTimer | None] = None

    def __init__(self, checker: Checker, operations: Sequence[Operation], *, waits: bool) -> None:
        self._checker, self._operations, self._waits = checker, operations, waits

    def done(self) -> None:
        """As ``Submission.done``."""
        for operation in self._operations:
            operation.doubt = ""
        if self._waits:
            self._checker.complete(self._operations[0].lane)


class Checker(Observer):
    """Reports hazards to ``sinks``.

    Its lock makes one step of each call's checks and notes, so that of two threads one comes first.
    """

    checks: ClassVar[bool] = True

    def __init__(self, sinks: Sinks) -> None:
        self._sinks = sinks
        self._lock: Final = new_lock()
        self._clocks = Clocks()
        self._memory = Allocations()
        self._host = self._clocks.lane(_nothing, None, default=False)
        """The host's own accesses, which are complete when the call returns."""
        self._calls = Calls(self._memory)
        self._graphs = Graphs(self._memory, sinks.report)

    # work

    def launching(self, on: ObservedStream, call: ObservedCall) -> Submission:
        """As ``Observer.launching``."""
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
        return _Submission(self, (operation,), waits=True) if call.returns else operation

    def _launching_alone(self, call: ObservedCall, lane: Lane) -> _Submission:
        """A call that belongs to no run, since the host's arrays are the call's."""
        touches = self._calls.touches(call)
        operation = self._call(call, lane, lent=touches.lent)
        for slot in touches.of_host:
            self._check_host(operation, slot)
        self._submit(operation, touches.touched)
        return _Submission(self, (operation,), waits=touches.waits or call.returns)

    def _call(self, call: ObservedCall, lane: Lane, *, lent: bool) -> Operation:
        """The operation that ``call`` is; with ``lent`` arrays, after the thread's current stream."""
        if lent:
            current = current_device().current_stream()
            self._clocks.follow(lane, self._clocks.snapshot(self._lane(current.timeline, current.device.life)))
        return Operation(lane, self._clocks.before(lane), call.name, call.span, call_place())

    def _check_host(self, operation: Operation, slot: Slot) -> None:
        """A call reads an array of the host at once, and writes it when its work is complete; it keeps none."""
        if slot.kind == READ:
            operation = Operation(self._host, self._clocks.host, operation.what, operation.kernel, operation.place)
        for ledger in self._memory.at(slot.region.low, slot.region.high, on_host=True):
            self._check(operation, ledger, slot)

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        """As ``Observer.reading``: the host knows the writers of the array to be complete, and what is on the stream."""
        with self._lock:
            if (handle := self._handle(source)) is None:
                return
            for writer in handle.ledger.users(handle, writers=True):
                self._clocks.complete(writer.point())
            lane = self._lane(on.timeline, on.device.life)
            self._clocks.complete(self._clocks.snapshot(lane))
            if (slot := _slot(handle, READ, source)) is not None:
                self._check(
                    Operation(lane, self._clocks.before(lane), "the host", None, call_place()), handle.ledger, slot
                )

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> _Submission:
        """As ``Observer.writing``: the write comes after all users of the array."""
        with self._lock:
            self._write(self._lane(on.timeline, on.device.life), target, what, ())
        return _Submission(self, (), waits=False)

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> _Submission:
        """As ``Observer.copying``: the copy comes after the writers of the source and the users of the target."""
        with self._lock:
            lane, handle = self._lane(on.timeline, on.device.life), self._handle(source)
            if handle is not None:
                for writer in handle.ledger.users(handle, writers=True):
                    self._clocks.follow(lane, writer.point())
                slot = _slot(handle, READ, source)
                self._write(lane, target, "copy_from", [] if slot is None else [(handle.ledger, slot)])
        return _Submission(self, (), waits=False)

    def _write(self, lane: Lane, target: ObservedAccess, what: str, more: Touched) -> None:
        handle = self._handle(target)
        if handle is None or (slot := _slot(handle, WRITE, target)) is None:
            return
        for user in handle.ledger.users(handle):
            self._clocks.follow(lane, user.point())
        operation = Operation(lane, self._clocks.before(lane), what, None, call_place())
        self._submit(operation, [*more, (handle.ledger, slot)])
        operation.doubt = ""

    def declared(self, on: ObservedStream, what: str, accesses: Sequence[tuple[str, ObservedAccess]]) -> None:
        """Another library's work on a stream: ``accesses`` that "reads" or "writes" arrays."""
        with self._lock:
            lane = self._lane(on.timeline, on.device.life)
            operation = Operation(lane, self._clocks.before(lane), what, None, call_place())
            self._submit(operation, self._declared(accesses))
            operation.doubt = ""

    def declared_on_host(self, what: str, accesses: Sequence[tuple[str, ObservedAccess]]) -> None:
        """The same of the host, which is done when it calls again."""
        with self._lock:
            operation = Operation(self._host, self._clocks.host, what, None, call_place())
            for ledger, slot in self._declared(accesses):
                self._check(operation, ledger, slot)

    def _declared(self, accesses: Sequence[tuple[str, ObservedAccess]]) -> list[tuple[Ledger, Slot]]:
        found: list[tuple[Ledger, Slot]] = []
        for kind, access in accesses:
            handle = self._handle(access)
            if handle is not None and (slot := _slot(handle, READ if kind == "reads" else WRITE, access)) is not None:
                found.append((handle.ledger, slot))
        return found

    def host_reads(self, source: Numbers) -> None:
        """As ``Observer.host_reads``."""
        if not source.size:
            return
        with self._lock:
            low, high = bounds_of(source)
            slot = Slot(READ, Region(low, high, source.flags.c_contiguous), "", "an array of NumPy")
            operation = Operation(self._host, self._clocks.host, "the host", None, call_place())
            for ledger in self._memory.at(low, high, on_host=True):
                self._check(operation, ledger, slot)

    # memory by address

    def allocated(self, stream: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool) -> None:
        """As ``Observer.allocated``."""
        with self._lock:
            handle = self._memory.allocated(pointer, nbytes, on_host=on_host)
            self._whole(self._lane(stream, life), handle, ALLOCATION, "malloc_async", pointer, nbytes)

    def freeing(
        self, stream: Timeline, home: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool
    ) -> None:
        """As ``Observer.freeing``: after the work on both streams."""
        with self._lock:
            lane = self._lane(stream, life)
            self._clocks.follow(lane, self._clocks.snapshot(self._lane(home, life)))
            for ledger in self._memory.at(pointer, pointer + nbytes, on_host=on_host):
                for handle in ledger.handles[:1]:
                    self._whole(lane, handle, FREE, "free_async", pointer, nbytes)

    def _whole(self, lane: Lane, handle: Named, kind: str, what: str, pointer: int, nbytes: int) -> None:
        """``lane`` begins or ends the memory of ``handle``."""
        ledger = handle.ledger
        slot = ledger.slot(None, kind, Region(pointer, pointer + nbytes, True), "", "memory")
        operation = Operation(lane, self._clocks.before(lane), what, None, call_place())
        self._submit(operation, [(ledger, slot)])
        operation.doubt = ""

    def followed(self, before: Timeline, stream: Timeline, life: Life) -> None:
        """As ``Observer.followed``."""
        with self._lock:
            self._clocks.follow(self._lane(stream, life), self._clocks.snapshot(self._lane(before, life)))

    def exported(self, consumer: Timeline, life: Life, memory: Block | HostMemory) -> None:
        """As ``Observer.exported``."""
        with self._lock:
            lane, handle = self._lane(consumer, life), self._name(memory)
            for user in handle.ledger.users(handle):
                self._clocks.follow(lane, user.point())

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

    def report(self, hazards: Sequence[object]) -> None:
        """As ``Observer.report``."""
        with self._lock:
            self._sinks.report([hazard for hazard in hazards if isinstance(hazard, Hazard)])

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

    def _handle(self, access: ObservedAccess) -> Handle | None:
        return None if access.memory is None else self._name(access.memory)

    def _name(self, memory: Block | HostMemory) -> Handle:
        return self._memory.of_block(memory) if isinstance(memory, Block) else self._memory.of_storage(memory)

    def _submit(self, operation: Operation, touched: Touched) -> None:
        """Check ``operation`` and note it; HazardError if a hazard is certain and not collected: then nothing is noted."""
        lane, known = operation.lane, operation.clock.get
        begun = None
        for ledger, slot in touched:
            if ledger.free is None:
                for other in ledger.touched:
                    if other is not lane and known(other.number, 0) < other.time:
                        break
                else:  # after all work of all streams that used it: the common case
                    continue
            if slot.kind == ALLOCATION:
                begun = ledger
            if ledger.free is not None and begun is not ledger:
                self._sinks.report([hazard_of(ledger.free, (operation, slot), Overlap.CERTAIN)])
            else:
                self._check(operation, ledger, slot)
        lane.time = operation.time
        for ledger, slot in touched:
            ledger.note(operation, slot, self._clocks.host)

    def _check(self, operation: Operation, ledger: Ledger, slot: Slot) -> None:
        found = list(ledger.conflicts(operation.lane, operation.clock, slot))
        if found:
            self._sinks.report(_hazards(found, operation, slot))


def _nothing() -> None:
    """The host has no stream."""


def _hides(later: Conflict, earlier: Conflict) -> bool:
    """Whether the access ``later``, on the same stream, stands for ``earlier``, too."""
    same = later[0].lane is earlier[0].lane and later[0].time > earlier[0].time
    return same and later[2] is earlier[2] and covers(later[1], earlier[1])


def _hazards(conflicts: list[Conflict], operation: Operation, slot: Slot) -> list[Hazard]:
    """The hazards of one access, those that are certain and those of the latest operations first."""
    conflicts = [one for one in conflicts if not any(_hides(other, one) for other in conflicts)]
    conflicts.sort(key=lambda found: (found[2] is not Overlap.CERTAIN, bool(found[1].reason), -found[0].time))
    return [hazard_of((before, earlier), (operation, slot), how) for before, earlier, how in conflicts]


def _slot(handle: Handle, kind: str, access: ObservedAccess) -> Slot | None:
    """What the host touches; None for no bytes."""
    ledger = handle.ledger
    layout, where = access.layout, access.where
    where_key = None if where is None else tuple(w if isinstance(w, int) else (w.start, w.stop, w.step) for w in where)
    key = id(handle), kind, layout, where_key, access.name
    found = ledger.slots.get(key)
    if found is None:
        grid = Grid(layout.start, layout.shape, layout.strides, layout.dtype.itemsize)
        region = region_in(grid, [_positions(w, n) for w, n in zip(where or (), layout.shape, strict=False)])
        if region is None:
            return None
        if len(ledger.slots) >= _MOST:
            ledger.slots = {}
        found = ledger.slots[key] = ledger.slot(handle, kind, region, "", access.name)
    return found


_MOST: Final = 64
"""Accesses of the host to one allocation that are kept to be used again."""


def _positions(where: int | slice, extent: int) -> range:
    if isinstance(where, slice):
        return range(*where.indices(extent))
    at = where % extent
    return range(at, at + 1)
