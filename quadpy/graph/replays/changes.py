"""The differences between two recordings of a function."""

from __future__ import annotations

from quadpy.graph.building.graph import Graph
from quadpy.graph.model.nodes import ChildNode, EventRecordNode, HostNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.runtime.launch.launch import HostLaunch, KernelLaunch

__all__ = ["changes_between"]


def changes_between(before: tuple[Node, ...], after: Graph) -> tuple[dict[str, Node], int] | None:
    """The nodes to replace by name, and how many of them do something else; None if the structure differs."""
    nodes = tuple(after)
    if len(nodes) != len(before):
        return None
    changes: dict[str, Node] = {}
    different = 0
    for old, new in zip(before, nodes, strict=True):
        if type(old) is not type(new) or (old.name, old.after) != (new.name, new.after):
            return None
        if isinstance(new, ChildNode) and isinstance(old, ChildNode) and old.nodes is not new.nodes:
            return None
        other = _work(old) != _work(new)
        different += other
        if other or list(map(id, old.keep)) != list(map(id, new.keep)):
            changes[new.name] = new
    return changes, different


def _work(node: Node) -> object:
    """What a node does, for comparison."""
    match node:
        case KernelNode():
            return node.flow, tuple(map(_launch, node.launches))
        case MemcpyNode():
            return node.target, node.source, node.nbytes, node.direction
        case MemsetNode():
            return node.target, node.value, node.element, node.width, node.height, node.pitch
        case HostNode():
            return id(node.function), tuple(map(id, node.arguments))
        case EventRecordNode():
            return id(node.event)
        case ChildNode():
            return tuple(map(id, node.nodes))
        case _:
            return node.kind


def _launch(launch: KernelLaunch | HostLaunch) -> object:
    if isinstance(launch, HostLaunch):
        return id(launch.keep[0]), launch.arguments  # the plan, and the arguments that it is called with
    return launch.function, launch.grid, launch.block, launch.shared_bytes, launch.arguments
