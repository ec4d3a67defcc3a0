"""Graphs of the recording driver.  Owns: RecordingGraphs, which simulates what HIP does with them, refusals and all.

A launch puts each node on a lane of its own, or behind the one it depends on; so what no edge orders runs in any order,
and ``races`` sees it.  A loop is one node, in which passes over its body run as launches of their own.
Imports: errors, the graphs' protocol, the simulation.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from quadpy.errors import DriverError
from quadpy.runtime.device.callbacks import run_ticket
from quadpy.runtime.drivers.driver import Address, StreamHandle
from quadpy.runtime.drivers.graph_driver import (
    AllocWork,
    ChildWork,
    ConditionHandle,
    CopyWork,
    EmptyWork,
    EventRecordWork,
    EventWaitWork,
    ExecHandle,
    FillWork,
    FreeWork,
    GraphFeature,
    GraphHandle,
    GraphMemory,
    HostWork,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
    Work,
)
from quadpy.runtime.drivers.simulated.simulation import Lane, Op, Range, Simulation

if TYPE_CHECKING:
    from quadpy.runtime.drivers.simulated.driver import RecordingDriver

__all__ = ["RecordingGraphs"]

_FEATURES: Final[frozenset[GraphFeature]] = frozenset(("memory", "semaphores", "priorities"))
_LOOPS: Final[frozenset[GraphFeature]] = frozenset(("loops",))
_SWITCHABLE: Final = (KernelWork, CopyWork, FillWork)


@dataclass(frozen=True, slots=True)
class _Step:
    """A node; of a child graph, which is a copy, its nodes stand in ``child``, and so does the body of a loop.

    A loop goes on as long as ``condition`` says so.
    """

    work: Work
    after: tuple[NodeHandle, ...]
    pointer: Address = 0
    child: _Graph | None = None
    condition: ConditionHandle = ConditionHandle(0)


@dataclass(slots=True, eq=False)
class _Graph:
    steps: dict[NodeHandle, _Step] = field(default_factory=dict)
    instances: int = 0
    conditions: list[ConditionHandle] = field(default_factory=list)

    @property
    def has_memory(self) -> bool:
        return any(isinstance(step.work, (AllocWork, FreeWork)) for step in self.steps.values())


@dataclass(slots=True, eq=False)
class _Exec:
    source: GraphHandle
    steps: dict[NodeHandle, _Step]
    auto_free: bool
    conditions: list[ConditionHandle]
    off: set[NodeHandle] = field(default_factory=set)


class RecordingGraphs:
    """A ``GraphDriver`` on the simulated device of ``driver``; each call is logged there.

    ``loops`` lets graphs repeat a part of themselves, as CUDA's can.  ``races`` are those within the bodies of loops.
    """

    def __init__(self, driver: RecordingDriver, *, loops: bool = False) -> None:
        self.features = _FEATURES | _LOOPS if loops else _FEATURES
        self.races: list[tuple[Op, Op]] = []
        self._driver = driver
        self._bodies: dict[GraphHandle, _Graph] = {}
        self._goes_on: dict[ConditionHandle, bool] = {}
        self._passes = 0
        self._graphs: dict[GraphHandle, _Graph] = {}
        self._execs: dict[ExecHandle, _Exec] = {}
        self._semaphores: dict[SemaphoreHandle, int] = {}
        self._blocks: dict[Address, int] = {}  # what alloc nodes own, and how many of their graphs are there
        self._held: set[Address] = set()
        self._peak = 0
        self._handles = itertools.count(0xC000, 16)

    def left_open(self) -> dict[str, int]:
        """How many things of each kind nobody has given back; no kind of which there is nothing."""
        counts = {"graphs": len(self._graphs), "graph execs": len(self._execs)}
        counts |= {"semaphores": len(self._semaphores), "graph memory": len(self._held)}
        return {kind: count for kind, count in counts.items() if count}

    # graphs

    def graph_create(self) -> GraphHandle:
        with self._driver.recorded("graph_create"):
            handle = GraphHandle(next(self._handles))
            self._graphs[handle] = _Graph()
            return handle

    def graph_destroy(self, graph: GraphHandle) -> None:
        with self._driver.recorded("graph_destroy", graph):
            self._forget(self._graph(graph))
            del self._graphs[graph]

    def add(self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: Work) -> NodeHandle:
        with self._driver.recorded("graph_add", graph, tuple(dependencies), work):
            child = None
            if isinstance(work, ChildWork):
                if (nested := self._graph(work.graph)).has_memory:
                    raise DriverError("graph_add failed: a child graph has memory nodes")
                child = _Graph(dict(nested.steps))
            if isinstance(work, CopyWork) and not work.nbytes:
                raise DriverError("graph_add failed: a copy of 0 bytes")
            if isinstance(work, (EventRecordWork, EventWaitWork)):
                self._driver.event_of(work.event)
            return self._add(graph, _Step(work, tuple(dependencies), child=child))

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        with self._driver.recorded("graph_add_alloc", graph, tuple(dependencies), work):
            pointer = self._driver.memory.allocate(work.nbytes)
            self._blocks[pointer] = 1
            return self._add(graph, _Step(work, tuple(dependencies), pointer)), pointer

    def _add(self, graph: GraphHandle, step: _Step) -> NodeHandle:
        found = self._graph(graph)
        if len(set(step.after)) < len(step.after) or not set(step.after) <= found.steps.keys():
            raise DriverError("graph_add failed: a dependency twice, or of another graph")
        node = NodeHandle(next(self._handles))
        found.steps[node] = step
        return node

    def condition_create(self, graph: GraphHandle) -> ConditionHandle:
        with self._driver.recorded("condition_create", graph):
            condition = ConditionHandle(next(self._handles))
            self._graph(graph).conditions.append(condition)
            return condition

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle
    ) -> tuple[NodeHandle, GraphHandle]:
        with self._driver.recorded("graph_add_loop", graph, tuple(dependencies), condition):
            known = [one for found in (*self._graphs.values(), *self._bodies.values()) for one in found.conditions]
            if "loops" not in self.features or condition not in known:
                raise DriverError("graph_add_loop failed: invalid value: no such condition, or no loops here")
            body, handle = _Graph(), GraphHandle(next(self._handles))
            self._bodies[handle] = body  # it belongs to the node, and goes with it
            step = _Step(EmptyWork(), tuple(dependencies), child=body, condition=condition)
            return self._add(graph, step), handle

    def tell(self, condition: ConditionHandle, goes_on: bool) -> None:
        """What a kernel does that decides whether a loop goes on."""
        if condition not in self._goes_on:
            raise DriverError(f"a kernel told of loop {condition:#x}, which is in no launch")
        self._goes_on[condition] = goes_on

    def nodes(self, graph: GraphHandle) -> list[NodeHandle]:
        return list(self._graph(graph).steps)

    def edges(self, graph: GraphHandle) -> list[tuple[NodeHandle, NodeHandle]]:
        return [(before, node) for node, step in self._graph(graph).steps.items() for before in step.after]

    # executable graphs

    def instantiate(self, graph: GraphHandle, *, auto_free: bool = False, priorities: bool = False) -> ExecHandle:
        with self._driver.recorded("instantiate", graph, auto_free, priorities):
            source = self._graph(graph)
            if source.has_memory and source.instances:
                raise DriverError("instantiate failed: a graph with memory nodes is instantiated once")
            source.instances += 1
            handle = ExecHandle(next(self._handles))
            self._execs[handle] = _Exec(graph, _copied(source), auto_free, _conditions(source))
            self._count(source.steps, 1)
            return handle

    def exec_destroy(self, exec_: ExecHandle) -> None:
        with self._driver.recorded("exec_destroy", exec_):
            found = self._exec(exec_)
            del self._execs[exec_]
            self._count(found.steps, -1)

    def upload(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        with self._driver.recorded("upload", exec_, stream):
            self._exec(exec_)
            self._driver.lane_of(stream)

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        with self._driver.recorded("graph_launch", exec_, stream):
            found, lane = self._exec(exec_), self._driver.lane_of(stream)
            self._hold_memory(found)
            begin = functools.partial(self._goes_on.update, dict.fromkeys(found.conditions, True))
            start = self._driver.simulation.submit("graph", lane, action=begin)
            for last in self._submit(found.steps, found.off, start):
                self._driver.simulation.submit("wait", lane, awaits=last)

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        with self._driver.recorded("update", exec_, node, work):
            found = self._exec(exec_)
            steps = self._steps_with(found, node)
            before = steps[node]
            if not self._can_become(before, work):
                return False
            child = _Graph(dict(self._graph(work.graph).steps)) if isinstance(work, ChildWork) else None
            steps[node] = replace(before, work=work, child=child)
            return True

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        with self._driver.recorded("enable", exec_, node, enabled):
            found = self._exec(exec_)
            if not isinstance(self._steps_with(found, node)[node].work, _SWITCHABLE):
                raise DriverError("enable failed: only kernels, copies and fills can be switched off")
            (found.off.discard if enabled else found.off.add)(node)

    def _can_become(self, before: _Step, work: Work) -> bool:
        """HIP's table: what of a node can be changed in an executable graph."""
        if type(work) is not type(before.work) or isinstance(work, (EmptyWork, AllocWork, FreeWork)):  # a loop is empty
            return False
        if isinstance(work, CopyWork):
            assert isinstance(before.work, CopyWork)
            return work.kind == before.work.kind
        if isinstance(work, ChildWork):
            assert before.child is not None
            return _shape(self._graph(work.graph)) == _shape(before.child)
        if isinstance(work, FillWork):
            return self._driver.memory.holds(work.target, work.width * work.element)
        return True

    # memory and semaphores

    def memory(self) -> GraphMemory:
        used = sum(self._driver.memory.size(pointer) for pointer in self._held)
        reserved = sum(self._driver.memory.size(pointer) for pointer in self._blocks)
        return GraphMemory(used, self._peak, reserved, reserved)

    def trim_memory(self) -> None:
        with self._driver.recorded("trim_memory"):
            self._release_unowned()

    def semaphore_import(self, descriptor: int, kind: int) -> SemaphoreHandle:
        with self._driver.recorded("semaphore_import", descriptor, kind):
            handle = SemaphoreHandle(next(self._handles))
            self._semaphores[handle] = 0
            return handle

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None:
        with self._driver.recorded("semaphore_destroy", semaphore):
            del self._semaphores[semaphore]

    def _hold_memory(self, found: _Exec) -> None:
        """What alloc and free nodes do to the account of a launch; HIP looks at it when the launch is submitted."""
        allocated = {step.pointer for step in found.steps.values() if isinstance(step.work, AllocWork)}
        freed = {step.work.pointer for step in found.steps.values() if isinstance(step.work, FreeWork)}
        if allocated & self._held and not found.auto_free:
            raise DriverError("graph_launch failed: invalid value: memory of the last launch is not freed")
        if freed - allocated - self._held:
            raise DriverError("graph_launch failed: invalid value: a free node of memory that is not there")
        self._held |= allocated
        self._peak = max(self._peak, self.memory().used)
        self._held -= freed

    def free_held(self, pointer: Address) -> bool:
        """Whether ``pointer`` is memory that a launch left, which ``free_async`` of the driver then ends."""
        held = pointer in self._held
        self._held.discard(pointer)
        return held

    def _count(self, steps: dict[NodeHandle, _Step], by: int) -> None:
        for step in steps.values():
            if isinstance(step.work, AllocWork):
                self._blocks[step.pointer] += by
        self._release_unowned()

    def _forget(self, graph: _Graph) -> None:
        self._count(graph.steps, -1)
        gone = {id(body) for body in _bodies(graph)}
        self._bodies = {handle: body for handle, body in self._bodies.items() if id(body) not in gone}

    def _release_unowned(self) -> None:
        """Memory goes when no graph owns it and no launch left it behind, after all work."""
        unowned = [pointer for pointer, owners in self._blocks.items() if not owners and pointer not in self._held]
        if unowned:
            self._driver.simulation.finish_all()
        for pointer in unowned:
            del self._blocks[pointer]
            self._driver.memory.release(pointer)

    # a launch

    def _submit(self, steps: dict[NodeHandle, _Step], off: set[NodeHandle], start: Op) -> list[Op]:
        """One run of ``steps`` behind ``start``; the ops that nothing comes after.

        Of the steps that come after none, only the first waits for ``start``: so does HIP 7.2.
        """
        done: dict[NodeHandle, Op] = {}
        roots = [start]
        for node, step in steps.items():
            awaited = [done[before] for before in step.after]
            if not awaited:
                awaited, roots = roots, []
            lane = self._lane_behind(awaited, start)
            for op in awaited:
                if op.lane is not lane:
                    self._driver.simulation.submit("wait", lane, awaits=op)
            if step.child is not None and step.condition:
                reads, writes = self._touched(step.child, off)
                body = _Graph(_copied(step.child))  # later changes are for later launches
                run = functools.partial(self._repeat, body, step.condition, set(off))
                done[node] = self._driver.simulation.submit("loop", lane, reads=reads, writes=writes, action=run)
            elif step.child is not None:
                done[node] = self._submit_child(step.child, lane)
            else:
                done[node] = self._submit_one(step, lane, enabled=node not in off)
        followed = {before for step in steps.values() for before in step.after}
        return [op for node, op in done.items() if node not in followed] or [start]

    def _lane_behind(self, awaited: Sequence[Op], start: Op) -> Lane:
        """The lane of a node that nothing else came behind yet, or a new one."""
        for op in awaited:
            if op is not start and op.number == op.lane.clock[op.lane.serial]:
                return op.lane
        return self._driver.simulation.lane()

    def _submit_child(self, child: _Graph, lane: Lane) -> Op:
        start = self._driver.simulation.submit("child", lane)
        for last in self._submit(child.steps, set(), start):
            self._driver.simulation.submit("wait", lane, awaits=last)
        return self._driver.simulation.submit("joined", lane)

    # loops

    def _touched(self, body: _Graph, off: set[NodeHandle]) -> tuple[list[Range], list[Range]]:
        """What all passes over ``body`` read, and what they write."""
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

    def _repeat(self, body: _Graph, condition: ConditionHandle, off: set[NodeHandle]) -> None:
        """Passes over ``body``, each behind the one before; within one, what no edge orders runs in any order."""
        while self._goes_on[condition]:
            outer, self._driver.simulation = self._driver.simulation, Simulation(history=self._driver.history)
            try:
                inner = self._driver.simulation
                self._submit(body.steps, off, inner.submit("pass", inner.lane()))
                self._passes += 1
                while ready := inner.ready():
                    inner.step(ready[-(self._passes % 2)])
                self.races += inner.races()
            finally:
                self._driver.simulation = outer

    def _submit_one(self, step: _Step, lane: Lane, *, enabled: bool) -> Op:
        submit, work = self._driver.simulation.submit, step.work
        if not enabled:
            return submit("disabled", lane)
        if isinstance(work, EventRecordWork):
            op = submit("record", lane)
            self._driver.event_of(work.event).last = op
            return op
        if isinstance(work, EventWaitWork):
            return submit("wait", lane, awaits=self._driver.event_of(work.event).last)
        action, reads, writes = self._action(step)
        return submit(_KINDS[type(work)], lane, reads=reads, writes=writes, action=action)

    def _action(self, step: _Step) -> tuple[Callable[[], None] | None, list[Range], list[Range]]:
        """What a node does, what it reads, and what it writes."""
        work, memory = step.work, self._driver.memory
        if isinstance(work, KernelWork):
            return self._driver.kernel_action(work.function, work.arguments)
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
            return (lambda: self._semaphores.update(work.semaphores)), [], []
        if isinstance(work, AllocWork):
            return None, [], [(step.pointer, work.nbytes)]
        if isinstance(work, FreeWork):
            return None, [], [(work.pointer, memory.size(work.pointer))]
        return None, [], []

    # what is there

    def _graph(self, graph: GraphHandle) -> _Graph:
        if (found := self._graphs.get(graph) or self._bodies.get(graph)) is None:
            raise DriverError(f"there is no graph {graph:#x}: destroyed, or never made")
        return found

    def _exec(self, exec_: ExecHandle) -> _Exec:
        if (found := self._execs.get(exec_)) is None:
            raise DriverError(f"there is no executable graph {exec_:#x}: destroyed, or never made")
        return found

    def _steps_with(self, found: _Exec, node: NodeHandle) -> dict[NodeHandle, _Step]:
        """The steps among which is ``node``, which dies with the graph that it was added to."""
        steps = _containing(found.steps, node)
        if found.source not in self._graphs or steps is None:
            raise DriverError(f"invalid value: there is no node {node:#x}")
        return steps


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


