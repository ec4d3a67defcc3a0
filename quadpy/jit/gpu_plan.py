"""Kernels on a GPU: a call packs the arguments and puts a launch of each task on a stream."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial

from quadpy.core.artifact import CodeObject, ResultShape
from quadpy.core.dtypes import BY_NAME
from quadpy.core.source import Span
from quadpy.errors import ArgumentError, DeviceError
from quadpy.jit.array_arguments import ArrayArguments, LaunchedCall
from quadpy.jit.gpu_launch import Submission, TaskLaunch, task_launches, upload_kernels_on
from quadpy.jit.grids import Grids
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.host_arrays import copied_host_arrays
from quadpy.jit.limits import Limits
from quadpy.jit.misfits import MISFITS, Misfit
from quadpy.jit.plan import Elsewhere, Plan, Values, Views, unknown_footprints
from quadpy.jit.results import ResultReader
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.view import ArrayMemory, ArrayView
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import (
    Bound,
    Effects,
    HostLaunch,
    Indirect,
    KernelLaunch,
    MemoryRange,
    Origin,
    Prepared,
)
from quadpy.runtime.memory.allocators.block import Block, DeviceBuffer
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream


class GpuPlan:
    """A ``Plan`` for one device: a launch for each task.

    ``fields`` are those that the kernel names; ``wider`` gives the plan with 64-bit loops, for more iterations than a
    grid has threads; ``result_shape`` is the shape of what the kernel returns.  ``name`` and ``spans``, where each task
    begins, are for messages.  ``origin`` is what the code was compiled from.
    """

    def __init__(
        self,
        code: CodeObject,
        device: Device,
        *,
        fields: tuple[FieldMemory, ...] = (),
        seed: int = 0,
        result_shape: ResultShape = None,
        wider: Callable[[], Plan],
        name: str = "",
        spans: Sequence[Span | None] = (),
    ) -> None:
        self.code, self.device, self.wider = code, device, wider
        self.hidden, self.arrays = HiddenArguments(code, fields, seed, device), ArrayArguments(code)
        self.format = struct.Struct(code.layout.format)
        self._unpack = self.format.unpack_from
        self.module = device.modules.load(code)
        self.launches = tuple(task_launches(code, device.driver, self.module, name, spans))
        self._flow = code.steps
        self.limits = Limits(code, name, spans[0] if spans else None)
        self.grids = Grids(code, self.launches, self.limits)
        self.result = ResultReader(code.results, result_shape) if code.results else None
        self.spare: list[ArgumentBlock] = []
        self.origin: Origin | None = None
        self.elsewhere: Elsewhere | None = None
        self.effects: Effects | None = None  # they order launches that are nodes of a graph, if arrays do not overlap
        self.fields, self.footprints = self.hidden.fields, unknown_footprints(code)
        self._indirect: tuple[Indirect | None, ...] = (None,) * len(self.launches)

    def set_indirect(self, compiled: Callable[[], GpuPlan]) -> None:
        """``compiled`` gives the plan of the same kernel whose code reads its arguments from memory."""
        self._indirect = tuple(
            Indirect(partial(_function_of, compiled, number), partial(upload_kernels_on, self.device))
            for number in range(len(self.launches))
        )

    def run(self, values: Values, views: Views, stream: object) -> object:
        """Like ``Plan.run``; returns at once, except where it writes arrays of the host or has a result.

        Raises:
            DeviceError: an array is on another device, or this one was closed.
            StreamError: a stream of another device, or one that was destroyed.
        """
        on = stream_of(self.device, stream)
        if not self.device.life.direct and (session := session_of(on)) is not None:
            with copied_host_arrays(self.device, on, values, views, self.arrays, session) as there:
                session.record_launch(on, self.prepare(values, there, on), draws=self.hidden.counts)
            return None
        given = len(values)
        grids = self.complete(values)
        if grids is None:
            return self.wider().run(values[:given], views, stream)
        return on._call(lambda _: self.submit(values, grids, views, on))  # noqa: SLF001 - keeps the handle alive

    def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> Prepared | HostLaunch:
        """Like ``Plan.prepare``; scratch memory is ``stream``'s, or the calling thread's stream's.

        Raises:
            ArgumentError: an array of the host, whose copies are not launches.
            DeviceError: an array is on another device.
        """
        given = len(values)
        grids = self.complete(values)
        if grids is None:
            return self.wider().prepare(values[:given], views, stream)
        if any(view.block is None and view.nbytes for view in views):
            raise ArgumentError(
                "a launch that does not run immediately takes only arrays on the device", hint="copy it there"
            )
        return self._prepared(values, grids, views, stream)

    def _prepared(self, values: Values, grids: Sequence[int], views: Views, stream: Stream | None) -> Prepared:
        """Like ``prepare``, with complete ``values``."""
        scratch = self._scratch(stream or self.device.current_stream())
        arrays = self._arrays(views)
        block = self.format.pack(*values)
        if scratch:
            block = self.hidden.with_scratch(block, scratch.pointer)
        launches = self.launches_of(block, grids, arrays, scratch)
        result = None if scratch is None or self.result is None else partial(self._fetch, self.result, scratch)
        conditions = self.conditions(values, views)
        arguments = block[: self.code.layout.size]
        return Prepared(launches, self.code.flow, conditions, result, self.origin, arguments, self.effects)

    def predicated(self, call: Prepared, before: Prepared | None, on: Stream) -> Prepared:
        """``Origin.predicated`` by this plan, whose code has the tasks of ``call``, and then latches."""
        code = self.code
        scratch = None if before is None else before.launches[0].keep[-1]
        if not isinstance(scratch, DeviceBuffer) or scratch.nbytes != 8 * code.slots:
            scratch = self.device.allocate(8 * code.slots, on)
        keep = (self.module, scratch)

        def launch(number: int, task: TaskLaunch) -> KernelLaunch:
            like = call.launches[number] if number < len(call.launches) else None
            block = (call.arguments if like is None else like.arguments)[: code.layout.size]
            block, grid = self.hidden.with_scratch(block, scratch.pointer), (1, 1, 1) if like is None else like.grid
            known = None if before is None else before.launches[number]
            if known is not None and known.arguments == block and known.grid == grid:
                return known
            return KernelLaunch(
                task.name, task.function, grid, task.block, task.shared_bytes, block, (), (), keep, task.span,
                self._indirect[number],
            )  # fmt: skip

        launches = tuple(launch(number, task) for number, task in enumerate(self.launches))
        effects = None if call.effects is None else effects_of(code)
        return Prepared(launches, code.flow, {}, None, call.origin, call.arguments, effects)

    def apart(self, values: Values) -> GpuPlan:
        """See ``Plan.apart``."""
        return self

    def fusion(self, values: Values) -> Fusion:
        """See ``Plan.fusion``."""
        return Fusion(False, "fuse is False")

    def prepare_again(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> Prepared:
        """Like ``Binder.prepared``, with the scratch memory of the launches ``before``."""
        block = bound.block + before[0].arguments[len(bound.block) :]
        launches = self.launches_of(block, bound.grids, (*bound.arrays, *self.fields), before[0].keep[-1])
        return Prepared(launches, (), {}, None, self.origin, block[: self.code.layout.size])

    def blocks_of(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """See ``Binder.used``."""
        arrays = zip((*bound.arrays, *self.fields), self.arrays.written, strict=True)
        blocks = [(array.block, writes) for array, writes in arrays if array.block is not None]
        return [block for block, writes in blocks if not writes], [block for block, writes in blocks if writes]

    def launches_of(
        self, block: bytes, grids: Sequence[int], arrays: Sequence[ArrayMemory] | None, scratch: object
    ) -> tuple[KernelLaunch, ...]:
        """A launch of each task with an argument block that has the address of ``scratch``.

        ``arrays`` end with the fields; None if the caller announces and keeps them.
        """
        keep, accesses = (self.module, *(arrays or ()), scratch), None
        if arrays is not None:
            accesses = LaunchedCall(self, self._unpack, block, arrays)

        def touched(number: int, letters: str) -> tuple[MemoryRange, ...]:
            return () if arrays is None else self.arrays.ranges(number, letters, arrays)

        return tuple(
            KernelLaunch(
                task.name, task.function, (blocks or self._idle_blocks(number), 1, 1), task.block, task.shared_bytes, block,
                touched(number, "ra"), touched(number, "wa"), keep, task.span, self._indirect[number], accesses,
            )
            for number, (task, blocks) in enumerate(zip(self.launches, grids, strict=True))
        )  # fmt: skip

    def complete(self, values: Values) -> tuple[int, ...] | None:
        """Adds the hidden arguments and counts the blocks; None if a grid cannot be that large.

        Values that do not fit are found before any work begins.
        """
        values += self.hidden.values()
        try:
            self.format.pack(*values)
        except MISFITS as error:
            raise Misfit from error
        return self.grids.of(values)

    def announce(self, views: Views, on: Stream) -> None:
        """Says which memory a launch on ``on`` reads and writes, so that it lives and is ordered."""
        arrays = self._arrays(views)
        for writes in (True, False):
            pairs = zip(arrays, self.arrays.written, strict=True)
            blocks = [array.block for array, written in pairs if written is writes and array.block is not None]
            if blocks:
                self.device.memory.use(blocks, on.timeline, writes=writes)

    def conditions(self, values: Values, views: Views) -> dict[str, MemoryRange]:
        """The memory of element 0 of each condition of a loop.

        Raises:
            ArgumentError: such an array is empty.
        """
        self.arrays.require_conditions(values)
        arrays: list[ArrayView | FieldMemory] = [*views, *self.fields]
        return {
            name: (int(values[self.arrays.pointers[number]]), item_bytes(arrays[number]))
            for name, number in self.arrays.conditions.items()
        }

    def submit(self, values: Values, grids: Sequence[int], views: Views, on: Stream) -> object:
        """Puts the launches on ``on``, with complete ``values``; the result, or None if there is none."""
        with copied_host_arrays(self.device, on, values, views, self.arrays) as there:
            self.announce(there, on)
            scratch = self._scratch(on)
            block = self.take_block()
            self.format.pack_into(block.buffer, 0, *values)
            if scratch:
                self.hidden.pack_scratch(block.buffer, scratch.pointer)
            conditions = self.conditions(values, there)
            Submission(self.device, self.launches, grids, block.arguments, conditions).run(self._flow, on.timeline)
            self.spare.append(block)
        return None if scratch is None or self.result is None else self._fetch(self.result, scratch, on)

    def _idle_blocks(self, number: int) -> int:
        """The blocks of a launch without iterations: code with a barrier does not check whether it has any."""
        return 0 if self.code.tasks[number].has_barrier else 1

    def _arrays(self, views: Views) -> list[ArrayMemory]:
        """The caller's arrays and the fields; DeviceError if one is on another device."""
        arrays: list[ArrayMemory] = [*views, *self.fields]
        for array in arrays:
            if array.block is not None and array.device is not self.device:
                raise DeviceError(
                    f"an array is on {array.device}, but the kernel runs on {self.device}", hint="copy it there"
                )
        return arrays

    def _scratch(self, on: Stream) -> DeviceBuffer | None:
        return self.device.allocate(8 * self.code.slots, on) if self.code.slots else None

    def _fetch(self, reader: ResultReader, scratch: DeviceBuffer, on: Stream) -> object:
        found = on._call(self.device.staging.fetch, scratch.pointer, reader.nbytes)  # noqa: SLF001 - as ``run``
        on._call(self.device.faults.raise_first)  # noqa: SLF001 - as ``run``
        return reader.read(found)

    @property
    def is_straight(self) -> bool:
        """Whether a call consists of launches in order, without loops or branches."""
        return not self.code.flow

    @property
    def block_bytes(self) -> int:
        """The size of the argument block, without padding at its end."""
        return self.format.size if self.hidden.scratch_offset is None else self.code.block_bytes

    def take_block(self) -> ArgumentBlock:
        """An argument block; it goes back to ``spare`` after the launches, and is lost with an exception."""
        try:
            return self.spare.pop()
        except IndexError:
            return self._new_block()

    def _new_block(self) -> ArgumentBlock:
        return ArgumentBlock(self.block_bytes, self.device.driver.launch_arguments)


class ArgumentBlock:
    """An argument block, and the driver's form of it: ``arguments_at`` gives that for an address and a size.

    One launch at a time has it, since a finalizer may launch the same kernel between any two of Python's steps.
    """

    def __init__(self, nbytes: int, arguments_at: Callable[[int, int], object]) -> None:
        self.buffer = ctypes.create_string_buffer(max(nbytes, 1))
        self.arguments = arguments_at(ctypes.addressof(self.buffer), nbytes)


def effects_of(code: CodeObject) -> Effects:
    """What the tasks of ``code`` touch, by name."""
    touched = ([*task.effects, ("$scratch", task.scratch)] for task in code.tasks)
    return tuple(tuple((name, letters != "r") for name, letters in each if letters) for each in touched)


def _function_of(compiled: Callable[[], GpuPlan], number: int) -> FunctionHandle:
    return compiled().launches[number].function


def item_bytes(array: ArrayView | FieldMemory) -> int:
    """The bytes of a number of ``array``."""
    return array.scalar.nbytes if isinstance(array, FieldMemory) else BY_NAME[array.type_key[1]].nbytes
