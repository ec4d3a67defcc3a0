"""One launch for the tasks of several calls; its code is known."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from quadpy.core.artifact import AbiLayout, AbiValue, CodeObject
from quadpy.errors import DeviceError
from quadpy.jit.fusion.cooperative import CooperativeLaunch
from quadpy.jit.fusion.worth import why_separate, why_slower
from quadpy.jit.gpu_launch import task_launches

if TYPE_CHECKING:
    from quadpy.jit.fusion.call_code import CallCode
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import StreamHandle
    from quadpy.runtime.launch.fusion import Fuse
    from quadpy.runtime.memory.allocators.block import DeviceBuffer
    from quadpy.runtime.streams.stream import Stream


class FusedCalls:
    """A ``OneLaunch`` of ``levels`` with initial ``arguments``."""

    def __init__(
        self,
        device: Device,
        code: CodeObject,
        levels: Sequence[Sequence[CallCode]],
        arguments: Sequence[bytes],
        fuse: Fuse,
    ) -> None:
        self.device, self._codes, self._fuse = device, list(chain.from_iterable(levels)), fuse
        self._depth = sum(max(call.depth for call in level) for level in levels)
        self._module = device.modules.load(code)
        (launch,) = task_launches(code, device.driver, self._module, "graph", ())
        self._cooperative = CooperativeLaunch(device, code, launch)
        self.most_blocks = self._most = self._cooperative.most_blocks
        self.description = self._cooperative.description
        self._places = _places(self._codes, code.layout)
        self._values = struct.Struct(code.layout.format)
        self._scratch = code.layout.size
        self._block = ctypes.create_string_buffer(self._scratch + 8)
        self._bytes = memoryview(self._block).cast("B")
        self._arguments = self._cooperative.arguments(ctypes.addressof(self._block))
        self._iterations = [0] * len(self._codes)
        self._blocks = 0
        self._cells: DeviceBuffer | None = None
        for number, block in enumerate(arguments):
            self.bind(number, block)

    @property
    def keep(self) -> tuple[object, ...]:
        return (self._module,)

    def bind(self, number: int, arguments: bytes) -> None:
        """See ``OneLaunch.bind``."""
        arguments = self._codes[number].packed(arguments)
        for source, target, size in self._places[number]:
            self._bytes[target : target + size] = arguments[source : source + size]
        self._iterations[number] = self._codes[number].iterations(arguments)
        self._blocks = 0

    def why_not(self) -> str:
        """See ``OneLaunch.why_not``."""
        if not self.most_blocks:
            return "not even one of its blocks fits on the device"
        driver, fuse, loops = self.device.driver, self._fuse, any(code.loops for code in self._codes)
        meetings, blocks = self._cooperative.meetings, self._count_blocks()
        too_large = why_separate(driver, max(self._iterations), loops=loops, fuse=fuse)
        return too_large or why_slower(driver, self._depth, meetings, blocks, loops=loops, fuse=fuse)

    def move(self, on: Stream) -> None:
        """See ``OneLaunch.move``."""
        self._cells, self._most = self._cooperative.scratch_on(on), self._cooperative.most_on(on)
        struct.pack_into("Q", self._block, self._scratch, self._cells.pointer)

    def launch(self, stream: StreamHandle) -> None:
        """See ``OneLaunch.launch``."""
        launch, blocks = self._cooperative.launch, min(self._count_blocks(), self._most)
        try:
            self.device.driver.launch_cooperative(
                launch.function, (blocks, 1, 1), launch.block, 0, stream, self._arguments
            )
        except DeviceError as error:
            raise launch.named(error) from error
        if self._cells is not None:
            self._cooperative.order_events_after(self._cells, stream)

    def _count_blocks(self) -> int:
        """The blocks of a launch with the arguments that are bound now."""
        if not self._blocks:
            values = list(self._values.unpack_from(self._block))
            self._blocks = self._cooperative.launch.blocks(values) or self.most_blocks
        return self._blocks


def _places(codes: Sequence[CallCode], fused: AbiLayout) -> list[list[tuple[int, int, int]]]:
    """For each call, the source and target offsets of its values in the fused block, and their sizes."""
    targets = iter(fused.values)

    def one(value: AbiValue) -> tuple[int, int, int]:
        return value.offset, next(targets).offset, struct.calcsize(value.code)

    return [[one(value) for value in code.layout.values] for code in codes]
