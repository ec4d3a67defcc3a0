"""Graphs whose kernels read their arguments from memory.

One table on the device holds the arguments of all kernel nodes.  Other arguments change the table, which one launch uploads
before the next run of the graph; the driver's nodes stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from quadpy.graph.engines.engine import BoundStep, Engine
from quadpy.graph.engines.stats import Counts
from quadpy.graph.model.nodes import KernelNode, Node
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.launch.argument_memory import ArgumentMemory
from quadpy.runtime.launch.launch import Indirect, KernelLaunch
from quadpy.runtime.streams.stream import Stream

_ALIGNMENT = 16


def is_indirect(node: Node) -> bool:
    """Whether there is code for ``node`` that reads its arguments from memory."""
    return isinstance(node, KernelNode) and bool(node.launches) and all(map(_form, node.launches))


def indirect_launches(node: Node) -> int:
    """How many launches of ``node`` can read their arguments from memory."""
    return len(node.launches) if isinstance(node, KernelNode) and is_indirect(node) else 0


def _form(launch: object) -> Indirect | None:
    return launch.indirect if isinstance(launch, KernelLaunch) else None


class Table:
    """The arguments of all nodes, by the offset of each launch; those of one call share a block, and an offset."""

    def __init__(self, device: Device, nodes: Iterable[Node], on: Stream) -> None:
        self.data = bytearray()
        self._offsets: dict[str, tuple[int, ...]] = {}
        first = None
        for node in nodes:
            if is_indirect(node):
                assert isinstance(node, KernelNode)
                blocks = [launch.arguments for launch in node.launches]
                shared = bool(node.arguments) and blocks.count(blocks[0]) == len(blocks)
                self._offsets[node.name] = tuple(map(self._add, blocks[:1] if shared else blocks))
                first = first or _form(node.launches[0])
        assert first is not None
        self.memory = ArgumentMemory(device, first.upload_kernels(), len(self.data), on)
        self.dirty = True

    def _add(self, arguments: bytes) -> int:
        offset = len(self.data)
        self.data += arguments.ljust(-(-len(arguments) // _ALIGNMENT) * _ALIGNMENT, b"\0")
        return offset

    def through(self, node: Node) -> Node:
        """``node`` with launches, and conditions of loops, that are found through this table."""
        offsets = self._offsets.get(node.name)
        if offsets is None:
            return node
        assert isinstance(node, KernelNode)
        launches = tuple(map(self._through, node.launches, offsets * len(node.launches)))
        if not node.conditions or node.origin is None:
            return replace(node, launches=launches)
        block = self.memory.address + offsets[0]
        where = {value.param: block + value.offset for value in node.origin.layout.values if value.part == "pointer"}
        conditions = {name: (where[name], nbytes) for name, (_, nbytes) in node.conditions.items()}
        return replace(node, launches=launches, conditions=conditions, indirect=True)

    def _through(self, launch: object, offset: int) -> KernelLaunch:
        assert isinstance(launch, KernelLaunch)
        assert launch.indirect is not None
        address = (self.memory.address + offset).to_bytes(8, "little")
        return replace(launch, function=launch.indirect.function(), arguments=address)

    def write(self, node: KernelNode) -> None:
        """Write the arguments of ``node``."""
        for launch, offset in zip(node.launches, self._offsets[node.name], strict=False):
            self.data[offset : offset + len(launch.arguments)] = launch.arguments
        self.dirty = True

    def bind(self, steps: Iterable[BoundStep]) -> None:
        """Write the block of each step; what follows it in the arguments of a launch stays."""
        data, offsets = self.data, self._offsets
        for step in steps:
            block, size = step.block, len(step.block)
            for offset in offsets[step.name]:
                data[offset : offset + size] = block
        self.dirty = True

    def upload(self, stream: StreamHandle) -> int:
        """Upload the table if it changed; returns how many launches that took."""
        if not self.dirty:
            return 0
        count = self.memory.upload(bytes(self.data), stream)
        self.dirty = False
        return count


class IndirectEngine(Engine):
    """Launches an engine that is ``made`` of nodes whose kernels read their arguments from a table."""

    overlaps = False
    binds: ClassVar[bool] = True

    def __init__(
        self, device: Device, nodes: Sequence[Node], made: Callable[[Sequence[Node]], Engine], counts: Counts, on: Stream
    ) -> None:  # fmt: skip
        self._device, self._counts = device, counts
        self._table = Table(device, nodes, on)
        block = self._table.memory.buffer.block
        self._blocks = () if block is None else (block,)
        self._now = {node.name: node for node in nodes if isinstance(node, KernelNode) and is_indirect(node)}
        self._inner = made([self._table.through(node) for node in nodes])

    def move(self, on: Stream) -> None:
        """See ``Engine.move``."""
        self._device.memory.use(self._blocks, on.timeline)
        self._inner.move(on)

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        self._counts.copies += self._table.upload(stream)
        self._inner.launch(stream)

    def change(self, node: Node) -> bool:
        """Like ``Engine.change``; where only arguments differ, the driver is not asked."""
        before = self._now.get(node.name)
        if before is None:
            return self._inner.change(node)
        if not isinstance(node, KernelNode) or not is_indirect(node) or _sizes(node) != _sizes(before):
            return False
        if _shape(node) != _shape(before) and not self._inner.change(self._table.through(node)):
            return False
        self._table.write(node)
        self._now[node.name] = node
        return True

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """See ``Engine.enable``."""
        return self._inner.enable(node, enabled=enabled)

    def bind(self, steps: Iterable[BoundStep]) -> None:
        """See ``Engine.bind``."""
        self._table.bind(steps)

    def upload(self, stream: StreamHandle) -> None:
        """See ``Engine.upload``."""
        self._inner.upload(stream)

    def give_back(self) -> None:
        """See ``Engine.give_back``."""
        self._inner.give_back()


def _sizes(node: KernelNode) -> list[int]:
    return [len(launch.arguments) for launch in node.launches]


def _shape(node: KernelNode) -> object:
    """The properties that must be equal if only arguments change."""
    launches = [(one.function, one.grid, one.block) for one in node.launches if isinstance(one, KernelLaunch)]
    return launches, node.flow, node.priority, {name: nbytes for name, (_, nbytes) in node.conditions.items()}
