"""The calls of a recorded function in their order; a replay compares each call with the one at its position here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.graph.model.kernels import node_of_launches
from quadpy.graph.model.nodes import Call as NodeCall, KernelNode, Node
from quadpy.graph.model.resources import Resources
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.captured_work import CapturedWork
from quadpy.runtime.launch.capturing import CapturedStream
from quadpy.runtime.launch.launch import Binder, Bound, KernelLaunch
from quadpy.runtime.memory.allocators.block import Block, DeviceBuffer
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import Exports, is_exported

_IMMUTABLE: Final[set[type]] = {NDArray, int, float, complex, bool, str, bytes, type(None), *np.sctypeDict.values()} - {
    np.void,
    np.object_,
}
"""Exact types whose objects never change as arguments: the same object is the same argument."""


@dataclass(frozen=True, slots=True)
class AllocateMemory:
    """Allocates ``nbytes`` bytes of device or host memory."""

    kind: type[DeviceBuffer | Buffer]
    nbytes: int


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Records an event."""


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """Waits for an event that was recorded after the nodes named ``after``."""

    after: tuple[str, ...]


Call: TypeAlias = CapturedWork | AllocateMemory | RecordEvent | WaitEvent


@dataclass(slots=True, eq=False, kw_only=True)
class Step:
    """One call of a capture, and its result.

    call    what was called, compared by value; None for a launch
    stream  None for the stream on which the function is recorded
    keep    what the call keeps alive, compared by identity
    result  what the call returned
    node    the node that it added; None if it only orders or allocates
    after   the names of the nodes that the next one on the stream comes after
    mark    how much of its memory the capture had handed out when the call returned
    """

    call: Call | None = None
    stream: CapturedStream | None
    keep: tuple[object, ...] = ()
    result: object = None
    node: Node | None
    after: tuple[str, ...]
    mark: tuple[int, int, int]

    def copy(self) -> Step:
        """A step that can be changed without changing the recording."""
        return copy(self)

    def current_node(self, device: Device) -> Node | None:
        """The node for the arguments of the last call."""
        return self.node

    def change(self, node: Node, work: CapturedWork, keep: tuple[object, ...]) -> None:
        """Take ``node`` in place of the node so far."""
        assert self.node is not None
        self.node = replace(node, name=self.node.name, after=self.node.after, span=self.node.span)
        self.call, self.keep = work, keep


@dataclass(slots=True, eq=False, kw_only=True)
class LaunchStep(Step):
    """A call of ``kernel`` with ``args``.

    name       of the node
    draws      whether the kernel uses random numbers, which differ from call to call
    immutable  whether the same objects are the same call; None if not known yet
    block      the argument block, then the address of scratch memory if there is any
    grids      the blocks of each launch of the node
    bound      the arguments of a later call; the node for them is made on demand
    """

    kernel: Any
    args: tuple[Any, ...]
    draws: bool
    name: str = ""
    immutable: bool | None = None
    block: bytes = b""
    grids: tuple[int, ...] = ()
    bound: Bound | None = None
    binder: Binder | None = None
    _searched: bool = False
    _current: bool = False

    def __post_init__(self) -> None:
        assert isinstance(self.node, KernelNode)
        launches = self.node.launches
        self.name, self.block = self.node.name, launches[0].arguments if launches else b""
        self.grids = tuple(one.grid[0] for one in launches if isinstance(one, KernelLaunch))

    def check_immutable(self) -> bool:
        """Whether the same objects are the same call; not of a method, whose object may change."""
        self.immutable = not self.draws and self.kernel.receiver is None and _IMMUTABLE.issuperset(map(type, self.args))
        return self.immutable

    def find_binder(self) -> Binder | None:
        """The binder of other arguments; None if each call must be recorded.

        The recorded arguments may mean other code by now: an attribute of theirs has changed.  Then there is none for
        this call, but perhaps for a later one.
        """
        if not self._searched:
            found = self.kernel.binder(*self.args)
            if found is not None and not self._runs(found.code):
                return None
            self._searched, self.binder = True, found
        return self.binder

    def _runs(self, code: object) -> bool:
        """Whether the recorded launches are those of ``code``."""
        assert isinstance(self.node, KernelNode)
        return all(launch.keep[0] is code for launch in self.node.launches)

    def bind(self, args: tuple[Any, ...], bound: Bound) -> bool:
        """Take ``args`` for the next launch; whether that changes a grid."""
        before, self.grids = self.grids, bound.grids
        self.args, self.bound, self.block, self._current = args, bound, bound.block, False
        self.immutable = None
        return before != bound.grids

    def current_node(self, device: Device) -> Node | None:
        before = self.node
        if not self._current and self.bound is not None and self.binder is not None:
            assert isinstance(before, KernelNode)
            made = node_of_launches(
                device,
                self.binder.prepared(self.bound, before.launches),
                before.kernel,
                call=NodeCall.of(self.kernel, self.args),
            )
            self.node = replace(made, name=before.name, after=before.after, span=before.span)
            self._current = True
        return self.node

    def kept(self) -> Sequence[object]:
        """The arrays of the launch, and other objects that must stay alive."""
        kept = self.node.keep if self.node is not None else ()
        return kept if self.bound is None else (*kept, *self.bound.arrays)

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """The memory that the launch reads, and that it writes."""
        if self.bound is not None and self.binder is not None:
            return self.binder.used(self.bound)
        return Resources([self.node] if self.node is not None else []).blocks()


class Recording:
    """The steps of a recorded function.

    linear       whether all are on one stream
    launches     how many steps are launches
    other_nodes  how many add another node
    without_node  how many add none: they order or allocate
    next_launches  for each position the launch that comes next, with its number; None if a step that is not an
                   allocation comes before it
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.linear = all(step.stream is None for step in steps)
        self.launches = sum(isinstance(step, LaunchStep) for step in steps)
        self.without_node = sum(step.node is None for step in steps)
        self.other_nodes = len(steps) - self.launches - self.without_node
        self.next_launches = list(_next_launches(steps))
        self._exports = -1  # how many arrays were exported when none of these was

    def is_unshared(self) -> bool:
        """Whether nothing else has a view of the memory that launches use, on the CPU."""
        if self._exports != Exports.count:
            count = Exports.count
            if any(is_exported(thing) for step in self._launch_steps() for thing in step.kept()):
                return False
            self._exports = count
        return True

    def resources(self) -> Resources:
        """The memory and the events that one run uses."""
        others = Resources([step.node for step in self.steps if step.node and not isinstance(step, LaunchStep)])
        each = [others.blocks(), *(step.blocks() for step in self._launch_steps())]
        return others.with_blocks(
            [block for read, _ in each for block in read], [block for _, written in each for block in written]
        )

    def bound_nodes(self, device: Device) -> Mapping[str, Node]:
        """The nodes of the launches whose arguments were bound, by name."""
        made = [step.current_node(device) for step in self._launch_steps() if step.bound is not None]
        return {node.name: node for node in made if node is not None}

    def _launch_steps(self) -> list[LaunchStep]:
        return [step for step in self.steps if isinstance(step, LaunchStep)]


def _next_launches(steps: Sequence[Step]) -> Iterator[tuple[int, LaunchStep] | None]:
    found: list[tuple[int, LaunchStep] | None] = [None]
    for number in reversed(range(len(steps))):
        step = steps[number]
        if isinstance(step, LaunchStep):
            found.append((number, step))
        else:
            found.append(found[-1] if step.node is None and step.result is not None else None)
    return reversed(found)
