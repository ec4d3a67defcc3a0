"""Graphs as users build them: one method for each kind of node; and the memory that nodes allocate and free."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, DeviceError, GraphError, QuadpyError
from quadpy.graph.engines.deferred_release import GraphOwner
from quadpy.graph.engines.driver import DriverGraph
from quadpy.graph.model import makers as make
from quadpy.graph.model.arguments import count_of, sequence_of
from quadpy.graph.model.extents import overlap
from quadpy.graph.model.nodes import Allocation, AllocNode, EmptyNode, FreeNode, Node
from quadpy.graph.model.ordered_nodes import Dependencies, OrderedNodes
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.drivers.graph_driver import AllocWork
from quadpy.runtime.memory.host_memory import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from quadpy.graph.model.order import MemoryRange


class GraphBuilder(OrderedNodes):
    """The part of a ``Graph`` that adds nodes."""

    @public
    def __init__(self, device: Device | None = None) -> None:
        refuse_in_host_function()
        super().__init__(device_or_current(device))
        self.device.life.check()
        self._allocations = Allocations()

    def add_kernel(
        self,
        kernel: Any,
        *args: Any,
        deps: Dependencies = None,
        name: str | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Node:
        """Add the call ``kernel(*args, **kwargs)``; its tasks run in order, or in parallel where the kernel forks.

        ``priority`` counts if the graph is instantiated with ``use_node_priority``; lower goes first.

        Raises:
            ArgumentError: not a kernel, arguments that it does not take, or host arrays in a graph of a GPU.
            DeviceError: an array of another device.
        """
        node = make.kernel_node(self.device, kernel, *args, priority=priority, **kwargs)
        called = getattr(kernel, "__name__", None) or (node.launches[0].name if node.launches else "kernel")
        return self._add(node, deps, name, called)

    def add_memcpy(
        self, target: Any, source: Any, *, nbytes: int | None = None, deps: Dependencies = None, name: str | None = None
    ) -> Node:
        """Add a copy of all bytes of ``source`` to ``target``: arrays, alloc nodes, or addresses with ``nbytes``.

        A host array is read or written each time the graph runs.
        """
        return self._add(make.memcpy_node(self.device, target, source, nbytes), deps, name, "memcpy")

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
        """Add a fill that sets each element of ``target`` to ``value``.

        With ``element``, ``value`` is the bit pattern of an element of 1, 2 or 4 bytes.  With ``nbytes``, only that many
        bytes are filled, in each of ``rows`` rows that begin ``pitch`` bytes apart.
        """
        node = make.memset_node(
            self.device, target, value, element=element, nbytes=nbytes, rows=rows, pitch=pitch
        )  # fmt: skip
        return self._add(node, deps, name, "memset")

    def add_host(
        self,
        function: Callable[..., object],
        *args: Any,
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
        deps: Dependencies = None,
        name: str | None = None,
    ) -> Node:
        """Add the call ``function(*args)`` on the host.  Dependent nodes wait for it; it must not call quadpy.

        An exception is raised by the next synchronize of the stream, the graph or the device; dependent nodes run
        anyway.  ``reads`` and ``writes`` list the memory that the function touches.
        """
        node = make.host_node(self.device, function, *args, reads=reads, writes=writes)
        return self._add(node, deps, name, getattr(function, "__name__", "host"))

    def add_empty(self, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """Add a node that does nothing but wait for its dependencies."""
        return self._add(EmptyNode(barrier=True), deps, name, "empty")

    def add_child(self, graph: OrderedNodes, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """Add the nodes that ``graph`` has now as one node.

        Raises:
            GraphError: it is this graph, or it allocates or frees memory.
        """
        if graph is self:
            raise GraphError("a graph cannot be a node of itself", hint="add graph.clone()")
        return self._add(make.child_node(self.device, graph), deps, name, "child")

    def add_event_record(self, event: Any, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """Add a record of ``event``, so that work outside the graph can wait for this point."""
        return self._add(make.event_record_node(self.device, event), deps, name, "event_record")

    def add_event_wait(self, event: Any, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """Add a wait for the last record of ``event`` before a launch; dependent nodes come after that work."""
        return self._add(make.event_wait_node(self.device, event), deps, name, "event_wait")

    def add_semaphore_signal(self, *semaphores: Any, deps: Dependencies = None, name: str | None = None) -> Node:
        """Add a node that sets ``semaphores`` of another library: pass a pair ``(semaphore, value)`` for each."""
        return self._add(make.semaphore_signal_node(self.device, *semaphores), deps, name, "semaphore_signal")

    def add_semaphore_wait(self, *semaphores: Any, deps: Dependencies = None, name: str | None = None) -> Node:
        """Add a node that waits for ``semaphores`` of another library: pass a pair ``(semaphore, value)`` for each."""
        return self._add(make.semaphore_wait_node(self.device, *semaphores), deps, name, "semaphore_wait")

    def add_alloc(
        self, nbytes: Any, *, peers: Iterable[Device] = (), deps: Dependencies = None, name: str | None = None
    ) -> AllocNode:
        """Allocate ``nbytes`` bytes from this node on; the node's ``pointer`` is the same in every launch.

        Memory that no node frees stays allocated after a launch.  The next launch is then refused, unless another graph
        frees the memory first or the graph was instantiated with ``auto_free_on_launch``.  A graph with alloc nodes can
        be instantiated once and cannot be a child.  The devices ``peers`` may access the memory too.

        Raises:
            OutOfDeviceMemory: the memory is not available.
            DeviceError: a peer of another vendor.
        """
        others = peers_of(self.device, peers)
        nbytes = count_of(nbytes, "nbytes", least=1)
        self.require_complete()
        with self._lock:
            self.device.life.check()
            label, (after, derived) = self._unused_name(name, "alloc"), self._resolve(deps, (), (), barrier=False)
            return self._allocations.allocate(self, label, after, derived, nbytes, others)

    def add_free(self, memory: AllocNode, *, deps: Dependencies = None, name: str | None = None) -> Node:
        """Free ``memory``: an alloc node of this graph, or of one that is launched before and leaves it allocated."""
        if not isinstance(memory, AllocNode):
            raise ArgumentError(
                f"{memory!r} is not an alloc node", hint="other memory is freed when its array is dropped"
            )
        allocation, owner = memory.allocation, memory.allocation.graph()
        if owner is None or allocation.device is not self.device:
            raise GraphError(f"the graph of {memory.name!r} is gone or belongs to another device")
        whole = (allocation.pointer, allocation.nbytes)
        with self._lock:
            keep = memory.keep if owner is self else (owner, *memory.keep)
            node = self._add(FreeNode(allocation=allocation, writes=(whole,), keep=keep), deps, name, "free")
            self._allocations.free(whole, node.name)
            return node

    def _add(self, node: Node, deps: Dependencies, name: str | None, default_name: str) -> Node:
        """Like ``insert``, for users: a graph that is being captured takes captured calls only."""
        self.require_complete()
        return self.insert(node, deps, name, default_name)

    def insert(self, node: Node, deps: Dependencies, name: str | None, default_name: str) -> Node:
        """Add ``node`` with the name and dependencies given here; for the capture of calls."""
        with self._lock:
            self.device.life.check()
            label = self._unused_name(name, default_name)
            self._allocations.require_not_freed(label, (*node.reads, *node.writes))
            after, derived = self._resolve(deps, node.reads, node.writes, barrier=node.barrier)
            complete = replace(node, name=label, after=after, derived=derived, span=call_site())
            return self._allocations.add(complete, self.register)


N = TypeVar("N", bound=Node)


class Allocations:
    """The state that a graph keeps for its alloc and free nodes.

    On a GPU the driver decides an address when it adds the alloc node to its graph.  Therefore, with the first alloc node the
    driver's graph is built, and each later node is added to it at once.

    built  that driver graph; None before the first alloc node, and on the CPU
    torn   whether an interrupt left the driver's graph without a part of a node
    """

    def __init__(self) -> None:
        self.built: DriverGraph | None = None
        self.torn = False
        self._freed: list[tuple[MemoryRange, str]] = []  # with the name of the free node

    def allocate(
        self, graph: OrderedNodes, name: str, after: tuple[str, ...], derived: bool, nbytes: int, peers: tuple[int, ...]
    ) -> AllocNode:
        """Register an alloc node with ``graph``; OutOfDeviceMemory if the memory is not available."""
        keep: tuple[object, ...] = ()
        if "host" in graph.device.driver.features:
            buffer = HOST.allocate(nbytes)
            pointer, keep = buffer.pointer, (buffer,)
        else:
            with self._changing_driver_graph():
                pointer = self._build(graph).add_alloc(name, after, AllocWork(nbytes, peers))
        whole = (pointer, nbytes)
        self._freed = [(old, by) for old, by in self._freed if not overlap(old, whole)]
        node = AllocNode(
            name=name, after=after, derived=derived, writes=(whole,), span=call_site(), keep=keep,
            allocation=Allocation(graph.device, pointer, nbytes, weakref.ref(graph)),
        )  # fmt: skip
        with self._changing_driver_graph():
            return graph.register(node)

    def free(self, memory: MemoryRange, name: str) -> None:
        """Refuse later nodes that touch ``memory``, which the node ``name`` frees."""
        self._freed.append((memory, name))

    def require_not_freed(self, name: str, touched: Iterable[MemoryRange]) -> None:
        """GraphError if a node touches memory that an earlier one has freed."""
        for part in touched:
            for freed, by in self._freed:
                if overlap(part, freed):
                    raise GraphError(f"{name!r} touches memory that {by!r} has freed", hint="add it before")

    def add(self, node: N, register: Callable[[N], N]) -> N:
        """Register ``node``; before that, add it to the driver's graph if there is one."""
        if self.built is None:
            return register(node)
        with self._changing_driver_graph():
            self.built.add(node)
            return register(node)

    @contextmanager
    def _changing_driver_graph(self) -> Iterator[None]:
        """An interrupt inside the block leaves a driver graph whose content is unknown."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, QuadpyError):
                self.torn = True
            raise

    def _build(self, graph: OrderedNodes) -> DriverGraph:
        if self.built is None:
            device, runs = graph.device, Runs()
            self.built = DriverGraph(device, graph, device.failures, runs, grows=True)
            owner = GraphOwner(device, self.built, runs)
            device.deferred.register(owner)
            device.reaper.adopt(graph, GraphOwner.release, owner)
        return self.built


def peers_of(device: Device, peers: Iterable[Any]) -> tuple[int, ...]:
    """The driver's numbers of ``peers`` that are not ``device`` itself."""
    found: dict[int, None] = {}
    for peer in sequence_of(peers, "peers", "devices", "pass a list"):
        if peer is device:
            continue
        if not isinstance(peer, Device):
            raise ArgumentError(f"{peer!r} is not a device", hint="pass array.device or stream.device")
        if peer.driver.name != device.driver.name:
            raise DeviceError(f"{peer} cannot access memory of {device}", hint="peers are devices of one vendor")
        found[peer.driver.ordinal] = None
    return tuple(found)
