"""Graphs as users build them.  Owns: Graph.  Imports: errors, nodes and their makers, order, the build, execution."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from quadpy.copying import OneProcess
from quadpy.errors import ArgumentError, CaptureError, DeviceError, GraphError, QuadpyError
from quadpy.graph.engines.deferred_release import GraphHoldings
from quadpy.graph.engines.driver import Built
from quadpy.graph.execution import GraphExec
from quadpy.graph.model import makers as make
from quadpy.graph.model.inspect import GraphInfo, describe, dot_of, table_of
from quadpy.graph.model.nodes import Allocation, AllocNode, EmptyNode, FreeNode, Node
from quadpy.graph.model.order import MemoryRange, Order
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.graph_driver import AllocWork
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.launch.fusion import Fuse, require_fuse
from quadpy.runtime.memory.host_memory import HOST

__all__ = ["Dependencies", "Graph"]

N = TypeVar("N", bound=Node)

Dependencies = Iterable[Node | str] | None
"""Nodes of the graph, or their names; None derives them from what the nodes read and write, ``[]`` are none."""


class Graph(OneProcess):
    """Work for one device, as nodes with dependencies; ``instantiate`` makes what can be launched.  Safe from any thread.

    Every ``add_…`` answers its node.  With ``deps=None`` it comes after those nodes added before that touch the same
    memory, one of the two writing; a node that may touch anything (a host function that does not say what it reads
    and writes, events, semaphores, an empty one) comes after all of them, and before all that are added later.
    A graph keeps alive what its nodes touch.  A copy is a ``clone``.
    """

    error: ClassVar[type[GraphError]] = GraphError

    def __init__(self, device: Device | None = None) -> None:
        refuse_in_host_function()
        self.device = device_or_current(device)
        self.device.life.check()
        self._nodes: dict[str, Node] = {}
        self._numbers: dict[str, int] = {}
        self._order = Order()
        self._reordering = False  # whether the two before are being changed; True behind an interrupt
        self._gone: list[tuple[MemoryRange, str]] = []  # memory that a node has freed
        self._built: Built | None = None  # of a graph with memory of its own, whose address the driver decides
        self._instantiated = False
        self._torn = False  # whether that was left without a part of a node
        self._withheld = ""  # why nothing can be made of it yet, or at all
        self._lock = new_lock()

    # nodes

    def add_kernel(
        self,
        kernel: Any,
        *args: Any,
        deps: Dependencies = None,
        name: str | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Node:
        """A call ``kernel(*args)``; of several tasks, those run in order, or forked where the kernel forks.

        ``priority`` counts where the graph is instantiated with ``use_node_priority``; lower goes first.

        Raises:
            ArgumentError: no kernel, arguments that it does not take, or arrays of the host in a graph of a GPU.
            DeviceError: an array of another device.
        """
        node = make.kernel_node(self.device, kernel, *args, priority=priority, **kwargs)
        called = getattr(kernel, "__name__", None) or (node.launches[0].name if node.launches else "kernel")
        return self._place(node, deps, name, called)

    def add_memcpy(
        self, target: Any, source: Any, *, nbytes: int | None = None, deps: Dependencies = None, name: str | None = None
    ) -> Node:
        """A copy of all bytes of ``source`` into ``target``: arrays, alloc nodes, or addresses with ``nbytes``.

        An array of the host is read, or written, each time that the graph runs.
        """
        return self._place(make.memcpy_node(self.device, target, source, nbytes), deps, name, "memcpy")

    def add_memset(
        self,
        target: Any,
        value: Any = 0,
        *,
        element: int | None = None,
        nbytes: int | None = None,
        rows: int = 1,
        pitch: int = 0,
        deps: Dependencies = None,
        name: str | None = None,
    ) -> Node:
        """``value`` into every element of ``target``.

        With ``element``, ``value`` are the bits of an element of 1, 2 or 4 bytes; with ``nbytes``, as many bytes are
        filled, in each of ``rows`` that begin ``pitch`` bytes apart; each row is a fill of its own.
        """
        node = make.memset_node(
            self.device, target, value, element=element, nbytes=nbytes, rows=rows, pitch=pitch
        )  # fmt: skip
        return self._place(node, deps, name, "memset")

    def add_host(
        self,
        function: Callable[..., object],
        *args: Any,
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
        deps: Dependencies = None,
        name: str | None = None,
    ) -> Node:
        """A call ``function(*args)`` on the host, which work behind it waits for; it may not call quadpy.

        What it raises is raised by the next synchronize of the stream, of the graph or of the device; work behind it
        runs all the same.  ``reads`` and ``writes`` are the memory that it touches.
        """
        node = make.host_node(self.device, function, *args, reads=reads, writes=writes)
        return self._place(node, deps, name, getattr(function, "__name__", "host"))

    def add_empty(self, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """A node that does nothing, and joins what it comes after."""
        return self._place(EmptyNode(barrier=True), deps, name, "empty")

    def add_child(self, graph: Graph, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """All nodes of ``graph``, as it is now.

        Raises:
            GraphError: the graph itself, or one that allocates memory.
        """
        if graph is self:
            raise GraphError("a graph cannot be a node of itself", hint="graph.clone() can")
        return self._place(make.child_node(self.device, graph), deps, name, "child")

    def add_event_record(self, event: Any, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """The record of ``event``: work outside of the graph can wait for this place."""
        return self._place(make.event_record_node(self.device, event), deps, name, "event_record")

    def add_event_wait(self, event: Any, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """A wait for the last record of ``event`` before a launch: the nodes behind it come after that work."""
        return self._place(make.event_wait_node(self.device, event), deps, name, "event_wait")

    def add_semaphore_signal(self, *semaphores: Any, deps: Dependencies = None, name: str | None = None) -> Node:
        """Give semaphores of another library their values: ``(semaphore, value)`` each."""
        return self._place(make.semaphore_signal_node(self.device, *semaphores), deps, name, "semaphore_signal")

    def add_semaphore_wait(self, *semaphores: Any, deps: Dependencies = None, name: str | None = None) -> Node:
        """Wait until semaphores of another library have their values: ``(semaphore, value)`` each."""
        return self._place(make.semaphore_wait_node(self.device, *semaphores), deps, name, "semaphore_wait")

    def add_alloc(
        self, nbytes: Any, *, peers: Iterable[Device] = (), deps: Dependencies = None, name: str | None = None
    ) -> AllocNode:
        """``nbytes`` bytes of memory from this node on; the node's ``pointer`` is the same in every launch.

        Memory that no node frees stays after a launch, and the next one is refused until another graph frees it, or
        with ``auto_free_on_launch``.  Such a graph is instantiated once, and is no child.  The devices ``peers`` may
        read and write it, too.

        Raises:
            OutOfDeviceMemory: the memory is not there.
            DeviceError: a peer of another kind.
        """
        peers = make.listed(peers, "peers", "devices", "pass a list")
        others = tuple(dict.fromkeys(self._peer(peer) for peer in peers if peer is not self.device))
        if not isinstance(nbytes, int) or nbytes <= 0:
            raise ArgumentError(f"{nbytes!r} bytes cannot be allocated")
        with self._lock:
            self.device.life.check()
            label, (after, derived) = self._label(name, "alloc"), self._after(deps, (), (), barrier=False)
            keep: tuple[object, ...] = ()
            if "host" in self.device.driver.features:
                buffer = HOST.allocate(nbytes)
                pointer, keep = buffer.pointer, (buffer,)
            else:
                with self._driver_has_it():
                    pointer = self._build().add_alloc(label, after, AllocWork(nbytes, others))
            whole = (pointer, nbytes)
            self._gone = [(old, by) for old, by in self._gone if not _overlap(old, whole)]
            node = AllocNode(
                name=label, after=after, derived=derived, writes=(whole,), span=call_site(), keep=keep,
                allocation=Allocation(pointer, nbytes, weakref.ref(self)),
            )  # fmt: skip
            with self._driver_has_it():
                return self._register(node)

    def _peer(self, peer: Any) -> int:
        if not isinstance(peer, Device):
            raise ArgumentError(f"{peer!r} is no device", hint="the device of an array or a stream is one")
        if peer.driver.name != self.device.driver.name:
            raise DeviceError(f"{peer} cannot reach memory of {self.device}", hint="peers are devices of one vendor")
        return peer.driver.ordinal

    def add_free(self, memory: AllocNode, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """The end of an alloc node's memory: of this graph, or of one that is launched before and left it."""
        if not isinstance(memory, AllocNode):
            raise ArgumentError(f"{memory!r} is no alloc node", hint="other memory is freed when its array is dropped")
        allocation, owner = memory.allocation, memory.allocation.graph()
        if owner is None or owner.device is not self.device:
            raise GraphError(f"the graph of {memory.name!r} is gone, or of another device")
        whole = (allocation.pointer, allocation.nbytes)
        with self._lock:
            keep = memory.keep if owner is self else (owner, *memory.keep)
            node = FreeNode(allocation=allocation, writes=(whole,), keep=keep)
            placed = self._place(node, deps, name, "free")
            self._gone.append((whole, placed.name))
            return placed

    # what becomes of it

    def instantiate(
        self,
        *,
        auto_free_on_launch: bool = False,
        use_node_priority: bool = False,
        upload: bool = False,
        fuse: Fuse = "auto",
    ) -> GraphExec:
        """What can be launched, of the nodes that there are now.

        Args:
            auto_free_on_launch: memory that a launch left is freed by the next one.
            use_node_priority: kernels run by their ``priority``.
            upload: bring what the first launch needs to the device now, on the calling thread's stream.
            fuse: whether all nodes, where they are quadpy's own kernels, copies and fills, run as one launch whose
                blocks wait for each other: ``"auto"`` where that is possible and expected to be quicker, ``True`` or
                not at all; the CPU runs nodes one after another.  ``GraphExec.fusion`` tells what became of it.

        Raises:
            ArgumentError: ``fuse`` is none of the three.
            GraphError: a graph with alloc nodes, which was instantiated before; or ``fuse=True`` where a GPU cannot.
            CaptureError: it is being captured, or its capture was aborted.
            DeviceError: the device was closed, or refuses the graph.
        """
        require_fuse(fuse)
        made = self._made(auto_free=auto_free_on_launch, priorities=use_node_priority, fuse=fuse)
        if fuse is True and not made.fusion.fused and "host" not in self.device.driver.features:
            made.destroy()
            raise GraphError(
                f"the graph cannot be one launch: {made.fusion.reason}",
                hint='fuse="auto" takes one launch where that is possible',
            )
        if upload:
            made.upload()
        return made

    def _made(self, *, auto_free: bool, priorities: bool, fuse: Fuse) -> GraphExec:
        """As ``instantiate``, where ``True`` is wherever it is possible."""
        refuse_in_host_function()
        with self._lock:
            self.device.life.check()
            self._require_whole()
            if self._instantiated and any(isinstance(node, AllocNode) for node in self):
                raise GraphError(
                    "a graph that allocates memory can be instantiated once: its memory is at one address",
                    hint="build another graph",
                )
            made = GraphExec(self, auto_free=auto_free, priorities=priorities, fuse=fuse)
            self._instantiated = True
        return made

    def clone(self) -> Graph:
        """A graph with the same nodes, to which others can be added.

        Raises:
            GraphError: it allocates or frees memory.
            CaptureError: it is being captured, or its capture was aborted.
        """
        self._require_whole()
        if self.has_memory:
            raise GraphError("a graph that allocates or frees memory cannot be cloned")
        other = Graph(self.device)
        with self._lock:
            for node in self._nodes.values():
                other._register(node)
        return other

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Graph:
        return self.clone()

    @property
    def has_memory(self) -> bool:
        """Whether it allocates or frees memory."""
        return any(isinstance(node, (AllocNode, FreeNode)) for node in self._nodes.values())

    def withhold(self, reason: str) -> None:
        """Make nothing of the graph, for ``reason``, until that is empty again; for those who capture it."""
        self._withheld = reason

    def drop(self, reason: str) -> None:
        """Forget all nodes, and what they keep alive; ``reason`` says why there is nothing."""
        with self._lock:
            self._withheld = reason
            self._nodes, self._numbers, self._order = {}, {}, Order()

    def _require_whole(self) -> None:
        if self._withheld:
            raise CaptureError(self._withheld, call_site(), hint="make it of the graph of a block that has ended")
        if self._torn:
            raise GraphError("an interrupt left the graph without a part of a node", hint="build the graph anew")

    # looking at it

    def inspect(self) -> GraphInfo:
        """The graph as plain data: each node's name, kind, dependencies, memory and line."""
        return describe(self)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        return dot_of(describe(self))

    def __str__(self) -> str:
        return table_of(describe(self))

    def __repr__(self) -> str:
        return f"<Graph of {len(self._nodes)} nodes on {self.device}>"

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def __contains__(self, node: object) -> bool:
        name = node.name if isinstance(node, Node) else node
        found = self._nodes.get(name) if isinstance(name, str) else None
        return found is not None and (found is node or found.name == node)

    def __getitem__(self, name: str) -> Node:
        if not isinstance(name, str):
            raise ArgumentError(f"{name!r} is no name of a node", hint="pass node.name")
        if (node := self._nodes.get(name)) is None:
            there = ", ".join(list(self._nodes)[:8]) or "none"
            raise GraphError(f"the graph has no node {name!r}", hint=f"its nodes: {there}")
        return node

    # how

    def _place(self, node: Node, deps: Dependencies, name: str | None, kind: str) -> Node:
        """``node`` with its name and its place in the order."""
        with self._lock:
            self.device.life.check()
            label = self._label(name, kind)
            for part in (*node.reads, *node.writes):
                for gone, by in self._gone:
                    if _overlap(part, gone):
                        raise GraphError(f"{label!r} touches memory that {by!r} has freed", hint="add it before")
            after, derived = self._after(deps, node.reads, node.writes, barrier=node.barrier)
            placed = replace(node, name=label, after=after, derived=derived, span=call_site())
            if self._built is None:
                return self._register(placed)
            with self._driver_has_it():
                self._built.add(placed)
                return self._register(placed)

    @contextmanager
    def _driver_has_it(self) -> Iterator[None]:
        """A node that the driver's graph gets inside; where that is interrupted, nobody knows what it has."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, QuadpyError):
                self._torn = True
            raise

    def _register(self, node: N) -> N:
        """Take up a node that has all it needs."""
        order = self._settled()
        self._reordering = True
        self._nodes[node.name] = node  # from this step on it is there
        self._number(node, order)
        self._reordering = False
        return node

    def _number(self, node: Node, order: Order) -> None:
        behind = [self._numbers[name] for name in node.after]
        self._numbers[node.name] = order.add(behind, node.reads, node.writes, barrier=node.barrier)

    def _settled(self) -> Order:
        """What comes before what; made anew from the nodes where an interrupt left it half changed."""
        if self._reordering:
            self._numbers, self._order = {}, Order()
            for node in self._nodes.values():
                self._number(node, self._order)
            self._reordering = False
        return self._order

    def derive(
        self, reads: Iterable[MemoryRange], writes: Iterable[MemoryRange], *, barrier: bool = False
    ) -> tuple[str, ...]:
        """The names of what a node comes after that reads and writes so; nothing that follows from the rest."""
        with self._lock:
            order = self._settled()
            self._reordering = True  # it remembers where ranges begin
            found = order.derive(reads, writes, barrier=barrier)
            self._reordering = False
            names = list(self._nodes)
            return tuple(names[number] for number in found)

    def without_implied(self, names: Iterable[str]) -> tuple[str, ...]:
        """``names`` of nodes without those that others of them come after."""
        with self._lock:
            given, order = list(dict.fromkeys(names)), self._settled()
            if len(given) < 2:
                return tuple(given)
            numbers = [self._numbers[name] for name in given]
            return tuple(
                name
                for name, number in zip(given, numbers, strict=True)
                if not any(order.follows(other, number) for other in numbers if other != number)
            )

    def _label(self, name: Any, kind: str) -> str:
        if name is not None:
            if not isinstance(name, str) or not name:
                raise ArgumentError(f"{name!r} is no name of a node")
            if name in self._nodes:
                raise GraphError(f"the graph has a node {name!r} already", hint="names are unique within a graph")
            return name
        label, number = kind, 0
        while label in self._nodes:
            number += 1
            label = f"{kind}.{number}"
        return label

    def _after(
        self, deps: Dependencies, reads: Iterable[MemoryRange], writes: Iterable[MemoryRange], *, barrier: bool
    ) -> tuple[tuple[str, ...], bool]:
        """The names of what a node comes after, and whether they were derived."""
        if deps is None:
            return self.derive(reads, writes, barrier=barrier), True
        given: dict[str, None] = {}
        for one in make.listed(deps, "deps", "nodes", "pass a list of nodes or of their names"):
            name: object = one.name if isinstance(one, Node) else one
            found = self._nodes.get(name) if isinstance(name, str) else None
            if found is None or (isinstance(one, Node) and found is not one):
                raise GraphError(f"{one!r} is no node of this graph", hint="dependencies are nodes added to it before")
            given[found.name] = None
        return tuple(given), False

    def _build(self) -> Built:
        """The driver's graph, which from now on gets each node as it is added."""
        if self._built is None:
            runs = Runs()
            self._built = Built(self.device, self._nodes.values(), self.device.failures, runs, grows=True)
            holdings = GraphHoldings(self.device, self._built, runs)
            self.device.deferred.register(holdings)
            self.device.reaper.adopt(self, GraphHoldings.release, holdings)
        return self._built


def _overlap(left: MemoryRange, right: MemoryRange) -> bool:
    return left[0] < right[0] + right[1] and right[0] < left[0] + left[1]
