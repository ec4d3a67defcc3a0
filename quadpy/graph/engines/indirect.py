"""Graphs whose kernels read their arguments from memory.

One table on the device holds the arguments of all kernel nodes.  Other arguments change the table, which one launch uploads
before the next run of the graph; the driver's nodes stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from quadpy.graph.engines.driver import DriverEngine, DriverGraph
from quadpy.graph.model.nesting import has_loops
from quadpy.graph.model.nodes import KernelNode, Node
from quadpy.graph.model.recording import LaunchStep
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.launch.argument_memory import ArgumentMemory
from quadpy.runtime.launch.launch import Indirect, KernelLaunch
from quadpy.runtime.streams.stream import Stream

__all__ = ["IndirectEngine", "is_indirect"]

_ALIGNMENT = 16


def is_indirect(node: Node) -> bool:
    """Whether there is code for ``node`` that reads its arguments from memory."""
    return (
        isinstance(node, KernelNode) and bool(node.launches) and not has_loops(node) and all(map(_form, node.launches))
    )


def _form(launch: object) -> Indirect | None:
    return launch.indirect if isinstance(launch, KernelLaunch) else None


class Table:
    """The arguments of all nodes, by the offset of each launch."""

    def __init__(self, device: Device, nodes: Iterable[Node], on: Stream) -> None:
        self.data = bytearray()
        self._offsets: dict[str, tuple[int, ...]] = {}
        first = None
        for node in nodes:
            if is_indirect(node):
                assert isinstance(node, KernelNode)
                self._offsets[node.name] = tuple(self._add(launch.arguments) for launch in node.launches)
                first = first or _form(node.launches[0])
        assert first is not None
        self.memory = ArgumentMemory(device, first.upload_kernels(), len(self.data), on)
        self.dirty = True

    def _add(self, arguments: bytes) -> int:
        offset = len(self.data)
        self.data += arguments.ljust(-(-len(arguments) // _ALIGNMENT) * _ALIGNMENT, b"\0")
        return offset

    def through(self, node: Node) -> Node:
        """``node`` with launches that read their arguments from this table."""
        offsets = self._offsets.get(node.name)
        if offsets is None:
            return node
        assert isinstance(node, KernelNode)
        return replace(node, launches=tuple(map(self._through, node.launches, offsets)))

    def _through(self, launch: object, offset: int) -> KernelLaunch:
        assert isinstance(launch, KernelLaunch)
        assert launch.indirect is not None
        address = (self.memory.address + offset).to_bytes(8, "little")
        return replace(launch, function=launch.indirect.function(), arguments=address)

    def write(self, node: KernelNode) -> None:
        """Write the arguments of ``node``."""
        for launch, offset in zip(node.launches, self._offsets[node.name], strict=True):
            self.data[offset : offset + len(launch.arguments)] = launch.arguments
        self.dirty = True

    def bind(self, steps: Iterable[LaunchStep]) -> None:
        """Write the block of each step; what follows it in the arguments of a launch stays."""
        data, offsets = self.data, self._offsets
        for step in steps:
            block, size = step.block, len(step.block)
            for offset in offsets[step.name]:
                data[offset : offset + size] = block
        self.dirty = True

    def upload(self, stream: StreamHandle) -> None:
        """Upload the table if it changed."""
        if self.dirty:
            self.memory.upload(bytes(self.data), stream)
            self.dirty = False


class IndirectEngine(DriverEngine):
    """Launches a driver graph whose kernels read their arguments from a table; ``build`` makes it of nodes."""

    overlaps: ClassVar[bool] = False
    binds: ClassVar[bool] = True

    def __init__(
        self, device: Device, nodes: Mapping[str, Node], build: Callable[[Iterable[Node]], DriverGraph],
        *, auto_free: bool, priorities: bool,
    ) -> None:  # fmt: skip
        self._device = device
        self._table = Table(device, nodes.values(), device.current_stream())
        self._now = {name: node for name, node in nodes.items() if is_indirect(node)}
        graph = build([self._table.through(node) for node in nodes.values()])
        super().__init__(graph, owned=True, auto_free=auto_free, priorities=priorities)

    def move(self, on: Stream) -> None:
        """See ``Engine.move``."""
        block = self._table.memory.buffer.block
        if block is not None:
            self._device.memory.use((block,), on.timeline)

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        self._table.upload(stream)
        super().launch(stream)

    def change(self, node: Node) -> bool:
        """Like ``DriverEngine.change``; where only arguments differ, the driver is not asked."""
        before = self._now.get(node.name)
        if before is None:
            return super().change(node)
        assert isinstance(before, KernelNode)
        if not isinstance(node, KernelNode) or not is_indirect(node) or _sizes(node) != _sizes(before):
            return False
        if _shape(node) != _shape(before) and not super().change(self._table.through(node)):
            return False
        self._table.write(node)
        self._now[node.name] = node
        return True

    def bind(self, steps: Iterable[LaunchStep]) -> None:
        """See ``Engine.bind``."""
        self._table.bind(steps)


def _sizes(node: KernelNode) -> list[int]:
    return [len(launch.arguments) for launch in node.launches]


def _shape(node: KernelNode) -> object:
    """The properties that must be equal if only arguments change."""
    launches = [(one.function, one.grid, one.block) for one in node.launches if isinstance(one, KernelLaunch)]
    return launches, node.flow, node.priority
