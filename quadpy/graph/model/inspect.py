"""Graphs as data, as text and in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quadpy.core.messages import counted
from quadpy.graph.model.nodes import AllocNode, ChildNode, HostNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.model.order import MemoryRange
from quadpy.runtime.launch.fusion import Fusion


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One node: its kind, what it comes after, the memory that it reads and writes, and the source line that made it.

    ``detail`` says in words what the node does; ``children`` are the nodes of a child graph.
    """

    name: str
    kind: str
    after: tuple[str, ...]
    detail: str
    reads: tuple[MemoryRange, ...]
    writes: tuple[MemoryRange, ...]
    place: str
    children: tuple[NodeInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """The nodes of a graph in an order in which they could run; ``fusion`` only for an executable graph."""

    nodes: tuple[NodeInfo, ...]
    fusion: Fusion | None = None

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The dependencies as pairs (before, after)."""
        return tuple((before, node.name) for node in self.nodes for before in node.after)

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes that come after no other node."""
        return tuple(node.name for node in self.nodes if not node.after)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nodes that no other node comes after."""
        followed = {before for before, _ in self.edges}
        return tuple(node.name for node in self.nodes if node.name not in followed)


def describe(nodes: Iterable[Node], fusion: Fusion | None = None) -> GraphInfo:
    """The graph of ``nodes`` as data."""
    return GraphInfo(tuple(map(_describe, nodes)), fusion)


def _describe(node: Node) -> NodeInfo:
    children = tuple(map(_describe, node.nodes)) if isinstance(node, ChildNode) else ()
    place = f"{node.span.file}:{node.span.line}" if node.span else ""
    return NodeInfo(node.name, node.kind, node.after, _detail(node), node.reads, node.writes, place, children)


def _detail(node: Node) -> str:
    match node:
        case KernelNode():
            return ", ".join(launch.name for launch in node.launches)
        case MemcpyNode():
            return f"{node.nbytes} bytes{_DIRECTIONS[node.direction]}"
        case MemsetNode():
            rows = f"{node.height} rows of " if node.height > 1 else ""
            return f"{rows}{node.width} x {node.element} bytes = {node.value:#x}"
        case HostNode():
            return getattr(node.function, "__qualname__", repr(node.function))
        case AllocNode():
            return f"{node.nbytes} bytes"
        case ChildNode():
            return counted(len(node.nodes), "node")
    return ""


def table_of(info: GraphInfo) -> str:
    """One line for each node."""
    lines = [f"graph of {counted(len(info.nodes), 'node')}"]
    for node in info.nodes:
        after = f" after {', '.join(node.after)}" if node.after else ""
        detail = f" ({node.detail})" if node.detail else ""
        lines.append(f"  {node.name}: {node.kind}{detail}{after}")
    return "\n".join(lines)


_DIRECTIONS: Final = {"in": ", from the host", "out": ", to the host", "within": ""}
_SHAPES: Final = {"kernel": "box", "host": "hexagon", "empty": "point", "child": "folder"}


def dot_of(info: GraphInfo) -> str:
    """The graph in Graphviz's language; a child graph is one node, labelled with the number of its nodes."""
    lines = ["digraph {", "  node [fontname=sans];"]
    for node in info.nodes:
        label = _quoted(node.name, node.detail)
        lines.append(f"  {_quoted(node.name)} [label={label}, shape={_SHAPES.get(node.kind, 'ellipse')}];")
    for before, after in info.edges:
        lines.append(f"  {_quoted(before)} -> {_quoted(after)};")
    return "\n".join([*lines, "}"])


def _quoted(*lines: str) -> str:
    """``lines`` as one quoted string."""
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines if line) + '"'
