"""Semaphores of other libraries.  Owns: Semaphore.  Imports: errors, devices, the graphs' protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.errors import GraphError
from quadpy.graph.support import graphs_of
from quadpy.runtime.device import Device
from quadpy.runtime.devices import current_device
from quadpy.runtime.graph_driver import SemaphoreHandle

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Semaphore"]


class Semaphore:
    """A semaphore that Vulkan or another library exported, for nodes of graphs; ``with`` gives it back at its end."""

    def __init__(self, device: Device, handle: SemaphoreHandle) -> None:
        self.device = device
        self._handle: SemaphoreHandle | None = handle
        self._finalizer = device.reaper.adopt(self, graphs_of(device).semaphore_destroy, handle)

    @staticmethod
    def from_fd(descriptor: int, kind: int = 1, *, device: Device | None = None) -> Semaphore:
        """Import a semaphore by its file descriptor; ``kind`` is the vendor's number of its type, 1 for an opaque one.

        Raises:
            GraphError: the device has no such semaphores.
            DriverError: the driver refuses it, as HIP 7.2 does on Linux; the message says so.
        """
        here = device or current_device()
        here.life.check()
        if "host" in here.driver.features:
            raise GraphError(f"{here} has no external semaphores", hint="they are a GPU's; on the CPU call its library")
        return Semaphore(here, graphs_of(here).semaphore_import(descriptor, kind))

    @property
    def handle(self) -> SemaphoreHandle:
        """The driver's handle."""
        self.device.life.check()
        if self._handle is None:
            raise GraphError("the semaphore was destroyed")
        return self._handle

    def destroy(self) -> None:
        """Give the semaphore back; graphs that use it must be through.  Doing it again does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None and self._finalizer.detach() and self.device.life.ended is None:
            graphs_of(self.device).semaphore_destroy(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"Semaphore({'destroyed' if self._handle is None else hex(self._handle)}, device={self.device})"
