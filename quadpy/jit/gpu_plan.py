"""A kernel on a GPU: its code loaded, its launches counted out.  Owns: GpuPlan.

Imports: leaves, ``artifact`` and ``runtime``.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.dtypes import BY_NAME
from quadpy.errors import DeviceError
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.host_arrays import HostArrays
from quadpy.jit.results import result_of
from quadpy.runtime.current import next_launch
from quadpy.runtime.device import Device
from quadpy.runtime.device_memory import DeviceBuffer
from quadpy.runtime.device_storage import stream_of
from quadpy.runtime.driver import Driver, FunctionHandle
from quadpy.runtime.module import Module
from quadpy.runtime.stream import Stream

__all__ = ["GpuPlan"]

_MOST_THREADS: Final = 1 << 32
"""HIP's limit for the threads of a grid; a loop over more runs in strides."""
_STRIDING_BLOCKS: Final = 4096
_UNKNOWN_BLOCKS: Final = 256
"""Blocks of a loop whose iterations only the device can count."""


@dataclass(frozen=True, slots=True)
class _Launch:
    """One kernel of the code object; ``extent`` counts its iterations, None where it is one block or unknown."""

    function: FunctionHandle
    block_dim: int
    parallel: bool
    strides: bool
    extent: Evaluator | None

    def blocks(self, values: list[Any]) -> int | None:
        """How many blocks to launch; None where the grid cannot be that large."""
        if not self.parallel:
            return 1
        if self.extent is None:
            return _UNKNOWN_BLOCKS
        blocks = -(-self.extent(values) // self.block_dim)
        if self.strides:
            return min(blocks, _STRIDING_BLOCKS)
        return blocks if blocks * self.block_dim < _MOST_THREADS else None


class _Block(threading.local):
    """The argument block of the calling thread; a launch copies it, so the next one may overwrite it."""

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.buffer = ctypes.create_string_buffer(max(nbytes, 1))
        self.arguments = driver.launch_arguments(ctypes.addressof(self.buffer), nbytes)


class GpuPlan:
    """One kernel, specialised, on one device.

    ``fields`` are the kernel's own, behind the caller's arguments; ``wider`` gives the plan with 64-bit loops, for
    more iterations than a grid has threads.
    """

    def __init__(
        self,
        code: CodeObject,
        device: Device,
        *,
        fields: tuple[Any, ...] = (),
        seed: int | None = None,
        outline: Any = None,
        wider: Callable[[], GpuPlan],
    ) -> None:
        self.code, self.device = code, device
        self._fields, self._seed, self._outline, self._wider = fields, seed, outline, wider
        self._format = struct.Struct(code.layout.format)
        end = code.layout.size if code.slots else self._format.size
        self._block = _Block(device.driver, end + 8 if code.slots else end)
        self._results = tuple(BY_NAME[name] for name in code.results)
        module = device.modules.load(code)
        self._launches = tuple(_launch(task, module) for task in code.tasks)
        pointers = [(slot.param, k) for k, slot in enumerate(code.layout.slots) if slot.part == "pointer"]
        written = {name for task in code.tasks for name, access in task.effects if access != "r"}
        self._places = [place for _, place in pointers]
        self._written = [name in written for name, _ in pointers]

    def run(self, values: list[Any], views: list[Any], stream: Any) -> Any:
        """Puts the kernel on ``stream``, or the calling thread's.

        Returns at once, unless it was handed host arrays that it wrote, or has a result: then when they are there.

        Raises:
            struct.error, OverflowError: a value does not fit its parameter.
            DeviceError: an array of another device, or this one was closed.
            StreamError: a stream of another device, or one that was destroyed.
        """
        on = stream_of(self.device, stream)
        given = len(values)
        values += [field.pointer for field in self._fields]
        if self._seed is not None:
            values += (self._seed, next_launch())
        self._format.pack_into(self._block.buffer, 0, *values)  # what does not fit is found before any work begins
        grids = [launch.blocks(values) for launch in self._launches]
        if None in grids:
            return self._wider().run(values[:given], views, stream)
        arrays = [*views, *self._fields]
        host = HostArrays(self.device, on, arrays, self._written)
        for member, address in host.addresses.items():
            values[self._places[member]] = address
        self._announce(arrays, on)
        scratch = self.device.allocate(8 * self.code.slots, on) if self.code.slots else None
        self._launch(values, grids, scratch, on)
        host.copy_back()
        return self._result(scratch, on) if scratch and self._results else None

    def _announce(self, arrays: list[Any], on: Stream) -> None:
        """Says which memory the launch reads and writes, so that it lives and is ordered."""
        for written in (True, False):
            blocks = []
            for array, writes in zip(arrays, self._written, strict=True):
                block = getattr(array, "block", None)
                if block is None or writes is not written:
                    continue
                if array.device is not self.device:
                    raise DeviceError(f"an array of {array.device} in a kernel on {self.device}", hint="copy it there")
                blocks.append(block)
            if blocks:
                self.device.memory.use(blocks, on.timeline, writes=written)

    def _launch(self, values: list[Any], grids: list[int | None], scratch: DeviceBuffer | None, on: Stream) -> None:
        own = self._block
        self._format.pack_into(own.buffer, 0, *values)
        if scratch:
            struct.pack_into("Q", own.buffer, self.code.layout.size, scratch.pointer)
        for launch, blocks in zip(self._launches, grids, strict=True):
            if blocks:
                threads = (launch.block_dim, 1, 1)
                self.device.driver.launch(launch.function, (blocks, 1, 1), threads, 0, on.handle, own.arguments)

    def _result(self, scratch: DeviceBuffer, on: Stream) -> Any:
        found = (ctypes.c_uint64 * len(self._results))()
        self.device.staging.download(ctypes.addressof(found), scratch.pointer, ctypes.sizeof(found), on.handle)
        return result_of(found, self._results, self._outline)


def _launch(task: TaskInfo, module: Module) -> _Launch:
    extent = None if task.extent is None else compile_formula(task.extent)
    return _Launch(module.function(task.symbol), task.block_dim, task.parallel, task.grid_stride, extent)
