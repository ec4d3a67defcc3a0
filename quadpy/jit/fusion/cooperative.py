"""A launch whose blocks wait for each other: how many there are, its arguments, and the memory in which they meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quadpy.core.artifact import CodeObject
from quadpy.core.messages import counted
from quadpy.jit.fusion.worth import BLOCKS_OF_UNIT
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

_CELL: Final = 8


class CooperativeLaunch:
    """The only ``launch`` of ``code``, with at most ``most_blocks`` blocks, all of them resident.

    It has scratch memory for each stream, for all launches there: blocks count themselves in it, from 0 when it is new.
    """

    def __init__(self, device: Device, code: CodeObject, launch: TaskLaunch) -> None:
        self._device, self._nbytes = device, 8 * code.slots
        resident = device.driver.max_blocks(launch.function, launch.block[0], 0)
        self._of_unit = min(resident // max(device.driver.info.units, 1), BLOCKS_OF_UNIT)
        self.most_blocks = self._of_unit * device.driver.info.units
        self.launch, self.meetings = replace(launch, max_blocks=self.most_blocks), code.tasks[0].meetings
        self._offsets = [*(slot.offset for slot in code.layout.values), code.layout.size]
        self._scratch: dict[Timeline, DeviceBuffer] = {}
        self._lock = new_lock()

    @property
    def description(self) -> str:
        """For people; the meetings of one pass through each loop."""
        times = counted(self.meetings, "time")
        return f"one launch of at most {self.most_blocks} blocks, all of them resident, which meet {times}"

    def arguments(self, address: int) -> object:
        """The driver's arguments for an argument block at ``address``, followed by the address of scratch memory."""
        return self._device.driver.cooperative_arguments(address, self._offsets)

    def most_on(self, stream: Stream) -> int:
        """The most blocks of a launch on ``stream``, which may have a part of the device: others would never run."""
        part = stream.timeline.part
        return self.most_blocks if part is None else self._of_unit * len(part.units)

    def scratch_on(self, stream: Stream) -> DeviceBuffer:
        """The memory of ``stream``, which uses it next; memory of ended streams is given back with the next new one."""
        with self._lock:
            found = self._scratch.get(stream.timeline)
            if found is None:
                self._scratch = {known: each for known, each in self._scratch.items() if not known.ended}
                found = self._device.allocate_lasting(self._nbytes + _CELL, stream)
                self._device.driver.fill(found.pointer, 0, found.nbytes, stream.handle)
                self._scratch[stream.timeline] = found
        if found.block is not None:
            self._device.memory.use((found.block,), stream.timeline, writes=True)
        return found

    def order_events_after(self, scratch: DeviceBuffer, stream: StreamHandle) -> None:
        """After a launch on ``stream`` that has ``scratch``: let events that are recorded there wait for it."""
        driver = self._device.driver
        if "cooperative-apart" in driver.features:
            driver.fill(scratch.pointer + self._nbytes, 0, _CELL, stream)
