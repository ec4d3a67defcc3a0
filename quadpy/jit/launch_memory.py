"""Plans of kernels whose launches get memory from the host: a ring for prints, shadow memory for checks of races and for
sums of gradients (``ir.grad.exact``).

They are separate classes, so that launches of other kernels cost nothing more.  The ring is read when
the work is complete; ``ir.passes.watch_races`` describes shadow memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from quadpy.core.artifact import CodeObject
from quadpy.errors import OutOfDeviceMemory
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.formula import compile_formula
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.plan import Values, Views
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import Prepared, Runner
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.printing.host_rings import take_host_ring
from quadpy.runtime.streams.stream import Stream

_USES: Final = {
    True: ("for the checks for races", "pass smaller arrays, or turn the checks of this kernel off: @qp.kernel(debug=False)"),
    False: ("for the sums of gradients, 24 bytes for each number", "pass smaller arrays, or allow atomics: qp.init(fast_math=True)"),
}  # fmt: skip
"""What shadow memory is for, and how to do without: of code with checks, and of other code."""


def has_memory(code: CodeObject) -> bool:
    """Whether each launch of ``code`` gets memory that the host provides."""
    return bool(code.messages) or code.shadow is not None


def cpu_plan_class(code: CodeObject) -> type[CpuPlan]:
    """The plan of ``code`` on the CPU."""
    return _CpuMemoryPlan if has_memory(code) else CpuPlan


def gpu_plan_class(code: CodeObject) -> type[GpuPlan]:
    """The plan of ``code`` on a GPU."""
    return _GpuMemoryPlan if has_memory(code) else GpuPlan


class _CpuMemoryPlan(CpuPlan):
    """Prints when a call returns."""

    __slots__ = ("_words",)

    def __init__(self, code: CodeObject, **options: Any) -> None:  # those of ``CpuPlan``
        super().__init__(code, **options)
        self._words = None if code.shadow is None else compile_formula(code.shadow)

    def run(self, values: Values, views: Views, stream: object) -> object:
        """See ``CpuPlan.run``."""
        if (stream is not None or CAPTURES.count) and self._captured(values, views, stream):
            return None
        launch = self.prepare(values, views)
        launch.run()
        return None if launch.result is None else launch.result()

    def runner(self, block: bytes) -> Runner:
        """Like ``CpuPlan.runner``; each run has its own memory."""
        words = None if (count := self._words) is None else lambda block: count(self._unpack(block))
        return _MemoryRunner(super().runner(block), self.hidden, words, self.code)


class _MemoryRunner(Runner):
    """Runs as ``plain`` does, and prints after each run, even one that broke off.

    ``words`` counts those of the shadow memory of a run, from its argument block; None for none.
    """

    __slots__ = ("_code", "_hidden", "_words")

    def __init__(
        self, plain: Runner, hidden: HiddenArguments, words: Callable[[bytes], int] | None, code: CodeObject
    ) -> None:
        super().__init__(plain._entry, plain._go_on, plain.block, plain.scratch)  # noqa: SLF001 - of the same class
        self._hidden, self._words, self._code = hidden, words, code

    def run(self) -> None:
        """See ``Runner.run``.

        Raises:
            OutOfDeviceMemory: there is no memory for the shadow.
        """
        block = self.block
        if self._words is not None:
            try:
                memory = np.empty(self._words(block), np.uint64)
            except MemoryError:
                use, hint = _USES[bool(self._code.sites)]
                raise OutOfDeviceMemory(f"no memory {use}", hint=hint) from None
            block = self._hidden.with_address("shadow", block, memory.ctypes.data)
        ring = take_host_ring() if self._code.messages else None
        if ring is not None:
            block = self._hidden.with_address("print", block, ring.address)
        try:
            Runner(self._entry, self._go_on, block, self.scratch).run()
        finally:
            if ring is not None:
                ring.finish()


class _GpuMemoryPlan(GpuPlan):
    """Prints when the host has waited for the work of a call; shadow memory is freed in the order of the stream."""

    def fusion(self, values: Values) -> Fusion:
        """See ``Plan.fusion``."""
        uses = "it is checked for races" if self.code.sites else "it needs memory for the sums of gradients"
        return Fusion(False, "it prints" if self.code.shadow is None else uses)

    def submit(self, values: Values, grids: Sequence[int], views: Views, on: Stream) -> object:
        """See ``GpuPlan.submit``."""
        _alive = self._shadow(values, on)  # until all is submitted
        if not self.code.messages:
            return super().submit(values, grids, views, on)
        prints = self.device.prints
        ring = prints.take(on.timeline)
        self.hidden.set_address("print", values, ring.pointer)
        try:
            return super().submit(values, grids, views, on)
        finally:  # even of a call that broke off, some launches may be under way
            prints.launched((ring,), on.timeline)
            if self._waits(views):
                prints.drain_one(ring)

    def _waits(self, views: Views) -> bool:
        """Whether a call has waited for its work when it returns: for a result, or for what it wrote to the host."""
        pairs = zip(views, self.arrays.written[: len(views)], strict=True)
        return bool(self.code.results) or any(w and view.block is None and view.nbytes for view, w in pairs)

    def _prepared(self, values: Values, grids: Sequence[int], views: Views, stream: Stream | None) -> Prepared:
        """Like ``GpuPlan._prepared``; the graph keeps the memory."""
        memory: list[object] = [*self._shadow(values, stream or self.device.current_stream())]
        if self.code.messages:
            ring = self.device.prints.own()
            self.hidden.set_address("print", values, ring.pointer)
            memory.append(ring)
        prepared = super()._prepared(values, grids, views, stream)
        launches = tuple(replace(launch, keep=(*memory, *launch.keep)) for launch in prepared.launches)
        return replace(prepared, launches=launches)

    def _shadow(self, values: Values, on: Stream) -> list[DeviceBuffer]:
        """Shadow memory whose address ``values`` get, if the code has checks for races."""
        if self.code.shadow is None:
            return []
        try:
            memory = self.device.allocate(8 * compile_formula(self.code.shadow)(values), on)
        except OutOfDeviceMemory as error:
            use, hint = _USES[bool(self.code.sites)]
            raise OutOfDeviceMemory(f"{error.message}: {use}", hint=hint) from None
        self.hidden.set_address("shadow", values, memory.pointer)
        return [memory]
