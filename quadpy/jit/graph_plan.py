"""A graph kernel on a GPU: a call is the launch of a graph.  Owns: GraphPlan.  Imports: leaves, ``codegen``, ``runtime``.

The first call makes the graph, later ones change the nodes whose arguments are not those of the call before.  A loop is
a node of the graph where the driver has such nodes; elsewhere the host repeats graphs of several iterations that know
themselves when the loop is over.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any

from quadpy.artifact import CodeObject
from quadpy.codegen.teller import TELLER, teller_code
from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.graph_piece import Binding
from quadpy.jit.graph_stats import Counts
from quadpy.jit.graph_unit import Program, Unit, Units
from quadpy.jit.host_arrays import HostArrays
from quadpy.runtime.device_storage import stream_of
from quadpy.runtime.graph_driver import GraphDriver
from quadpy.runtime.launch import MemoryRange, Prepared
from quadpy.runtime.stream import Stream
from quadpy.target import parse_target

__all__ = ["GraphPlan"]

_log = logging.getLogger("quadpy.graph")


class GraphPlan:
    """``eager`` as a graph.

    ``predicated`` gives the plan of code whose loops the host may repeat blindly; ``ordered`` keeps the order of
    tasks, for arrays that overlap.  ``counts`` may be those of other plans, too.
    """

    def __init__(
        self, eager: GpuPlan, predicated: Callable[[], GpuPlan], counts: Counts, *, ordered: bool, name: str = ""
    ) -> None:  # fmt: skip
        self.eager, self._predicated, self._ordered, self._counts = eager, predicated, ordered, counts
        self._name = name
        self.device = eager.device
        self._fields = tuple(field.pointer for field in eager.fields)
        self._has_loops = any(isinstance(step, dict) and "loop" in step for step in eager.code.flow)
        self._device_loops = True  # until the driver says no
        self._program: Program | None = None
        self._refused = False
        self._units = Units(self.device, counts)
        self.device.reaper.adopt(self, Units.release, self._units)

    @property
    def code(self) -> CodeObject:
        return self.eager.code

    def prepare(self, values: list[Any], views: list[Any], stream: Stream | None = None) -> Prepared:
        """As ``GpuPlan.prepare``."""
        return self.eager.prepare(values, views, stream)

    def run(self, values: list[Any], views: list[Any], stream: Any) -> Any:
        """As ``GpuPlan.run``; waits for the device where the host must know whether a loop goes on."""
        on = stream_of(self.device, stream)
        if not self.device.life.direct:  # a capture notes the launches
            return self.eager.run(values, views, stream)
        given, eager = len(values), self.eager
        if eager.seed is None and self._run_again(values, views, on):
            return None
        grids = eager._complete(values)  # noqa: SLF001
        if grids is None:
            return eager._wider().run(values[:given], views, stream)  # noqa: SLF001
        self._counts.calls += 1
        arrays = [*views, *eager.fields]
        if self._refused:
            self._counts.eager += 1
            return on._call(lambda _: eager._run(values, grids, arrays, on))  # noqa: SLF001
        return on._call(lambda _: self._run(values, grids, arrays, on))  # noqa: SLF001

    def _run_again(self, values: list[Any], views: list[Any], on: Stream) -> bool:
        """Whether the call was that of before, on the same stream: then nothing but the launch is left to do."""
        if any(getattr(view, "block", None) is None and view.nbytes for view in views):
            return False
        unit = self._units.take_bound(self.eager.format.pack(*values, *self._fields), on)
        if unit is None:
            return False
        self._counts.calls += 1
        try:
            self.eager._announce([*views, *self.eager.fields], on)  # noqa: SLF001
            on._call(lambda _: unit.launch(on))  # noqa: SLF001
        except BaseException:
            self._units.discard(unit)
            raise
        self._units.give(unit)
        return True

    def _run(self, values: list[Any], grids: list[int], arrays: list[Any], on: Stream) -> Any:
        eager = self.eager
        host = HostArrays(self.device, on, arrays, eager.places.written)
        for member, address in host.addresses.items():
            values[eager.places.pointers[member]] = address
        conditions = eager._conditions(values, arrays)  # noqa: SLF001
        eager._announce(arrays, on)  # noqa: SLF001
        unit = self._ready(values, grids, conditions, on)
        if unit is None:
            self._counts.eager += 1
            return eager._run(values, grids, arrays, on)  # noqa: SLF001
        try:
            unit.launch(on)
        except BaseException:
            self._units.discard(unit)
            raise
        self._units.give(unit)
        host.copy_back()
        return None

    def _ready(
        self, values: list[Any], grids: list[int], conditions: dict[str, MemoryRange], on: Stream
    ) -> Unit | None:
        """A unit whose graphs are made and bound, so that nothing of the call has run if that fails; then None."""
        try:
            return self._bound(self._program or self._new_program(), values, grids, conditions, on)
        except OutOfDeviceMemory as error:  # the next call may find some
            self._explain(f"launched one by one, since the memory for a graph is not there: {error.message}")
            return None
        except DriverError as error:
            self._program = None
            if not self._uses_device_loops:
                self._refused = True
                self._explain(f"launched one by one, since the driver refused the graph: {error.message}")
                return None
            self._explain(f"the host repeats loops, since the driver refused them in a graph: {error.message}")
        self._device_loops = False
        return self._ready(values, grids, conditions, on)

    def _bound(
        self, program: Program, values: list[Any], grids: list[int], conditions: dict[str, MemoryRange], on: Stream
    ) -> Unit:
        unit = self._units.take(program, on)
        try:
            code = unit.program.code
            block = packed = self.eager.format.pack(*values)
            if unit.scratch is not None:
                block = block.ljust(code.layout.size, b"\0") + struct.pack("Q", unit.scratch.pointer)
            latches = len(code.tasks) - len(grids)
            binding = Binding(block, (*grids, *[1] * latches), conditions)
            unit.bind(packed, binding)
        except BaseException:
            self._units.discard(unit)
            raise
        return unit

    @property
    def _uses_device_loops(self) -> bool:
        graphs: GraphDriver = self.device.driver.graphs  # type: ignore[attr-defined]
        return self._has_loops and self._device_loops and "loops" in graphs.powers

    def _new_program(self) -> Program:
        """What is launched, decided once: loops as nodes of a graph, or repeated by the host."""
        graphs: GraphDriver = self.device.driver.graphs  # type: ignore[attr-defined]
        plan, teller = self.eager, None
        if self._uses_device_loops:
            spec = parse_target(self.device.driver.info.arch)
            teller = self.device.modules.load(teller_code(spec)).function(TELLER)
        elif self._has_loops:
            plan = self._predicated()
        self._program = Program(plan.code, plan.launches, graphs, teller, ordered=self._ordered)
        return self._program

    def _explain(self, reason: str) -> None:
        """Say once why a call is not what it could be."""
        if reason not in self._counts.reasons:
            self._counts.reasons.append(reason)
            _log.warning("%s: %s", self._name, reason)
