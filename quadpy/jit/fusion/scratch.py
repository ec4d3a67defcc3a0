"""Scratch memory of launches whose blocks wait for each other.  Owns: FusedScratch.  Imports: ``runtime`` only."""

from __future__ import annotations

from typing import Final

from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["FusedScratch"]

_CELL: Final = 8


class FusedScratch:
    """``nbytes`` for each stream, for all launches there: blocks count themselves in it, from 0 when it is new."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self._device, self._nbytes = device, nbytes
        self._known: dict[Timeline, DeviceBuffer] = {}
        self._lock = new_lock()

    def on(self, stream: Stream) -> DeviceBuffer:
        """That of ``stream``, which uses it next; that of streams that are gone is given back when the next one comes."""
        with self._lock:
            found = self._known.get(stream.timeline)
            if found is None:
                self._known = {known: each for known, each in self._known.items() if not known.ended}
                found = self._device.allocate_lasting(self._nbytes + _CELL, stream)
                self._device.driver.fill(found.pointer, 0, found.nbytes, stream.handle)
                self._known[stream.timeline] = found
        if found.block is not None:
            self._device.memory.use((found.block,), stream.timeline, writes=True)
        return found

    def settle(self, scratch: DeviceBuffer, stream: StreamHandle) -> None:
        """Behind a launch on ``stream`` that has ``scratch``: let events that are recorded there wait for it."""
        driver = self._device.driver
        if "cooperative-apart" in driver.features:
            driver.fill(scratch.pointer + self._nbytes, 0, _CELL, stream)
