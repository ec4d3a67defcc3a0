"""A graph kernel on a GPU: each call launches a graph.

The first call makes the graph; later ones change the nodes whose arguments differ from those of the previous call.  If
many do, again and again, the kernel switches to code that reads its arguments from memory: then a call costs one more
launch, whatever it changes.  A loop is a node of the graph if the driver has such nodes; otherwise the host repeats
graphs of several iterations, whose code finds out itself when the loop is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quadpy.codegen.support.loop_condition import CONDITION_SETTER, CONDITION_SETTER_INDIRECT, condition_setter_code
from quadpy.errors import CodegenError, DriverError, OutOfDeviceMemory
from quadpy.flow import Loop
from quadpy.graph.engines.argument_policy import ArgumentPolicy
from quadpy.graph.engines.kernel_graph import KernelGraph
from quadpy.graph.engines.kernel_graphs import KernelGraphs
from quadpy.graph.engines.kernel_program import KernelBinding, KernelProgram, loops_are_nodes
from quadpy.graph.engines.stats import Counts
from quadpy.jit.gpu_launch import upload_kernels_on
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.host_arrays import copied_host_arrays
from quadpy.jit.misfits import MISFITS, Misfit
from quadpy.jit.plan import Values, Views
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import HostLaunch, MemoryRange, Prepared
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream
from quadpy.target import parse_target

__all__ = ["GraphPlan"]

_log = logging.getLogger("quadpy.graph")


class GraphPlan:
    """``eager`` as a graph.

    ``compiled`` gives the plan of other code: whether it is predicated, so that the host may repeat its loops, and whether
    it reads its arguments from memory.  ``ordered`` keeps the order of tasks, for arrays that overlap.  ``counts`` may be those of
    other plans, too.
    """

    def __init__(
        self, eager: GpuPlan, compiled: Callable[[bool, bool], GpuPlan], counts: Counts, *, ordered: bool, name: str = ""
    ) -> None:  # fmt: skip
        self.eager, self._compiled, self._ordered, self._counts = eager, compiled, ordered, counts
        self.code, self.fields, self.footprints = eager.code, eager.fields, eager.footprints
        self._name = name
        self.device = eager.device
        self._has_loops = any(isinstance(step, Loop) for step in eager.code.flow)
        self._device_loops = True  # until the driver says no
        self._policy = ArgumentPolicy()
        self._program: KernelProgram | None = None
        self._refused = False
        self._graphs = KernelGraphs(self.device, counts)
        self.device.reaper.adopt(self, KernelGraphs.release, self._graphs)

    def apart(self, values: Values) -> GpuPlan:
        """A plan that does the same, with a separate launch for each task."""
        return self.eager

    def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> Prepared | HostLaunch:
        """See ``Plan.prepare``."""
        return self.eager.prepare(values, views, stream)

    def fusion(self, values: Values) -> Fusion:
        """See ``Plan.fusion``."""
        return self.eager.fusion(values)

    def run(self, values: Values, views: Views, stream: object) -> object:
        """Like ``GpuPlan.run``; waits for the device if the host must know whether a loop goes on."""
        on = stream_of(self.device, stream)
        if not self.device.life.direct and session_of(on) is not None:  # a capture records the launches
            return self.eager.run(values, views, stream)
        eager, given = self.eager, values[:]
        values += eager.hidden.values()
        try:
            packed = eager.format.pack(*values)
        except MISFITS as error:
            raise Misfit from error
        there = not any(map(_is_on_host, views))
        engine = self._graphs.take_bound(packed, on) if there else None
        if engine is None:
            grids = self.eager.grids.of(values)
            if grids is None:
                return eager.wider().run(given, views, stream)
            if there and self._program is not None and not self._has_loops:
                engine = self._graphs.take_rebound(self._program, packed, grids, on)
            if engine is None:
                return self._run(values, grids, views, on)
        self._counts.calls += 1
        try:
            eager.announce(views, on)
            on._call(lambda _: engine.launch(on))  # noqa: SLF001 - as GpuPlan.run
        except BaseException:
            self._graphs.discard(engine)
            raise
        self._graphs.give(engine)
        return None

    def _run(self, values: Values, grids: tuple[int, ...], views: Views, on: Stream) -> object:
        """A call for which graphs may have to be made or changed."""
        self._counts.calls += 1
        if self._refused:
            self._counts.eager += 1
            return on._call(lambda _: self.eager.submit(values, grids, views, on))  # noqa: SLF001 - as GpuPlan.run
        return on._call(lambda _: self._run_bound(values, grids, views, on))  # noqa: SLF001 - as GpuPlan.run

    def _run_bound(self, values: Values, grids: tuple[int, ...], views: Views, on: Stream) -> object:
        eager = self.eager
        with copied_host_arrays(self.device, on, values, views, eager.arrays) as there:
            conditions = eager.conditions(values, there)
            eager.announce(there, on)
            engine = self._ready(values, grids, conditions, on)
            if engine is None:
                self._counts.eager += 1
                return eager.submit(values, grids, there, on)
            try:
                engine.launch(on)
            except BaseException:
                self._graphs.discard(engine)
                raise
            self._graphs.give(engine)
        return None

    def _ready(
        self, values: Values, grids: tuple[int, ...], conditions: dict[str, MemoryRange], on: Stream
    ) -> KernelGraph | None:
        """An engine whose graphs are made and bound, so that nothing of the call has run if that fails; then None."""
        try:
            return self._bound(self._program or self._new_program(), values, grids, conditions, on)
        except OutOfDeviceMemory as error:  # the next call may find some
            self._explain(f"launched one by one, because there is no memory for a graph: {error.message}")
            return None
        except (CodegenError, DriverError) as error:
            self._program = None
            if self._policy.wants_memory:
                self._policy.keep_in_nodes()
                self._explain(
                    f"each node has its arguments, because the indirect code is not available: {error.message}"
                )
                return self._ready(values, grids, conditions, on)
            if isinstance(error, CodegenError):
                raise
            if not self._uses_device_loops:
                self._refused = True
                self._explain(f"launched one by one, because the driver refused the graph: {error.message}")
                return None
            self._explain(f"the host repeats loops, because the driver refused them in a graph: {error.message}")
        self._device_loops = False
        return self._ready(values, grids, conditions, on)

    def _bound(
        self,
        program: KernelProgram,
        values: Values,
        grids: tuple[int, ...],
        conditions: dict[str, MemoryRange],
        on: Stream,
    ) -> KernelGraph:
        engine = self._graphs.take(program, on)
        try:
            packed = self.eager.format.pack(*values)
            latches = len(program.code.tasks) - len(grids)
            binding = KernelBinding(engine.block_of(packed), (*grids, *[1] * latches), conditions)
            if not self._policy.note_changes(engine.changes(binding)):
                engine.bind(packed, grids, binding)
                return engine
        except BaseException:
            self._graphs.discard(engine)
            raise
        self._graphs.discard(engine)
        return self._bound(self._new_program(), values, grids, conditions, on)

    @property
    def _uses_device_loops(self) -> bool:
        return self._has_loops and self._device_loops and loops_are_nodes(self.device)

    def _new_program(self) -> KernelProgram:
        """The program, chosen once: loops as nodes of a graph, or repeated by the host."""
        load, spec = self.device.modules.load, parse_target(self.device.driver.info.arch)
        plan, setter, upload_kernels = self.eager, None, None
        predicated = self._has_loops and not self._uses_device_loops
        if predicated or self._policy.wants_memory:
            plan = self._compiled(predicated, self._policy.wants_memory)
        if self._uses_device_loops:
            setter = load(condition_setter_code(spec)).function(
                CONDITION_SETTER_INDIRECT if self._policy.wants_memory else CONDITION_SETTER
            )
        if self._policy.wants_memory:
            upload_kernels = upload_kernels_on(self.device)
        program = KernelProgram(
            self.device, plan.code, plan.launches, setter, ordered=self._ordered, upload_kernels=upload_kernels
        )
        if self._program is not None:
            program.expected = self._program.expected
        self._program = program
        return program

    def _explain(self, reason: str) -> None:
        """Log once why calls are slower than they could be."""
        if reason not in self._counts.reasons:
            self._counts.reasons[reason] = None
            _log.warning("%s: %s", self._name, reason)


def _is_on_host(view: ArrayView) -> bool:
    return view.block is None and bool(view.nbytes)
