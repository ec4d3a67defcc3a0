"""Graphs of the simulated driver, which simulates HIP's graphs, their refusals included."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quadpy.errors import DriverError
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
    Groups,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    Work,
)
from simulated_gpu.device import SimulatedDevice
from simulated_gpu.graph_runs import GraphRuns
from simulated_gpu.graph_state import (
    ExecState,
    GraphState,
    Step,
    bodies,
    conditions,
    containing,
    copied,
    shape,
)

__all__ = ["RecordingGraphs"]

_FEATURES: Final[frozenset[GraphFeature]] = frozenset(("memory", "semaphores", "priorities", "switches"))
_OF_NVIDIA: Final[frozenset[GraphFeature]] = frozenset(("loops", "parts"))
_SWITCHABLE: Final = (KernelWork, CopyWork, FillWork)


class RecordingGraphs:
    """A ``GraphDriver`` on a simulated device, which logs each call.

    ``loops`` permits loops in graphs, as CUDA has them.  ``races`` are those within the bodies of loops.
    """

    def __init__(self, driver: SimulatedDevice, *, loops: bool = False) -> None:
        self.features = _FEATURES | _OF_NVIDIA if loops else _FEATURES
        self._driver, self._runs = driver, GraphRuns(driver)
        self.races = self._runs.races
        self._bodies: dict[GraphHandle, GraphState] = {}
        self._graphs: dict[GraphHandle, GraphState] = {}
        self._execs: dict[ExecHandle, ExecState] = {}
        self._blocks: dict[Address, int] = {}  # memory of alloc nodes -> its number of graphs
        self._held: set[Address] = set()
        self._peak = 0
        self._handles = itertools.count(0xC000, 16)

    def left_open(self) -> dict[str, int]:
        """How many objects of each kind were not given back; only kinds with any."""
        counts = {"graphs": len(self._graphs), "graph execs": len(self._execs)}
        counts |= {"semaphores": len(self._runs.semaphores), "graph memory": len(self._held)}
        return {kind: count for kind, count in counts.items() if count}

    # graphs

    def graph_create(self) -> GraphHandle:
        with self._driver.recorded("graph_create"):
            handle = GraphHandle(next(self._handles))
            self._graphs[handle] = GraphState()
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
                child = GraphState(dict(nested.steps))
            if isinstance(work, KernelWork) and work.groups is not None and "parts" not in self.features:
                raise DriverError("graph_add failed: kernels run on the units of the launch's stream")
            if isinstance(work, CopyWork) and not work.nbytes:
                raise DriverError("graph_add failed: a copy of 0 bytes")
            if isinstance(work, (EventRecordWork, EventWaitWork)):
                self._driver.event_of(work.event)
            return self._add(graph, Step(work, tuple(dependencies), child=child))

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        with self._driver.recorded("graph_add_alloc", graph, tuple(dependencies), work):
            pointer = self._driver.memory.allocate(work.nbytes)
            self._blocks[pointer] = 1
            return self._add(graph, Step(work, tuple(dependencies), pointer)), pointer

    def _add(self, graph: GraphHandle, step: Step) -> NodeHandle:
        found = self._graph(graph)
        if len(set(step.after)) < len(step.after) or not set(step.after) <= found.steps.keys():
            raise DriverError("graph_add failed: a dependency twice, or of another graph")
        node = NodeHandle(next(self._handles))
        found.steps[node] = step
        return node

    def condition_create(self, graph: GraphHandle, groups: Groups = None) -> ConditionHandle:
        with self._driver.recorded("condition_create", graph, groups):
            condition = ConditionHandle(next(self._handles))
            self._graph(graph).conditions.append(condition)
            return condition

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle, groups: Groups = None
    ) -> tuple[NodeHandle, GraphHandle]:
        with self._driver.recorded("graph_add_loop", graph, tuple(dependencies), condition, groups):
            known = [one for found in (*self._graphs.values(), *self._bodies.values()) for one in found.conditions]
            if "loops" not in self.features or condition not in known:
                raise DriverError("graph_add_loop failed: invalid value: no such condition, or no loops here")
            body, handle = GraphState(), GraphHandle(next(self._handles))
            self._bodies[handle] = body  # the node owns it
            step = Step(EmptyWork(), tuple(dependencies), child=body, condition=condition)
            return self._add(graph, step), handle

    def tell(self, condition: ConditionHandle, goes_on: bool) -> None:
        """Set whether a loop goes on, as a kernel does."""
        if condition not in self._runs.goes_on:
            raise DriverError(f"a kernel set the condition of loop {condition:#x}, which no launch contains")
        self._runs.goes_on[condition] = goes_on

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
            self._execs[handle] = ExecState(graph, copied(source), auto_free, conditions(source))
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
            self._driver.queue_of(stream)

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        with self._driver.recorded("graph_launch", exec_, stream):
            found, queue = self._exec(exec_), self._driver.queue_of(stream)
            self._hold_memory(found)
            begin = functools.partial(self._runs.goes_on.update, dict.fromkeys(found.conditions, True))
            start = self._driver.simulation.submit("graph", queue, action=begin)
            for last in self._runs.submit(found.steps, found.off, start):
                self._driver.simulation.submit("wait", queue, awaits=last)

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        with self._driver.recorded("update", exec_, node, work):
            found = self._exec(exec_)
            steps = self._steps_with(found, node)
            before = steps[node]
            if not self._can_become(before, work):
                return False
            child = GraphState(dict(self._graph(work.graph).steps)) if isinstance(work, ChildWork) else None
            steps[node] = replace(before, work=work, child=child)
            return True

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        with self._driver.recorded("enable", exec_, node, enabled):
            found = self._exec(exec_)
            if not isinstance(self._steps_with(found, node)[node].work, _SWITCHABLE):
                raise DriverError("enable failed: only kernels, copies and fills can be switched off")
            (found.off.discard if enabled else found.off.add)(node)

    def _can_become(self, before: Step, work: Work) -> bool:
        """HIP's rules: which changes of a node an executable graph accepts."""
        if type(work) is not type(before.work) or isinstance(
            work, (EmptyWork, AllocWork, FreeWork)
        ):  # a loop is EmptyWork
            return False
        if isinstance(work, CopyWork):
            assert isinstance(before.work, CopyWork)
            return work.kind == before.work.kind
        if isinstance(work, ChildWork):
            assert before.child is not None
            return shape(self._graph(work.graph)) == shape(before.child)
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
            self._runs.semaphores[handle] = 0
            return handle

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None:
        with self._driver.recorded("semaphore_destroy", semaphore):
            del self._runs.semaphores[semaphore]

    def _hold_memory(self, found: ExecState) -> None:
        """Account for alloc and free nodes of a launch, which HIP checks when the launch is submitted."""
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
        """Free ``pointer`` if a launch left it allocated; returns whether it did."""
        held = pointer in self._held
        self._held.discard(pointer)
        return held

    def _count(self, steps: dict[NodeHandle, Step], by: int) -> None:
        for step in steps.values():
            if isinstance(step.work, AllocWork):
                self._blocks[step.pointer] += by
        self._release_unowned()

    def _forget(self, graph: GraphState) -> None:
        self._count(graph.steps, -1)
        gone = {id(body) for body in bodies(graph)}
        self._bodies = {handle: body for handle, body in self._bodies.items() if id(body) not in gone}

    def _release_unowned(self) -> None:
        """Release memory, after all work, that no graph owns and no launch left allocated."""
        unowned = [pointer for pointer, owners in self._blocks.items() if not owners and pointer not in self._held]
        if unowned:
            self._driver.simulation.finish_all()
        for pointer in unowned:
            del self._blocks[pointer]
            self._driver.memory.release(pointer)

    # lookup

    def _graph(self, graph: GraphHandle) -> GraphState:
        if (found := self._graphs.get(graph) or self._bodies.get(graph)) is None:
            raise DriverError(f"there is no graph {graph:#x}: it was destroyed, or never created")
        return found

    def _exec(self, exec_: ExecHandle) -> ExecState:
        if (found := self._execs.get(exec_)) is None:
            raise DriverError(f"there is no executable graph {exec_:#x}: it was destroyed, or never created")
        return found

    def _steps_with(self, found: ExecState, node: NodeHandle) -> dict[NodeHandle, Step]:
        """The steps that contain ``node``, which dies with the graph that it was added to."""
        steps = containing(found.steps, node)
        if found.source not in self._graphs or steps is None:
            raise DriverError(f"invalid value: there is no node {node:#x}")
        return steps
