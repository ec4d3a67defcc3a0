"""Plans of kernels that print: each launch has a ring, which is read when its work is complete.

They are classes of their own, so that the launch of a kernel that does not print has nothing to do with printing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.plan import Values, Views
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import Prepared, Runner, Scratch
from quadpy.runtime.printing.host_rings import take_host_ring
from quadpy.runtime.streams.stream import Stream

__all__ = ["PrintingCpuPlan", "PrintingGpuPlan"]


class PrintingCpuPlan(CpuPlan):
    """Prints when a call returns."""

    __slots__ = ()

    def run(self, values: Values, views: Views, stream: object) -> object:
        """As ``CpuPlan.run``."""
        if (stream is not None or CAPTURES.count) and self._captured(values, views, stream):
            return None
        launch = self.prepare(values, views)
        launch.run()
        return None if launch.result is None else launch.result()

    def runner(self, block: bytes) -> Runner:
        """As ``CpuPlan.runner``; each run has a ring."""
        plain = super().runner(block)
        return _PrintingRunner(self._entry, self._go_on, block, plain.scratch, self.hidden)


class _PrintingRunner(Runner):
    """Prints after each run, and after one that broke off."""

    __slots__ = ("_hidden",)

    def __init__(
        self, entry: Callable[..., int], go_on: Callable[..., int], block: bytes, scratch: Scratch, hidden: HiddenArguments
    ) -> None:  # fmt: skip
        super().__init__(entry, go_on, block, scratch)
        self._hidden = hidden

    def run(self) -> None:
        ring = take_host_ring()
        block, scratch = self._hidden.with_ring(self.block, ring.address), self.scratch
        try:
            task = self._entry(block, scratch, 0)
            while task != -1:
                task = self._go_on(block, scratch, task)
        finally:
            ring.finish()


class PrintingGpuPlan(GpuPlan):
    """Prints when the host has waited for the work of a call."""

    def fusion(self, values: Values) -> Fusion:
        """As ``Plan.fusion``."""
        return Fusion(False, "it prints")

    def submit(self, values: Values, grids: Sequence[int], views: Views, on: Stream) -> object:
        """As ``GpuPlan.submit``."""
        prints = self.device.prints
        ring = prints.take(on.timeline)
        self.hidden.set_ring(values, ring.pointer)
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
        """As ``GpuPlan._prepared``; the graph keeps the ring."""
        ring = self.device.prints.own()
        self.hidden.set_ring(values, ring.pointer)
        prepared = super()._prepared(values, grids, views, stream)
        launches = tuple(replace(launch, keep=(ring, *launch.keep)) for launch in prepared.launches)
        return replace(prepared, launches=launches)
