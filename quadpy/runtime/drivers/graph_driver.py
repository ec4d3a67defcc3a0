"""What quadpy asks of a vendor's graphs.

One record says what a node does; it serves adding the node, changing it in an executable graph, and simulating it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NewType, Protocol, TypeAlias

from quadpy.runtime.drivers.driver import Address, EventHandle, FunctionHandle, StreamHandle

__all__ = [
    "AllocWork",
    "ChildWork",
    "ConditionHandle",
    "CopyKind",
    "CopyWork",
    "EmptyWork",
    "EventRecordWork",
    "EventWaitWork",
    "ExecHandle",
    "FillWork",
    "FreeWork",
    "GraphDriver",
    "GraphHandle",
    "GraphMemory",
    "GraphFeature",
    "HostWork",
    "KernelWork",
    "NodeHandle",
    "SemaphoreHandle",
    "SemaphoreSignalWork",
    "SemaphoreWaitWork",
    "Work",
]

GraphHandle = NewType("GraphHandle", int)
NodeHandle = NewType("NodeHandle", int)
ExecHandle = NewType("ExecHandle", int)
SemaphoreHandle = NewType("SemaphoreHandle", int)
ConditionHandle = NewType("ConditionHandle", int)
"""What decides whether a loop in a graph goes on; kernels alone can set it."""

CopyKind: TypeAlias = Literal["in", "out", "within"]
"""Pinned host memory to the device, the device to pinned host memory, the device to itself."""

GraphFeature: TypeAlias = Literal["memory", "semaphores", "priorities", "loops"]
"""``memory``      alloc and free nodes
``semaphores``  semaphores of other libraries can be imported
``priorities``  kernel nodes have a priority
``loops``       a graph may repeat a part of itself: ``condition_create``, ``add_loop``
"""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """One launch of a kernel; ``arguments`` is its whole argument block, which the driver copies."""

    function: FunctionHandle
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: bytes = field(repr=False)
    priority: int | None = None


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
    """The function that ``callbacks`` knows by ``ticket``."""

    ticket: int


@dataclass(frozen=True, slots=True)
class EmptyWork:
    """Nothing: what comes after it comes after all that comes before it."""


@dataclass(frozen=True, slots=True)
class ChildWork:
    """A copy of all nodes of another graph."""

    graph: GraphHandle


@dataclass(frozen=True, slots=True)
class EventRecordWork:
    """The record of an event that exists outside of the graph."""

    event: EventHandle


@dataclass(frozen=True, slots=True)
class EventWaitWork:
    """What comes after it waits for the last record of an event of the outside, as it is when the graph is launched."""

    event: EventHandle


@dataclass(frozen=True, slots=True)
class SemaphoreSignalWork:
    """Each semaphore gets its value; at least one."""

    semaphores: tuple[tuple[SemaphoreHandle, int], ...]


@dataclass(frozen=True, slots=True)
class SemaphoreWaitWork:
    """What comes after it waits until each semaphore has its value; at least one."""

    semaphores: tuple[tuple[SemaphoreHandle, int], ...]


@dataclass(frozen=True, slots=True)
class AllocWork:
    """Memory that is there from this node on; ``add_alloc`` answers where.  The devices ``peers``, by ordinal, reach it."""

    nbytes: int
    peers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FreeWork:
    """The end of memory that an alloc node of this graph, or of one launched before, made."""

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
    """What the alloc nodes of all graphs on one device hold, in bytes: now, and at most so far."""

    used: int
    used_peak: int
    reserved: int
    reserved_peak: int


class GraphDriver(Protocol):
    """The graphs of one device.  Safe from any thread, but one thread at a time for one graph or executable graph.

    As the Driver it checks no handle and raises only DriverError and OutOfDeviceMemory.  Node handles live as long as
    their graph.  What a node points to is the caller's to keep alive, until no launch that runs it is pending.
    """

    features: frozenset[GraphFeature]

    def graph_create(self) -> GraphHandle: ...

    def graph_destroy(self, graph: GraphHandle) -> None:
        """Give a graph back; what was instantiated from it goes on, but its nodes can no longer be changed."""

    def add(self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: Work) -> NodeHandle:
        """A node after ``dependencies``, no two of which are the same; AllocWork is ``add_alloc``'s."""

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        """A node, and the address of its memory, the same in every launch."""

    def condition_create(self, graph: GraphHandle) -> ConditionHandle:
        """What one loop of ``graph`` asks; each launch of the graph begins with a yes."""

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle
    ) -> tuple[NodeHandle, GraphHandle]:
        """A node that runs another graph, to which nodes are then added, as long as ``condition`` says yes."""

    def nodes(self, graph: GraphHandle) -> list[NodeHandle]:
        """Every node, as the driver has them."""

    def edges(self, graph: GraphHandle) -> list[tuple[NodeHandle, NodeHandle]]:
        """Every dependency, as the driver has them: (before, after)."""

    def instantiate(self, graph: GraphHandle, *, auto_free: bool = False, priorities: bool = False) -> ExecHandle:
        """What can be launched.

        ``auto_free`` lets memory that the last launch left be freed by the next one; ``priorities`` honours those of
        kernel nodes.  A graph with alloc nodes is instantiated once.
        """

    def exec_destroy(self, exec_: ExecHandle) -> None:
        """Give it back; launches that are under way complete."""

    def upload(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        """Bring what a launch needs to the device before the first one."""

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        """Put one run of all nodes on ``stream``."""

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        """Let later launches do ``work`` in place of what ``node`` of the source graph says; False where they cannot."""

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        """Whether later launches run a kernel, copy or fill node; disabled, it only orders."""

    def memory(self) -> GraphMemory:
        """What alloc nodes hold on this device."""

    def trim_memory(self) -> None:
        """Return what no graph uses to the system."""

    def semaphore_import(self, descriptor: int, kind: int) -> SemaphoreHandle:
        """A semaphore that another library exported as a file descriptor; its type in the vendor's numbers."""

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None: ...
