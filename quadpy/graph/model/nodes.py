"""The nodes of a graph as plain data: the work, its memory, and the nodes that it comes after, by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.flow import Flow
from quadpy.core.source import Span
from quadpy.errors import GraphError, QuadpyError
from quadpy.graph.model.order import MemoryRange
from quadpy.graph.model.semaphore import Semaphore
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import CopyKind
from quadpy.runtime.launch.launch import Effects, HostLaunch, KernelLaunch, Origin, Prepared
from quadpy.runtime.streams.event import Event


class Call(NamedTuple):
    """The arguments from which a node was made, by which another process can make it again."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @classmethod
    def of(cls, kernel: Any, args: tuple[Any, ...]) -> Call:
        """A call of ``kernel`` with all its arguments in order."""
        given, named = kernel.as_given(args)
        return cls((kernel, *given), named)


@shows("after", "kind", "name", "reads", "writes")
@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Node(OneProcess):
    """One piece of work.

    name     unique in its graph
    after    names of the nodes that must be complete before
    asked    ``after`` without the nodes that a capture adds for first uses of memory; None if it adds none
    derived  whether ``after`` follows from what the nodes read and write
    barrier  whether the node may touch anything; derived dependencies then put it after all earlier and before all
             later nodes
    reads, writes  the memory that the node touches, as (address, bytes)
    keep     what must stay alive as long as the node can run
    span     where in the user's program the node was made
    call     what its maker was given, in ``MAKERS``; None where only addresses are known
    """

    kind: ClassVar[str]
    error: ClassVar[type[QuadpyError]] = GraphError

    name: str = ""
    after: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = None
    derived: bool = False
    barrier: bool = False
    reads: tuple[MemoryRange, ...] = ()
    writes: tuple[MemoryRange, ...] = ()
    keep: tuple[object, ...] = ()
    span: Span | None = None
    call: Call | None = None

    @property
    def asked_after(self) -> tuple[str, ...]:
        """The nodes that the program puts this one after."""
        return self.after if self.asked is None else self.asked

    def __repr__(self) -> str:
        after = f" after {', '.join(map(repr, self.after))}" if self.after else ""
        return f"<{self.kind} node {self.name!r}{after}>"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class KernelNode(Node):
    """A call of a kernel: its launches, in order or as ``flow`` says (``CodeObject.flow``); on the CPU a single launch.

    kernel      what was called, so that it can be called with other arguments; None for launches that were prepared
    origin      what the launches were compiled from, with ``arguments``
    conditions  the memory that decides whether the loops of ``flow`` continue
    effects     what orders the launches besides ``flow``, see ``Prepared``
    indirect    whether the launches read their arguments from memory
    predicated  whether the host may repeat the loops, see ``Origin.predicated``
    """

    kind: ClassVar[str] = "kernel"

    launches: tuple[KernelLaunch | HostLaunch, ...]
    flow: Flow = ()
    kernel: Any = None
    priority: int | None = None
    origin: Origin | None = None
    arguments: bytes = b""
    conditions: dict[str, MemoryRange] = field(default_factory=dict)
    effects: Effects | None = None
    indirect: bool = False
    predicated: bool = False

    @classmethod
    def of(cls, prepared: Prepared, /, **rest: Any) -> KernelNode:
        """The node of a call, with the ``rest`` of its fields."""
        fields = {"launches": prepared.launches, **rest}
        return cls(
            flow=prepared.flow, origin=prepared.origin, arguments=prepared.arguments, conditions=prepared.conditions,
            effects=prepared.effects, **fields,
        )  # fmt: skip

    @property
    def prepared(self) -> Prepared:
        """The call, as a plan on a GPU prepares it."""
        launches = tuple(launch for launch in self.launches if isinstance(launch, KernelLaunch))
        return Prepared(launches, self.flow, self.conditions, None, self.origin, self.arguments, self.effects)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class MemcpyNode(Node):
    """A copy of ``nbytes`` bytes; for ``direction`` "in" and "out", the host's end goes through a buffer of the graph.

    ``constant`` is the content of the source in every launch; None if that may change.  With ``pinned``, the host's end is
    pinned memory, and needs no such buffer.
    """

    kind: ClassVar[str] = "memcpy"

    target: int
    source: int
    nbytes: int
    direction: CopyKind
    constant: bytes | None = field(default=None, repr=False)
    pinned: bool = False

    @property
    def staged(self) -> bool:
        """Whether one end is host memory that the device does not access itself."""
        return self.direction != "within" and not self.pinned

    @classmethod
    def of(
        cls, target: int, source: int, nbytes: int, keep: tuple[object, ...], direction: CopyKind = "within"
    ) -> MemcpyNode:
        """The copy, with the memory that it touches."""
        return cls(
            target=target, source=source, nbytes=nbytes, direction=direction,
            reads=((source, nbytes),), writes=((target, nbytes),), keep=keep,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class MemsetNode(Node):
    """Sets ``width`` elements of ``element`` bytes to ``value``, in each of ``height`` rows ``pitch`` bytes apart.

    ``first`` if these are the first values of memory that the graph allocates, which come before every use of it.
    """

    kind: ClassVar[str] = "memset"

    target: int
    value: int
    element: int
    width: int
    height: int = 1
    pitch: int = 0
    first: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class HostNode(Node):
    """A call of a Python function; dependent nodes wait for it."""

    kind: ClassVar[str] = "host"

    function: Callable[..., object]
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class EmptyNode(Node):
    """Does nothing but wait for the nodes before it."""

    kind: ClassVar[str] = "empty"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ChildNode(Node):
    """Another graph, as it was when the node was made."""

    kind: ClassVar[str] = "child"

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, nodes: tuple[Node, ...], *, barrier: bool = False) -> ChildNode:
        """``nodes`` as one, which touches the memory that they touch."""
        return cls(
            nodes=nodes,
            barrier=barrier,
            reads=tuple(dict.fromkeys(part for node in nodes for part in node.reads)),
            writes=tuple(dict.fromkeys(part for node in nodes for part in node.writes)),
            keep=tuple(kept for node in nodes for kept in node.keep),
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class EventRecordNode(Node):
    """Records an event."""

    kind: ClassVar[str] = "event_record"

    event: Event


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class EventWaitNode(Node):
    """Waits for the last record of an event before the launch."""

    kind: ClassVar[str] = "event_wait"

    event: Event


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class SemaphoreSignalNode(Node):
    """Sets each semaphore to its value."""

    kind: ClassVar[str] = "semaphore_signal"

    semaphores: tuple[tuple[Semaphore, int], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class SemaphoreWaitNode(Node):
    """Waits until each semaphore has its value."""

    kind: ClassVar[str] = "semaphore_wait"

    semaphores: tuple[tuple[Semaphore, int], ...]


@dataclass(slots=True, eq=False)
class Allocation:
    """The memory of an alloc node of ``graph``, at one address in every launch; ``live`` from its node to a free node."""

    device: Device
    pointer: int
    nbytes: int
    graph: weakref.ref[object]
    live: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class AllocNode(Node):
    """Allocates memory, which later nodes may use."""

    kind: ClassVar[str] = "alloc"

    allocation: Allocation

    @property
    def pointer(self) -> int:
        """The address, which is the same in every launch."""
        return self.allocation.pointer

    @property
    def nbytes(self) -> int:
        return self.allocation.nbytes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class FreeNode(Node):
    """Frees the memory of an alloc node."""

    kind: ClassVar[str] = "free"

    allocation: Allocation


def with_inner(nodes: Iterable[Node]) -> Iterator[tuple[Node, Node]]:
    """Each of ``nodes`` and each node of a child graph in it, as a pair: the one of ``nodes``, then the node itself."""
    for node in nodes:
        yield node, node
        if isinstance(node, ChildNode):
            yield from ((node, inner) for _, inner in with_inner(node.nodes))
