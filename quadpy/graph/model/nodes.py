"""The nodes of a graph.  Owns: Node and its kinds, Allocation.  Imports: the runtime's objects, order.

A node is data: it says what is done, to which memory, and after which other nodes, by name.  Nothing here is submitted.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from quadpy.flow import Flow
from quadpy.graph.model.order import MemoryRange
from quadpy.runtime.drivers.graph_driver import CopyKind
from quadpy.runtime.launch.fusion import Origin
from quadpy.runtime.launch.launch import HostLaunch, KernelLaunch
from quadpy.runtime.streams.event import Event
from quadpy.source import Span

if TYPE_CHECKING:
    from quadpy.graph.model.graph import Graph
    from quadpy.graph.model.semaphore import Semaphore

__all__ = [
    "AllocNode",
    "Allocation",
    "ChildNode",
    "EmptyNode",
    "EventRecordNode",
    "EventWaitNode",
    "FreeNode",
    "HostNode",
    "KernelNode",
    "MemcpyNode",
    "MemsetNode",
    "Node",
    "SemaphoreSignalNode",
    "SemaphoreWaitNode",
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """One piece of work.

    name     unique in its graph
    after    names of the nodes that must be complete before
    derived  whether ``after`` follows from what the nodes read and write
    barrier  whether it may touch anything: by derivation it comes after all before it and before all that come later
    reads, writes  the memory that it touches, as (address, bytes)
    keep     what must stay alive as long as it can run
    span     where in the user's program it was made
    """

    kind: ClassVar[str]

    name: str = ""
    after: tuple[str, ...] = ()
    derived: bool = False
    barrier: bool = False
    reads: tuple[MemoryRange, ...] = ()
    writes: tuple[MemoryRange, ...] = ()
    keep: tuple[object, ...] = field(default=(), repr=False)
    span: Span | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KernelNode(Node):
    """A call of a kernel: its launches, in order or as ``flow`` says (``CodeObject.flow``); a call on the CPU is one.

    ``kernel`` is what was called, to be called with other arguments; None where the launches came from elsewhere.
    ``origin`` is what they were compiled from, with ``arguments``; ``conditions`` are where it says whether loops go on.
    """

    kind: ClassVar[str] = "kernel"

    launches: tuple[KernelLaunch | HostLaunch, ...]
    flow: Flow = ()
    kernel: Any = field(default=None, repr=False)
    priority: int | None = None
    origin: Origin | None = field(default=None, repr=False)
    arguments: bytes = field(default=b"", repr=False)
    conditions: dict[str, MemoryRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MemcpyNode(Node):
    """A copy of ``nbytes`` bytes; with ``staged``, one end is host memory that goes through a buffer of the graph's."""

    kind: ClassVar[str] = "memcpy"

    target: int
    source: int
    nbytes: int
    direction: CopyKind
    staged: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MemsetNode(Node):
    """``width`` elements of ``element`` bytes, in ``height`` rows ``pitch`` bytes apart, become ``value``."""

    kind: ClassVar[str] = "memset"

    target: int
    value: int
    element: int
    width: int
    height: int = 1
    pitch: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HostNode(Node):
    """A call of a Python function, which the work behind it waits for."""

    kind: ClassVar[str] = "host"

    function: Callable[..., object] = field(repr=False)
    arguments: tuple[object, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EmptyNode(Node):
    """Nothing; it joins what comes before it."""

    kind: ClassVar[str] = "empty"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChildNode(Node):
    """Another graph, as it was when the node was made."""

    kind: ClassVar[str] = "child"

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EventRecordNode(Node):
    """The record of an event."""

    kind: ClassVar[str] = "event_record"

    event: Event


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EventWaitNode(Node):
    """The work behind it waits for the event's last record at the launch."""

    kind: ClassVar[str] = "event_wait"

    event: Event


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SemaphoreSignalNode(Node):
    """Each semaphore gets its value."""

    kind: ClassVar[str] = "semaphore_signal"

    semaphores: tuple[tuple[Semaphore, int], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SemaphoreWaitNode(Node):
    """The work behind it waits until each semaphore has its value."""

    kind: ClassVar[str] = "semaphore_wait"

    semaphores: tuple[tuple[Semaphore, int], ...]


@dataclass(slots=True, eq=False)
class Allocation:
    """The memory of an alloc node, at one address in every launch; ``live`` from its node to a free node."""

    pointer: int
    nbytes: int
    graph: weakref.ref[Graph]
    live: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AllocNode(Node):
    """Memory that is there from this node on."""

    kind: ClassVar[str] = "alloc"

    allocation: Allocation

    @property
    def pointer(self) -> int:
        """The address, the same in every launch."""
        return self.allocation.pointer

    @property
    def nbytes(self) -> int:
        return self.allocation.nbytes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FreeNode(Node):
    """The end of an alloc node's memory."""

    kind: ClassVar[str] = "free"

    allocation: Allocation
