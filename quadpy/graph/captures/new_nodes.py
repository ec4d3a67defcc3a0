"""The node that captured work becomes."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from quadpy.graph.captures.arena import Arena
from quadpy.graph.model.makers import host_node
from quadpy.graph.model.nodes import ChildNode, MemcpyNode, MemsetNode, Node
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.captured_work import CapturedWork, Constant, Copy, Fill, GraphLaunch, HostFunction
from quadpy.runtime.launch.capturing import CapturedStream
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.host_memory import HOST, Buffer


class NewNode(NamedTuple):
    """A node to be added to a captured graph.

    name     where several nodes have it, a number is appended
    ordered  whether the node comes after all work on its memory, on whatever stream, as when a copy or fill runs
    """

    node: Node
    name: str
    ordered: bool = False


def node_for(
    work: CapturedWork, device: Device, arena: Arena, stream: CapturedStream, keep: tuple[object, ...]
) -> NewNode:  # fmt: skip
    """The node for ``work`` on ``stream``, which keeps ``keep`` alive; constants are in ``arena``."""
    match work:
        case Fill(target, pattern, nbytes, first):
            size = len(pattern)
            node = MemsetNode(
                target=target, value=int.from_bytes(pattern, "little"), element=size, width=nbytes // size,
                writes=((target, nbytes),), keep=keep, first=first,
            )  # fmt: skip
            return NewNode(node, "memset", ordered=True)
        case Copy(target, source, nbytes, direction):
            return NewNode(MemcpyNode.of(target, source, nbytes, keep, direction), "memcpy", ordered=True)
        case Constant(target, data):
            kept = arena.constant(data, lambda: _upload(data, device, stream))
            copy = MemcpyNode.of(target, kept.pointer, len(data), (*keep, kept))
            return NewNode(replace(copy, constant=data), "memcpy", ordered=True)
        case HostFunction(function, arguments):
            call = replace(host_node(device, function, *arguments), barrier=False)
            return NewNode(call, getattr(function, "__name__", "host"))
        case GraphLaunch(nodes):
            return NewNode(ChildNode.of(tuple(node for node in nodes if isinstance(node, Node))), "child")
        case _:
            raise TypeError(f"no node for {work!r}")


def _upload(data: bytes, device: Device, stream: CapturedStream) -> DeviceBuffer | Buffer:
    """A buffer of the device with ``data``."""
    if "host" in device.driver.features:
        there = HOST.allocate(len(data))
        ctypes.memmove(there.pointer, data, len(data))
        return there
    buffer = device.allocate_lasting(len(data), stream)
    address = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    stream._call(  # noqa: SLF001 - so that the handle lives until the copy is submitted
        lambda on: device.staging.upload(buffer.pointer, address, len(data), on)
    )
    if buffer.block is not None:
        device.memory.use([buffer.block], stream.timeline)
    return buffer
