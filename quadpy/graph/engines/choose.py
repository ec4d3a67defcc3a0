"""Which engine runs a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn, TypeAlias

from quadpy.errors import CodegenError, DriverError, GraphError, OutOfDeviceMemory
from quadpy.graph.device_graphs import graphs_of
from quadpy.graph.engines.argument_policy import ArgumentPolicy
from quadpy.graph.engines.cooperative import CooperativeEngine, cooperative_engine
from quadpy.graph.engines.driver import DriverEngine, DriverGraph, switches
from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.host import HostEngine
from quadpy.graph.engines.indirect import IndirectEngine, is_indirect
from quadpy.graph.engines.repeated import RepeatedEngine
from quadpy.graph.engines.sequence import sequence
from quadpy.graph.engines.stats import Counts
from quadpy.graph.model.nesting import flattened, has_loops
from quadpy.graph.model.nodes import EmptyNode, KernelNode, Node
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.fusion import Fuse, Fusion
from quadpy.runtime.streams.parts import Part
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

LoopWay: TypeAlias = Literal["nodes", "one launch", "repeated"]
"""How a kernel with loops may run: with nodes that repeat others, as one cooperative launch, or repeated by the host."""


@dataclass(slots=True)
class EngineChoice:
    """Decides how the nodes of one executable graph run, whenever its engine is made.

    shared    the driver's graph, if it has decided addresses and so cannot be rebuilt
    separate  the reason why the nodes must not be one launch any more
    policy    whether kernels read their arguments from memory
    counts    what its engines do
    loops     the ways of loops that are left to try, in this order
    explain   is told why something that should be faster is not available
    on        the stream whose memory new engines take; None for the thread's current one
    part      the compute units of the stream on which it will be launched
    fusion    whether the last choice was one launch, and why
    """

    device: Device
    runs: Runs
    shared: DriverGraph | None
    auto_free: bool
    priorities: bool
    fuse: Fuse
    policy: ArgumentPolicy
    counts: Counts = field(default_factory=Counts)
    loops: list[LoopWay] = field(default_factory=lambda: ["nodes", "one launch", "repeated"])
    explain: Callable[[str], object] = str
    on: Stream | None = None
    part: Part | None = None
    separate: str = ""
    fusion: Fusion = Fusion(False, "")
    _predicated: dict[str, KernelNode] = field(init=False, default_factory=dict)

    def choose_engine(self, nodes: Mapping[str, Node], off: Collection[str]) -> Engine:
        """An engine for ``nodes``; those in ``off`` are switched off.

        Raises:
            GraphError: a kernel has a loop, and no way of loops is possible.
            DeviceError: the device was closed, or refuses the graph.
        """
        if "host" in self.device.driver.features:
            self.fusion = Fusion(False, "the CPU runs nodes one after another")
            return HostEngine(nodes.values(), self.device.failures, self.runs)
        found = self._one_launch(nodes, off)
        if not isinstance(found, str):
            self.fusion = Fusion(True, found.reason)
            return found
        self.fusion = Fusion(False, found)
        if self.shared is not None:
            return self.by_driver(nodes.values())
        graphs = graphs_of(self.device)
        on = [
            switched_off(each) if each.name in off and not switches(each, graphs) else each for each in nodes.values()
        ]
        return self._with_loops(on) if any(map(has_loops, on)) else self._made(on, self.by_driver)

    def moves_to(self, timeline: Timeline) -> bool:
        """Whether kernels in the driver's graph would run on other compute units than those of the stream of ``timeline``."""
        if timeline.part == self.part or self.shared is not None or "parts" not in graphs_of(self.device).features:
            return False
        self.part = timeline.part
        return True

    def formed(self, node: Node) -> Node:
        """``node``, which replaces the one of its name, in the form in which the engine runs that."""
        return self._in_passes(node) if node.name in self._predicated and has_loops(node) else node

    def _one_launch(self, nodes: Mapping[str, Node], off: Collection[str]) -> CooperativeEngine | str:
        """One launch for all nodes, or the reason against it."""
        if self.fuse is False:
            return "fuse is False"
        if off and not self.separate:
            return f"{min(off)!r} is switched off"
        return self.separate or cooperative_engine(nodes.values(), self.fuse)

    def _with_loops(self, nodes: Sequence[Node]) -> Engine:
        """For nodes with loops, also in child graphs."""
        flat = flattened(nodes, has_loops)
        if "nodes" in self.loops and "loops" in graphs_of(self.device).features:
            try:
                return self._made(flat, self.by_driver)
            except DriverError as error:  # an older driver than it claims to be
                self.loops.remove("nodes")
                self.explain(f"the host repeats loops, because the driver refused them in a graph: {error.message}")
        self._predicated = {node.name: self._predicated[node.name] for node in flat if node.name in self._predicated}
        alone = {node.name: self._alone(node) for node in flat if has_loops(node)}

        def looped(node: Node) -> Engine:
            if not isinstance(node, KernelNode) or not node.predicated:
                return alone[node.name] or self._refused(node)
            return RepeatedEngine(self.device, node, self.by_driver, self.counts)

        forms = [self._in_passes(node) if has_loops(node) and alone[node.name] is None else node for node in flat]
        return self._made(forms, lambda nodes: sequence(nodes, self.by_driver, looped))

    def _alone(self, node: Node) -> CooperativeEngine | None:
        """One launch for a kernel with loops, unless they are repeated."""
        found = cooperative_engine([replace(node, after=())], True) if "one launch" in self.loops else ""
        if isinstance(found, str):
            return None
        self.policy.keep_in_nodes()
        return found

    def _in_passes(self, node: Node) -> KernelNode:
        """A kernel with loops that the host repeats; it keeps its scratch memory."""
        assert isinstance(node, KernelNode)
        origin, before = node.origin, self._predicated.get(node.name)
        if origin is None or not origin.repeatable:
            self._refused(node)
        on = self.on or self.device.current_stream()
        call = origin.predicated(node.prepared, None if before is None else before.prepared, on)
        found = replace(node, launches=call.launches, flow=call.flow, effects=call.effects, predicated=True)
        self._predicated[node.name] = found
        return found

    def _made(self, nodes: Sequence[Node], made: Callable[[Sequence[Node]], Engine]) -> Engine:
        """``made`` of ``nodes``, which read their arguments from memory if they should, and can."""
        if self.policy.wants_memory and any(map(is_indirect, nodes)):
            try:
                return IndirectEngine(self.device, nodes, made, self.counts, self.on or self.device.current_stream())
            except (CodegenError, DriverError, OutOfDeviceMemory) as error:
                self.policy.keep_in_nodes()
                self.explain(
                    f"each node has its arguments, because the indirect code is not available: {error.message}"
                )
        return made(nodes)

    def by_driver(self, nodes: Iterable[Node]) -> DriverEngine:
        """An engine that is one driver graph."""
        groups = None if self.part is None else self.part.groups
        graph = self.shared or DriverGraph(self.device, nodes, self.device.failures, self.runs, groups=groups)
        return DriverEngine(
            graph, self.counts, owned=self.shared is None, auto_free=self.auto_free, priorities=self.priorities
        )

    def _refused(self, node: Node) -> NoReturn:
        """GraphError for a loop that cannot run in a graph of this device."""
        origin = node.origin if isinstance(node, KernelNode) else None
        why = "its launches were prepared without the IR of the kernel" if origin is None else origin.why_not_alone
        raise GraphError(
            f"{node.name!r} has a loop, which must be one launch on this device, and cannot: {why}",
            hint="call the kernel outside of the graph",
        )


def switched_off(node: Node) -> Node:
    """A node in the place of ``node`` in the order, which does nothing."""
    return EmptyNode(name=node.name, after=node.after, span=node.span)
