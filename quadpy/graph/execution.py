"""Graphs that run.  Owns: GraphExec, GraphStats.  Imports: errors, nodes and their makers, both engines, order, devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from quadpy.copying import OneProcess
from quadpy.errors import (
    CodegenError,
    DeviceError,
    DriverError,
    GraphError,
    GraphUpdateError,
    OutOfDeviceMemory,
)
from quadpy.graph.engines.argument_policy import ArgumentPolicy
from quadpy.graph.engines.cooperative import FusedEngine, fuse
from quadpy.graph.engines.deferred_release import Engine, ExecHoldings
from quadpy.graph.engines.driver import Built, DriverEngine
from quadpy.graph.engines.host import HostEngine
from quadpy.graph.engines.host_loop import SeriesEngine, series
from quadpy.graph.engines.indirect import IndirectEngine, is_indirect
from quadpy.graph.model.arguments import find_node
from quadpy.graph.model.inspect import GraphInfo, describe
from quadpy.graph.model.kernels import is_callee
from quadpy.graph.model.makers import MAKERS, make_node
from quadpy.graph.model.nesting import flattened, has_loops
from quadpy.graph.model.nodes import EmptyNode, HostNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.model.ordered_nodes import OrderedNodes
from quadpy.graph.model.reorder import reordered
from quadpy.graph.model.resources import Resources
from quadpy.graph.replay.recording import LaunchStep, Recording
from quadpy.graph.support import graphs_of
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import Session, session_of
from quadpy.runtime.launch.fusion import TOO_LARGE, Fuse, Fusion
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

if TYPE_CHECKING:
    from typing_extensions import Self


__all__ = ["GraphExec", "GraphStats"]

_SWITCHABLE: Final = (KernelNode, MemcpyNode, MemsetNode, HostNode)


@dataclass(frozen=True, slots=True)
class GraphStats:
    """What an executable graph has done.

    launches  how often it was launched
    updates   how many nodes were changed
    rebuilds  how often a change, or many of them, made the driver's graph anew
    """

    launches: int = 0
    updates: int = 0
    rebuilds: int = 0


class GraphExec(OneProcess):
    """A graph that can be launched, on any stream of its device and from any thread; ``with`` destroys it at its end.

    It has the nodes that its graph had when it was made, and changes of its own to them; it keeps the graph alive.
    """

    error: ClassVar[type[GraphError]] = GraphError

    def __init__(
        self, graph: OrderedNodes, built: Built | None, *, auto_free: bool, priorities: bool, fuse: Fuse = False
    ) -> None:
        self.device = graph.device
        self._fuse: Fuse = fuse
        self._separate = ""  # why it is no longer to be one launch,
        self._was_one = False  # or only while a node is off
        self._graph: OrderedNodes | None = graph
        self._built = built  # the driver's graph, if it has decided addresses
        self._auto_free, self._priorities = auto_free, priorities
        self._lock = new_lock()
        self._off: set[str] = set()
        self._launches = self._updates = self._rebuilds = 0
        self.version = 0  # how often nodes were replaced
        self.argument_policy = ArgumentPolicy()
        self._outdated: set[Literal["order", "work"]] = set()  # where the engine is not what the nodes say: memory
        # changed, and with it perhaps what must come before what; or a change was interrupted, as by Ctrl-C
        self._bound: Recording | None = None  # has the nodes that were bound, as they should be
        self._uses: Recording | None = None  # has what is used then
        nodes = {node.name: node for node in graph}
        runs = Runs()
        self._fixed = built is not None
        self._held = ExecHoldings(self.device, self._engine(nodes, runs), nodes, runs)
        self._finalizer = self.device.reaper.adopt(self, ExecHoldings.release, self._held)
        if built is not None:
            built.flight = self._held.flight
        self._usage = Resources(self.nodes)
        self._sole: Timeline | None = None  # the timeline that all launches are on, or in order with

    # launching

    def launch(self, stream: object = None, *, overlap: bool = False) -> None:
        """Put one run of the graph on ``stream``, by default the calling thread's; on the CPU it runs now.

        It comes after earlier launches of the same graph that are pending on other streams, whose memory it shares;
        with ``overlap`` it does not.  Where the stream is captured, the nodes as they are now become a node there.

        Raises:
            GraphError: the graph was destroyed, or a semaphore of its nodes; or memory that its last launch allocated
                is not freed.
            EventError: an event of its nodes was destroyed.
            StreamError: ``stream`` was destroyed, or is of another device.
            DeviceError: the device was closed; or called from within a host function.
            CaptureError: ``stream`` is captured, and the graph allocates or frees memory.
        """
        with self._lock:
            engine = self._held.engine or self._check()
            on = stream_of(self.device, stream)
            if (session := session_of(on)) is not None:
                self._note(session, on)
                return
            if self._outdated:
                engine = self._bring_up_to_date()
            usage = self._usage
            usage.check(auto_free=self._auto_free)
            overlap = overlap and not isinstance(engine, IndirectEngine)  # whose launches share their arguments
            if on.timeline is not self._sole:  # else all is said, and what came before is in order
                self._sole = None
                self._order_after_others(on.timeline, overlap=overlap)
                if self._uses is not None:
                    usage, self._uses = self._uses.resources(), None
                    self._usage = usage
                usage.announce(self.device.memory, on.timeline)
                self._held.runs.timelines.add(on.timeline)
                _move(engine, on)
                self._sole = None if overlap else on.timeline
            if usage.memory:
                self._held.left = usage.begin_launch()  # before, as what a Ctrl-C interrupts may have been submitted
            try:
                on._call(engine.launch)  # noqa: SLF001 - so that the handle lives until the launch is submitted
            except DeviceError as error:
                usage.cancel_launch()
                if not isinstance(engine, FusedEngine) or getattr(error, "name", None) not in TOO_LARGE:
                    raise
                self._separate = "the device refused a launch of so many blocks at once"
                self._settle()
                engine = self._rebuild(self._held.nodes)
                _move(engine, on)
                on._call(engine.launch)  # noqa: SLF001
            self._launches += 1
            for event in usage.records:
                event.mark_recorded()

    def _note(self, session: Session, on: Stream) -> None:
        """Let the nodes as they are now be a node of a capture."""
        self._usage.require_handles()
        if self._usage.memory:
            session.refuse(
                "a launch of a graph that allocates or frees memory", "launch it behind the capture; or allocate before"
            )
        session.record_graph(on, [_switched_off(node) if node.name in self._off else node for node in self.nodes])

    def order_before(self, stream: Stream) -> None:
        """Let ``stream``'s later work come after all launches so far."""
        with self._lock:
            for timeline in self._held.flight - {stream.timeline}:
                self.device.timelines.order(timeline, stream.timeline)

    def upload(self, stream: object = None) -> None:
        """Bring what a launch needs to the device, in the order of ``stream``: the first launch is then as the others."""
        with self._lock:
            engine = self._check()
            stream_of(self.device, stream)._call(engine.upload)  # noqa: SLF001

    def synchronize(self) -> None:
        """Wait for the launches so far, and raise what a host function raised."""
        with self._lock:
            self._check()
            flight, timelines = list(self._held.flight), self.device.timelines
        for timeline in flight:
            mark = timelines.mark(timeline)
            timelines.wait(mark)
            timelines.unmark(mark)
        for timeline in flight:
            self.device.failures.raise_first(timeline)

    # changes

    def update(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Change what later launches do at one node; arguments are as those of the ``add_…`` that made it.

        A kernel's are the kernel's own, behind the kernel or without it: ``x.update("saxpy", 3.0, a, b)``; launches that
        are pending keep the old ones.
        Where the driver cannot change a node in place, the executable graph is made anew, which ``stats`` counts.

        Raises:
            GraphError: there is no such node.
            GraphUpdateError: a node that cannot be changed, or whose graph cannot be made anew as it allocates memory.
            ArgumentError: the arguments are not right.
        """
        refuse_in_host_function()
        before = self._node(name)
        maker = MAKERS.get(before.kind)
        if maker is None:
            raise GraphUpdateError(f"{name!r} is a node of kind {before.kind}: there is nothing to change")
        if isinstance(before, KernelNode):
            callee = () if before.kernel is None or (args and is_callee(args[0])) else (before.kernel,)
            args, kwargs = (*callee, *args), {"priority": before.priority, **kwargs}
        self.replace({name: make_node(maker, self.device, args, kwargs)})

    def replace(self, changes: Mapping[str, Node], *, same_order: bool = False) -> None:
        """Change several nodes at once, to nodes that a maker made; for those who bind the arguments of whole graphs.

        With ``same_order`` the caller knows that what overlapped before overlaps as before, so that derived
        dependencies hold.

        Raises:
            GraphError, GraphUpdateError: as ``update``; then nothing is changed.
        """
        with self._lock:
            self._check()
            if "work" in self._outdated:
                self._bring_up_to_date()
            self._settle()
            placed: dict[str, Node] = {}
            for name, node in changes.items():
                before = self._node(name)
                if type(node) is not type(before):
                    raise GraphUpdateError(f"{name!r} is a {before.kind} node, and cannot become a {node.kind} node")
                placed[name] = replace(
                    node, name=name, after=before.after, derived=before.derived, span=before.span
                )  # fmt: skip
            usage = Resources({**self._held.nodes, **placed}.values())
            moved = any(
                (self._held.nodes[name].reads, self._held.nodes[name].writes) != (node.reads, node.writes)
                for name, node in placed.items()
            )
            self._sole = None
            self._outdated.add("work")
            if moved and not same_order:
                self._outdated.add("order")
            self._apply(placed)
            self._held.supersede(placed)
            self._usage, self._uses = usage, None
            self._outdated.discard("work")
            self._updates += len(placed)
            self.version += 1

    @property
    def binds(self) -> bool:
        """Whether ``bind`` can be called."""
        return isinstance(self._held.engine, (IndirectEngine, FusedEngine, HostEngine))

    def bind(self, steps: Sequence[LaunchStep], recording: Recording) -> None:
        """Let later launches of kernels have what is bound, for those who know what that is.

        ``recording``, of which ``steps`` are, says what the graph is then, when somebody asks.  What it uses is announced on the
        stream of its last launch.
        """
        with self._lock:
            engine = self._check()
            assert isinstance(engine, (IndirectEngine, FusedEngine, HostEngine))
            self._bound = self._uses = recording
            self._outdated.add("work")
            engine.bind(steps)
            self._outdated.discard("work")
            self._updates += len(steps)

    @property
    def engine(self) -> Engine | None:
        """What is launched; None behind the end."""
        return self._held.engine

    def enable(self, name: str, enabled: bool = True) -> None:
        """Whether later launches run a kernel, copy, fill or host function; a node that is off still orders.

        Raises:
            GraphError: there is no such node, or none that can be switched.
        """
        refuse_in_host_function()
        with self._lock:
            self._settle()
            node = self._node(name)
            engine = self._bring_up_to_date()
            if not isinstance(node, _SWITCHABLE):
                raise GraphError(
                    f"{name!r} is a node of kind {node.kind}, which cannot be switched off",
                    hint="kernels, copies, fills and host functions can",
                )
            self._outdated.add("work")
            (self._off.discard if enabled else self._off.add)(name)
            self._switch(engine, node, enabled=enabled)
            self._outdated.discard("work")

    def _switch(self, engine: Engine, node: Node, *, enabled: bool) -> None:
        if isinstance(engine, FusedEngine) or (self._was_one and not self._off):
            if self._off or not isinstance(engine, FusedEngine):
                self._was_one = bool(self._off)
                self._rebuild(self._held.nodes)
            return
        if has_loops(node) and not isinstance(engine, HostEngine):
            self._rebuild(self._held.nodes)
            return
        engine.enable(node, enabled=enabled)
        if enabled:
            self._apply({node.name: node})  # what it was changed to meanwhile

    # its end, and what it is

    def destroy(self) -> None:
        """Give it back; launches that are pending complete, and what they use lives until then.  Twice does nothing.

        Raises:
            DeviceError: called from within a host function.
        """
        refuse_in_host_function()
        with self._lock:
            self._held.release()
            self._finalizer.detach()
            self._graph = self._built = self._bound = self._uses = None
            self._usage = Resources(())

    @property
    def destroyed(self) -> bool:
        """Whether it was given back."""
        return self._held.engine is None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes as they are now, in the order of their making."""
        with self._lock:
            self._settle()
            return tuple(self._held.nodes.values())

    @property
    def fusion(self) -> Fusion:
        """Whether a launch of all nodes is one launch of one kernel, and why it is, or is not."""
        return self._fusion

    def inspect(self) -> GraphInfo:
        """As ``Graph.inspect``, of the nodes as they are now, with ``fusion``."""
        return describe(self.nodes, self._fusion)

    def stats(self) -> GraphStats:
        """How often it was launched, changed, and made anew."""
        with self._lock:
            return GraphStats(self._launches, self._updates, self._rebuilds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        what = "destroyed" if self.destroyed else f"{len(self._held.nodes)} nodes, {self._launches} launches"
        return f"<GraphExec of {what} on {self.device}>"

    # checks

    def _check(self) -> Engine:
        if self._graph is not None:
            self.device.life.check()
        if self._held.engine is None:
            raise GraphError("the executable graph was destroyed", hint="graph.instantiate() makes a new one")
        return self._held.engine

    def _node(self, name: str) -> Node:
        self._check()
        return find_node(self._held.nodes, name)

    # the driver's side

    def _engine(self, nodes: dict[str, Node], runs: Runs) -> Engine:
        if "host" in self.device.driver.features:
            self._fusion = Fusion(False, "the CPU runs nodes one after another")
            return HostEngine(nodes.values(), self.device.failures, runs)
        assert self._graph is not None
        fused = self._one_launch(nodes)
        self._fusion = Fusion(isinstance(fused, FusedEngine), fused if isinstance(fused, str) else fused.reason)
        if isinstance(fused, FusedEngine):
            return fused
        if any(map(has_loops, nodes.values())) and not self._fixed:
            return self._looping(nodes, runs)
        return self._indirect_engine(nodes, runs) or self._driver_engine(nodes.values(), runs)

    def _indirect_engine(self, nodes: Mapping[str, Node], runs: Runs) -> IndirectEngine | None:
        """What launches nodes that read their arguments from memory, where these have changed often enough."""
        if not self.argument_policy.wants_memory or self._fixed or not any(map(is_indirect, nodes.values())):
            return None

        def build(through: Iterable[Node]) -> Built:
            return Built(self.device, through, self.device.failures, runs)

        try:
            return IndirectEngine(
                self.device, nodes, build, auto_free=self._auto_free, priorities=self._priorities
            )  # fmt: skip
        except (CodegenError, DriverError, OutOfDeviceMemory):  # nodes have their arguments, as before
            self.argument_policy.keep_in_nodes()
            return None

    def _looping(self, nodes: Mapping[str, Node], runs: Runs) -> Engine:
        """What launches nodes some of which have loops, or child graphs some of whose nodes have."""
        self.argument_policy.keep_in_nodes()
        on = [_switched_off(node) if name in self._off and has_loops(node) else node for name, node in nodes.items()]
        flat = flattened(on, has_loops)
        if "loops" in graphs_of(self.device).features:
            try:
                return self._driver_engine(flat, runs)
            except DriverError:  # an older one than it seems
                pass
        return series(flat, lambda some: self._driver_engine(some, runs))

    def _driver_engine(self, nodes: Iterable[Node], runs: Runs) -> DriverEngine:
        shared = self._built
        built = shared or Built(self.device, nodes, self.device.failures, runs)
        return DriverEngine(built, owned=shared is None, auto_free=self._auto_free, priorities=self._priorities)

    def _one_launch(self, nodes: Mapping[str, Node]) -> FusedEngine | str:
        """One launch for all nodes, or why there is none."""
        if self._fuse is False:
            return "fuse is False"
        return self._separate or _off_reason(self._off) or fuse(nodes.values(), self._fuse)

    def _apply(self, placed: dict[str, Node]) -> None:
        """Let the engine do the new nodes, in place where it can."""
        engine = self._check()
        done: list[str] = []
        may_move = type(engine) is DriverEngine and not self._fixed
        if may_move and self.argument_policy.note_changes(sum(map(is_indirect, placed.values()))):
            self._rebuild({**self._held.nodes, **placed})
            return
        try:
            refused = self._change(engine, placed, done)
            if refused is not None:
                self._require_free(refused)
                self._rebuild({**self._held.nodes, **placed})
        except BaseException:
            with suppress(DeviceError):  # the first one says what is wrong
                for name in done:
                    engine.change(self._held.nodes[name])
                self._outdated.discard("work")
            raise

    def _change(self, engine: Engine, placed: Mapping[str, Node], done: list[str]) -> str | None:
        """Change nodes in place, their names into ``done``; the first that cannot be, or None."""
        for name, node in placed.items():
            if name in self._off:  # HIP never runs a node again that was changed while it was off
                continue
            done.append(name)
            if not engine.change(node):
                return name
        return None

    def _require_free(self, name: str) -> None:
        if self._fixed:
            raise GraphUpdateError(
                f"{name!r} cannot be changed in place, and a graph that allocates memory cannot be made anew",
                hint="build the graph anew",
            )

    def _settle(self) -> None:
        """Let the nodes say what was bound; the engine does it already."""
        recording, self._bound = self._bound, None
        if recording is None or self.destroyed:
            return
        version = self.version
        try:
            self.replace(recording.bound_nodes(self.device), same_order=True)
        except BaseException:
            self._bound = recording
            raise
        self.version = version  # what is launched is the same

    def _rebuild(self, nodes: dict[str, Node]) -> Engine:
        """Make the driver's graph anew; where that fails, the old one stays."""
        engine = self._engine(nodes, self._held.runs)
        if not isinstance(engine, FusedEngine):
            for name in self._off:
                engine.enable(nodes[name], enabled=False)
        self._held.exchange(engine)
        self._rebuilds += 1
        self._sole = None  # it knows of no stream yet
        return engine

    def _bring_up_to_date(self) -> Engine:
        """Let the engine do what the nodes say, in an order that goes with them."""
        engine = self._check()
        if "work" in self._outdated:
            if self._fixed:
                raise GraphUpdateError(
                    "a change of the graph was interrupted, and one that allocates memory cannot be made anew",
                    hint="build the graph anew",
                )
            if self._bound is not None:
                self._held.supersede(self._bound.bound_nodes(self.device))
                self._bound = None
            engine = self._rebuild(self._held.nodes)
            self._usage, self._uses = Resources(self._held.nodes.values()), None
            self._outdated.discard("work")
        if "order" in self._outdated:
            engine = self._reorder() or engine
            self._outdated.discard("order")
        return engine

    def _reorder(self) -> Engine | None:
        """Derive dependencies from the memory that nodes touch now; None where the edges that are there say enough."""
        nodes = reordered(self._held.nodes)
        if nodes is None:
            return None
        if self._fixed:
            raise GraphUpdateError(
                "the changes need another order of the nodes, and a graph that allocates memory cannot be made anew",
                hint="build the graph anew, or give dependencies that hold for every change",
            )
        engine = self._rebuild(nodes)
        self._held.nodes = nodes
        return engine

    def _order_after_others(self, timeline: Timeline, *, overlap: bool) -> None:
        flight = self._held.flight
        others = flight - {timeline}
        flight.add(timeline)
        if not overlap:
            for other in others:
                self.device.timelines.order(other, timeline)
            flight -= others


def _move(engine: Engine, on: Stream) -> None:
    """Let later launches of ``engine`` come on ``on``, where it has memory of its own."""
    if isinstance(engine, (FusedEngine, SeriesEngine, IndirectEngine)):
        engine.move(on)


def _off_reason(off: Collection[str]) -> str:
    return f"{min(off)!r} is switched off" if off else ""


def _switched_off(node: Node) -> Node:
    """What orders as ``node`` does, and does nothing."""
    return EmptyNode(name=node.name, after=node.after, span=node.span)
