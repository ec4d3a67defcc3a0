"""What must be given back when a graph, or an executable one, is gone.  Owns: GraphHoldings, ExecHoldings.

They hold everything but the object that the user holds, so that its death can be seen.
Imports: errors, the build, nodes, devices.
"""

from __future__ import annotations

from contextlib import suppress

from quadpy.errors import DriverError
from quadpy.graph.build import Built, DriverEngine
from quadpy.graph.fused import FusedEngine
from quadpy.graph.host import HostEngine
from quadpy.graph.nodes import Allocation, Node
from quadpy.graph.series import SeriesEngine
from quadpy.runtime.callbacks import Runs
from quadpy.runtime.device import Device
from quadpy.runtime.driver import PoolPointer
from quadpy.runtime.timeline import Timeline

__all__ = ["Engine", "ExecHoldings", "GraphHoldings"]

Engine = DriverEngine | HostEngine | FusedEngine | SeriesEngine


class GraphHoldings:
    """The driver's graph of a ``Graph`` with memory of its own."""

    def __init__(self, device: Device, built: Built, runs: Runs) -> None:
        self._device, self._runs = device, runs
        self._built: Built | None = built

    def release(self) -> None:
        """Give the graph back; launches of it that are pending complete."""
        built, self._built = self._built, None
        if built is None:
            return
        self._device.retired.leave(self)
        if self._device.life.ended is None:
            self._device.retired.add(built.flight, built.retire())


class ExecHoldings:
    """What a ``GraphExec`` has: its engine, its nodes, and the timelines on which launches of it may be pending."""

    def __init__(self, device: Device, engine: Engine, nodes: dict[str, Node], runs: Runs) -> None:
        self.device, self.nodes, self.runs = device, nodes, runs
        self.engine: Engine | None = engine
        self.flight: set[Timeline] = set()
        self.left: list[Allocation] = []  # what launches allocated and no node freed yet
        device.retired.enter(self)

    def exchange(self, engine: Engine) -> None:
        """Launch ``engine`` from now on; what is pending of the one before completes."""
        before, self.engine = self.engine, engine
        assert before is not None
        self.device.retired.add(self.flight, before.retire())

    def release(self) -> None:
        """Give everything back; launches that are pending complete."""
        engine, self.engine = self.engine, None
        if engine is None:
            return
        self.device.retired.leave(self)
        self.nodes = {}
        if self.device.life.ended is None:
            self._free_left()
            self.device.retired.add(self.flight, engine.retire())

    def _free_left(self) -> None:
        """Memory of alloc nodes that the last launch left: no driver frees it by itself."""
        timelines = self.device.timelines
        for allocation in self.left:
            if allocation.live and "host" not in self.device.driver.features:
                for timeline in self.flight - {timelines.default}:
                    timelines.order(timeline, timelines.default)
                with suppress(DriverError):  # another library may have freed it
                    self.device.driver.free_async(PoolPointer(allocation.pointer), timelines.default.handle)
            allocation.live = False
