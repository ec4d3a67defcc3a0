"""Graphs that the driver runs: the driver's graph, node by node, and its executable form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from quadpy.errors import GraphError
from quadpy.graph.device_graphs import graphs_of
from quadpy.graph.engines.driver_nodes import DriverNode, NodeWork, Placed, ends_of, first_node, place, root_count
from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.lowering import HostResources, driver_nodes_of, work_of
from quadpy.graph.engines.stats import Counts
from quadpy.graph.model.nesting import has_loops
from quadpy.graph.model.nodes import ChildNode, KernelNode, Node
from quadpy.runtime.device.callbacks import Failures, Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import Address, StreamHandle
from quadpy.runtime.drivers.graph_driver import (
    AllocWork,
    ChildWork,
    CopyWork,
    FillWork,
    GraphDriver,
    Groups,
    HostWork,
    KernelWork,
    NodeHandle,
)
from quadpy.runtime.launch.launch import KernelLaunch
from quadpy.runtime.streams.timeline import Timeline

MOST_UPDATES: Final = 1000
"""Changes of nodes before the executable graph is rebuilt: HIP takes new memory for each, until it is destroyed."""

_NOTHING = HostWork(0)
"""A host function that is not registered, and so does nothing."""


class DriverGraph:
    """The driver's graph of ``nodes``; ``pending_on`` are the timelines on which launches of it may be pending.

    If it ``grows``, nodes are added later.  ``groups`` are those of the compute units on which its kernels run; None for all.
    """

    def __init__(
        self, device: Device, nodes: Iterable[Node], failures: Failures, runs: Runs, *, grows: bool = False,
        groups: Groups = None,
    ) -> None:  # fmt: skip
        self.graphs = graphs_of(device)
        self.device = device
        self._owned = ResourceStack(device.reaper)
        self.resources = HostResources(device, failures, runs, self._owned, groups)
        self.pending_on: set[Timeline] = set()
        self._origin = device, failures, runs
        self._placed: dict[str, list[Placed]] = {}
        self._kernels: dict[str, KernelNode] = {}  # as they were placed or changed last
        self._ends: dict[str, tuple[NodeHandle, ...]] = {}
        self._children: list[DriverGraph] = []
        self._first: list[NodeHandle] = []
        self.handle = self._owned.make(self.graphs.graph_destroy, self.graphs.graph_create)
        try:
            planned = [(node, self._driver_nodes_of(node)) for node in nodes]
            roots = sum(root_count(made) for node, made in planned if not node.after)
            self._first = first_node(self.graphs, self.handle, 2 if grows else roots)
            for node, made in planned:
                self._place(node, made)
        except BaseException:
            self.give_back()
            raise

    def add(self, node: Node) -> None:
        """Add the driver's nodes for ``node``, after those of its dependencies."""
        self._place(node, self._driver_nodes_of(node))

    def _place(self, node: Node, made: list[DriverNode]) -> None:
        placed = place(self.graphs, self.handle, self._ends_of(node.after), made)
        self._placed[node.name] = placed
        self.note(node)
        self._ends[node.name] = tuple(one.handle for one in ends_of(placed))

    def add_alloc(self, name: str, after: tuple[str, ...], work: AllocWork) -> Address:
        """The address of an alloc node's memory."""
        handle, pointer = self.graphs.add_alloc(self.handle, self._ends_of(after), work)
        self._placed[name], self._ends[name] = [Placed(handle, DriverNode(work), work)], (handle,)
        return pointer

    def placed(self, name: str) -> list[Placed]:
        """The driver nodes for one node of quadpy."""
        return self._placed[name]

    def handles(self, name: str) -> tuple[NodeHandle, ...]:
        """The driver's handles for one node of quadpy."""
        return tuple(one.handle for one in self._placed[name])

    def changes(self, node: Node) -> Sequence[tuple[Placed, NodeWork]] | None:
        """What driver nodes do for ``node``, which replaces the one of its name; None where their structure differs.

        Of a kernel, launches that are the same objects as before are left out.
        """
        then = self._placed.get(node.name)  # None for a child graph in whose place its nodes are
        if then is None or not self._can_have(node):
            return None
        before = self._kernels.get(node.name)
        if before is not None and isinstance(node, KernelNode) and _differ_in_launches(before, node):
            pairs = enumerate(zip(before.launches, node.launches, strict=True))
            works = {
                k: work_of(new, node.priority, self.resources.groups)
                for k, (old, new) in pairs
                if new is not old and type(new) is KernelLaunch
            }
            return [(placed, works[placed.node.task]) for placed in then if placed.node.task in works]
        now = self._driver_nodes_of(node)
        alike = list(map(_shape, now)) == [_shape(placed.node) for placed in then]
        return list(zip(then, [new.work for new in now], strict=True)) if alike else None

    def note(self, node: Node) -> None:
        """The driver's nodes do ``node`` from now on."""
        if isinstance(node, KernelNode):
            self._kernels[node.name] = node

    def give_back(self) -> None:
        """Give back the graph and all that it owns; no launch may be pending."""
        self._owned.give_back()

    def _can_have(self, node: Node) -> bool:
        """Whether the graph can hold the loops of ``node``; those of a child graph only as nodes in its place."""
        return not has_loops(node) or ("loops" in self.graphs.features and not isinstance(node, ChildNode))

    def _driver_nodes_of(self, node: Node) -> list[DriverNode]:
        if not self._can_have(node):
            raise GraphError(
                f"{node.name!r} has a loop, and a graph that allocates memory is built in one piece, which cannot contain loops",
                hint="allocate before the graph is made",
            )
        if not isinstance(node, ChildNode):
            return driver_nodes_of(node, self.resources)
        device, failures, runs = self._origin
        child = DriverGraph(device, node.nodes, failures, runs, groups=self.resources.groups)
        self._owned.add(DriverGraph.give_back, child)  # its host functions are the copy's, too
        self._children.append(child)
        return [DriverNode(ChildWork(child.handle))]

    def _ends_of(self, after: tuple[str, ...]) -> list[NodeHandle]:
        return list(dict.fromkeys(handle for name in after for handle in self._ends[name])) or self._first


