"""Which memory, events and semaphores the nodes of a graph use.  Owns: Usage.

Imports: errors, nodes, blocks, timelines.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from quadpy.errors import EventError, GraphError
from quadpy.graph.model.nodes import (
    Allocation,
    AllocNode,
    ChildNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    Node,
    SemaphoreSignalNode,
    SemaphoreWaitNode,
)
from quadpy.graph.model.semaphore import Semaphore
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_memory import DeviceMemory
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["Usage"]


class Usage:
    """What a launch of ``nodes`` must say before, and remember behind."""

    def __init__(self, nodes: Collection[Node]) -> None:
        writes = sorted((start, start + nbytes) for node in nodes for start, nbytes in node.writes)
        things = {id(thing): thing for node in nodes for thing in node.keep}.values()
        blocks = {id(b): b for thing in things if isinstance(b := getattr(thing, "block", None), Block)}.values()
        self._written = [block for block in blocks if _touches(writes, block.pointer, block.pointer + block.nbytes)]
        self._read = [block for block in blocks if block not in self._written]
        self.records = [inner.event for _, inner in _inner(nodes) if isinstance(inner, EventRecordNode)]
        self._owned = [(node.name, thing) for node, inner in _inner(nodes) for thing in _handles(inner)]
        self.memory = [node for node in nodes if isinstance(node, (AllocNode, FreeNode))]
        self._before: list[tuple[Allocation, bool]] = []

    def of(self, read: Iterable[Block], written: Iterable[Block]) -> Usage:
        """The same events, and these blocks."""
        found = Usage(())
        found.records, found.memory, found._owned = self.records, self.memory, self._owned
        found._written = list({id(block): block for block in written}.values())
        found._read = _but_for(read, found._written)
        return found

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """Those that are read, and those that are written."""
        return self._read, self._written

    def announce(self, memory: DeviceMemory, timeline: Timeline) -> None:
        """Say which blocks the launch uses; said once, it holds for later launches on the same stream."""
        memory.use(self._read, timeline, writes=False)
        memory.use(self._written, timeline, writes=True)

    def require_handles(self) -> None:
        """Refuse an event or a semaphore that was destroyed: pending launches still have it, later ones cannot."""
        for name, thing in self._owned:
            if isinstance(thing, Semaphore):
                if thing.destroyed:
                    raise GraphError(f"{name!r} uses a semaphore that was destroyed", hint=_LATER)
            elif thing.destroyed:
                raise EventError(f"{name!r} uses an event that was destroyed", hint=_LATER)

    def check(self, *, auto_free: bool) -> None:
        """Refuse what drivers refuse, or let pass and corrupt."""
        if self._owned:
            self.require_handles()
        if not self.memory:
            return
        own: set[Allocation] = set()
        for node in self.memory:
            allocation = node.allocation
            if isinstance(node, AllocNode):
                if allocation.live and not auto_free:
                    raise GraphError(
                        f"memory that {node.name!r} allocated in the last launch is not freed",
                        hint="add_free in this graph or another, or instantiate(auto_free_on_launch=True)",
                    )
                own.add(allocation)
            elif not (allocation.live or allocation in own):
                raise GraphError(
                    f"{node.name!r} frees memory that is not there", hint="launch the graph that allocates"
                )

    def launching(self) -> list[Allocation]:
        """Take note of what a launch, which comes next, does to memory; what it may leave."""
        self._before = [(node.allocation, node.allocation.live) for node in self.memory]
        for node in self.memory:
            node.allocation.live = isinstance(node, AllocNode)
        return [node.allocation for node in self.memory if isinstance(node, AllocNode)]

    def failed(self) -> None:
        """The launch was refused."""
        for allocation, live in self._before:
            allocation.live = live


_LATER: Final = "destroy it after the last launch, or update the node"


def _but_for(blocks: Iterable[Block], others: Iterable[Block]) -> list[Block]:
    """Each of ``blocks`` once, without ``others``."""
    known = {id(block) for block in others}
    return [block for block in {id(block): block for block in blocks}.values() if id(block) not in known]


def _inner(nodes: Iterable[Node]) -> Iterator[tuple[Node, Node]]:
    """Each node, and those of child graphs, behind the one of ``nodes`` that it is, or is in."""
    for node in nodes:
        yield node, node
        if isinstance(node, ChildNode):
            yield from ((node, inner) for _, inner in _inner(node.nodes))


def _handles(node: Node) -> tuple[Event | Semaphore, ...]:
    """What a node hands to the driver by its handle."""
    if isinstance(node, (EventRecordNode, EventWaitNode)):
        return (node.event,)
    if isinstance(node, (SemaphoreSignalNode, SemaphoreWaitNode)):
        return tuple(semaphore for semaphore, _ in node.semaphores)
    return ()


def _touches(ranges: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of ``ranges``, which are sorted by where they begin, has bytes from ``start`` to ``end``."""
    last = bisect.bisect_left(ranges, (end, 0))
    return any(stop > start for _, stop in ranges[:last])
