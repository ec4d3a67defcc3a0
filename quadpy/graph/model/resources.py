"""The memory, events and semaphores that a launch of a graph uses."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable

from quadpy.errors import EventError, GraphError
from quadpy.graph.model.nodes import (
    Allocation,
    AllocNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    Node,
    SemaphoreSignalNode,
    SemaphoreWaitNode,
    with_inner,
)
from quadpy.graph.model.semaphore import Semaphore
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_memory import DeviceMemory
from quadpy.runtime.printing.device_rings import DeviceRing
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.timeline import Timeline


class Resources:
    """What a launch of ``nodes`` must announce and check before it runs, and remember afterwards.

    records  the events that the nodes record
    memory   the alloc and free nodes
    rings    the memory that kernels print to
    is_plain whether a launch has none of these, and no semaphores
    """

    def __init__(self, nodes: Collection[Node]) -> None:
        writes = sorted((start, start + nbytes) for node in nodes for start, nbytes in node.writes)
        things = {id(thing): thing for node in nodes for thing in node.keep}.values()
        blocks = {id(b): b for thing in things if isinstance(b := getattr(thing, "block", None), Block)}.values()
        self.rings = [thing for thing in things if isinstance(thing, DeviceRing)]
        self._written = [block for block in blocks if _touches(writes, block.pointer, block.pointer + block.nbytes)]
        self._read = [block for block in blocks if block not in self._written]
        self.records = [inner.event for _, inner in with_inner(nodes) if isinstance(inner, EventRecordNode)]
        self._handles = [(node.name, thing) for node, inner in with_inner(nodes) for thing in _handles_of(inner)]
        self.memory = [node for node in nodes if isinstance(node, (AllocNode, FreeNode))]
        self.is_plain = not (self.rings or self.records or self._handles or self.memory)
        self._live_before: list[tuple[Allocation, bool]] = []

    def with_blocks(self, read: Iterable[Block], written: Iterable[Block]) -> Resources:
        """The same events and semaphores with these blocks."""
        found = Resources(())
        found.records, found.memory, found._handles = self.records, self.memory, self._handles
        found.rings, found.is_plain = self.rings, self.is_plain
        found._written = list({id(block): block for block in written}.values())
        written_ids = {id(block) for block in found._written}
        found._read = [block for block in {id(block): block for block in read}.values() if id(block) not in written_ids]
        return found

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """The blocks that are only read, and those that are written."""
        return self._read, self._written

    def announce(self, memory: DeviceMemory, timeline: Timeline) -> None:
        """Say which blocks the launch uses; once is enough for all later launches on the same stream."""
        memory.use(self._read, timeline, writes=False)
        memory.use(self._written, timeline, writes=True)

    def require_handles(self) -> None:
        """Refuse an event or semaphore that was destroyed: pending launches still have it, new ones cannot."""
        for name, thing in self._handles:
            if thing.destroyed:
                kind = "a semaphore" if isinstance(thing, Semaphore) else "an event"
                error = GraphError if isinstance(thing, Semaphore) else EventError
                raise error(
                    f"{name!r} uses {kind} that was destroyed",
                    hint="destroy it after the last launch, or update the node",
                )

    def check(self, *, auto_free: bool) -> None:
        """Refuse a launch that drivers would refuse, or accept and corrupt memory with."""
        if self._handles:
            self.require_handles()
        if not self.memory:
            return
        own: set[Allocation] = set()
        for node in self.memory:
            allocation = node.allocation
            if isinstance(node, AllocNode):
                if allocation.live and not auto_free:
                    raise GraphError(
                        f"the memory that {node.name!r} allocated in the last launch was not freed",
                        hint="add_free in this graph or another, or instantiate(auto_free_on_launch=True)",
                    )
                own.add(allocation)
            elif not (allocation.live or allocation in own):
                raise GraphError(
                    f"{node.name!r} frees memory that is not allocated", hint="launch the graph that allocates it first"
                )

    def begin_launch(self) -> list[Allocation]:
        """Mark which memory a launch allocates and frees; the memory that it may leave allocated."""
        self._live_before = [(node.allocation, node.allocation.live) for node in self.memory]
        after = {node.allocation: isinstance(node, AllocNode) for node in self.memory}
        for allocation, live in after.items():  # an interrupt never leaves memory that the launch frees marked as live
            allocation.live = live
        return [node.allocation for node in self.memory if isinstance(node, AllocNode)]

    def cancel_launch(self) -> None:
        """Undo ``begin_launch``, because the driver refused the launch."""
        for allocation, live in self._live_before:
            allocation.live = live


def _handles_of(node: Node) -> tuple[Event | Semaphore, ...]:
    """The objects whose driver's handles the node uses."""
    if isinstance(node, (EventRecordNode, EventWaitNode)):
        return (node.event,)
    if isinstance(node, (SemaphoreSignalNode, SemaphoreWaitNode)):
        return tuple(semaphore for semaphore, _ in node.semaphores)
    return ()


def _touches(ranges: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of ``ranges`` (start and end, sorted) has bytes between ``start`` and ``end``."""
    last = bisect.bisect_left(ranges, (end, 0))
    return any(stop > start for _, stop in ranges[:last])