class DriverEngine(Engine):
    """Launches a driver graph, which belongs to it if it is ``owned``; else it cannot be rebuilt, however often it changes."""

    def __init__(
        self, graph: DriverGraph, counts: Counts, *, owned: bool, auto_free: bool = False, priorities: bool = False
    ) -> None:  # fmt: skip
        self.graph, self._graphs, self._counts, self._limited, self._updates = graph, graph.graphs, counts, owned, 0
        self._owned = ResourceStack(graph.device.reaper)
        if owned:
            self._owned.add(DriverGraph.give_back, graph)
        instantiate = partial(self._graphs.instantiate, auto_free=auto_free, priorities=priorities)
        try:
            self._handle = self._owned.make(self._graphs.exec_destroy, instantiate, graph.handle)
        except BaseException:
            self.give_back()
            raise
        counts.builds += 1

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        self._graphs.launch(self._handle, stream)
        self._counts.launches += 1

    def change(self, node: Node) -> bool:
        """See ``Engine.change``."""
        made = self.graph.changes(node)
        if made is None:
            return False
        changed: list[tuple[Placed, NodeWork]] = []
        complete = False
        try:
            for placed, work in made:
                before = placed.work
                if before != work:
                    if not self._update(placed, work):
                        return False
                    changed.append((placed, before))
            complete = True
        finally:
            for placed, before in () if complete else changed:
                placed.work = before
                self._graphs.update(self._handle, placed.handle, placed.driver_work(before))
        self.graph.note(node)
        return True

    def _update(self, placed: Placed, work: NodeWork) -> bool:
        """Let later launches do ``work`` in place of what ``placed`` does; False, and nothing is changed, if refused."""
        if type(work) is not type(placed.work) or (self._limited and self._updates >= MOST_UPDATES):
            return False
        if not self._graphs.update(self._handle, placed.handle, placed.driver_work(work)):
            return False
        placed.work = work
        self._updates += 1
        self._counts.updates += 1
        return True

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """Like ``Engine.enable``; no loop of a driver can be switched off, and nothing where ``switches`` is not a feature."""
        if not switches(node, self._graphs):
            return False
        for placed in self.graph.placed(node.name):
            work = placed.work
            if isinstance(work, HostWork):  # no driver can switch one off: it is made to call nothing
                self._graphs.update(self._handle, placed.handle, work if enabled else _NOTHING)
            elif isinstance(work, (KernelWork, CopyWork, FillWork)):
                self._graphs.enable(self._handle, placed.handle, enabled=enabled)
        return True

    def upload(self, stream: StreamHandle) -> None:
        """See ``Engine.upload``."""
        self._graphs.upload(self._handle, stream)

    def give_back(self) -> None:
        """Like ``Engine.give_back``; an owned driver graph is given back too."""
        self._owned.give_back()


def switches(node: Node, graphs: GraphDriver) -> bool:
    """Whether ``graphs`` can switch ``node`` off in an executable graph."""
    return "switches" in graphs.features and not has_loops(node)


def _differ_in_launches(one: KernelNode, other: KernelNode) -> bool:
    """Whether two kernels have the same tasks in the same order, with the same conditions."""
    if len(one.launches) != len(other.launches) or one.priority != other.priority or one.conditions != other.conditions:
        return False
    return one.flow == other.flow and one.effects == other.effects and one.indirect is other.indirect


def _shape(node: DriverNode) -> tuple[type[NodeWork], tuple[int, ...], int]:
    return type(node.work), node.after, node.inside
