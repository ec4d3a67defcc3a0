"""The protocol of an observer, which is told of all work on streams and of everything that orders it.

Every submission of work is told to ``CAPTURES.observer``, if there is one, except captured work.
If there are several, ``Observers`` passes every call on to each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.reaper import Owner
from quadpy.runtime.drivers.driver import EventHandle, FunctionHandle, StreamHandle
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.host_access import HostMemory, ObservedAccess
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.owned import OwnerRef, OwningDevice

if TYPE_CHECKING:
    from quadpy.runtime.arrays.view import ArrayMemory
    from quadpy.runtime.streams.timeline import Timeline


class ObservedStream(Protocol):
    """What an observer needs from a stream; see ``Stream``."""

    timeline: Timeline

    @property
    def device(self) -> OwningDevice: ...


@dataclass(frozen=True, slots=True, eq=False)
class KernelAccess:
    """One kind of access of a kernel to one of its arrays.

    array       its number among the arrays of the call
    name        of the parameter or field
    kind        "read", "write", or the operation of an atomic update, which commutes with updates of the same kind
    axes        the elements, as a range for each axis; None for the whole array
    components  the scalars of each element, by their numbers; None for all of them
    certain     whether each of them is touched, whatever the data; else ``reason`` says why not
    span        where in the kernel
    """

    array: int
    name: str
    kind: str
    axes: tuple[range, ...] | None
    components: tuple[int, ...] | None
    certain: bool
    reason: str
    span: Span | None


class CallAccesses(Protocol):
    """What the calls of one code do with their arrays, from the ``values`` of their argument blocks."""

    def place(self, values: Sequence[float], /) -> object:
        """Where the caller's arrays are, and how they are laid out in memory."""

    def numbers(self, values: Sequence[float], /) -> object:
        """Calls with equal values, and arrays in the same place, do the same."""

    def accesses(self, values: Sequence[float], /) -> tuple[KernelAccess, ...]:
        """What a call does; nothing if it was refused because its values did not fit."""

    def together(self, calls: Iterable[Sequence[float]], /) -> tuple[KernelAccess, ...]:
        """Accesses that include all of those of any of ``calls``; none of them is certain."""


class ObservedCall(NamedTuple):
    """A call of a kernel, before it runs.

    span     where the kernel is
    arrays   the caller's arrays, then the kernel's fields
    code     gives what calls of the same code do with them: the identical object for the same code
    values   those of the argument block
    returns  whether the host waits for a result
    tasks    gives where each of its tasks begins, if the CPU runs them
    """

    name: str
    span: Span
    arrays: Sequence[ArrayMemory]
    code: Callable[[], CallAccesses]
    values: Sequence[float]
    returns: bool
    tasks: Callable[[], Sequence[Span | None]]


@dataclass(frozen=True, slots=True)
class RawAccess:
    """What a node of a graph does with ``rows`` rows of ``nbytes`` bytes from ``low`` on, ``pitch`` bytes apart.

    kind    as in ``KernelAccess``; "allocation" and "free" for memory that begins and ends there
    reason  why the access may not take place like this; empty if it certainly does
    """

    kind: str
    low: int
    nbytes: int
    name: str
    rows: int = 1
    pitch: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedNode:
    """A node of a graph.

    what      the work, in words
    span      where in the program it was made
    after     the names of the nodes that come before
    touches   the memory that it may touch, as (address, bytes, whether it writes)
    accesses  the same exactly, found when it is asked for; kernels' with their arrays
    unknown   why it may touch any memory; empty if it does not
    memory    the owners of the memory: arrays, blocks, NumPy arrays
    records, waits  the events that it records, and waits for
    """

    name: str
    what: str
    span: Span | None
    after: tuple[str, ...]
    touches: tuple[tuple[int, int, bool], ...]
    accesses: Callable[[], Sequence[RawAccess | tuple[ArrayMemory, KernelAccess]]]
    unknown: str
    memory: tuple[object, ...]
    records: tuple[OwnerRef[EventHandle], ...] = ()
    waits: tuple[OwnerRef[EventHandle], ...] = ()


