"""Graphs that can be launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.importing import import_late
from quadpy.core.messages import counted
from quadpy.core.public import called_often, made_by, public, shortened
from quadpy.errors import DeviceError, GraphError, GraphUpdateError, QuadpyError
from quadpy.graph.engines.argument_policy import ArgumentPolicy
from quadpy.graph.engines.choose import EngineChoice, switched_off
from quadpy.graph.engines.deferred_release import ExecOwner
from quadpy.graph.engines.driver import DriverGraph
from quadpy.graph.engines.engine import Engine, Launching
from quadpy.graph.engines.stats import GraphStats
from quadpy.graph.live_graph import LiveGraph
from quadpy.graph.model.inspect import GraphInfo, describe
from quadpy.graph.model.kernels import is_callee
from quadpy.graph.model.makers import MAKERS, make_node
from quadpy.graph.model.nodes import HostNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.model.observed import observed
from quadpy.graph.model.ordered_nodes import OrderedNodes
from quadpy.graph.model.recording import LaunchStep, Recording
from quadpy.graph.model.resources import Resources
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.synchronous import complete
from quadpy.runtime.launch.captured_work import GraphLaunch
from quadpy.runtime.launch.capturing import CAPTURES, Session, differentiating_here, session_of
from quadpy.runtime.launch.fusion import TOO_LARGE, Fuse, Fusion
from quadpy.runtime.launch.observing import Observer, Submission
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from typing_extensions import Self

_SWITCHABLE: Final = (KernelNode, MemcpyNode, MemsetNode, HostNode)


@made_by("the instantiate() of a qp.graph.Graph makes one; qp.graph.capture(...) gives such a graph")
@shows(
    "destroy", "destroyed", "device", "disabled", "enable", "fusion", "inspect", "launch", "nodes", "save", "stats",
    "synchronize", "update", "upload",
)  # fmt: skip
class GraphExec(OneProcess):
    """A graph that can be launched, on any stream of its device and from any thread; ``with`` destroys it at its end.

    It has the nodes that its graph had when it was made, and can change them; it keeps the graph alive.
    """

    error: ClassVar[type[GraphError]] = GraphError
    instead: ClassVar[str] = "pickle its Graph, and instantiate that where it is used"

    def __init__(
        self, graph: OrderedNodes, shared: DriverGraph | None, *, auto_free: bool, priorities: bool, fuse: Fuse = False
    ) -> None:
        self.device, runs, self.argument_policy = graph.device, Runs(), ArgumentPolicy()
        choice = EngineChoice(
            self.device, runs, shared, auto_free, priorities, fuse=fuse, policy=self.argument_policy
        )  # fmt: skip
        self._auto_free = auto_free
        self._lock = new_lock()
        self._launches = 0
        self._live = LiveGraph(graph, choice)
        self._owner = self._live.owner
        self._finalizer = self.device.reaper.adopt(self, ExecOwner.release, self._owner)
        if shared is not None:
            shared.pending_on = self._owner.pending_on

    # launching

    @called_often
    def launch(self, stream: object = None, *, overlap: bool = False) -> None:
        """Launch the graph on ``stream`` (default: the thread's current stream).  On the CPU it runs immediately.

        It comes after earlier launches of the same graph that are pending on other streams, whose memory it shares;
        with ``overlap`` it does not.  Where the stream is captured, the nodes as they are now become a node there.

        Raises:
            GraphError: the graph was destroyed, or a semaphore of its nodes; or memory that its last launch allocated
                is not freed.
            EventError: an event of its nodes was destroyed.
            StreamError: ``stream`` was destroyed, or is of another device.
            DeviceError: the device was closed; or called from a host function.
            CaptureError: ``stream`` is captured, and the graph allocates or frees memory.
        """
        try:
            with self._lock:
                if not overlap and self.relaunch(stream):
                    return
                on = self._launch(stream, overlap=overlap)
            if on is not None and current_config().synchronous:
                complete(self.device, on)
        except QuadpyError as error:
            raise shortened(error)

    def relaunch(self, stream: object) -> bool:
        """Launch the graph if that needs no more than the call of the driver, as a repeated launch usually does.

        For callers that hold the lock, or have one of their own around all that they do with the graph.
        """
        live, engine = self._live, self._owner.engine
        if engine is None or CAPTURES.watched or current_config().synchronous:
            return False
        if live.outdated or not live.resources.is_plain:
            return False
        on = stream_of(self.device, stream)
        if on.timeline is not live.announced:
            return False
        try:
            on._call(engine.launch)  # noqa: SLF001 - so that the handle lives until the launch is submitted
        except DeviceError as error:
            self._launch_separately(engine, error, on)
        self._launches += 1
        return True

    def _launch(self, stream: object, *, overlap: bool) -> Stream | None:
        """Launch the graph with all that may belong to it; the stream, or None if that is captured or differentiated."""
        is_watched = CAPTURES.watched  # one look, while nothing is
        if is_watched and (taker := differentiating_here()) is not None:
            taker.launch(self, stream)
            return None
        live, owner = self._live, self._owner
        engine = owner.engine or live.check()
        on = stream_of(self.device, stream)
        if (session := session_of(on)) is not None:
            self._note(session, on)
            return None
        if live.outdated:
            engine = live.bring_up_to_date()
        resources = live.resources
        resources.check(auto_free=self._auto_free)
        observer = CAPTURES.observer if is_watched else None
        told = None if observer is None else self._tell(observer, on, overlap=overlap)
        if on.timeline is not live.announced:  # otherwise it is announced already, and earlier work is ordered
            engine = live.on_units_of(on.timeline)
            live.move(engine, on, overlap=overlap and engine.overlaps)
            resources = live.resources
        if resources.memory:  # before the launch, as what a Ctrl-C interrupts may have been submitted
            owner.unfreed = resources.begin_launch()
        try:
            running = engine if told is None else live.timed(engine, told)
            if resources.rings:
                self._launch_printing(running, resources, on)
            else:
                on._call(running.launch)  # noqa: SLF001 - as in ``relaunch``
        except DeviceError as error:
            self._launch_separately(engine, error, on)
        self._launches += 1
        for event in resources.records:
            event.mark_recorded()
        if told is not None:
            told.done()
        return on

    def _launch_separately(self, engine: Engine, error: DeviceError, on: Stream) -> None:
        """Launch the nodes one by one if ``error`` says that the one launch of ``engine`` is too large; else raise it."""
        resources = self._live.resources
        resources.cancel_launch()
        if not engine.one_launch or getattr(error, "name", None) not in TOO_LARGE:
            raise error
        apart = self._live.separate("the device refused a launch of so many blocks at once", on.timeline)
        apart.move(on)
        self._launch_printing(apart, resources, on)

    def _tell(self, observer: Observer, on: Stream, *, overlap: bool) -> Submission:
        """Tell ``observer`` about a launch."""
        live, may_overlap = self._live, overlap and self._owner.engine is not None and self._owner.engine.overlaps
        version = live.version, live.updates
        return observer.launching_graph(on, self, version, lambda: observed(self.nodes, live.off), overlap=may_overlap)

    def _launch_printing(self, engine: Launching, resources: Resources, on: Stream) -> None:
        """Launches a graph with kernels that may print."""
        with self.device.prints.launching(resources.rings, on.timeline):
            on._call(engine.launch)  # noqa: SLF001 - as in ``relaunch``

    def _note(self, session: Session, on: Stream) -> None:
        """Let the nodes as they are now be a node of a capture."""
        self._live.resources.require_handles()
        if self._live.resources.memory:
            session.refuse(
                "a launch of a graph that allocates or frees memory", "launch it after the capture; or allocate before"
            )
        off = self._live.off
        nodes = tuple(switched_off(node) if node.name in off else node for node in self.nodes)
        session.record(on, GraphLaunch(nodes))

    def order_before(self, stream: Stream) -> None:
        """Let ``stream``'s later work come after all launches so far."""
        with self._lock:
            for timeline in self._owner.pending_on - {stream.timeline}:
                if (observer := CAPTURES.observer) is not None:
                    observer.followed(timeline, stream.timeline, self.device.life)
                self.device.timelines.order(timeline, stream.timeline)

    def upload(self, stream: object = None) -> None:
        """Upload what a launch needs, in the order of ``stream``, so that the first launch is as fast as the others."""
        with self._lock:
            engine = self._live.check()
            stream_of(self.device, stream)._call(engine.upload)  # noqa: SLF001 - as in ``relaunch``

    def synchronize(self) -> None:
        """Wait for the launches so far, and raise what a host function raised."""
        with self._lock:
            self._live.check()
            pending_on, timelines = list(self._owner.pending_on), self.device.timelines
        for timeline in pending_on:
            mark = timelines.mark(timeline)
            timelines.wait(mark)
            timelines.unmark(mark)
        if self.device.prints.pending:
            self.device.prints.drain()
        self.device.faults.raise_first()
        if (observer := CAPTURES.observer) is not None:
            observer.graph_synchronized(self)
        for timeline in pending_on:
            self.device.failures.raise_first(timeline)

    # changes

    def update(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Change what later launches do at the node ``name``; ``args`` and ``kwargs`` are those of the ``add_…`` that made it.

        A kernel's are its own, with or without the kernel before them: ``x.update("saxpy", 3.0, a, b)``; launches that
        are pending keep the old ones.
        Where the driver cannot change a node in place, the executable graph is rebuilt, which ``stats`` counts.

        Raises:
            GraphError: there is no such node.
            GraphUpdateError: a node that cannot be changed, or whose graph cannot be rebuilt as it allocates memory.
            ArgumentError: the arguments are wrong.
        """
        refuse_in_host_function()
        with self._lock:  # another thread may destroy the graph
            before = self._live.node(name)
        maker = MAKERS.get(before.kind)
        if maker is None:
            raise GraphUpdateError(f"{name!r} is a node of kind {before.kind}: there is nothing to change")
        if isinstance(before, KernelNode):
            callee = () if before.kernel is None or (args and is_callee(args[0])) else (before.kernel,)
            args, kwargs = (*callee, *args), {"priority": before.priority, **kwargs}
        self.replace({name: make_node(maker, self.device, args, kwargs)})

    def replace(self, changes: Mapping[str, Node], *, same_order: bool = False) -> None:
        """Change several nodes at once, to nodes that a maker made; for callers that bind arguments of whole graphs.

        With ``same_order`` the caller promises that the same memory overlaps as before, so that derived
        dependencies hold.

        Raises:
            GraphError, GraphUpdateError: as ``update``; then nothing is changed.
        """
        with self._lock:
            self._live.replace(changes, same_order=same_order)

    @property
    def binds(self) -> bool:
        """Whether ``bind`` can be called."""
        engine = self._owner.engine
        return engine is not None and engine.binds

    def bind(self, steps: Sequence[LaunchStep], recording: Recording) -> None:
        """Let later launches of kernels use the arguments that ``steps`` bind.

        ``recording``, which contains ``steps``, describes the graph afterwards.  What it uses is announced on the
        stream of its last launch.
        """
        with self._lock:
            self._live.bind(steps, recording)

    @property
    def version(self) -> int:
        """How often nodes were replaced or switched."""
        return self._live.version

    @property
    def engine(self) -> Engine | None:
        """The engine that runs the graph; None after its end."""
        return self._owner.engine

    def enable(self, name: str, enabled: bool = True) -> None:
        """Run the kernel, copy, fill or host function ``name`` in later launches if ``enabled``; if not, it still orders.

        Raises:
            GraphError: there is no such node, or none that can be switched.
        """
        refuse_in_host_function()
        with self._lock:
            self._live.update_nodes()
            node = self._live.node(name)
            if not isinstance(node, _SWITCHABLE):
                raise GraphError(
                    f"{name!r} is a node of kind {node.kind}, which cannot be switched off",
                    hint="kernels, copies, fills and host functions can",
                )
            self._live.switch(node, enabled=enabled)

    @property
    def disabled(self) -> frozenset[str]:
        """The names of the nodes that ``enable`` switched off."""
        return self._live.off

    # its end, and what it is

    def destroy(self) -> None:
        """Release the graph; pending launches complete, and their resources live until then.  Destroying twice does nothing.

        Raises:
            DeviceError: called from a host function.
        """
        refuse_in_host_function()
        with self._lock:
            self._live.release()
            self._finalizer.detach()

    @property
    def destroyed(self) -> bool:
        """Whether the graph was destroyed."""
        return self._owner.engine is None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The current nodes, in the order in which they were made."""
        with self._lock:
            self._live.update_nodes()
            return tuple(self._owner.nodes.values())

    @property
    def fusion(self) -> Fusion:
        """Whether all nodes are launched as one kernel, and why or why not."""
        return self._live.choice.fusion

    def inspect(self) -> GraphInfo:
        """Like ``Graph.inspect``, for the current nodes, with ``fusion``."""
        return describe(self.nodes, self.fusion)

    @public
    def save(
        self,
        path: str | os.PathLike[str],
        *,
        targets: Iterable[str] | str | None = None,
        bind: Mapping[str, Any] | None = None,
        constants: Iterable[Any] = (),
        internal: Iterable[Any] = (),
        fuse: Fuse = "auto",
    ) -> None:
        """Like ``Graph.save``, with the same ``path``, ``targets``, ``bind``, ``constants``, ``internal`` and ``fuse``, for the
        current nodes.

        Those that are switched off do nothing.

        Raises:
            GraphError, ArgumentError, CompilationError, UnknownTargetError: as ``Graph.save``.
        """
        self._live.check()
        nodes = [switched_off(node) if node.name in self.disabled else node for node in self.nodes]
        saving = import_late("quadpy.graph.saved.saving")
        saving.save_graph(self.device, nodes, self._live.owned, path, targets, bind or {}, constants, internal, fuse)

    def stats(self) -> GraphStats:
        """How often it was launched, changed and rebuilt."""
        with self._lock:
            return GraphStats(self._launches, self._live.updates, self._live.rebuilds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def _repr_svg_(self) -> str | None:
        """For notebooks: the nodes and their order; None if there are too many for a picture."""
        return import_late("quadpy.graph.model.drawing").svg_of(self.inspect())  # type: ignore[no-any-return]  # a text

    def __repr__(self) -> str:
        what = ", ".join([counted(len(self._owner.nodes), "node"), counted(self._launches, "launch")])
        what = "destroyed" if self.destroyed else what
        return f"<GraphExec of {what} on {self.device}>"
