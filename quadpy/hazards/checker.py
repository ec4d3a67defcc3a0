"""The checker: it is told of all work, and compares each access with earlier ones that nothing orders before it."""

from __future__ import annotations

from functools import partial

from quadpy.hazards.calls import Calls
from quadpy.hazards.clocks import Lane
from quadpy.hazards.graph_notes import GraphNotes
from quadpy.hazards.host_notes import HostNotes
from quadpy.hazards.ledger import Named
from quadpy.hazards.operations import ALLOCATION, FREE, READ, Entry, Operation
from quadpy.hazards.regions import Region
from quadpy.hazards.sinks import Sinks
from quadpy.hazards.sites import call_place
from quadpy.hazards.submissions import Submitted
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.life import Life
from quadpy.runtime.drivers.driver import EventHandle
from quadpy.runtime.launch.host_access import HostMemory
from quadpy.runtime.launch.observing import ObservedCall, ObservedStream, Submission
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline


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
