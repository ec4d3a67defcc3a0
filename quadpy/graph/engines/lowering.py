"""Nodes as the driver's work, and what that work needs on the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

from quadpy.graph.engines.driver_nodes import DriverNode, driver_nodes_of_tasks
from quadpy.graph.engines.task_nodes import known_task_nodes
from quadpy.graph.model.nodes import (
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
from quadpy.runtime.device.callbacks import Failures, HostCall, Runs, forget, register
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.reaper import Owner
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import PinnedPointer
from quadpy.runtime.drivers.graph_driver import (
    CopyWork,
    EmptyWork,
    EventRecordWork,
    EventWaitWork,
    FillWork,
    FreeWork,
    Groups,
    HostWork,
    KernelWork,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
    Work,
)
from quadpy.runtime.launch.launch import KernelLaunch
from quadpy.runtime.streams.owned import Owned

H = TypeVar("H", bound=int)


class HostResources:
    """Host resources of driver nodes: functions by their tickets, pinned buffers, handles that others own.

    ``owned`` keeps all of it until no launch that uses it is pending.  ``groups`` are those of the kernels' compute units.
    """

    def __init__(self, device: Device, failures: Failures, runs: Runs, owned: ResourceStack, groups: Groups) -> None:
        self._device, self._failures, self._runs, self._owned, self.groups = device, failures, runs, owned, groups
        self._pinned: dict[str, tuple[PinnedPointer, int]] = {}

    def call(self, function: Callable[..., object], *arguments: object) -> HostWork:
        """A call of ``function``."""
        call = HostCall(function, arguments, self._failures, self._runs)
        return HostWork(self._owned.make(forget, register, call))

    def buffer(self, name: str, nbytes: int) -> PinnedPointer:
        """The buffer through which the node of this name copies."""
        found = self._pinned.get(name)
        if found is None or found[1] < nbytes:
            driver = self._device.driver
            found = self._pinned[name] = self._owned.make(driver.free_pinned, driver.alloc_pinned, nbytes), nbytes
        return found[0]

    def handle(self, thing: Owned[H]) -> H:
        """The handle of an event or a semaphore, which lives on even if the user destroys it."""
        owner = thing._take()  # noqa: SLF001 - as a call that lasts
        self._owned.add(_drop, owner)
        return owner.handle


def _drop(owner: Owner[Any]) -> None:
    """Does nothing: dropping the reference releases the handle."""


def driver_nodes_of(node: Node, resources: HostResources) -> list[DriverNode]:
    """The driver's work for ``node``; child graphs and allocations are handled elsewhere."""
    match node:
        case KernelNode():
            given = node.priority, resources.groups
            works = [work_of(launch, *given) for launch in node.launches if isinstance(launch, KernelLaunch)]
            tasks = known_task_nodes(node.flow or tuple(range(len(works))), node.effects)
            origin = node.origin if node.conditions else None
            setter = None if origin is None else origin.condition_setter(indirect=node.indirect)
            made = driver_nodes_of_tasks(tasks, works, setter, node.conditions, resources.groups)
            return made or [DriverNode(EmptyWork())]
        case MemcpyNode() if node.nbytes:
            return _copy_nodes(node, resources)
        case MemsetNode() if node.width:
            return [DriverNode(fill, (number - 1,) if number else ()) for number, fill in enumerate(fills_of(node))]
        case HostNode():
            return [DriverNode(resources.call(node.function, *node.arguments))]
        case EventRecordNode():
            return [DriverNode(EventRecordWork(resources.handle(node.event)))]
        case EventWaitNode():
            return [DriverNode(EventWaitWork(resources.handle(node.event)))]
        case SemaphoreSignalNode():
            return [
                DriverNode(SemaphoreSignalWork(tuple((resources.handle(one), value) for one, value in node.semaphores)))
            ]
        case SemaphoreWaitNode():
            return [
                DriverNode(SemaphoreWaitWork(tuple((resources.handle(one), value) for one, value in node.semaphores)))
            ]
        case FreeNode():
            return [DriverNode(FreeWork(node.allocation.pointer))]
        case EmptyNode() | MemcpyNode() | MemsetNode():  # drivers refuse copies and fills of no bytes
            return [DriverNode(EmptyWork())]
        case _:
            raise AssertionError(node)


def work_of(launch: KernelLaunch, priority: int | None, groups: Groups) -> Work:
    """The driver's work for one launch."""
    if not launch.grid[0]:
        return EmptyWork()
    return KernelWork(
        launch.function, launch.grid, launch.block, launch.shared_bytes, launch.arguments, priority, groups,
    )  # fmt: skip


def fills_of(node: MemsetNode) -> list[FillWork]:
    """One fill for each row."""
    rows = [node.target + row * node.pitch for row in range(node.height)]
    return [FillWork(start, node.value, node.element, node.width) for start in rows]


def _copy_nodes(node: MemcpyNode, resources: HostResources) -> list[DriverNode]:
    """Memory of the host that may be paged goes through a pinned buffer, which a host function fills or empties."""
    if not node.staged:
        return [DriverNode(CopyWork(node.target, node.source, node.nbytes, node.direction))]
    pinned = resources.buffer(node.name, node.nbytes)
    if node.direction == "in":
        fetch = resources.call(ctypes.memmove, pinned, node.source, node.nbytes)
        return [DriverNode(fetch), DriverNode(CopyWork(node.target, pinned, node.nbytes, "in"), (0,))]
    deliver = resources.call(ctypes.memmove, node.target, pinned, node.nbytes)
    return [DriverNode(CopyWork(pinned, node.source, node.nbytes, "out")), DriverNode(deliver, (0,))]
