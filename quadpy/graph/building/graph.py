"""Graphs: nodes with dependencies, from which launchable graphs are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quadpy.core.completion import shows
from quadpy.core.importing import import_late
from quadpy.core.messages import counted
from quadpy.core.public import call_site, public
from quadpy.errors import CaptureError, GraphError
from quadpy.graph.building.builder import GraphBuilder
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.inspect import GraphInfo, describe, dot_of, table_of
from quadpy.graph.model.nodes import AllocNode, FreeNode
from quadpy.graph.model.observed import has_given_edges, observed
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.fusion import Fuse, require_fuse

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from quadpy.graph.model.order import MemoryRange


@shows(
    "add_alloc", "add_child", "add_empty", "add_event_record", "add_event_wait", "add_free", "add_host",
    "add_kernel", "add_memcpy", "add_memset", "add_semaphore_signal", "add_semaphore_wait", "clone", "device",
    "inspect", "instantiate", "save", "to_dot",
)  # fmt: skip
class Graph(GraphBuilder):
    """Work for one device as nodes with dependencies; ``instantiate`` makes what can be launched.  Safe from any thread.

    Every ``add_…`` returns its node.  With ``deps=None`` the node comes after the earlier nodes that touch the same
    memory, if one of the two writes it.  A node that may touch anything (an event, a semaphore, an empty node, a host
    function that does not say what it reads and writes) comes after all earlier nodes and before all later ones.
    ``name`` is unique in the graph; by default it is that of what is called, with a number if there are several.
    A graph keeps alive what its nodes touch.  A copy of a graph is a ``clone``; ``pickle`` takes the calls that made its
    nodes to another process, with their arguments.
    """

    @public
    def __init__(self, device: Device | None = None) -> None:
        super().__init__(device)
        self._instantiated = False
        self.owned: list[MemoryRange] = []  # memory that a capture allocated for the graph
        self._withheld = self._hint = ""  # why nothing can be made of the graph, and what to do; empty if it can

    def instantiate(
        self,
        *,
        auto_free_on_launch: bool = False,
        use_node_priority: bool = False,
        upload: bool = False,
        fuse: Fuse = "auto",
    ) -> GraphExec:
        """Make a launchable graph of the current nodes.

        Args:
            auto_free_on_launch: a launch frees the memory that the one before left allocated.
            use_node_priority: kernels run by their ``priority``.
            upload: bring what the first launch needs to the device now, on the calling thread's stream.
            fuse: whether quadpy's own kernels, copies and fills run as one launch whose blocks wait for each other:
                ``"auto"`` where that is possible and expected to be faster, ``True`` always, ``False`` never; the CPU
                runs nodes one after another.  ``GraphExec.fusion`` says what happened.

        Raises:
            ArgumentError: ``fuse`` is none of the three.
            GraphError: a graph with alloc nodes that was instantiated before; or ``fuse=True`` where a GPU cannot.
            CaptureError: the graph is being captured, or its capture was aborted.
            HazardError: two nodes touch the same memory, and their dependencies do not order them.
            DeviceError: the device was closed, or refuses the graph.
        """
        require_fuse(fuse)
        made = self.make_executable(auto_free=auto_free_on_launch, priorities=use_node_priority, fuse=fuse)
        if fuse is True and not made.fusion.fused and "host" not in self.device.driver.features:
            made.destroy()
            raise GraphError(
                f"the graph cannot be one launch: {made.fusion.reason}",
                hint='fuse="auto" uses one launch where that is possible',
            )
        if upload:
            made.upload()
        return made

    def make_executable(self, *, auto_free: bool = False, priorities: bool = False, fuse: Fuse) -> GraphExec:
        """Like ``instantiate``, but ``fuse=True`` fuses where that is possible."""
        refuse_in_host_function()
        with self._lock:
            self.device.life.check()
            self.require_complete()
            if self._instantiated and any(isinstance(node, AllocNode) for node in self):
                raise GraphError(
                    "a graph that allocates memory can be instantiated only once: its memory has one address",
                    hint="build another graph",
                )
            nodes = dict(self._nodes)
            if has_given_edges(nodes):  # without a checker, only what would go wrong is refused
                found = observed(nodes.values(), built=CAPTURES.checker is None)
                import_late("quadpy.hazards.edges").check_edges(found)
            made = GraphExec(
                self, self._allocations.built, auto_free=auto_free, priorities=priorities, fuse=fuse
            )  # fmt: skip
            self._instantiated = True
        return made

    def clone(self) -> Graph:
        """A graph with the same nodes, to which others can be added.

        Raises:
            GraphError: the graph allocates or frees memory.
            CaptureError: the graph is being captured, or its capture was aborted.
        """
        other = Graph(self.device)
        with self._lock:
            self.require_complete()
            if self.has_memory:
                raise GraphError("a graph that allocates or frees memory cannot be cloned")
            for node in self:
                other.register(node)
        return other

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Graph:
        return self.clone()

    @public
    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """Pickles the calls that made the nodes, with their arguments: kernels by name, arrays with their values."""
        self.require_complete()
        recipes = import_late("quadpy.graph.building.recipes")
        return recipes.restored, (recipes.recipes_of(self),)

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
        """Write the graph to a file, from which ``qp.graph.load`` and programs in C run it without the compiler.

        Numbers among the arguments of kernels stay as they are.  An array of ``bind`` may have another size in a run if
        kernels take it whole, and find its size in its ``shape``.  The fields that kernels name, and memory that the graph
        allocates, belong to the graph; fields begin with the values that they have now.

        Args:
            path: the file, by convention with the ending ``.qpg``.
            targets: what it runs on, such as ``["gfx942", "sm_90", "x86-64", "arm64"]``, by default the graph's device;
                none of these must be here.
            bind: the arrays that each run takes from its caller, by name.
            constants: arrays that are only read, and whose values are stored.
            internal: arrays that belong to the graph from now on; each loaded graph begins with the values that they have now.
            fuse: whether a run on a GPU is one launch: ``"auto"`` where that is possible and expected to be faster, by the rule of
                ``instantiate``; ``True`` wherever the device can; ``False`` never.

        Raises:
            GraphError: a node cannot be saved, or uses memory that is none of these; with its name and line.  Or ``fuse=True``
                where it cannot be one launch on a target.
            ArgumentError: an array cannot be bound.
            CompilationError: a kernel is not possible for a target, with its line.
            UnknownTargetError: there is no such target.
        """
        self.require_complete()
        saving = import_late("quadpy.graph.saved.saving")
        saving.save_graph(self.device, list(self), self.owned, path, targets, bind or {}, constants, internal, fuse)

    @property
    def has_memory(self) -> bool:
        """Whether the graph allocates or frees memory."""
        return any(isinstance(node, (AllocNode, FreeNode)) for node in self)

    def withhold(self, reason: str) -> None:
        """Let nothing be made of the graph because of ``reason``, until that is empty again; for captures."""
        self._withheld, self._hint = reason, "use the graph after the capture has ended"

    def drop(self, reason: str) -> None:
        """Remove all nodes because of ``reason``, for captures that fail."""
        with self._lock:
            self._withheld, self._hint = reason, "capture the calls again"
            self._forget()

    def require_complete(self) -> None:
        if self._withheld:
            raise CaptureError(self._withheld, call_site(), hint=self._hint)
        if self._allocations.torn:
            raise GraphError("an interrupt left a node of the graph incomplete", hint="build a new graph")

    def inspect(self) -> GraphInfo:
        """The graph as plain data: name, kind, dependencies, memory and source line of each node."""
        return describe(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        return dot_of(describe(self))

    def __str__(self) -> str:
        return table_of(describe(self))

    def _repr_svg_(self) -> str | None:
        """For notebooks: the nodes and their order; None if there are too many for a picture."""
        return import_late("quadpy.graph.model.drawing").svg_of(self.inspect())  # type: ignore[no-any-return]  # a text

    def __repr__(self) -> str:
        return f"<Graph of {counted(len(self._nodes), 'node')} on {self.device}>"
