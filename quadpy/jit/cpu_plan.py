"""Kernels on the CPU: a call packs the arguments and runs the code on the calling thread and the pool."""

from __future__ import annotations

import copy
import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Final

from quadpy.core.artifact import CHECKED, INTERRUPTED, OUT_OF_BOUNDS, OUT_OF_MEMORY, CodeObject, ResultShape
from quadpy.core.importing import import_late
from quadpy.core.source import Span
from quadpy.errors import OutOfDeviceMemory
from quadpy.jit.array_arguments import ArrayArguments, LaunchedCall
from quadpy.jit.grids import barrier_loops
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.limits import Limits
from quadpy.jit.misfits import MISFITS, Misfit
from quadpy.jit.plan import Elsewhere, Values, Views, unknown_footprints
from quadpy.jit.results import ResultReader
from quadpy.jit.timed_entry import TimedEntry
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.faults import CheckedEntry
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import Bound, HostLaunch, KernelLaunch, Runner, Scratch
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream

ENTRY: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)


class CpuPlan:
    """A ``Plan`` for the CPU.

    ``fields`` are those that the kernel names, ``result_shape`` is the shape of what it returns, ``spans`` says where
    its tasks begin, ``checks_values`` whether a call checks values before it runs.  ``entry`` runs in place of machine
    code, which stays mapped as long as the plan, or a call of it, lives.  ``_checked`` is the last argument block that
    looked as if an access were outside, and was found to be right: the same block need not be checked again.
    """

    __slots__ = (
        "_apart", "_barrier_loops", "_checked", "_entry", "_loaded", "_name", "_pack", "_result", "_slots", "_timed", "_unpack", "arrays", "checks_values", "code",
        "elsewhere", "fields", "footprints", "hidden", "limits", "spans",
    )  # fmt: skip

    def __init__(
        self,
        code: CodeObject,
        *,
        fields: tuple[FieldMemory, ...] = (),
        seed: int = 0,
        result_shape: ResultShape = None,
        name: str = "",
        spans: Sequence[Span | None] = (),
        entry: Callable[..., int] | None = None,
    ) -> None:
        self.code, self.hidden = code, HiddenArguments(code, fields, seed)
        self.fields, self.footprints = self.hidden.fields, unknown_footprints(code)
        self.elsewhere: Elsewhere | None = None
        self._apart = entry is None
        self._checked: bytes | None = None
        self._timed: CpuPlan | None = None
        self._entry = entry or self._load(name, spans[0] if spans else None)
        form = struct.Struct(code.layout.format)
        self._pack, self._unpack = form.pack, form.unpack_from
        self._slots, self._name, self.spans = code.slots, name, spans
        self._result = ResultReader(code.results, result_shape) if code.results else None
        self._barrier_loops = tuple(barrier_loops(code, spans))
        self.arrays, self.limits = ArrayArguments(code), Limits(code, name, spans[0] if spans else None)
        self.checks_values = bool(self._barrier_loops or self.arrays.conditions)

    def apart(self, values: Values) -> CpuPlan:
        """Like ``Plan.apart``; it tells ``TIMED.times`` of each task."""
        if self._timed is None:
            found = copy.copy(self)
            found._entry = TimedEntry(self._entry, apart=self._apart)  # noqa: SLF001 - of the same class
            self._timed = found
        return self._timed

    def _load(self, name: str, span: Span | None) -> Callable[..., int]:
        """The entry point of the machine code."""
        code = self.code
        loader = import_late("quadpy.runtime.cpu.loader")  # and with it LLVM
        self._loaded = loader.load_object(code.image)
        entry: Callable[..., int] = ENTRY(self._loaded.address(code.entry))
        loader.name_in_crashes(self._loaded, code.image, code.entry, name, span)
        return CheckedEntry(entry) if code.sites else entry

    def run(self, values: Values, views: Views, stream: object) -> object:
        """Like ``Plan.run``; returns when the kernel is done.  Raises what a handler of a signal raised meanwhile."""
        if (stream is not None or CAPTURES.count) and self._captured(values, views, stream):
            return None
        return self.launch(self.block_of(values))

    def launch(self, block: bytes) -> object:
        """Runs the kernel with an argument block, and returns its result."""
        scratch = (ctypes.c_uint64 * self._slots)() if self._slots else None
        task = self._entry(block, scratch, CHECKED if block == self._checked else 0)
        while task != -1:
            task = self._go_on(block, scratch, task)
        return None if self._result is None or scratch is None else self._result.read(scratch)

    def _captured(self, values: Values, views: Views, stream: object) -> bool:
        """Records the call if ``stream`` is captured; an unusable stream is the same error on every backend."""
        on = stream_of(current_device(), stream)
        if (session := session_of(on)) is None:
            return False
        session.record_launch(on, self.prepare(values, views), draws=self.hidden.counts)
        return True

    def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> HostLaunch:
        """Like ``Plan.prepare``; arrays of the host are used in place."""
        self.limits.require(values)
        return self.launch_of(self.block_of(values), views)

    def fusion(self, values: Values) -> Fusion:
        """See ``Plan.fusion``."""
        return Fusion(False, "on the CPU a call runs all tasks anyway")

    def launch_of(self, block: bytes, views: Sequence[ArrayMemory]) -> HostLaunch:
        """A run of the kernel with an argument block; ``views`` are the arrays of the caller."""
        arrays, runner, reader = (*views, *self.fields), self.runner(block), self._result
        reads, writes = self.arrays.ranges(None, "ra", arrays), self.arrays.ranges(None, "wa", arrays)
        span = self.spans[0] if self.spans else None
        result = None if reader is None or (cells := runner.scratch) is None else lambda: reader.read(cells)
        accesses = LaunchedCall(self, self._unpack, block, arrays)
        return HostLaunch(self._name, runner.run, reads, writes, (self, *arrays), span, result, block, accesses)

    def prepare_again(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> HostLaunch:
        """See ``Binder.prepared``."""
        return self.launch_of(bound.block, bound.arrays)

    def runner(self, block: bytes) -> Runner:
        """A runner of the kernel with an argument block."""
        return Runner(self._entry, self._go_on, block, (ctypes.c_uint64 * self._slots)() if self._slots else None)

    def block_of(self, values: Values) -> bytes:
        """The argument block of a call; ``values`` are those that the caller passes.

        Raises:
            Misfit, ArgumentError: as ``run``.
        """
        if self.code.hidden:
            values += self.hidden.values()
        try:
            block = self._pack(*values)
        except MISFITS as error:
            raise Misfit from error
        if self.checks_values:
            for loop in self._barrier_loops:
                loop.require_complete(values)
            self.arrays.require_conditions(values)
        return block

    def _go_on(self, block: bytes, scratch: Scratch, task: int) -> int:
        """Continues from ``task``, which the entry function returned; gives its next return value."""
        if task == INTERRUPTED:
            import_late("quadpy.runtime.cpu.pool").raise_kept()
        if task == OUT_OF_BOUNDS:
            self.limits.require(self._unpack(block))
            task, self._checked = CHECKED, block
        if task == OUT_OF_MEMORY:
            raise OutOfDeviceMemory(
                f"kernel {self._name}: no working memory for a loop's partial results or shared arrays",
                hint="the output of the kernel is incomplete; free memory, and call it again",
            )
        return int(self._entry(block, scratch, task))
