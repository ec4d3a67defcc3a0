"""Nodes as the driver's work.  Owns: Part, Lowering, Supplies: what a node comes to, and what that needs on the host.

Imports: nodes, callbacks, the graphs' protocol.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quadpy.graph.nodes import (
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    HostNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    Node,
    SemaphoreSignalNode,
    SemaphoreWaitNode,
)
from quadpy.runtime.callbacks import Failures, HostCall, Runs, forget, register
from quadpy.runtime.device import Device
from quadpy.runtime.driver import PinnedPointer
from quadpy.runtime.graph_driver import (
    CopyWork,
    EmptyWork,
    EventRecordWork,
    EventWaitWork,
    FillWork,
    FreeWork,
    HostWork,
    KernelWork,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
    Work,
)
from quadpy.runtime.launch import KernelLaunch

__all__ = ["Part", "Supplies", "parts_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """One node of the driver's, behind other parts of the same node, by number; behind the node's own for none."""

    work: Work
    after: tuple[int, ...] = ()


class Supplies:
    """What the driver's nodes point to on the host: functions by their tickets, and pinned buffers."""

    def __init__(self, device: Device, failures: Failures, runs: Runs) -> None:
        self._device, self._failures, self._runs = device, failures, runs
        self._tickets: list[int] = []
        self._pinned: dict[str, tuple[PinnedPointer, int]] = {}
        self._outgrown: list[PinnedPointer] = []

    def call(self, function: Callable[..., object], *arguments: object) -> HostWork:
        """A call of ``function``."""
        ticket = register(HostCall(function, arguments, self._failures, self._runs))
        self._tickets.append(ticket)
        return HostWork(ticket)

    def buffer(self, name: str, nbytes: int) -> PinnedPointer:
        """The buffer through which the node of this name copies."""
        found = self._pinned.get(name)
        if found is None or found[1] < nbytes:
            if found is not None:
                self._outgrown.append(found[0])
            found = self._pinned[name] = self._device.driver.alloc_pinned(nbytes), nbytes
        return found[0]

    def give_back(self) -> None:
        """No launch that uses them is pending."""
        for ticket in self._tickets:
            forget(ticket)
        for pointer in [*self._outgrown, *(pointer for pointer, _ in self._pinned.values())]:
            self._device.driver.free_pinned(pointer)
        self._tickets, self._pinned, self._outgrown = [], {}, []


def parts_of(node: Node, supplies: Supplies) -> list[Part]:
    """What the driver does for ``node``; child graphs and allocations are not here."""
    match node:
        case KernelNode():
            works = [_kernel(launch, node.priority) for launch in node.launches if isinstance(launch, KernelLaunch)]
            return _flow_parts(works, node.flow or tuple(range(len(works)))) or [Part(EmptyWork())]
        case MemcpyNode() if node.nbytes:
            return _copy_parts(node, supplies)
        case MemsetNode() if node.width:
            rows = [node.target + row * node.pitch for row in range(node.height)]
            fills = [FillWork(start, node.value, node.element, node.width) for start in rows]
            return [Part(fill, (number - 1,) if number else ()) for number, fill in enumerate(fills)]
        case HostNode():
            return [Part(supplies.call(node.function, *node.arguments))]
        case EventRecordNode():
            return [Part(EventRecordWork(node.event.handle))]
        case EventWaitNode():
            return [Part(EventWaitWork(node.event.handle))]
        case SemaphoreSignalNode():
            return [Part(SemaphoreSignalWork(tuple((one.handle, value) for one, value in node.semaphores)))]
        case SemaphoreWaitNode():
            return [Part(SemaphoreWaitWork(tuple((one.handle, value) for one, value in node.semaphores)))]
        case FreeNode():
            return [Part(FreeWork(node.allocation.pointer))]
        case EmptyNode() | MemcpyNode() | MemsetNode():  # drivers refuse copies and fills of no bytes
            return [Part(EmptyWork())]
        case _:
            raise AssertionError(node)


def _kernel(launch: KernelLaunch, priority: int | None) -> Work:
    if not launch.grid[0]:
        return EmptyWork()
    return KernelWork(
        launch.function, launch.grid, launch.block, launch.shared_bytes, launch.arguments, priority
    )  # fmt: skip


def _copy_parts(node: MemcpyNode, supplies: Supplies) -> list[Part]:
    """Memory of the host that may be paged goes through a pinned buffer, which a host function fills or empties."""
    if not node.staged:
        return [Part(CopyWork(node.target, node.source, node.nbytes, node.direction))]
    pinned = supplies.buffer(node.name, node.nbytes)
    if node.direction == "in":
        fetch = supplies.call(ctypes.memmove, pinned, node.source, node.nbytes)
        return [Part(fetch), Part(CopyWork(node.target, pinned, node.nbytes, "in"), (0,))]
    deliver = supplies.call(ctypes.memmove, node.target, pinned, node.nbytes)
    return [Part(CopyWork(pinned, node.source, node.nbytes, "out")), Part(deliver, (0,))]


def _flow_parts(works: Sequence[Work], flow: tuple[Any, ...]) -> list[Part]:
    """The launches of one kernel, forked and joined as its flow says, which has no loops."""
    parts: list[Part] = []

    def walk(flow: Sequence[Any], frontier: tuple[int, ...]) -> tuple[int, ...]:
        for step in flow:
            if isinstance(step, int):
                parts.append(Part(works[step], frontier))
                frontier = (len(parts) - 1,)
            else:
                ends = [end for branch in step["fork"] for end in walk(branch, frontier)]
                frontier = tuple(dict.fromkeys(ends))
        return frontier

    walk(flow, ())
    return parts