def _copied(graph: _Graph) -> dict[NodeHandle, _Step]:
    """The steps of ``graph`` as they are now, with those of loops."""
    return {
        node: replace(step, child=_Graph(_copied(step.child))) if step.child is not None and step.condition else step
        for node, step in graph.steps.items()
    }


def _bodies(graph: _Graph) -> list[_Graph]:
    """Those of the loops of ``graph``, and of loops in them."""
    found = [step.child for step in graph.steps.values() if step.child is not None and step.condition]
    return [*found, *(inner for body in found for inner in _bodies(body))]


def _conditions(graph: _Graph) -> list[ConditionHandle]:
    """What the loops of ``graph`` ask, and those in them."""
    return [condition for found in (graph, *_bodies(graph)) for condition in found.conditions]


def _containing(steps: dict[NodeHandle, _Step], node: NodeHandle) -> dict[NodeHandle, _Step] | None:
    """``steps``, or those of a loop among them, whichever has ``node``."""
    if node in steps:
        return steps
    bodies = (step.child.steps for step in steps.values() if step.child is not None and step.condition)
    return next((found for body in bodies if (found := _containing(body, node)) is not None), None)


def _shape(graph: _Graph) -> list[tuple[type[Work], tuple[int, ...]]]:
    """The kinds of nodes and their edges, whatever the nodes are called."""
    places = {node: place for place, node in enumerate(graph.steps)}
    return [(type(s.work), tuple(places[before] for before in s.after)) for s in graph.steps.values()]
