"""What a signature decides is decided once: a plan packs the arguments and calls the code.

Owns: CpuPlan.  Imports: leaves, ``artifact``, ``runtime`` and the CPU's loader.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from quadpy.artifact import CodeObject
from quadpy.codegen.abi import OUT_OF_MEMORY
from quadpy.dtypes import BY_NAME
from quadpy.errors import ArgumentError, OutOfDeviceMemory
from quadpy.jit.array_arguments import ArrayArguments
from quadpy.jit.barrier_loops import barrier_loops
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.results import result_of
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.cpu.loader import load_object
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.launch.launch import HostLaunch, Runner
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.source import Span

__all__ = ["CpuPlan"]

_ENTRY: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)


class CpuPlan:
    """One kernel, specialised and loaded.

    ``fields`` are those that the kernel names.  The code stays mapped as long as the plan, or a call of it, lives.
    """

    __slots__ = (
        "_blocks", "_conditions", "_entry", "_hidden", "_loaded", "_name", "_outline", "_pack", "_places", "_results",
        "_slots", "_spans", "code",
    )  # fmt: skip

    def __init__(
        self,
        code: CodeObject,
        *,
        fields: tuple[Field, ...] = (),
        seed: int = 0,
        outline: Any = None,
        name: str = "",
        spans: Sequence[Span | None] = (),
    ) -> None:
        self.code = code
        self._loaded = load_object(code.image)
        self._entry = _ENTRY(self._loaded.address(code.entry))
        self._pack = struct.Struct(code.layout.format).pack
        self._slots, self._hidden = code.slots, HiddenArguments(code, fields, seed)
        self._results = tuple(BY_NAME[name] for name in code.results)
        self._outline, self._name, self._spans = outline, name, spans
        self._blocks = tuple(barrier_loops(code, spans))
        self._conditions = tuple(_condition_extents(code))
        self._places = ArrayArguments(code)

    def run(self, values: list[Any], views: list[Any], stream: Any) -> Any:
        """Runs the kernel, or notes it where the stream is captured; returns when it is done, with its result.

        Ctrl-C is seen between two tasks of a long kernel.

        Raises:
            struct.error, OverflowError: a value does not fit its parameter.
            ArgumentError: the condition of a loop is empty.
            CaptureError: the kernel returns something, which a capture has not.
            OutOfDeviceMemory: there is no working memory.
        """
        if stream is not None or CAPTURES.count:
            on = stream_of(current_device(), stream)  # one that cannot be used is the same error on every backend
            if (session := session_of(on)) is not None:
                session.record_launch(on, self.prepare(values, views), draws=self._hidden.draws)
                return None
        block = self.block_of(values)
        if not self._slots:
            task = self._entry(block, None, 0)
            while task != -1:
                task = self._go_on(block, None, task)
            return None
        scratch = (ctypes.c_uint64 * self._slots)()
        task = self._entry(block, scratch, 0)
        while task != -1:
            task = self._go_on(block, scratch, task)
        return result_of(scratch, self._results, self._outline) if self._results else None

    def prepare(self, values: list[Any], views: list[Any]) -> HostLaunch:
        """What ``run`` would do, without doing it; arrays of the host are used where they lie.

        Raises:
            struct.error, OverflowError: as ``run``.
        """
        return self.launch_of(self.block_of(values), views)

    def launch_of(self, block: bytes, views: Sequence[Any]) -> HostLaunch:
        """A run of the kernel with an argument block; ``views`` are the arrays of the caller."""
        arrays, runner = (*views, *self._hidden.fields), self.runner(block)
        reads, writes = self._places.ranges(None, "ra", arrays), self._places.ranges(None, "wa", arrays)
        span = self._spans[0] if self._spans else None
        result = (lambda: result_of(runner.scratch, self._results, self._outline)) if self._results else None
        return HostLaunch(self._name, runner.run, reads, writes, (self, *arrays), span, result, block)

    def runner(self, block: bytes) -> Runner:
        """What runs the kernel with an argument block."""
        scratch = (ctypes.c_uint64 * self._slots)() if self._slots else None
        return Runner(self._entry, self._go_on, block, scratch)

    @property
    def added(self) -> HiddenArguments | None:
        """What comes after the caller's values; None where values are looked at one by one."""
        return None if self._blocks or self._conditions else self._hidden

    def _go_on(self, block: bytes, scratch: Any, task: int) -> int:
        """From ``task`` on, which is what the entry function returned; what it returns now."""
        if task == OUT_OF_MEMORY:
            raise OutOfDeviceMemory(
                f"kernel {self._name}: no working memory for a loop's partial results or shared arrays",
                hint="what the kernel writes is incomplete; free memory, and call it again",
            )
        return int(self._entry(block, scratch, task))

    def block_of(self, values: list[Any]) -> bytes:
        """The argument block of a call; ``values`` are those that the caller passes.

        Raises:
            struct.error, OverflowError, ArgumentError: as ``run``.
        """
        values += self._hidden.values()
        block = self._pack(*values)
        for blocks in self._blocks:
            blocks.require_whole(values)
        for name, place in self._conditions:
            if not values[place]:
                raise ArgumentError(f"{name} is empty: its element 0 decides whether the loop goes on")
        return block


def _condition_extents(code: CodeObject) -> Iterator[tuple[str, int]]:
    """The conditions of loops that could be empty, and where their extents are among the values."""
    conditions = ArrayArguments(code).conditions
    for place, slot in enumerate(code.layout.slots):
        if slot.part == "extent" and slot.param in conditions:
            yield slot.param, place
