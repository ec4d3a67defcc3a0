"""Plans of kernels with checks for races: each launch has shadow memory, as ``ir.passes.watch_races`` describes it.

They are classes of their own, so that the launch of a kernel without such checks has nothing to do with them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from quadpy.artifact import CodeObject
from quadpy.errors import OutOfDeviceMemory
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.plan import Values, Views
from quadpy.jit.printing import PrintingCpuPlan, PrintingGpuPlan
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import Prepared, Runner
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.streams.stream import Stream

__all__ = ["cpu_plan_class", "gpu_plan_class", "has_memory"]

_HINT = "pass smaller arrays, or turn the checks of this kernel off: @qp.kernel(debug=False)"


def has_memory(code: CodeObject) -> bool:
    """Whether each launch of ``code`` gets memory that the host provides: a ring, or shadow memory."""
    return bool(code.messages) or code.shadow is not None


def cpu_plan_class(code: CodeObject) -> type[CpuPlan]:
    """The plan of ``code`` on the CPU."""
    if code.shadow is not None:
        return _CheckedCpuPlan
    return PrintingCpuPlan if code.messages else CpuPlan


def gpu_plan_class(code: CodeObject) -> type[GpuPlan]:
    """The plan of ``code`` on a GPU."""
    if code.shadow is not None:
        return _CheckedPrintingGpuPlan if code.messages else _CheckedGpuPlan
    return PrintingGpuPlan if code.messages else GpuPlan


def _words_of(code: CodeObject) -> Evaluator:
    assert code.shadow is not None
    return compile_formula(code.shadow)


class _CheckedCpuPlan(PrintingCpuPlan):
    """On the CPU, where it may print too."""

    __slots__ = ("_unpack", "_words")

    def __init__(self, code: CodeObject, **options: Any) -> None:  # those of ``CpuPlan``
        super().__init__(code, **options)
        self._words, self._unpack = _words_of(code), struct.Struct(code.layout.format).unpack_from

    def runner(self, block: bytes) -> Runner:
        """As ``CpuPlan.runner``; each run has shadow memory."""
        plain = super().runner(block) if self.code.messages else CpuPlan.runner(self, block)
        return _CheckedRunner(plain, self.hidden, lambda block: self._words(self._unpack(block)))


class _CheckedRunner(Runner):
    """Runs ``plain`` with shadow memory, which is freed after each run."""

    __slots__ = ("_hidden", "_plain", "_words")

    def __init__(self, plain: Runner, hidden: HiddenArguments, words: Any) -> None:
        super().__init__(plain._entry, plain._go_on, plain.block, plain.scratch)  # noqa: SLF001 - of the same class
        self._plain, self._hidden, self._words = plain, hidden, words

    def run(self) -> None:
        """As ``Runner.run``.

        Raises:
            OutOfDeviceMemory: there is no memory for the shadow.
        """
        try:
            memory = np.empty(self._words(self.block), np.uint64)
        except MemoryError:
            raise OutOfDeviceMemory("no memory for the checks for races", hint=_HINT) from None
        self._plain.block = self._hidden.with_shadow(self.block, memory.ctypes.data)
        self._plain.run()


class _CheckedGpuPlan(GpuPlan):
    """On a GPU: the memory is freed in the order of the stream."""

    def fusion(self, values: Values) -> Fusion:
        """As ``Plan.fusion``."""
        return Fusion(False, "it is checked for races")

    def submit(self, values: Values, grids: Sequence[int], views: Views, on: Stream) -> object:
        """As ``GpuPlan.submit``."""
        memory = self._shadow(values, on)  # lives until all is submitted
        self.hidden.set_shadow(values, memory.pointer)
        return super().submit(values, grids, views, on)

    def _prepared(self, values: Values, grids: Sequence[int], views: Views, stream: Stream | None) -> Prepared:
        """As ``GpuPlan._prepared``; the graph keeps the memory."""
        memory = self._shadow(values, stream or self.device.current_stream())
        self.hidden.set_shadow(values, memory.pointer)
        prepared = super()._prepared(values, grids, views, stream)
        launches = tuple(replace(launch, keep=(memory, *launch.keep)) for launch in prepared.launches)
        return replace(prepared, launches=launches)

    def _shadow(self, values: Values, on: Stream) -> DeviceBuffer:
        try:
            return self.device.allocate(8 * _words_of(self.code)(values), on)
        except OutOfDeviceMemory as error:
            raise OutOfDeviceMemory(f"{error.message}: for the checks for races", hint=_HINT) from None


class _CheckedPrintingGpuPlan(_CheckedGpuPlan, PrintingGpuPlan):
    """On a GPU, where it prints too."""
