"""The launches of a call, before anything runs.

A plan prepares these where it must not submit: for the nodes of a graph.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from quadpy.core.flow import Flow
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.runtime.launch.fusion import Fuse, OneLaunch
from quadpy.runtime.launch.observing import KernelAccess
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.core.artifact import AbiLayout
    from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork
    from quadpy.runtime.memory.allocators.block import Block

MemoryRange: TypeAlias = tuple[int, int]
"""An address, and the number of bytes that are touched from there."""


Effects: TypeAlias = tuple[tuple[tuple[str, bool], ...], ...]
"""For each launch of a call, the memory that it touches, by name, and whether it writes there."""

Accesses: TypeAlias = "Callable[[], Sequence[tuple[ArrayMemory, KernelAccess]]]"
"""Gives the accesses of a call, each with its array."""


@dataclass(frozen=True, slots=True)
class Indirect:
    """Code that reads its arguments from memory, compiled when it is first asked for.

    function        takes one argument: the address of an argument block
    upload_kernels  write such blocks to memory, see ``ArgumentMemory``
    """

    function: Callable[[], FunctionHandle]
    upload_kernels: Callable[[], Mapping[int, FunctionHandle]]


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One launch, ready for a driver, an explicit graph node or an update of one.

    name          for people: kernel and task
    grid, block   blocks of the grid, threads of a block; a launch without iterations is one block that finds none, so
    that a node of a graph stays the same.  With 0 blocks nothing is launched: code with barriers does not check
    shared_bytes  shared memory beyond what the code declares
    arguments     the argument block, all of it
    reads, writes the arrays' memory that the task touches; atomics count as both.  Scratch memory is not among it: only
                  the launches of one ``Prepared`` share it, and ``Prepared.flow`` orders them
    keep          objects that must stay alive as long as this can run: module, arrays, scratch memory; those with a
    ``block`` must be announced to ``DeviceMemory.use`` for each stream that it runs on
    span          where in the user's file the task begins
    indirect      the same launch by code that reads its arguments from memory; None if there is none
    accesses      what all launches of the call do with their arrays, found on demand; None if it is unknown
    """

    name: str
    function: FunctionHandle
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: bytes = field(repr=False)
    reads: tuple[MemoryRange, ...]
    writes: tuple[MemoryRange, ...]
    keep: tuple[object, ...] = field(repr=False)
    span: Span | None
    indirect: Indirect | None = field(default=None, repr=False, compare=False)
    accesses: Accesses | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Prepared:
    """All launches of one call, and ``flow`` over them: as ``CodeObject.flow``, where ``()`` is all in order.

    conditions  parameter -> the address and the bytes of the number that decides whether a loop of ``flow`` goes on
    result      what the kernel returned, read after the work on a stream; None for a kernel that returns nothing
    origin      the input of the launches' compilation, with ``arguments``; None if it is unknown
    effects     what orders the launches besides ``flow``; None if ``flow`` does alone
    """

    launches: tuple[KernelLaunch, ...]
    flow: Flow = ()
    conditions: dict[str, MemoryRange] = field(default_factory=dict)
    result: Callable[[Stream], object] | None = None
    origin: Origin | None = field(default=None, repr=False)
    arguments: bytes = field(default=b"", repr=False)
    effects: Effects | None = field(default=None, repr=False)


class Origin(Protocol):
    """The input from which the code of a call was compiled.  Equal origins have the same code."""

    def fuse(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> OneLaunch | str:
        """One launch for calls of this and other origins, or the reason why that is impossible.

        The calls of a level come after those of the levels before it, and not after each other.  With ``"auto"``, a
        launch that would be slower is refused.
        """

    @property
    def why_not_alone(self) -> str:
        """Why a call cannot be one launch, with all of its tasks and loops; an empty string if it can."""

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """A call that does ``work``, or the reason why no call can."""

    layout: AbiLayout
    repeatable: bool
    """Whether ``predicated`` gives code."""

    def condition_setter(self, *, indirect: bool) -> FunctionHandle:
        """The kernel that sets the conditions of loops in a driver's graph; ``indirect`` if it gets the addresses of their addresses."""

    def predicated(self, call: Prepared, before: Prepared | None, on: Stream) -> Prepared:
        """``call`` in code whose loops may be repeated too often: its tasks find out themselves whether it is their turn.

        It has the scratch memory of ``before``, an earlier call in this form, or new memory of ``on``, where the last eight
        bytes are the state of a loop.
        """


Call: TypeAlias = "tuple[Origin, bytes]"
"""Code, and the argument block of a call without the address of scratch memory."""


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """A call on the CPU: ``run`` does all of it, any number of times; the rest as in ``KernelLaunch``.

    arguments  the argument block; two launches of the same code with the same block do the same
    result  what the last ``run`` returned; None for a kernel that returns nothing
    """

    name: str
    run: Callable[[], None]
    reads: tuple[MemoryRange, ...]
    writes: tuple[MemoryRange, ...]
    keep: tuple[object, ...] = field(repr=False)
    span: Span | None
    result: Callable[[], object] | None = None
    arguments: bytes = field(default=b"", repr=False)
    accesses: Accesses | None = field(default=None, repr=False, compare=False)


Scratch: TypeAlias = "ctypes.Array[ctypes.c_uint64] | None"
"""The scratch memory of a call on the CPU; None if the kernel needs none."""


class Runner:
    """Runs a kernel of the CPU any number of times, with the argument block that it has now.

    ``entry`` begins, and answers -1 at the end; else ``go_on`` takes the answer.
    """

    __slots__ = ("_entry", "_go_on", "block", "scratch")

    def __init__(self, entry: Callable[..., int], go_on: Callable[..., int], block: bytes, scratch: Scratch) -> None:
        self._entry, self._go_on, self.block, self.scratch = entry, go_on, block, scratch

    def run(self) -> None:
        """Run all of it."""
        block, scratch = self.block, self.scratch
        task = self._entry(block, scratch, 0)
        while task != -1:
            task = self._go_on(block, scratch, task)


class Bound(NamedTuple):
    """The arguments of a call as a launch takes them.

    block   the argument block, without the address of scratch memory
    grids   the blocks of each launch; none on the CPU
    arrays  the arrays that it reads and writes, except the kernel's own fields
    """

    block: bytes
    grids: tuple[int, ...]
    arrays: tuple[ArrayMemory, ...]


class Binder(NamedTuple):
    """Calls of one kernel that run the same code as a known call.

    code      what they run: the first thing that their launches keep alive
    bind      packs the arguments of such a call, a timeline and the arguments, and announces their memory on the timeline;
              None if the call runs other code, is refused, or is not known well enough
    prepared  what it launches, from what the known call launched
    used      the blocks that it reads, and those that it writes
    runner    runs it on the CPU, with an argument block; None for a GPU
    """

    code: object
    bind: Callable[..., Bound | None]
    prepared: Callable[[Bound, Sequence[KernelLaunch | HostLaunch]], Prepared | HostLaunch]
    used: Callable[[Bound], tuple[list[Block], list[Block]]]
    runner: Callable[[bytes], Runner] | None = None


def memory_range(array: ArrayMemory) -> MemoryRange:
    """What a kernel may touch of ``array``: an NDArray, a view of another library's array, or a field."""
    return array.pointer, array.nbytes
