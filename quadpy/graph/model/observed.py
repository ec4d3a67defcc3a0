"""The nodes of a graph as an observer of work sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from quadpy.graph.model.nodes import (
    AllocNode,
    ChildNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    HostNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    Node,
)
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.observing import KernelAccess, ObservedNode, RawAccess


def observed(nodes: Collection[Node], off: Iterable[str] = (), *, built: bool = False) -> list[ObservedNode]:
    """``nodes``; those named ``off`` do nothing but order others.

    The same holds for first values of memory, which come before all uses of it.  The order is the one that the program
    asked for; if ``built``, the graph's own, with the edges that a capture adds for first uses of memory.
    """
    idle = frozenset(off)
    return [_observed(node, node.after if built else node.asked_after, idle=node.name in idle) for node in nodes]


def has_given_edges(nodes: Mapping[str, Node]) -> bool:
    """Whether the dependencies of some node were given, and are fewer than the order in which the nodes were made."""
    before: str | None = None
    for node in nodes.values():
        if not node.derived and before is not None and before not in node.asked_after:
            return True
        before = node.name
    return False


def _observed(node: Node, after: tuple[str, ...], *, idle: bool) -> ObservedNode:
    if idle or (isinstance(node, MemsetNode) and node.first):
        return ObservedNode(node.name, "", node.span, after, (), tuple, "", ())
    touches = (*((low, n, False) for low, n in node.reads), *((low, n, True) for low, n in node.writes))
    anything = isinstance(node, HostNode) and not touches
    unknown = "the host function does not declare what it reads and writes" if anything else ""
    records = (node.event._ref,) if isinstance(node, EventRecordNode) else ()  # noqa: SLF001 - its identity for observers
    waits = (node.event._ref,) if isinstance(node, EventWaitNode) else ()  # noqa: SLF001 - as above
    return ObservedNode(
        node.name, _what(node), node.span, after, touches, lambda: list(_accesses(node)), unknown, node.keep,
        records, waits,
    )  # fmt: skip


def _what(node: Node) -> str:
    if isinstance(node, KernelNode) and node.launches:
        return node.launches[0].name.partition(",")[0]
    names = {"memcpy": "copy", "memset": "fill", "host": "host function", "alloc": "allocation"}
    return names.get(node.kind, node.kind)


def _accesses(node: Node) -> Iterator[RawAccess | tuple[ArrayMemory, KernelAccess]]:
    match node:
        case KernelNode():
            yield from _kernel_accesses(node)
        case MemcpyNode(target=target, source=source, nbytes=nbytes):
            yield RawAccess("read", source, nbytes, "its source")
            yield RawAccess("write", target, nbytes, "its target")
        case MemsetNode(target=target, element=element, width=width, height=height, pitch=pitch):
            yield RawAccess("write", target, element * width, "memory", height, pitch)
        case ChildNode(nodes=inner):
            for each in inner:
                yield from _accesses(each)
        case AllocNode():
            yield RawAccess("allocation", node.pointer, node.nbytes, "memory")
        case FreeNode(allocation=allocation):
            yield RawAccess("free", allocation.pointer, allocation.nbytes, "memory")
        case _:
            yield from _ranges(node, "")


def _kernel_accesses(node: KernelNode) -> Sequence[RawAccess | tuple[ArrayMemory, KernelAccess]]:
    known = {id(launch.accesses): launch.accesses for launch in node.launches}
    if not known or None in known.values():
        return list(_ranges(node, "it is not known which elements of its arrays it touches"))
    return [each for accesses in known.values() if accesses is not None for each in accesses()]


def _ranges(node: Node, reason: str) -> Iterator[RawAccess]:
    """The accesses that the node declares."""
    for kind, ranges in (("read", node.reads), ("write", node.writes)):
        yield from (RawAccess(kind, low, nbytes, "memory", reason=reason) for low, nbytes in ranges)
