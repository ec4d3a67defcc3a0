"""Graph kernels whose tasks are one cooperative launch, if that is possible and worthwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quadpy.core.artifact import CodeObject
from quadpy.core.flow import depth_of, has_loop
from quadpy.core.source import Span
from quadpy.errors import DriverError
from quadpy.jit.formula import compile_formula
from quadpy.jit.fusion.cooperative import CooperativeLaunch
from quadpy.jit.fusion.worth import why_separate, why_slower
from quadpy.jit.gpu_plan import ArgumentBlock, GpuPlan
from quadpy.jit.graph_plan import GraphPlan
from quadpy.jit.grids import Grids, barrier_loops, deciding_values
from quadpy.jit.misfits import MISFITS, Misfit
from quadpy.jit.plan import Plan, Values, Views
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.fusion import TOO_LARGE, Fuse, Fusion, why_not_on_part
from quadpy.runtime.launch.launch import HostLaunch, Prepared
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream


class FusedPlan(GpuPlan):
    """One kernel in one launch.  ``separate`` runs it in several, and knows the requirements of a call."""

    def __init__(self, code: CodeObject, separate: GpuPlan, *, name: str, spans: Sequence[Span | None]) -> None:
        device = separate.device
        super().__init__(
            code,
            device,
            fields=separate.fields,
            seed=separate.hidden.seed,
            wider=lambda: separate,
            name=name,
            spans=spans,
        )
        (launch,) = self.launches
        self._cooperative = CooperativeLaunch(device, code, launch)
        self.most_blocks, self.description = self._cooperative.most_blocks, self._cooperative.description
        self.launches = (self._cooperative.launch,)
        loops = barrier_loops(separate.code, [each.span for each in separate.launches])
        self.grids = Grids(code, self.launches, self.limits, loops)
        self._separate = separate

    def complete(self, values: Values) -> tuple[int, ...] | None:
        self._separate.arrays.require_conditions(values)  # the code of this plan has no loops itself
        return super().complete(values)

    def submit(self, values: Values, grids: Sequence[int], views: Views, on: Stream) -> object:
        most = self._cooperative.most_on(on)
        found = super().submit(values, [min(blocks, most) for blocks in grids], views, on)
        self._cooperative.order_events_after(self._cooperative.scratch_on(on), on.handle)
        return found

    def _scratch(self, on: Stream) -> DeviceBuffer | None:
        return self._cooperative.scratch_on(on)

    def _new_block(self) -> ArgumentBlock:
        return ArgumentBlock(self.block_bytes, lambda address, _: self._cooperative.arguments(address))


class FusingPlan:
    """A plan that runs ``separate`` launches, or one; ``compile_fused`` gives the latter, or the reason why it is impossible."""

    def __init__(
        self, separate: GraphPlan | GpuPlan, device: Device, fuse: Fuse, compile_fused: Callable[[], FusedPlan | str]
    ) -> None:
        self.separate, self.device, self._fuse, self._compile = separate, device, fuse, compile_fused
        self.code, self.fields, self.footprints = separate.code, separate.fields, separate.footprints
        formulas = [task.extent for task in self.code.tasks if task.extent is not None]
        self._extents, self._key = [compile_formula(formula) for formula in formulas], deciding_values(formulas)
        self._last: tuple[object, FusedPlan | str] | None = None
        self._fused: FusedPlan | str | None = None
        self._lock = new_lock()

    def run(self, values: Values, views: Views, stream: object) -> object:
        """See ``GpuPlan.run``."""
        given = values[:]
        on = stream_of(self.device, stream)
        direct = self.device.life.direct or session_of(on) is None
        leaves = self._fuse == "auto" and on.timeline.part is not None and why_not_on_part(self.device.driver)
        fused = self._choose(values) if direct and not leaves else ""
        if isinstance(fused, FusedPlan):
            try:
                return fused.run(values, views, stream)
            except DriverError as error:
                if error.name not in TOO_LARGE:
                    raise
                self._fused, self._last = f"the device refused a launch of {fused.most_blocks} blocks at once", None
        return self.separate.run(given, views, stream)

    def apart(self, values: Values) -> Plan:
        """Like ``Plan.apart``; one launch stays one."""
        return self if isinstance(self._choose(values), FusedPlan) else self.separate.apart(values)

    def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> Prepared | HostLaunch:
        """Like ``GpuPlan.prepare``, always the separate launches: nodes of a graph may run at once with others."""
        return self.separate.prepare(values, views, stream)

    def fusion(self, values: Values) -> Fusion:
        """What ``run`` would do."""
        found = self._choose(values)
        if isinstance(found, str):
            return Fusion(False, found)
        return Fusion(True, found.description)

    def _choose(self, values: Values) -> FusedPlan | str:
        """The plan for one launch, or why there are several."""
        if len(self.code.tasks) == 1 and not self.code.flow:
            return "there is only one launch"
        try:
            key = self._key(values)
            if (last := self._last) is None or last[0] != key:  # most calls have the extents of the call before
                self._last = last = key, self._decide(values)
        except MISFITS as error:
            raise Misfit from error
        return last[1]

    def _decide(self, values: Values) -> FusedPlan | str:
        driver, flow, fuse = self.device.driver, self.code.flow, self._fuse
        iterations, loops = max((extent(values) for extent in self._extents), default=0), has_loop(flow)
        if why := why_separate(driver, iterations, loops=loops, fuse=fuse):
            return why
        found = self._one_launch()
        if isinstance(found, str):
            return found
        depth, blocks = depth_of(self.code.steps), found.launches[0].blocks(values)
        meetings = found.code.tasks[0].meetings
        return why_slower(driver, depth, meetings, blocks or found.most_blocks, loops=loops, fuse=fuse) or found

    def _one_launch(self) -> FusedPlan | str:
        with self._lock:
            if self._fused is None:
                self._fused = self._found()
            return self._fused

    def _found(self) -> FusedPlan | str:
        try:
            found = self._compile()
        except DriverError as error:  # an older library has no such call
            return error.message
        if isinstance(found, str) or found.most_blocks:
            return found
        return "not even one of its blocks fits on the device"