class TaskTimes(Protocol):
    """Takes the number of a task that the CPU ran, and when it began and ended, in ns of ``time.perf_counter_ns``."""

    def __call__(self, number: int, begin: int, end: int, /) -> None: ...


class TimedNode(NamedTuple):
    """A node of a GPU's graph between two events, which each launch records.

    function  of a kernel with one task; else None
    span      where in the program, or in the kernel, it was made
    """

    name: str
    function: FunctionHandle | None
    span: Span | None
    nbytes: int
    begin: TimedEvent
    end: TimedEvent


class TimedEvent(Protocol):
    """An event with timing; see ``Event``."""

    def _take(self) -> Owner[EventHandle]: ...


class NodeTimer(Protocol):
    """Times the nodes of graphs on a GPU."""

    def settle(self) -> None:
        """Read the events of all launches so far, which may be recorded again after that."""

    def launched(self, nodes: Sequence[TimedNode], stream: StreamHandle) -> None:
        """Note that these events have been submitted, with a launch on ``stream``."""


class Submission(Protocol):
    """Work that an observer was told of."""

    @property
    def task_times(self) -> TaskTimes | None:
        """Takes the times of each task and graph node on the CPU, if they are timed one by one; else None."""

    @property
    def node_timer(self) -> NodeTimer | None:
        """Times each graph node and each task of a graph kernel on the GPU, if they are timed one by one; else None."""

    def done(self) -> None:
        """Note that the work has been submitted; until then, it may not have taken place."""


class _NotNoted:
    """The ``Submission`` of work that an observer ignores."""

    task_times: ClassVar[TaskTimes | None] = None
    node_timer: ClassVar[NodeTimer | None] = None

    def done(self) -> None:
        """Like ``Submission.done``."""


NOT_NOTED: Final = _NotNoted()


class Observer:
    """Is told of work before it is submitted, and may raise an error to refuse it; methods ignore it by default."""

    def launching(self, on: ObservedStream, call: ObservedCall) -> Submission:
        """A kernel is launched on ``on``."""
        return NOT_NOTED

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        """The host reads by a copy on ``on``, after all work that wrote the array, and waits for the copy."""

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> Submission:
        """The host writes by a copy or fill (``what``) on ``on``, after all work that used the array."""
        return NOT_NOTED

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> Submission:
        """``source`` is copied to ``target`` on ``on``, after their users."""
        return NOT_NOTED

    def recorded(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """``event`` is recorded on ``stream``."""

    def waited(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """Later work on ``stream`` waits for the last record of ``event``."""

    def completed(self, event: OwnerRef[EventHandle]) -> None:
        """The host knows that the work before ``event`` is complete."""

    def synchronized(self, stream: Timeline, life: Life) -> None:
        """The host knows that the work on ``stream`` so far is complete."""

    def device_synchronized(self, life: Life) -> None:
        """The host knows that all work on the device of ``life`` so far is complete."""

    def launching_graph(
        self, on: ObservedStream, graph: object, version: object, nodes: Callable[[], Sequence[ObservedNode]], *, overlap: bool
    ) -> Submission:  # fmt: skip
        """``graph`` is launched on ``on``, after its earlier launches unless they may ``overlap``.

        ``nodes`` gives its nodes, in an order in which they can run; they are the same while ``version`` is.
        """
        return NOT_NOTED

    def graph_synchronized(self, graph: object) -> None:
        """The host knows that all launches of ``graph`` so far are complete."""

    def report(self, hazards: Sequence[object]) -> None:
        """These hazards were found in a graph or a kernel, before it runs."""

    def allocated(self, stream: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool) -> None:
        """The user allocated memory by address on ``stream``; other streams must wait for it."""

    def freeing(
        self, stream: Timeline, home: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool
    ) -> None:
        """The user frees memory by address, after the work on ``stream`` and on its ``home``."""

    def host_reads(self, source: Numbers) -> None:
        """The host reads an array of NumPy's now."""

    def followed(self, before: Timeline, stream: Timeline, life: Life) -> None:
        """Later work on ``stream`` waits for all work on ``before`` so far."""

    def exported(self, consumer: Timeline, life: Life, memory: Block | HostMemory) -> None:
        """Another library's stream waits for all users of ``memory``."""
