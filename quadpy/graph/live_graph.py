"""The current state of an executable graph: its nodes, the engine that runs them, and changes of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from quadpy.errors import DeviceError, GraphError, GraphUpdateError
from quadpy.graph.engines.choose import EngineChoice, switched_off
from quadpy.graph.engines.deferred_release import ExecOwner
from quadpy.graph.engines.engine import Engine, Launching
from quadpy.graph.engines.host import HostEngine
from quadpy.graph.engines.indirect import indirect_launches
from quadpy.graph.engines.timed import TimedGraph, TimedHost
from quadpy.graph.model.arguments import find_node
from quadpy.graph.model.nesting import has_loops
from quadpy.graph.model.nodes import Node
from quadpy.graph.model.order import MemoryRange
from quadpy.graph.model.ordered_nodes import OrderedNodes, reordered
from quadpy.graph.model.recording import LaunchStep, Recording
from quadpy.graph.model.resources import Resources
from quadpy.runtime.launch.fusion import why_not_on_part
from quadpy.runtime.launch.observing import Submission
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline


class LiveGraph:
    """The nodes of ``graph`` as they are now, and what runs them; its ``GraphExec`` has the lock.

    version     how often nodes were replaced or switched
    updates     how many
    rebuilds    how often the engine was rebuilt
    outdated    how the engine differs from the nodes: ``order`` after changes of memory, which may need another order;
                ``work`` during a change, and after one that was interrupted, as by Ctrl-C
    resources   what a launch uses
    announced   the timeline on which that is announced, and with which all launches are in order; or None
    """

    def __init__(self, graph: OrderedNodes, choice: EngineChoice) -> None:
        self.device = graph.device
        self._graph: OrderedNodes | None = graph
        self.choice = choice
        self.owned: list[MemoryRange] = list(getattr(graph, "owned", ()))
        self._off: set[str] = set()
        self._was_one = False  # one launch, except for nodes that are off
        self.version = self.updates = self.rebuilds = 0
        self.outdated: set[Literal["order", "work"]] = set()
        self._bound: Recording | None = None  # has the nodes that were bound, as they should be
        self._bound_resources: Recording | None = None  # has the resources that are then used
        nodes = {node.name: node for node in graph}
        self.owner = ExecOwner(self.device, choice.choose_engine(nodes, ()), nodes, choice.runs)
        self.resources = Resources(nodes.values())
        self.announced: Timeline | None = None

    # what it is

    @property
    def off(self) -> frozenset[str]:
        """The nodes that are switched off, by name."""
        return frozenset(self._off)

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes, which show bound arguments only after ``update_nodes``."""
        return self.owner.nodes

    def check(self) -> Engine:
        """The engine; GraphError after the end, DeviceError if the device was closed."""
        if self._graph is not None:
            self.device.life.check()
        if self.owner.engine is None:
            raise GraphError("the executable graph was destroyed", hint="graph.instantiate() makes a new one")
        return self.owner.engine

    def node(self, name: str) -> Node:
        """The node of this name; GraphError if there is none."""
        self.check()
        return find_node(self.nodes, name)

    def resources_now(self) -> Resources:
        """The resources of a launch, also after ``bind``."""
        if self._bound_resources is not None:
            self.resources, self._bound_resources = self._bound_resources.resources(), None
        return self.resources

    def release(self) -> None:
        """Give everything back when launches that are pending are complete."""
        self.owner.release()
        self._graph = self.choice.shared = self._bound = self._bound_resources = None
        self.resources = Resources(())

    # changes

    def replace(self, changes: Mapping[str, Node], *, same_order: bool) -> None:
        """See ``GraphExec.replace``."""
        self.check()
        if "work" in self.outdated:
            self.bring_up_to_date()
        self.update_nodes()
        placed = {name: self._in_place(name, node) for name, node in changes.items()}
        resources = Resources({**self.nodes, **placed}.values())
        moved = any(
            (self.nodes[name].reads, self.nodes[name].writes) != (node.reads, node.writes)
            for name, node in placed.items()
        )
        self.announced = None
        self.outdated.add("work")
        if moved and not same_order:
            self.outdated.add("order")
        self._apply(placed)
        self.owner.supersede(placed)
        self.resources, self._bound_resources = resources, None
        self.outdated.discard("work")
        self.updates += len(placed)
        self.version += 1

    def _in_place(self, name: str, node: Node) -> Node:
        """``node`` with the name and the order of the one that it replaces."""
        before = self.node(name)
        if type(node) is not type(before):
            raise GraphUpdateError(f"{name!r} is a {before.kind} node, and cannot become a {node.kind} node")
        return replace(node, name=name, after=before.after, derived=before.derived, span=before.span)

    def bind(self, steps: Sequence[LaunchStep], recording: Recording) -> None:
        """See ``GraphExec.bind``."""
        engine = self.check()
        self._bound = self._bound_resources = recording
        self.outdated.add("work")
        engine.bind(steps)
        self.outdated.discard("work")
        self.updates += len(steps)

    def update_nodes(self) -> None:
        """Update the nodes to what was bound; the engine runs it already."""
        recording, self._bound = self._bound, None
        if recording is None or self.owner.engine is None:
            return
        version = self.version
        try:
            self.replace(recording.bound_nodes(self.device), same_order=True)
        except BaseException:
            self._bound = recording
            raise
        self.version = version  # what is launched is the same

    def switch(self, node: Node, *, enabled: bool) -> None:
        """Let later launches run ``node``, or only keep its place in the order."""
        engine, before = self.bring_up_to_date(), frozenset(self._off)
        self.outdated.add("work")
        self.version += 1
        (self._off.discard if enabled else self._off.add)(node.name)
        try:
            self._switch(engine, node, enabled=enabled)
        except BaseException:
            self._off = set(before)  # the next launch rebuilds the engine
            raise
        self.outdated.discard("work")

    def _switch(self, engine: Engine, node: Node, *, enabled: bool) -> None:
        again_one = self._was_one and not self._off
        if engine.one_launch and not self._off:
            pass  # it was not off
        elif again_one or not engine.enable(node, enabled=enabled):
            self.outdated.discard("work")  # the engine is as it was
            self._require_rebuilds(
                f"{node.name!r} cannot be switched in place, and a graph that allocates memory cannot be rebuilt"
            )
            self.outdated.add("work")
            self._was_one = engine.one_launch or (self._was_one and not again_one)
            self._rebuild(self.nodes)
        elif enabled:
            self._apply({node.name: node})  # it may have been changed while it was off

    def separate(self, reason: str, timeline: Timeline) -> Engine:
        """Run nodes as separate launches from now on, for ``reason``; the next one is on the stream of ``timeline``."""
        self.choice.separate = reason
        self.choice.moves_to(timeline)
        self.update_nodes()
        return self._rebuild(self.nodes)

    def bring_up_to_date(self) -> Engine:
        """Let the engine do what the nodes say, in a matching order."""
        engine = self.check()
        if "work" in self.outdated:
            self._require_rebuilds(
                "a change of the graph was interrupted, and one that allocates memory cannot be rebuilt"
            )
            if self._bound is not None:
                self.owner.supersede(self._bound.bound_nodes(self.device))
                self._bound = None
            engine = self._rebuild(self.nodes)
            self.resources, self._bound_resources = Resources(self.nodes.values()), None
            self.outdated.discard("work")
        if "order" in self.outdated:
            engine = self._reorder() or engine
            self.outdated.discard("order")
        return engine

    # the engine

    def on_units_of(self, timeline: Timeline) -> Engine:
        """The engine, rebuilt if its kernels would run on other compute units than those of the stream of ``timeline``."""
        engine = self.check()
        before = self.choice.part
        if engine.one_launch and timeline.part is not None and self.choice.fuse == "auto":
            why = why_not_on_part(self.device.driver)
            return self.separate(why, timeline) if why else engine
        if engine.one_launch or timeline.part == before or not self.choice.moves_to(timeline):
            return engine
        try:
            self.update_nodes()
            found = self._rebuild(self.nodes)
        except BaseException:
            self.choice.part = before
            raise
        self.owner.exchange_timed(None)  # it is on the units of before
        return found

    def move(self, engine: Engine, on: Stream, *, overlap: bool) -> None:
        """Order later work on ``on`` after everything that it depends on, for a launch by ``engine``; the last one was elsewhere."""
        self.announced = None
        timeline, pending_on = on.timeline, self.owner.pending_on
        others = pending_on - {timeline}
        pending_on.add(timeline)
        if not overlap:
            for other in others:
                self.device.timelines.order(other, timeline)
            pending_on -= others
        self.resources_now().announce(self.device.memory, timeline)
        self.owner.runs.timelines.add(timeline)
        engine.move(on)
        self.announced = None if overlap else timeline

    def timed(self, engine: Engine, told: Submission) -> Launching:
        """``engine``, or an equivalent that times each node, if that is asked for and possible."""
        if isinstance(engine, HostEngine):
            return engine if told.task_times is None else TimedHost(engine, told.task_times)
        owner, version = self.owner, (self.version, self.updates)
        if told.node_timer is None or engine.one_launch or self.choice.shared is not None:
            return engine
        if owner.timed is None or owner.timed.version != version:
            self.update_nodes()
            nodes = [switched_off(node) if node.name in self._off else node for node in self.nodes.values()]
            if any(map(has_loops, nodes)):
                return engine
            owner.exchange_timed(TimedGraph(self.device, nodes, self.choice.by_driver, version))
            assert owner.timed is not None
        return owner.timed.measured_by(told.node_timer)

    def _apply(self, placed: dict[str, Node]) -> None:
        """Let the engine run the new nodes, in place where it can."""
        engine = self.check()
        done: list[str] = []
        may_move = not engine.binds and self.choice.shared is None
        if may_move and self.choice.policy.note_changes(sum(map(indirect_launches, placed.values()))):
            self._rebuild({**self.nodes, **placed})
            return
        try:
            refused = self._change(engine, placed, done)
            if refused is not None:
                self._require_rebuilds(
                    f"{refused!r} cannot be changed in place, and a graph that allocates memory cannot be rebuilt"
                )
                self._rebuild({**self.nodes, **placed})
        except BaseException:
            if self.owner.engine is engine:  # otherwise the next launch rebuilds it from the old nodes
                with suppress(DeviceError):  # the first one says what is wrong
                    for name in done:
                        engine.change(self.choice.formed(self.nodes[name]))
                    self.outdated.discard("work")
            raise

    def _change(self, engine: Engine, placed: Mapping[str, Node], done: list[str]) -> str | None:
        """Change nodes in place and add their names to ``done``; returns the first that is refused, or None."""
        for name, node in placed.items():
            if name in self._off:  # HIP never runs a node again that was changed while it was off
                continue
            done.append(name)
            if not engine.change(self.choice.formed(node)):
                return name
        return None

    def _rebuild(self, nodes: dict[str, Node]) -> Engine:
        """Rebuild the engine; where that fails, the old one stays."""
        engine = self.choice.choose_engine(nodes, self._off)
        for name in self._off:
            engine.enable(nodes[name], enabled=False)
        self.owner.exchange(engine)
        self.rebuilds += 1
        self.announced = None  # it knows of no stream yet
        return engine

    def _reorder(self) -> Engine | None:
        """Derive dependencies from the memory that nodes touch now; None if the present ones suffice."""
        nodes = reordered(self.nodes)
        if nodes is None:
            return None
        self._require_rebuilds(
            "the changes need another order of the nodes, and a graph that allocates memory cannot be rebuilt",
            hint="build a new graph, or give dependencies that hold for every change",
        )
        engine = self._rebuild(nodes)
        self.owner.nodes = nodes
        return engine

    def _require_rebuilds(self, message: str, hint: str = "build a new graph") -> None:
        """GraphUpdateError if the driver's graph cannot be rebuilt."""
        if self.choice.shared is not None:
            raise GraphUpdateError(message, hint=hint)
