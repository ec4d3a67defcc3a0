"""A kernel on a GPU: its code loaded, its launches counted out.  Owns: GpuPlan.

Imports: leaves, ``artifact``, ``codegen`` and ``runtime``.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from quadpy.artifact import CodeObject
from quadpy.dtypes import BY_NAME
from quadpy.errors import ArgumentError, DeviceError
from quadpy.jit.argument_upload import putters_on
from quadpy.jit.array_arguments import ArrayArguments
from quadpy.jit.gpu_launch import Submission, task_launches
from quadpy.jit.grids import Grids
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.host_arrays import HostArrays, noted_host_arrays
from quadpy.jit.results import result_of
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import Driver, FunctionHandle
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.fusion import Origin
from quadpy.runtime.launch.launch import Indirect, KernelLaunch, MemoryRange, Prepared
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream
from quadpy.source import Span

__all__ = ["GpuPlan"]


class GpuPlan:
    """One kernel, specialised, on one device.

    ``fields`` are the kernel's own, behind the caller's arguments; ``wider`` gives the plan with 64-bit loops, for
    more iterations than a grid has threads.  ``name`` and ``spans``, a place for each task, are for messages.
    """

    def __init__(
        self,
        code: CodeObject,
        device: Device,
        *,
        fields: tuple[Field, ...] = (),
        seed: int = 0,
        outline: Any = None,
        wider: Callable[[], GpuPlan],
        name: str = "",
        spans: Sequence[Span | None] = (),
    ) -> None:
        self.code, self.device = code, device
        self.hidden, self._outline, self._wider = HiddenArguments(code, fields, seed), outline, wider
        self.fields = self.hidden.fields
        self.format = struct.Struct(code.layout.format)
        self._module = device.modules.load(code)
        self.launches = tuple(task_launches(code, device.driver, self._module, name, spans))
        self._flow = code.flow or tuple(range(len(code.tasks)))
        self.grids = Grids(code, self.launches)
        self.places = ArrayArguments(code)
        self._results = tuple(BY_NAME[name] for name in code.results)
        self.spare: list[_Block] = []
        self.origin: Origin | None = None  # what the code was compiled from
        self._indirect: tuple[Indirect | None, ...] = (None,) * len(self.launches)

    def indirect_by(self, compiled: Callable[[], GpuPlan]) -> None:
        """``compiled`` gives the plan of the same code that reads its arguments from memory."""
        self._indirect = tuple(
            Indirect(partial(_function_of, compiled, number), partial(putters_on, self.device))
            for number in range(len(self.launches))
        )

    def run(self, values: list[Any], views: list[Any], stream: Any) -> Any:
        """Puts the kernel on ``stream``, or the calling thread's.

        Returns at once, unless it was handed host arrays that it wrote, or has a result: then when they are there.

        Raises:
            struct.error, OverflowError: a value does not fit its parameter.
            DeviceError: an array of another device, or this one was closed.
            StreamError: a stream of another device, or one that was destroyed.
            CaptureError: ``stream`` is captured, and the kernel returns something, which a capture has not.
        """
        on = stream_of(self.device, stream)
        if not self.device.life.direct and (session := session_of(on)) is not None:
            with noted_host_arrays(session, on, values, views, self.places) as there:
                session.record_launch(on, self.prepare(values, there, on), draws=self.hidden.draws)
            return None
        given = len(values)
        grids = self._complete(values)
        if grids is None:
            return self._wider().run(values[:given], views, stream)
        return on._call(lambda _: self._run(values, grids, [*views, *self.fields], on))  # noqa: SLF001

    def prepare(self, values: list[Any], views: list[Any], stream: Stream | None = None) -> Prepared:
        """What ``run`` would launch, without launching it; scratch memory is ``stream``'s, or the calling thread's.

        Raises:
            ArgumentError: an array of the host, whose copies are no launches.
            struct.error, OverflowError, DeviceError: as ``run``.
        """
        given = len(values)
        grids = self._complete(values)
        if grids is None:
            return self._wider().prepare(values[:given], views, stream)
        arrays = [*views, *self.fields]
        if any(getattr(array, "block", None) is None and array.nbytes for array in arrays):
            raise ArgumentError("a launch that is not run at once takes arrays on the device", hint="copy it there")
        scratch = self._scratch(stream or self.device.current_stream())
        for array in arrays:
            self._require_here(array)
        block = self.format.pack(*values)
        if scratch:
            block = self.hidden.with_memory(block, scratch.pointer)
        launches = self.launches_of(block, grids, arrays, scratch)
        result = None
        if scratch and self._results:

            def result(on: Stream) -> Any:
                return self._result(scratch, on)

        conditions = self._conditions(values, arrays)
        return Prepared(launches, self.code.flow, conditions, result, self.origin, block[: self.code.layout.size])

    def launches_of(
        self, block: bytes, grids: Sequence[int], arrays: Sequence[Any], scratch: Any
    ) -> tuple[KernelLaunch, ...]:
        """Each task with an argument block, in which the address of ``scratch`` is; ``arrays`` have fields last."""
        keep = (self._module, *arrays, scratch)
        return tuple(
            KernelLaunch(
                task.name, task.function, (blocks or self._idle_blocks(number), 1, 1), task.block, 0, block,
                self.places.ranges(number, "ra", arrays), self.places.ranges(number, "wa", arrays), keep, task.span,
                self._indirect[number],
            )
            for number, (task, blocks) in enumerate(zip(self.launches, grids, strict=True))
        )  # fmt: skip

    def _idle_blocks(self, number: int) -> int:
        """How many blocks stand for a launch without iterations: whole ones would not look whether there is any."""
        return 0 if self.code.tasks[number].has_barrier else 1

    def _complete(self, values: list[Any]) -> Sequence[int] | None:
        """Adds what the caller does not pass, and counts the blocks; None where a grid cannot be that large.

        What does not fit is found before any work begins.
        """
        values += self.hidden.values()
        self.format.pack(*values)
        return self.grids.of(values)

    def _run(self, values: list[Any], grids: Sequence[int], arrays: list[Any], on: Stream) -> Any:
        host = HostArrays(self.device, on, arrays, self.places.written)
        for member, address in host.addresses.items():
            values[self.places.pointers[member]] = address
        self._announce(arrays, on)
        scratch = self._scratch(on)
        block = self.take_block()
        self.format.pack_into(block.buffer, 0, *values)
        if scratch:
            self.hidden.pack_memory(block.buffer, scratch.pointer)
        conditions = self._conditions(values, arrays)
        Submission(self.device, self.launches, grids, block.arguments, conditions).run(self._flow, on.timeline)
        self.spare.append(block)
        host.copy_back()
        return self._result(scratch, on) if scratch and self._results else None

    def _announce(self, arrays: list[Any], on: Stream) -> None:
        """Says which memory the launch reads and writes, so that it lives and is ordered."""
        for written in (True, False):
            blocks = []
            for array, writes in zip(arrays, self.places.written, strict=True):
                block = getattr(array, "block", None)
                if block is not None and writes is written:
                    self._require_here(array)
                    blocks.append(block)
            if blocks:
                self.device.memory.use(blocks, on.timeline, writes=written)

    def _require_here(self, array: Any) -> None:
        if getattr(array, "block", None) is not None and array.device is not self.device:
            raise DeviceError(f"an array of {array.device} in a kernel on {self.device}", hint="copy it there")

    def _scratch(self, on: Stream) -> DeviceBuffer | None:
        return self.device.allocate(8 * self.code.slots, on) if self.code.slots else None

    def _conditions(self, values: list[Any], arrays: list[Any]) -> dict[str, MemoryRange]:
        """Where element 0 of each condition of a loop lies."""
        found = {}
        for name, (member, place) in self.places.conditions.items():
            array = arrays[member]
            if not array.nbytes:
                raise ArgumentError(f"{name} is empty: its element 0 decides whether the loop goes on")
            found[name] = (values[place], _item_bytes(array))
        return found

    def _result(self, scratch: DeviceBuffer, on: Stream) -> Any:
        found = on._call(self.device.staging.fetch, scratch.pointer, 8 * len(self._results))  # noqa: SLF001
        return result_of(found, self._results, self._outline)

    @property
    def plain(self) -> bool:
        """Whether a call is nothing but launches one after the other, of arrays that are there."""
        return not (self.code.flow or self.code.results)

    @property
    def block_bytes(self) -> int:
        """Of the argument block, without padding at its end."""
        return self.format.size if self.hidden.memory is None else self.code.block_bytes

    def take_block(self) -> _Block:
        """An argument block; it goes back to ``spare`` when the launches are done, and is lost with an exception."""
        try:
            return self.spare.pop()
        except IndexError:
            return _Block(self.device.driver, self.block_bytes)


class _Block:
    """An argument block, and what the driver takes for it.

    One launch at a time has it, though a finalizer may launch the same kernel between any two of Python's steps.
    """

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.buffer = ctypes.create_string_buffer(max(nbytes, 1))
        self.arguments = driver.launch_arguments(ctypes.addressof(self.buffer), nbytes)


def _function_of(compiled: Callable[[], GpuPlan], number: int) -> FunctionHandle:
    return compiled().launches[number].function


def _item_bytes(array: Any) -> int:
    if hasattr(array, "dtype"):
        return int(array.dtype.nbytes)
    return BY_NAME[array.type_key[1]].nbytes
