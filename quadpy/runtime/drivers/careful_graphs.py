"""Graphs of a driver that has defects: those that quadpy launches node by node, and those with limits.

``quadpy selftest`` finds the defects, see ``runtime.device.known``.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from quadpy.errors import DriverError
from quadpy.runtime.device.callbacks import run_ticket
from quadpy.runtime.drivers.driver import Address, Driver, PinnedPointer, StreamHandle
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
    GraphDriver,
    GraphFeature,
    GraphHandle,
    GraphMemory,
    Groups,
    HostWork,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    Work,
)

MOST_NODES: Final = 100
"""Nodes of a graph that a driver without ``large-graphs`` gets: HIP has been seen to lose arguments from 200 on."""

_NEEDS_GRAPHS: Final = "the driver's graphs are off on this device"
_LAUNCHED: Final = (KernelWork, CopyWork, FillWork, HostWork, EventRecordWork, EventWaitWork, EmptyWork)
"""What can be launched without a graph."""
_HINT: Final = "see `quadpy selftest`; QUADPY_WITHOUT=nothing uses them all the same"


@dataclass(slots=True)
class _Known:
    """A graph as it was made: its nodes in order, with those of child graphs.

    ``whole`` says that only the driver launches it: it has loops, whose ``bodies`` are here, or is such a body.
    """

    nodes: dict[NodeHandle, Work] = field(default_factory=dict)
    edges: list[tuple[NodeHandle, NodeHandle]] = field(default_factory=list)
    last: tuple[NodeHandle, ...] = ()
    children: dict[NodeHandle, list[Work]] = field(default_factory=dict)
    bodies: list[GraphHandle] = field(default_factory=list)
    whole: bool = False

    def works(self) -> list[tuple[NodeHandle, Work]]:
        """What is launched, in order."""
        if self.whole:
            return []
        return [(node, each) for node, work in self.nodes.items() for each in self.children.get(node, [work])]


class CarefulGraphs:
    """A ``GraphDriver`` over that of ``driver``, without the capabilities ``off``."""

    def __init__(self, driver: Driver, inner: GraphDriver | None, off: Collection[str]) -> None:
        self._driver, self._inner = driver, None if "graphs" in off else inner
        self._most = MOST_NODES if "large-graphs" in off else 1 << 62
        self._chained, self._fixed = "graph-branches" in off, "graph-updates" in off
        lost: dict[str, GraphFeature] = {"graph-loops": "loops", "graph-updates": "switches"}
        own: frozenset[GraphFeature] = frozenset({"switches"})
        refused = {feature for capability, feature in lost.items() if capability in off}
        self.features = own if self._inner is None else self._inner.features - refused
        self._known: dict[GraphHandle, _Known] = {}
        self._own: dict[ExecHandle, _Launches] = {}
        self._handles = itertools.count(1, 2)  # the driver's are addresses, and even

    # graphs

    def graph_create(self) -> GraphHandle:
        graph = GraphHandle(next(self._handles)) if self._inner is None else self._inner.graph_create()
        self._known[graph] = _Known()
        return graph

    def graph_destroy(self, graph: GraphHandle) -> None:
        self._forget(graph)
        if self._inner is not None:
            self._inner.graph_destroy(graph)

    def add(self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: Work) -> NodeHandle:
        after = self._after(graph, dependencies)
        node = NodeHandle(next(self._handles)) if self._inner is None else self._inner.add(graph, after, work)
        self._note(graph, node, after, work)
        return node

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        after = self._after(graph, dependencies)
        node, address = self._graphs("memory of graphs").add_alloc(graph, after, work)
        self._note(graph, node, after, work)
        return node, address

    def condition_create(self, graph: GraphHandle, groups: Groups = None) -> ConditionHandle:
        return self._graphs("loops in graphs").condition_create(graph, groups)

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle, groups: Groups = None
    ) -> tuple[NodeHandle, GraphHandle]:
        after = self._after(graph, dependencies)
        node, body = self._graphs("loops in graphs").add_loop(graph, after, condition, groups)
        known = self._known[graph]
        known.last, known.whole = (node,), True
        known.bodies.append(body)
        self._known[body] = _Known(whole=True)
        return node, body

    def nodes(self, graph: GraphHandle) -> list[NodeHandle]:
        return list(self._known[graph].nodes) if self._inner is None else self._inner.nodes(graph)

    def edges(self, graph: GraphHandle) -> list[tuple[NodeHandle, NodeHandle]]:
        return list(self._known[graph].edges) if self._inner is None else self._inner.edges(graph)

    # executable graphs

    def instantiate(self, graph: GraphHandle, *, auto_free: bool = False, priorities: bool = False) -> ExecHandle:
        works = self._known[graph].works()
        if self._inner is not None and len(works) <= self._most:
            return self._inner.instantiate(graph, auto_free=auto_free, priorities=priorities)
        if foreign := [
            type(work).__name__.removesuffix("Work") for _, work in works if not isinstance(work, _LAUNCHED)
        ]:
            limit = f"graphs of more than {self._most} nodes are off on this device"
            why = _NEEDS_GRAPHS if self._inner is None else limit
            raise DriverError(
                f"nodes of the kind {foreign[0]} cannot be used in a graph of {len(works)}: {why}", hint=_HINT
            )
        exec_ = ExecHandle(next(self._handles))
        self._own[exec_] = _Launches(self._driver, works)
        return exec_

    def exec_destroy(self, exec_: ExecHandle) -> None:
        own = self._own.pop(exec_, None)
        if own is not None:
            own.free()
        elif self._inner is not None:
            self._inner.exec_destroy(exec_)

    def upload(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        if exec_ not in self._own and self._inner is not None:
            self._inner.upload(exec_, stream)

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        own = self._own.get(exec_)
        if own is not None:
            own.launch(stream)
        else:
            self._graphs("this graph").launch(exec_, stream)

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        own = self._own.get(exec_)
        if own is not None:
            return own.update(node, work)
        return not self._fixed and self._graphs("this graph").update(exec_, node, work)

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        own = self._own.get(exec_)
        if own is not None:
            own.enable(node, enabled)
        else:
            self._graphs("this graph").enable(exec_, node, enabled=enabled)

    # memory and semaphores

    def memory(self) -> GraphMemory:
        return GraphMemory(0, 0, 0, 0) if self._inner is None else self._inner.memory()

    def trim_memory(self) -> None:
        if self._inner is not None:
            self._inner.trim_memory()

    def semaphore_import(self, descriptor: int, kind: int) -> SemaphoreHandle:
        return self._graphs("semaphores").semaphore_import(descriptor, kind)

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None:
        self._graphs("semaphores").semaphore_destroy(semaphore)

    def _graphs(self, what: str) -> GraphDriver:
        if self._inner is None:
            raise DriverError(f"{what} cannot be used: {_NEEDS_GRAPHS}", hint=_HINT)
        return self._inner

    def _after(self, graph: GraphHandle, dependencies: Sequence[NodeHandle]) -> Sequence[NodeHandle]:
        return self._known[graph].last if self._chained else dependencies

    def _note(self, graph: GraphHandle, node: NodeHandle, after: Sequence[NodeHandle], work: Work) -> None:
        known = self._known[graph]
        known.nodes[node], known.last = work, (node,)
        known.edges += [(before, node) for before in after]
        if isinstance(work, ChildWork):
            child = self._known[work.graph]
            known.whole |= child.whole
            known.children[node] = [each for _, each in child.works()]

    def _forget(self, graph: GraphHandle) -> None:
        known = self._known.pop(graph, None)
        for body in () if known is None else known.bodies:
            self._forget(body)


class _Launches:
    """An executable graph that is launched node by node, in the order in which they were added."""

    def __init__(self, driver: Driver, works: Sequence[tuple[NodeHandle, Work]]) -> None:
        self._driver, self._off = driver, set[NodeHandle]()
        self._steps = [(node, _Step(driver, work)) for node, work in works]
        self._replaced: list[_Step] = []  # pending launches may still read what they have

    def launch(self, stream: StreamHandle) -> None:
        for node, step in self._steps:
            if node not in self._off:
                step.submit(stream)

    def update(self, node: NodeHandle, work: Work) -> bool:
        found = [number for number, (known, _) in enumerate(self._steps) if known == node]
        if len(found) != 1 or type(work) is not type(self._steps[found[0]][1].work):
            return False
        self._replaced.append(self._steps[found[0]][1])
        self._steps[found[0]] = node, _Step(self._driver, work)
        return True

    def enable(self, node: NodeHandle, enabled: bool) -> None:
        (self._off.discard if enabled else self._off.add)(node)

    def free(self) -> None:
        for step in (*self._replaced, *(step for _, step in self._steps)):
            step.free()


class _Step:
    """One node, prepared for many launches."""

    def __init__(self, driver: Driver, work: Work) -> None:
        self._driver, self.work, self._pattern = driver, work, PinnedPointer(0)
        if isinstance(work, KernelWork):
            self._block = ctypes.create_string_buffer(work.arguments, max(len(work.arguments), 1))
            self._arguments = driver.launch_arguments(ctypes.addressof(self._block), len(work.arguments))
        elif isinstance(work, FillWork) and len({*self._element(work)}) > 1:
            self._pattern = driver.alloc_pinned(work.element)
            ctypes.memmove(self._pattern, self._element(work), work.element)

    def submit(self, stream: StreamHandle) -> None:
        """Put the work on ``stream``; a host function runs here, after what is there."""
        driver, work = self._driver, self.work
        match work:
            case KernelWork():
                driver.launch(work.function, work.grid, work.block, work.shared_bytes, stream, self._arguments)
            case CopyWork():
                copy = {"in": driver.copy_in, "out": driver.copy_out, "within": driver.copy_within}[work.kind]
                copy(work.target, work.source, work.nbytes, stream)
            case FillWork():
                self._fill(work, stream)
            case HostWork():
                driver.stream_synchronize(stream)
                run_ticket(work.ticket)
            case EventRecordWork():
                driver.event_record(work.event, stream)
            case EventWaitWork():
                driver.stream_wait(stream, work.event)

    def _fill(self, work: FillWork, stream: StreamHandle) -> None:
        """Elements of different bytes are copied: one, then twice as many at a time."""
        driver, nbytes = self._driver, work.width * work.element
        if not self._pattern:
            driver.fill(work.target, self._element(work)[0], nbytes, stream)
            return
        driver.copy_in(work.target, self._pattern, work.element, stream)
        done = work.element
        while done < nbytes:
            more = min(done, nbytes - done)
            driver.copy_within(work.target + done, work.target, more, stream)
            done += more

    @staticmethod
    def _element(work: FillWork) -> bytes:
        return work.value.to_bytes(work.element, "little")

    def free(self) -> None:
        """Free what it has; no launch may be pending."""
        self._driver.free_pinned(self._pattern)
        self._pattern = PinnedPointer(0)
