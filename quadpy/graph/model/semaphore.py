"""Semaphores of other libraries, for nodes of graphs."""

from __future__ import annotations

from typing import ClassVar

from quadpy.core.public import public
from quadpy.errors import GraphError
from quadpy.graph.device_graphs import graphs_of
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.drivers.graph_driver import SemaphoreHandle
from quadpy.runtime.streams.owned import Owned, OwnerRef


class Semaphore(Owned[SemaphoreHandle]):
    """A semaphore that Vulkan or another library exported, for nodes of graphs; the end of a ``with`` destroys it.

    The driver's object lives until no graph has the semaphore and no launch that uses it is pending.
    """

    __slots__ = ()

    kind: ClassVar[str] = "semaphore"
    error: ClassVar[type[GraphError]] = GraphError

    @public
    def __init__(self, device: Device, descriptor: int, kind: int) -> None:
        graphs = graphs_of(device)
        owner = device.reaper.own(graphs.semaphore_destroy, graphs.semaphore_import, descriptor, kind)
        super().__init__(device, OwnerRef(owner))

    @staticmethod
    def from_fd(descriptor: int, kind: int = 1, *, device: Device | None = None) -> Semaphore:
        """Import a semaphore by its file ``descriptor`` to ``device``; ``kind`` is the vendor's number of its type, 1 for an opaque one.

        Raises:
            GraphError: the device is the CPU.
            DriverError: the driver refuses it, as HIP 7.2 does on Linux; the message says so.
        """
        here = device_or_current(device)
        here.life.check()
        if "host" in here.driver.features:
            raise GraphError(
                f"{here} has no external semaphores", hint="only GPUs have them; on the CPU, call the other library"
            )
        return Semaphore(here, descriptor, kind)
