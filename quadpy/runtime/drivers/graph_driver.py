"""The GraphDriver protocol: what quadpy needs from a vendor's graphs.

One record says what a node does; it serves adding the node, changing it in an executable graph, and simulating it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NewType, Protocol, TypeAlias

from quadpy.runtime.drivers.driver import Address, EventHandle, FunctionHandle, StreamHandle

GraphHandle = NewType("GraphHandle", int)
NodeHandle = NewType("NodeHandle", int)
ExecHandle = NewType("ExecHandle", int)
SemaphoreHandle = NewType("SemaphoreHandle", int)
ConditionHandle = NewType("ConditionHandle", int)
"""Decides whether a loop in a graph goes on; only kernels can set it."""

CopyKind: TypeAlias = Literal["in", "out", "within"]
"""Pinned host memory to the device, the device to pinned host memory, the device to itself."""

GraphFeature: TypeAlias = Literal["memory", "semaphores", "priorities", "switches", "loops", "parts"]
"""``memory``      alloc and free nodes
``semaphores``  semaphores of other libraries can be imported
``priorities``  kernel nodes have a priority
``loops``       a graph may repeat a part of itself: ``condition_create``, ``add_loop``
``parts``       kernel nodes run on their ``groups`` of compute units, or on all, whatever the stream of the launch; without
                it, they run on those of the stream
"""


Groups: TypeAlias = "tuple[int, ...] | None"
"""Numbers of groups of compute units: see ``Driver.unit_groups``; None for all."""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """One launch of a kernel; ``arguments`` is its whole argument block, which the driver copies.

    ``groups`` are those of the compute units on which it runs.
    """

    function: FunctionHandle
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: bytes = field(repr=False)
    priority: int | None = None
    groups: Groups = None


@dataclass(frozen=True, slots=True)
class CopyWork:
    """``nbytes`` bytes, at least 1, from ``source`` to ``target``; both must stay where they are."""

    target: Address
    source: Address
    nbytes: int
    kind: CopyKind


@dataclass(frozen=True, slots=True)
class FillWork:
    """``width`` elements of ``element`` bytes (1, 2 or 4) become ``value``.

    There are no rows: HIP 7.2 fills too much where a fill of several rows has elements of more than a byte.
    """

    target: Address
    value: int
    element: int
    width: int


@dataclass(frozen=True, slots=True)
class HostWork:
    """A call of the host function that is registered under ``ticket``."""

    ticket: int


@dataclass(frozen=True, slots=True)
class EmptyWork:
    """No work: it only orders the nodes before and after it."""


@dataclass(frozen=True, slots=True)
class ChildWork:
    """A copy of all nodes of another graph."""

    graph: GraphHandle


@dataclass(frozen=True, slots=True)
class EventRecordWork:
    """The record of an event that exists outside the graph."""

    event: EventHandle


@dataclass(frozen=True, slots=True)
class EventWaitWork:
    """Later nodes wait for an event outside the graph: for its last record at the time of the launch."""

    event: EventHandle


@dataclass(frozen=True, slots=True)
class SemaphoreSignalWork:
    """Each semaphore gets its value; at least one."""

    semaphores: tuple[tuple[SemaphoreHandle, int], ...]


@dataclass(frozen=True, slots=True)
class SemaphoreWaitWork:
    """Later nodes wait until each semaphore has its value; at least one."""

    semaphores: tuple[tuple[SemaphoreHandle, int], ...]


@dataclass(frozen=True, slots=True)
class AllocWork:
    """Allocates memory, whose address ``add_alloc`` returns; the devices ``peers``, by ordinal, can reach it."""

    nbytes: int
    peers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FreeWork:
    """Frees the memory of an alloc node of this graph, or of one that was launched before."""

    pointer: Address


Work: TypeAlias = (
    KernelWork
    | CopyWork
    | FillWork
    | HostWork
    | EmptyWork
    | ChildWork
    | EventRecordWork
    | EventWaitWork
    | SemaphoreSignalWork
    | SemaphoreWaitWork
    | AllocWork
    | FreeWork
)


@dataclass(frozen=True, slots=True)
class GraphMemory:
    """The bytes that alloc nodes of all graphs on a device hold: now, and at their peak."""

    used: int
    used_peak: int
    reserved: int
    reserved_peak: int


class GraphDriver(Protocol):
    """The graphs of one device.  Safe from any thread, but one thread at a time for one graph or executable graph.

    Like the Driver, it checks no handle and raises only DriverError and OutOfDeviceMemory.  Node handles live as long
    as their graph.  The caller keeps what a node points to alive until no launch that runs the node is pending.
    """

    features: frozenset[GraphFeature]

    def graph_create(self) -> GraphHandle: ...

    def graph_destroy(self, graph: GraphHandle) -> None:
        """Destroy a graph; executables made from it live on, but their nodes can no longer be changed."""

    def add(self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: Work) -> NodeHandle:
        """Add a node after ``dependencies``, no two of which are the same; for AllocWork see ``add_alloc``."""

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        """A node, and the address of its memory, the same in every launch."""

    def condition_create(self, graph: GraphHandle, groups: Groups = None) -> ConditionHandle:
        """The condition of one loop of ``graph``; it is true at the start of each launch."""

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle, groups: Groups = None
    ) -> tuple[NodeHandle, GraphHandle]:
        """Add a node that runs another graph while ``condition`` is true; its nodes are added to that graph next.

        Those have the same ``groups`` as the loop and its condition.
        """

    def nodes(self, graph: GraphHandle) -> list[NodeHandle]:
        """Every node, read back from the driver."""

    def edges(self, graph: GraphHandle) -> list[tuple[NodeHandle, NodeHandle]]:
        """Every dependency, read back from the driver: (before, after)."""

    def instantiate(self, graph: GraphHandle, *, auto_free: bool = False, priorities: bool = False) -> ExecHandle:
        """An executable graph.

        With ``auto_free``, each launch frees the memory that the last one left; ``priorities`` honours those of kernel
        nodes.  A graph with alloc nodes is instantiated once.
        """

    def exec_destroy(self, exec_: ExecHandle) -> None:
        """Destroy it; pending launches complete."""

    def upload(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        """Upload the data that launches need, before the first one."""

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        """Put one run of all nodes on ``stream``."""

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        """Let later launches do ``work`` in place of ``node`` of the source graph; False where the driver refuses."""

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        """Set whether later launches run a kernel, copy or fill node, or only keep its place in the order."""

    def memory(self) -> GraphMemory:
        """The memory that alloc nodes hold on this device."""

    def trim_memory(self) -> None:
        """Return unused memory to the system."""

    def semaphore_import(self, descriptor: int, kind: int) -> SemaphoreHandle:
        """A semaphore that another library exported as a file descriptor; its type in the vendor's numbers."""

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None: ...
