"""Memory that nodes of a graph allocate and free."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from quadpy.core.public import call_site
from quadpy.errors import ArgumentError, DeviceError, GraphError, QuadpyError
from quadpy.graph.engines.deferred_release import GraphOwner
from quadpy.graph.engines.driver import DriverGraph
from quadpy.graph.model.arguments import sequence_of
from quadpy.graph.model.extents import overlap
from quadpy.graph.model.nodes import Allocation, AllocNode, Node
from quadpy.graph.model.order import MemoryRange
from quadpy.graph.model.ordered_nodes import OrderedNodes
from quadpy.runtime.device.callbacks import Runs
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import AllocWork
from quadpy.runtime.memory.host_memory import HOST

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
