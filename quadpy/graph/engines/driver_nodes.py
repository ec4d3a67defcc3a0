"""Nodes of the driver's graph: one or several of them make up one node of quadpy."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from quadpy.graph.engines.task_nodes import TaskNode
from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.runtime.drivers.graph_driver import (
    ConditionHandle,
    EmptyWork,
    GraphDriver,
    GraphHandle,
    Groups,
    KernelWork,
    NodeHandle,
    Work,
)
from quadpy.runtime.launch.launch import MemoryRange

_SETTER_ARGUMENTS: Final = struct.Struct("<QQI")
"""The loop, an address, and how many bytes there decide; with 0 bytes the loop goes on."""


@dataclass(frozen=True, slots=True)
class LoopWork:
    """Repeats the nodes inside this one until the last of them ends the loop; ``groups`` as for ``KernelWork``."""

    groups: Groups = None


@dataclass(frozen=True, slots=True)
class ConditionWork:
    """Tells the device whether the loop that is node number ``loop`` goes on: while the integer at ``address`` is not 0.

    With 0 bytes it always goes on.  ``setter`` is the kernel that sets the condition.
    """

    setter: FunctionHandle
    loop: int
    address: int = 0
    nbytes: int = 0
    groups: Groups = None


NodeWork: TypeAlias = "Work | LoopWork | ConditionWork"


@dataclass(frozen=True, slots=True)
class DriverNode:
    """One driver node, made for a node of quadpy.

    after   driver nodes of the same node that it comes after, by number; if none, that node's dependencies
    inside  the loop to whose body it belongs, by its number, or -1
    task    the launch that it is, by its number among those of a kernel, or -1
    """

    work: NodeWork
    after: tuple[int, ...] = ()
    inside: int = -1
    task: int = -1


Conditions: TypeAlias = Mapping[str, MemoryRange]
"""The address and the bytes of each array element that decides a loop."""


def driver_nodes_of_tasks(
    nodes: Iterable[TaskNode],
    works: Sequence[Work],
    setter: FunctionHandle | None,
    conditions: Conditions,
    groups: Groups,
) -> list[DriverNode]:
    """The driver's nodes for a kernel's graph; ``setter`` is the kernel that sets the conditions of loops."""

    def made(node: TaskNode) -> NodeWork:
        return works[node.task] if node.kind == "task" else _work_of(node, setter, conditions, groups)

    return [DriverNode(made(node), node.after, node.inside, node.task) for node in nodes]


def _work_of(node: TaskNode, setter: FunctionHandle | None, conditions: Conditions, groups: Groups) -> NodeWork:
    """The work of a loop, or of the end of an iteration."""
    if node.kind == "loop":
        return LoopWork(groups)
    assert setter is not None
    return ConditionWork(setter, node.loop, *(conditions[node.condition] if node.kind == "again" else (0, 0)), groups)


@dataclass(slots=True)
class Placed:
    """A node in the driver's graph, and its current work; ``condition`` is that of the loop whose condition it sets."""

    handle: NodeHandle
    node: DriverNode
    work: NodeWork
    condition: ConditionHandle = ConditionHandle(0)

    def driver_work(self, work: NodeWork) -> Work:
        """The driver's form of ``work`` at this place."""
        if isinstance(work, ConditionWork):
            arguments = _SETTER_ARGUMENTS.pack(self.condition, work.address, work.nbytes)
            return KernelWork(work.setter, (1, 1, 1), (1, 1, 1), 0, arguments, groups=work.groups)
        assert not isinstance(work, LoopWork)
        return work


def ends_of(placed: Sequence[Placed]) -> list[Placed]:
    """The nodes outside loops that no other node comes after."""
    followed = {before for one in placed for before in one.node.after}
    return [one for number, one in enumerate(placed) if number not in followed and one.node.inside < 0]


def root_count(nodes: Iterable[DriverNode]) -> int:
    """How many of ``nodes``, outside loops, come after no other."""
    return sum(not node.after and node.inside < 0 for node in nodes)


def first_node(graphs: GraphDriver, graph: GraphHandle, roots: int) -> list[NodeHandle]:
    """An empty node before ``roots`` nodes that come after nothing else; none if there is one root.

    If several nodes come after none, HIP 7.2 runs all but one before the stream's earlier work is done.
    """
    return [graphs.add(graph, [], EmptyWork())] if roots > 1 else []


def place(
    graphs: GraphDriver, graph: GraphHandle, after: Sequence[NodeHandle], nodes: Sequence[DriverNode]
) -> list[Placed]:
    """Add ``nodes`` to ``graph``, those without others before them after the nodes ``after``."""
    placing = _Placing(graphs, graph, nodes)
    for number, node in enumerate(nodes):
        before = [placing.placed[k].handle for k in node.after] or ([] if node.inside >= 0 else list(after))
        placing.placed.append(placing.place(number, node, before))
    return placing.placed


class _Placing:
    """Nodes on their way into a driver's graph."""

    def __init__(self, graphs: GraphDriver, graph: GraphHandle, nodes: Sequence[DriverNode]) -> None:
        self._graphs, self._graph, self._nodes = graphs, graph, nodes
        self._bodies: dict[int, GraphHandle] = {}
        self._conditions: dict[int, ConditionHandle] = {}
        self.placed: list[Placed] = []

    def place(self, number: int, node: DriverNode, after: list[NodeHandle]) -> Placed:
        graph = self._graph_of(node)
        if isinstance(node.work, LoopWork):
            handle, self._bodies[number] = self._graphs.add_loop(
                graph, after, self._condition(number), node.work.groups
            )
            return Placed(handle, node, node.work)
        told = self._condition(node.work.loop) if isinstance(node.work, ConditionWork) else ConditionHandle(0)
        placed = Placed(NodeHandle(0), node, node.work, told)
        placed.handle = self._graphs.add(graph, after, placed.driver_work(node.work))
        return placed

    def _graph_of(self, node: DriverNode) -> GraphHandle:
        return self._bodies[node.inside] if node.inside >= 0 else self._graph

    def _condition(self, loop: int) -> ConditionHandle:
        """The condition of a loop; that of a nested loop is needed before the loop is placed."""
        if loop not in self._conditions:
            node = self._nodes[loop]
            groups = node.work.groups if isinstance(node.work, LoopWork) else None
            self._conditions[loop] = self._graphs.condition_create(self._graph_of(node), groups)
        return self._conditions[loop]
