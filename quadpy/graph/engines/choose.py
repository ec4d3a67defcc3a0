"""Which engine runs a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from quadpy.errors import CodegenError, DriverError, OutOfDeviceMemory
from quadpy.graph.device_graphs import graphs_of
from quadpy.graph.engines.argument_policy import ArgumentPolicy
from quadpy.graph.engines.cooperative import CooperativeEngine, cooperative_engine
from quadpy.graph.engines.driver import DriverEngine, DriverGraph
from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.host import HostEngine
from quadpy.graph.engines.indirect import IndirectEngine, is_indirect
from quadpy.graph.engines.sequence import sequence
from quadpy.graph.model.nesting import flattened, has_loops
from quadpy.graph.model.nodes import EmptyNode, Node
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.fusion import Fuse, Fusion

__all__ = ["EngineChoice", "switched_off"]


@dataclass(slots=True)
class EngineChoice:
    """Decides how the nodes of one executable graph run, whenever its engine is made.

    shared    the driver's graph, if it has decided addresses and so cannot be rebuilt
    separate  the reason why the nodes must not be one launch any more
    policy    whether kernels read their arguments from memory
    fusion    whether the last choice was one launch, and why
    """

    device: Device
    runs: Runs
    shared: DriverGraph | None
    auto_free: bool
    priorities: bool
    fuse: Fuse
    policy: ArgumentPolicy
    separate: str = ""
    fusion: Fusion = Fusion(False, "")

    def choose_engine(self, nodes: Mapping[str, Node], off: Collection[str]) -> Engine:
        """An engine for ``nodes``; those in ``off`` are switched off."""
        if "host" in self.device.driver.features:
            self.fusion = Fusion(False, "the CPU runs nodes one after another")
            return HostEngine(nodes.values(), self.device.failures, self.runs)
        found = self._one_launch(nodes, off)
        if not isinstance(found, str):
            self.fusion = Fusion(True, found.reason)
            return found
        self.fusion = Fusion(False, found)
        if self.shared is None:
            if any(map(has_loops, nodes.values())):
                return self._with_loops(nodes, off)
            if self.policy.wants_memory and (indirect := self._indirect(nodes)) is not None:
                return indirect
        return self.by_driver(nodes.values())

    def _one_launch(self, nodes: Mapping[str, Node], off: Collection[str]) -> CooperativeEngine | str:
        """One launch for all nodes, or the reason against it."""
        if self.fuse is False:
            return "fuse is False"
        if off and not self.separate:
            return f"{min(off)!r} is switched off"
        return self.separate or cooperative_engine(nodes.values(), self.fuse)

    def _with_loops(self, nodes: Mapping[str, Node], off: Collection[str]) -> Engine:
        """For nodes with loops, also in child graphs."""
        self.policy.keep_in_nodes()
        on = [switched_off(node) if name in off and has_loops(node) else node for name, node in nodes.items()]
        flat = flattened(on, has_loops)
        if "loops" in graphs_of(self.device).features:
            try:
                return self.by_driver(flat)
            except DriverError:  # an older driver than it claims to be
                pass
        return sequence(flat, self.by_driver)

    def _indirect(self, nodes: Mapping[str, Node]) -> IndirectEngine | None:
        """For nodes that read their arguments from memory; None if no node can, or memory or code is missing."""
        if not any(map(is_indirect, nodes.values())):
            return None
        try:
            return IndirectEngine(
                self.device, nodes, self._driver_graph, auto_free=self.auto_free, priorities=self.priorities
            )  # fmt: skip
        except (CodegenError, DriverError, OutOfDeviceMemory):  # nodes have their arguments, as before
            self.policy.keep_in_nodes()
            return None

    def by_driver(self, nodes: Iterable[Node]) -> DriverEngine:
        """An engine that is one driver graph."""
        graph = self.shared or self._driver_graph(nodes)
        return DriverEngine(
            graph, owned=self.shared is None, auto_free=self.auto_free, priorities=self.priorities
        )  # fmt: skip

    def _driver_graph(self, nodes: Iterable[Node]) -> DriverGraph:
        return DriverGraph(self.device, nodes, self.device.failures, self.runs)


def switched_off(node: Node) -> Node:
    """A node in the place of ``node`` in the order, which does nothing."""
    return EmptyNode(name=node.name, after=node.after, span=node.span)
