"""Releases the resources of a graph, or of an executable graph, after its end.

Owners hold everything except the user's object, so that its end can be detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from quadpy.errors import DriverError
from quadpy.graph.engines.driver import DriverGraph
from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.timed import TimedGraph
from quadpy.graph.model.nodes import Allocation, Node
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import PoolPointer
from quadpy.runtime.streams.timeline import Timeline


class GraphOwner:
    """The driver's graph of a ``Graph`` that has its own memory."""

    def __init__(self, device: Device, graph: DriverGraph, runs: Runs) -> None:
        self._device, self._runs = device, runs
        self._graph: DriverGraph | None = graph

    def release(self) -> None:
        """Give the graph back when its pending launches are complete."""
        graph = self._graph
        if graph is not None and self._device.life.ended is None:
            self._device.deferred.add(graph.pending_on, graph.give_back)
        self._graph = None
        self._device.deferred.unregister(self)


class ExecOwner:
    """The resources of a ``GraphExec``: its engine, its nodes, and the timelines of launches that may be pending."""

    def __init__(self, device: Device, engine: Engine, nodes: dict[str, Node], runs: Runs) -> None:
        self.device, self.nodes, self.runs = device, nodes, runs
        self.engine: Engine | None = engine
        self.timed: TimedGraph | None = None
        """The graph that profiles launch in place of the engine's, while the nodes are those that it was made of."""
        self.pending_on: set[Timeline] = set()
        self.unfreed: list[Allocation] = []  # what launches allocated and no node freed yet
        device.deferred.register(self)

    def exchange(self, engine: Engine) -> None:
        """Launch ``engine`` from now on; the previous one, and what its nodes use, stay for its pending launches."""
        keep = _unordered(self.nodes.values())
        before, self.engine = self.engine, engine
        assert before is not None
        self.device.deferred.add(self.pending_on, before.give_back, keep=keep)

    def exchange_timed(self, timed: TimedGraph | None) -> None:
        """Like ``exchange``, for profiles."""
        before, self.timed = self.timed, timed
        if before is not None:
            self.device.deferred.add(self.pending_on, before.give_back)

    def supersede(self, nodes: Mapping[str, Node]) -> None:
        """Replace the nodes of the same names by ``nodes``; host memory of the old ones stays for pending launches."""
        kept = {id(thing) for node in nodes.values() for thing in node.keep}
        outdated = [thing for thing in _unordered(self.nodes[name] for name in nodes) if id(thing) not in kept]
        self.nodes = {**self.nodes, **nodes}
        if outdated and self.pending_on:
            self.device.deferred.add(self.pending_on, _nothing, keep=outdated)

    def release(self) -> None:
        """Give everything back when launches that are pending are complete."""
        engine = self.engine
        if engine is not None and self.device.life.ended is None:
            self._free_left()
            self.exchange_timed(None)
            self.device.deferred.add(self.pending_on, engine.give_back, keep=_unordered(self.nodes.values()))
        self.engine, self.nodes = None, {}
        self.device.deferred.unregister(self)

    def _free_left(self) -> None:
        """Memory of alloc nodes that the last launch left: no driver frees it by itself."""
        timelines = self.device.timelines
        for allocation in self.unfreed:
            if allocation.live and "host" not in self.device.driver.features:
                for timeline in self.pending_on - {timelines.default}:
                    timelines.order(timeline, timelines.default)
                with suppress(DriverError):  # another library may have freed it
                    self.device.driver.free_async(PoolPointer(allocation.pointer), timelines.default.handle)
            allocation.live = False


def _unordered(nodes: Iterable[Node]) -> list[object]:
    """Everything that ``nodes`` keep alive except device memory, which is freed in the order of streams."""
    return [thing for node in nodes for thing in node.keep if getattr(thing, "block", None) is None]


def _nothing() -> None:
    """Does nothing: only references have to be given back."""
