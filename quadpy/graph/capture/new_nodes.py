"""The node that each captured call becomes.

Each builder takes the device and the arena of the capture, the stream, the values of the call and what it keeps alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from quadpy.graph.capture.arena import Arena
from quadpy.graph.model.makers import host_node
from quadpy.graph.model.nodes import ChildNode, MemcpyNode, MemsetNode, Node
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import CopyKind
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.host_memory import HOST, Buffer
from quadpy.runtime.streams.stream import Stream

__all__ = ["Builder", "NewNode", "child", "constant", "copy", "fill", "host_call"]

Keep: TypeAlias = tuple[Any, ...]


class NewNode(NamedTuple):
    """A node to be added to a captured graph.

    name     where several nodes have it, a number is appended
    ordered  whether the node comes after all work on its memory, on whatever stream, as when a copy or fill runs
    """

    node: Node
    name: str
    ordered: bool = True


Builder: TypeAlias = Callable[..., NewNode]


def fill(
    device: Device, arena: Arena, stream: Stream, target: int, pattern: bytes, nbytes: int, keep: Keep
) -> NewNode:  # fmt: skip
    """``nbytes`` bytes that repeat ``pattern``, which has 1, 2 or 4 bytes."""
    size = len(pattern)
    node = MemsetNode(
        target=target, value=int.from_bytes(pattern, "little"), element=size, width=nbytes // size,
        writes=((target, nbytes),), keep=keep,
    )  # fmt: skip
    return NewNode(node, "memset")


def copy(
    device: Device, arena: Arena, stream: Stream, target: int, source: int, nbytes: int, direction: CopyKind, keep: Keep
) -> NewNode:
    """A copy, done each time the graph runs."""
    return NewNode(MemcpyNode.of(target, source, nbytes, keep, direction), "memcpy")


def constant(device: Device, arena: Arena, stream: Stream, target: int, data: bytes, keep: Keep) -> NewNode:
    """A copy of ``data``, which the graph keeps."""

    def upload() -> DeviceBuffer | Buffer:
        if "host" in device.driver.features:
            there = HOST.allocate(len(data))
            ctypes.memmove(there.pointer, data, len(data))
            return there
        buffer = device.allocate_lasting(len(data), stream)
        address = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
        stream._call(lambda on: device.staging.upload(buffer.pointer, address, len(data), on))  # noqa: SLF001 - so that the handle lives until the copy is submitted
        if buffer.block is not None:
            device.memory.use([buffer.block], stream.timeline)
        return buffer

    kept = arena.constant(data, upload)
    return copy(device, arena, stream, target, kept.pointer, len(data), "within", (*keep, kept))


def host_call(device: Device, arena: Arena, stream: Stream, call: Keep) -> NewNode:
    """A call on the host; ``call`` is the function, then its arguments."""
    function, *arguments = call
    node = replace(host_node(device, function, *arguments), barrier=False)
    return NewNode(node, getattr(function, "__name__", "host"), ordered=False)


def child(device: Device, arena: Arena, stream: Stream, nodes: tuple[Node, ...]) -> NewNode:
    """The nodes of a graph that is launched."""
    return NewNode(ChildNode.of(nodes), "child", ordered=False)
