"""A function recorded, and what two recordings have in common.  Owns: Recording, record, changes_between.

Imports: sessions, graphs, nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quadpy.graph.arena import Arena
from quadpy.graph.graph import Graph
from quadpy.graph.nodes import ChildNode, EventRecordNode, HostNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.session import CaptureSession
from quadpy.runtime.device import Device
from quadpy.runtime.launch import HostLaunch, KernelLaunch

__all__ = ["Recording", "changes_between", "record"]


@dataclass(frozen=True, slots=True)
class Recording:
    """What a call of a function put on the calling thread's stream, and what it returned.

    draws  whether its numbers depend on the count of launches, and so on when it is called
    waits  whether it reads or writes memory of the host, which must be done when the call returns
    """

    graph: Graph
    result: Any
    arena: Arena
    draws: bool
    waits: bool


def record(
    device: Device, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], arena: Arena
) -> Recording:
    """Calls ``function`` and runs nothing of it.

    Raises:
        CaptureError: it does what cannot be captured.
    """
    arena.rewind()
    session = CaptureSession(device, device.current_stream(), strict=True, arena=arena)
    session.begin()
    try:
        result = function(*args, **kwargs)
        graph = session.end()
    finally:
        session.abort()
    return Recording(graph, result, arena, session.draws > 0, session.reads_host and not session.host)


def changes_between(before: tuple[Node, ...], after: Graph) -> tuple[dict[str, Node], int] | None:
    """Nodes that replace those of the same name, and how many of them do something else; None for another structure."""
    nodes = tuple(after)
    if len(nodes) != len(before):
        return None
    changes: dict[str, Node] = {}
    different = 0
    for old, new in zip(before, nodes, strict=True):
        if type(old) is not type(new) or (old.name, old.after) != (new.name, new.after):
            return None
        if isinstance(new, ChildNode) and old.nodes is not new.nodes:  # type: ignore[attr-defined]
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
        return id(launch.keep[0]), launch.arguments  # the plan, and what it is called with
    return launch.function, launch.grid, launch.block, launch.shared_bytes, launch.arguments
