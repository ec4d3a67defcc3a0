"""Graphs and executable graphs of the simulated driver, as data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quadpy.runtime.drivers.driver import Address
from quadpy.runtime.drivers.graph_driver import AllocWork, ConditionHandle, FreeWork, GraphHandle, NodeHandle, Work

__all__ = ["ExecState", "GraphState", "Step", "bodies", "conditions", "containing", "copied", "shape"]


@dataclass(frozen=True, slots=True)
class Step:
    """A node.  ``child`` is the copy of a child graph, or the body of a loop, which ``condition`` controls."""

    work: Work
    after: tuple[NodeHandle, ...]
    pointer: Address = 0
    child: GraphState | None = None
    condition: ConditionHandle = ConditionHandle(0)


@dataclass(slots=True, eq=False)
class GraphState:
    """A graph."""

    steps: dict[NodeHandle, Step] = field(default_factory=dict)
    instances: int = 0
    conditions: list[ConditionHandle] = field(default_factory=list)

    @property
    def has_memory(self) -> bool:
        return any(isinstance(step.work, (AllocWork, FreeWork)) for step in self.steps.values())


@dataclass(slots=True, eq=False)
class ExecState:
    """An executable graph; the nodes in ``off`` are disabled."""

    source: GraphHandle
    steps: dict[NodeHandle, Step]
    auto_free: bool
    conditions: list[ConditionHandle]
    off: set[NodeHandle] = field(default_factory=set)


def copied(graph: GraphState) -> dict[NodeHandle, Step]:
    """A copy of the steps of ``graph``, those of loops included."""
    return {
        node: replace(step, child=GraphState(copied(step.child))) if step.child is not None and step.condition else step
        for node, step in graph.steps.items()
    }


def bodies(graph: GraphState) -> list[GraphState]:
    """The bodies of the loops of ``graph``, nested ones included."""
    found = [step.child for step in graph.steps.values() if step.child is not None and step.condition]
    return [*found, *(inner for body in found for inner in bodies(body))]


def conditions(graph: GraphState) -> list[ConditionHandle]:
    """The conditions of the loops of ``graph``, nested ones included."""
    return [condition for found in (graph, *bodies(graph)) for condition in found.conditions]


def containing(steps: dict[NodeHandle, Step], node: NodeHandle) -> dict[NodeHandle, Step] | None:
    """The steps that contain ``node``: ``steps``, or those of a loop among them."""
    if node in steps:
        return steps
    bodies = (step.child.steps for step in steps.values() if step.child is not None and step.condition)
    return next((found for body in bodies if (found := containing(body, node)) is not None), None)


def shape(graph: GraphState) -> list[tuple[type[Work], tuple[int, ...]]]:
    """The kinds of nodes and the edges of ``graph``, without handles."""
    positions = {node: position for position, node in enumerate(graph.steps)}
    return [(type(s.work), tuple(positions[before] for before in s.after)) for s in graph.steps.values()]
