"""A graph kernel on a GPU: each call launches a graph whose only node is the kernel.

The first call makes the graph; later ones change what differs from the previous call.  ``EngineChoice`` decides how it runs,
as for every graph.
"""

from __future__ import annotations

from functools import partial

from quadpy.core.artifact import CodeObject
from quadpy.core.flow import Loop
from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.graph.engines.argument_policy import ArgumentPolicy
from quadpy.graph.engines.calls import CallGraph, CallGraphs
from quadpy.graph.engines.choose import EngineChoice, LoopWay
from quadpy.graph.engines.stats import Counts
from quadpy.jit.gpu_plan import GpuPlan, effects_of
from quadpy.jit.host_arrays import copied_host_arrays
from quadpy.jit.misfits import MISFITS, Misfit
from quadpy.jit.plan import Values, Views
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import HostLaunch, MemoryRange, Prepared
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream


class GraphPlan:
    """``eager`` as a graph.

    ``ordered`` keeps the order of tasks, for arrays that overlap.  ``counts`` may be those of other plans, too.
    """

    def __init__(self, eager: GpuPlan, counts: Counts, *, ordered: bool, name: str = "") -> None:
        self.eager, self._counts, self._name = eager, counts, name
        self.code, self.fields, self.footprints = eager.code, eager.fields, eager.footprints
        self.device = eager.device
        eager.effects = None if ordered else effects_of(eager.code)
        self._has_loops = any(isinstance(step, Loop) for step in eager.code.flow)
        self._refused = False
        self._parts = _Parts(eager.code)
        self._graphs = CallGraphs(self.device, _choices(self.device, counts, name), eager.code.slots)
        self.device.reaper.adopt(self, CallGraphs.release, self._graphs)

    def apart(self, values: Values) -> GpuPlan:
        """See ``Plan.apart``."""
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
        graph = self._graphs.take_bound(packed, on) if there else None
        if graph is None:
            grids = self.eager.grids.of(values)
            if grids is None:
                return eager.wider().run(given, views, stream)
            if there and not self._has_loops:
                graph = self._graphs.take_rebound(packed, grids, on)
            if graph is None:
                return self._run(values, grids, views, on)
        self._counts.calls += 1
        try:
            eager.announce(views, on)
            on._call(lambda _: graph.launch(on))  # noqa: SLF001 - as GpuPlan.run
        except BaseException:
            self._graphs.discard(graph)
            raise
        self._graphs.give(graph)
        return None

    def _run(self, values: Values, grids: tuple[int, ...], views: Views, on: Stream) -> object:
        """A call for which graphs may have to be made or changed."""
        self._counts.calls += 1
        run = self._submit if self._refused else self._run_bound
        return on._call(lambda _: run(values, grids, views, on))  # noqa: SLF001 - as GpuPlan.run

    def _submit(self, values: Values, grids: tuple[int, ...], views: Views, on: Stream) -> object:
        self._counts.eager += 1
        return self.eager.submit(values, grids, views, on)

    def _run_bound(self, values: Values, grids: tuple[int, ...], views: Views, on: Stream) -> object:
        eager = self.eager
        with copied_host_arrays(self.device, on, values, views, eager.arrays) as there:
            conditions = eager.conditions(values, there)
            eager.announce(there, on)
            graph = self._ready(values, grids, conditions, on)
            if graph is None:
                return self._submit(values, grids, there, on)
            try:
                graph.launch(on)
            except BaseException:
                self._graphs.discard(graph)
                raise
            self._graphs.give(graph)
        return None

    def _ready(
        self, values: Values, grids: tuple[int, ...], conditions: dict[str, MemoryRange], on: Stream
    ) -> CallGraph | None:
        """A graph that is made and bound, so that nothing of the call has run if that fails; then None."""
        graph = self._graphs.take(on)
        try:
            packed = self.eager.format.pack(*values)
            graph.bind(packed, grids, self._prepared(graph, packed, grids, conditions), self._parts.changed, on)
        except BaseException as error:
            self._graphs.discard(graph)
            if isinstance(error, OutOfDeviceMemory):  # the next call may find some
                why = "there is no memory for a graph"
            elif isinstance(error, DriverError):
                self._refused, why = True, "the driver refused the graph"
            else:
                raise
            self._counts.explain(f"launched one by one, because {why}: {error.message}", self._name)
            return None
        return graph

    def _prepared(
        self, graph: CallGraph, packed: bytes, grids: tuple[int, ...], conditions: dict[str, MemoryRange]
    ) -> Prepared:
        """A call in ``graph``; its arrays are announced and kept otherwise."""
        eager, scratch = self.eager, graph.scratch
        block = packed if scratch is None else eager.hidden.with_scratch(packed, scratch.pointer)
        launches, arguments = eager.launches_of(block, grids, None, scratch), block[: self.code.layout.size]
        return Prepared(launches, self.code.flow, conditions, None, eager.origin, arguments, eager.effects)


def _choices(device: Device, counts: Counts, name: str) -> partial[EngineChoice]:
    """Makes the choices of a kernel's graphs, which learn from each other; its plan decides about one launch."""
    loops: list[LoopWay] = ["nodes", "repeated"]
    return partial(
        EngineChoice, device, Runs(), None, auto_free=False, priorities=False, fuse=False, policy=ArgumentPolicy(),
        counts=counts, loops=loops, explain=partial(counts.explain, name=name),
    )  # fmt: skip


class _Parts:
    """Which launches of ``code`` read which part of the argument block."""

    def __init__(self, code: CodeObject) -> None:
        ends = [value.offset for value in code.layout.values[1:]]
        self._values = list(zip(code.layout.values, [*ends, code.layout.size], strict=False))
        self._touched = [frozenset(name for name, _ in task.effects) for task in code.tasks]

    def changed(self, before: bytes, now: bytes) -> frozenset[int]:
        """The launches that read what differs."""
        names: set[str] = set()
        for value, end in self._values:
            if before[value.offset : end] != now[value.offset : end]:
                if value.part != "pointer":
                    return frozenset(range(len(self._touched)))
                names.add(value.param)
        return frozenset(k for k, touched in enumerate(self._touched) if touched & names)


def _is_on_host(view: ArrayView) -> bool:
    return view.block is None and bool(view.nbytes)
