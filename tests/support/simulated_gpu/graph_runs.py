"""Launches of graphs on the simulated device.

A launch puts each node on a queue of its own, or after a node that it depends on; so nodes without an edge between them
run in any order, and ``races`` finds what is missing.  A loop is one node, whose passes run as launches of their own.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Final

from quadpy.runtime.device.callbacks import run_ticket
from quadpy.runtime.drivers.graph_driver import (
    AllocWork,
    ConditionHandle,
    CopyWork,
    EmptyWork,
    EventRecordWork,
    EventWaitWork,
    FillWork,
    FreeWork,
    HostWork,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
    Work,
)
from simulated_gpu.device import SimulatedDevice
from simulated_gpu.graph_state import GraphState, Step, copied
from simulated_gpu.simulation import Op, Queue, Range, Simulation

__all__ = ["GraphRuns"]

_KINDS: Final[dict[type[Work], str]] = {
    KernelWork: "launch",
    CopyWork: "copy",
    FillWork: "fill",
    HostWork: "host",
    EmptyWork: "empty",
    SemaphoreSignalWork: "signal",
    SemaphoreWaitWork: "wait",
    AllocWork: "alloc",
    FreeWork: "free",
}


class GraphRuns:
    """Submits graphs to the simulation of ``device``.

    races       missing order within the bodies of loops
    goes_on     whether each loop of the current launch goes on
    semaphores  the value of each semaphore
    """

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device
        self.races: list[tuple[Op, Op]] = []
        self.goes_on: dict[ConditionHandle, bool] = {}
        self.semaphores: dict[SemaphoreHandle, int] = {}
        self._passes = 0

    def submit(self, steps: dict[NodeHandle, Step], off: set[NodeHandle], start: Op) -> list[Op]:
        """Submit one run of ``steps`` after ``start``; returns the last ops.

        Of the steps without dependencies, only the first waits for ``start``, as with HIP 7.2.
        """
        done: dict[NodeHandle, Op] = {}
        roots = [start]
        for node, step in steps.items():
            awaited = [done[before] for before in step.after]
            if not awaited:
                awaited, roots = roots, []
            queue = self._queue_after(awaited, start)
            for op in awaited:
                if op.queue is not queue:
                    self._device.simulation.submit("wait", queue, awaits=op)
            if step.child is not None and step.condition:
                reads, writes = self._touched(step.child, off)
                body = GraphState(copied(step.child))  # later changes affect later launches only
                run = functools.partial(self._repeat, body, step.condition, set(off))
                done[node] = self._device.simulation.submit("loop", queue, reads=reads, writes=writes, action=run)
            elif step.child is not None:
                done[node] = self._submit_child(step.child, queue)
            else:
                done[node] = self._submit_one(step, queue, enabled=node not in off)
        followed = {before for step in steps.values() for before in step.after}
        return [op for node, op in done.items() if node not in followed] or [start]

    def _queue_after(self, awaited: Sequence[Op], start: Op) -> Queue:
        """The queue of an awaited op that is still its last one, or else a new queue."""
        for op in awaited:
            if op is not start and op.number == op.queue.clock[op.queue.serial]:
                return op.queue
        return self._device.simulation.queue()

    def _submit_child(self, child: GraphState, queue: Queue) -> Op:
        start = self._device.simulation.submit("child", queue)
        for last in self.submit(child.steps, set(), start):
            self._device.simulation.submit("wait", queue, awaits=last)
        return self._device.simulation.submit("joined", queue)

    def _touched(self, body: GraphState, off: set[NodeHandle]) -> tuple[list[Range], list[Range]]:
        """What the passes over ``body`` read, and what they write."""
        reads: list[Range] = []
        writes: list[Range] = []
        for node, step in body.steps.items():
            if step.child is not None:
                inner = self._touched(step.child, off)
            else:
                inner = ([], []) if node in off else self._action(step)[1:]
            reads += inner[0]
            writes += inner[1]
        return reads, writes

    def _repeat(self, body: GraphState, condition: ConditionHandle, off: set[NodeHandle]) -> None:
        """Run passes over ``body``, one after the other; within a pass, only edges order the nodes."""
        while self.goes_on[condition]:
            outer, self._device.simulation = self._device.simulation, Simulation(history=self._device.history)
            try:
                inner = self._device.simulation
                self.submit(body.steps, off, inner.submit("pass", inner.queue()))
                self._passes += 1
                while ready := inner.ready():
                    inner.step(ready[-(self._passes % 2)])
                self.races += inner.races()
            finally:
                self._device.simulation = outer

    def _submit_one(self, step: Step, queue: Queue, *, enabled: bool) -> Op:
        submit, work = self._device.simulation.submit, step.work
        if not enabled:
            return submit("disabled", queue)
        if isinstance(work, EventRecordWork):
            op = submit("record", queue)
            self._device.event_of(work.event).last = op
            return op
        if isinstance(work, EventWaitWork):
            return submit("wait", queue, awaits=self._device.event_of(work.event).last)
        action, reads, writes = self._action(step)
        return submit(_KINDS[type(work)], queue, reads=reads, writes=writes, action=action)

    def _action(self, step: Step) -> tuple[Callable[[], None] | None, list[Range], list[Range]]:
        """The action of a node, what it reads, and what it writes."""
        work, memory = step.work, self._device.memory
        if isinstance(work, KernelWork):
            return self._device.kernel_action(work.function, work.arguments)
        if isinstance(work, CopyWork):
            target, source, nbytes = work.target, work.source, work.nbytes
            ends = {"in": [target], "out": [source], "within": [target, source]}[work.kind]

            def copy() -> None:
                for end in ends:
                    memory.require(end, nbytes)
                ctypes.memmove(target, source, nbytes)

            return copy, [(source, nbytes)], [(target, nbytes)]
        if isinstance(work, FillWork):
            whole = work.target, work.width * work.element
            pattern = work.value.to_bytes(work.element, "little") * work.width

            def fill() -> None:
                memory.require(*whole)
                ctypes.memmove(work.target, pattern, len(pattern))

            return fill, [], [whole]
        if isinstance(work, HostWork):
            return (lambda: run_ticket(work.ticket)), [], []
        if isinstance(work, SemaphoreSignalWork):
            return (lambda: self.semaphores.update(work.semaphores)), [], []
        if isinstance(work, AllocWork):
            return None, [], [(step.pointer, work.nbytes)]
        if isinstance(work, FreeWork):
            return None, [], [(work.pointer, memory.size(work.pointer))]
        return None, [], []
