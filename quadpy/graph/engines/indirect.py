"""Graphs whose kernels read their arguments from memory.  Owns: IndirectEngine.

One table on the device has the arguments of all kernel nodes.  A change of arguments is a change of the table, which one
launch puts there before the next run of the graph; the driver's nodes stay as they are.
Imports: nodes, the build, devices, memory for arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from quadpy.graph.engines.driver import DriverEngine, DriverGraph
from quadpy.graph.model.nesting import has_loops
from quadpy.graph.model.nodes import KernelNode, Node
from quadpy.graph.replay.recording import LaunchStep
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
    """Where the arguments of each node stand, and what they are."""

    def __init__(self, device: Device, nodes: Iterable[Node], on: Stream) -> None:
        self.data = bytearray()
        self._places: dict[str, tuple[int, ...]] = {}
        first = None
        for node in nodes:
            if is_indirect(node):
                assert isinstance(node, KernelNode)
                self._places[node.name] = tuple(self._add(launch.arguments) for launch in node.launches)
                first = first or _form(node.launches[0])
        assert first is not None
        self.memory = ArgumentMemory(device, first.upload_kernels(), len(self.data), on)
        self.dirty = True

    def _add(self, arguments: bytes) -> int:
        place = len(self.data)
        self.data += arguments.ljust(-(-len(arguments) // _ALIGNMENT) * _ALIGNMENT, b"\0")
        return place

    def through(self, node: Node) -> Node:
        """``node`` with launches that read their arguments from this table."""
        places = self._places.get(node.name)
        if places is None:
            return node
        assert isinstance(node, KernelNode)
        return replace(node, launches=tuple(map(self._through, node.launches, places)))

    def _through(self, launch: object, place: int) -> KernelLaunch:
        assert isinstance(launch, KernelLaunch)
        assert launch.indirect is not None
        address = (self.memory.address + place).to_bytes(8, "little")
        return replace(launch, function=launch.indirect.function(), arguments=address)

    def write(self, node: KernelNode) -> None:
        """Let the arguments of ``node`` stand here."""
        for launch, place in zip(node.launches, self._places[node.name], strict=True):
            self.data[place : place + len(launch.arguments)] = launch.arguments
        self.dirty = True

    def bind(self, steps: Iterable[LaunchStep]) -> None:
        """Let the block of each step stand before what the arguments of the launches of its node end with."""
        data, places = self.data, self._places
        for step in steps:
            block, size = step.block, len(step.block)
            for place in places[step.name]:
                data[place : place + size] = block
        self.dirty = True

    def put(self, stream: StreamHandle) -> None:
        """Bring what changed to the device."""
        if self.dirty:
            self.memory.put(bytes(self.data), stream)
            self.dirty = False


class IndirectEngine(DriverEngine):
    """Launches a graph of the driver's whose kernels read their arguments from a table; ``build`` makes it of nodes."""

    overlaps: ClassVar[bool] = False
    binds: ClassVar[bool] = True

    def __init__(
        self, device: Device, nodes: Mapping[str, Node], build: Callable[[Iterable[Node]], DriverGraph],
        *, auto_free: bool, priorities: bool,
    ) -> None:  # fmt: skip
        self._device = device
        self._table = Table(device, nodes.values(), device.current_stream())
        self._now = {name: node for name, node in nodes.items() if is_indirect(node)}
        built = build([self._table.through(node) for node in nodes.values()])
        super().__init__(built, owned=True, auto_free=auto_free, priorities=priorities)

    def move(self, on: Stream) -> None:
        """Let later launches come on ``on``, which comes after the stream of the launches before."""
        block = self._table.memory.buffer.block
        if block is not None:
            self._device.memory.use((block,), on.timeline)

    def launch(self, stream: StreamHandle) -> None:
        """Put the table, where it changed, and one run of all nodes on ``stream``."""
        self._table.put(stream)
        super().launch(stream)

    def change(self, node: Node) -> bool:
        """As ``DriverEngine.change``; where only arguments are others, the driver is not asked."""
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
        """Launch kernels with what is bound; ``change`` knows nothing of it, and does not look at those before."""
        self._table.bind(steps)


def _sizes(node: KernelNode) -> list[int]:
    return [len(launch.arguments) for launch in node.launches]


def _shape(node: KernelNode) -> object:
    """What a node is beside its arguments."""
    launches = [(one.function, one.grid, one.block) for one in node.launches if isinstance(one, KernelLaunch)]
    return launches, node.flow, node.priority
