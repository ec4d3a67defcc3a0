"""The checker: it is told of all work, and compares each access with earlier ones that nothing orders before it."""

from __future__ import annotations

from functools import partial

from quadpy.hazards.calls import Calls
from quadpy.hazards.clocks import Lane
from quadpy.hazards.graph_notes import GraphNotes
from quadpy.hazards.host_notes import HostNotes
from quadpy.hazards.memory_notes import MemoryNotes
from quadpy.hazards.operations import READ, Entry, Operation
from quadpy.hazards.order_notes import OrderNotes
from quadpy.hazards.sinks import Sinks
from quadpy.hazards.sites import call_place
from quadpy.hazards.submissions import Submitted
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.observing import ObservedCall, ObservedStream, Submission

__all__ = ["Checker"]


class Checker(HostNotes, MemoryNotes, GraphNotes, OrderNotes):
    """Notes all work; this class itself notes calls of kernels."""

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
