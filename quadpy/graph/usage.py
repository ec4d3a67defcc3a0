"""Which memory and which events the nodes of a graph use.  Owns: Usage.  Imports: errors, nodes, blocks, timelines."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator, Sequence

from quadpy.errors import GraphError
from quadpy.graph.nodes import Allocation, AllocNode, ChildNode, EventRecordNode, FreeNode, Node
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.device_memory import DeviceMemory
from quadpy.runtime.event import Event
from quadpy.runtime.timeline import Timeline

__all__ = ["Usage"]


class Usage:
    """What a launch of ``nodes`` must say before, and remember behind."""

    def __init__(self, nodes: Collection[Node]) -> None:
        writes = sorted((start, start + nbytes) for node in nodes for start, nbytes in node.writes)
        things = {id(thing): thing for node in nodes for thing in node.keep}.values()
        blocks = {id(b): b for thing in things if isinstance(b := getattr(thing, "block", None), Block)}.values()
        self._written = [block for block in blocks if _touches(writes, block.pointer, block.pointer + block.nbytes)]
        self._read = [block for block in blocks if block not in self._written]
        self._records = list(_recorded(nodes))
        self._memory = [node for node in nodes if isinstance(node, (AllocNode, FreeNode))]

    def beside(self, read: Sequence[Block], written: Sequence[Block]) -> Usage:
        """The same, and these blocks."""
        found = Usage(())
        found._read, found._written = [*self._read, *read], [*self._written, *written]
        found._records, found._memory = self._records, self._memory
        return found

    def has(self, blocks: Sequence[Block]) -> bool:
        """Whether one of ``blocks`` is among them."""
        known = {id(block) for block in (*self._read, *self._written)}
        return any(id(block) in known for block in blocks)

    def announce(self, memory: DeviceMemory, timeline: Timeline) -> None:
        """Say which blocks the launch uses; said once, it holds for later launches on the same stream."""
        memory.use(self._read, timeline, writes=False)
        memory.use(self._written, timeline, writes=True)

    def check(self, *, auto_free: bool) -> None:
        """Refuse what drivers refuse, or let pass and corrupt."""
        if not self._memory:
            return
        own: set[Allocation] = set()
        for node in self._memory:
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

    def launched(self) -> list[Allocation]:
        """Take note of a launch; what it may have left."""
        if not (self._records or self._memory):
            return []
        for event in self._records:
            event.mark_recorded()
        for node in self._memory:
            node.allocation.live = isinstance(node, AllocNode)
        return [node.allocation for node in self._memory if isinstance(node, AllocNode)]


def _recorded(nodes: Iterable[Node]) -> Iterator[Event]:
    """The events that a launch records, those of child graphs among them."""
    for node in nodes:
        if isinstance(node, EventRecordNode):
            yield node.event
        elif isinstance(node, ChildNode):
            yield from _recorded(node.nodes)


def _touches(ranges: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of ``ranges``, which are sorted by where they begin, has bytes from ``start`` to ``end``."""
    last = bisect.bisect_left(ranges, (end, 0))
    return any(stop > start for _, stop in ranges[:last])
