"""The calls of a recorded function, in their order.  Owns: Tape, Step, LaunchStep, Mark.

Imports: kernels as nodes, usage, arrays.

A replay runs the function again and holds each call against the one at its place here; see ``ReplaySession``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.graph.model.kernels import kernel_node
from quadpy.graph.model.nodes import KernelNode, Node
from quadpy.graph.model.resources import Resources
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.launch import Binder, Bound, KernelLaunch
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.host_storage import Exports, is_exported
from quadpy.runtime.streams.stream import Stream

__all__ = ["LaunchStep", "Mark", "Step", "Tape"]

Mark: TypeAlias = "tuple[tuple[int, ...], int]"
"""How far a session is: what it took of its arena, and how many of its launches draw random numbers."""

_SETTLED: Final[set[type]] = {NDArray, int, float, complex, bool, str, bytes, type(None), *np.sctypeDict.values()} - {
    np.void,
    np.object_,
}
"""Exact types of what never changes: the same object is the same argument."""


@dataclass(slots=True, eq=False, kw_only=True)
class Step:
    """One call of a session, and what it came to.

    method  the session's; None for a launch
    stream  None for the one on which the function is recorded
    values  of the call, compared by value; those that ``keep`` names are compared by identity
    result  what it returned
    node    what it noted; None where it only orders or allocates
    front   the names of the nodes that the next one on the stream comes after
    mark    how far the session was when it returned
    """

    method: Callable[..., Any] | None = None
    stream: Stream | None
    values: tuple[Any, ...] = ()
    keep: tuple[Any, ...] = ()
    result: Any = None
    node: Node | None
    front: tuple[str, ...]
    mark: Mark

    def node_now(self, device: Device) -> Node | None:
        """What the last call notes."""
        return self.node

    def change(self, node: Node, values: tuple[Any, ...], keep: tuple[Any, ...]) -> None:
        """Note ``node`` in place of what was noted."""
        assert self.node is not None
        self.node = replace(node, name=self.node.name, after=self.node.after, span=self.node.span)
        self.values, self.keep = values, keep


@dataclass(slots=True, eq=False, kw_only=True)
class LaunchStep(Step):
    """A call of ``kernel`` with ``args``.

    name     of the node
    draws    whether each call has a random number of its own
    settled  whether the same objects are the same call; None before somebody asks
    block    the argument block, and behind it the address of scratch memory where there is any
    grids    the blocks of each launch of the node
    bound    arguments of a later call; a node of them is made when somebody asks
    """

    kernel: Any
    args: tuple[Any, ...]
    draws: bool
    name: str = ""
    settled: bool | None = None
    block: bytes = b""
    grids: tuple[int, ...] = ()
    bound: Bound | None = None
    binder: Binder | None = None
    _looked: bool = False
    _made: bool = False

    def __post_init__(self) -> None:
        assert isinstance(self.node, KernelNode)
        launches = self.node.launches
        self.name, self.block = self.node.name, launches[0].arguments if launches else b""
        self.grids = tuple(one.grid[0] for one in launches if isinstance(one, KernelLaunch))

    def settles(self) -> bool:
        """Whether the same objects are the same call."""
        self.settled = not self.draws and _SETTLED.issuperset(map(type, self.args))
        return self.settled

    def find_binder(self) -> Binder | None:
        """What binds other arguments; None where each call must be noted."""
        if not self._looked:
            self._looked, self.binder = True, self.kernel.binder(*self.args)
        return self.binder

    def bind(self, args: tuple[Any, ...], bound: Bound) -> bool:
        """Launch with ``args``; whether that changes a grid."""
        before, self.grids = self.grids, bound.grids
        self.args, self.bound, self.block, self._made = args, bound, bound.block, False
        self.settled = None
        return before != bound.grids

    def node_now(self, device: Device) -> Node | None:
        before = self.node
        if not self._made and self.bound is not None and self.binder is not None:
            assert isinstance(before, KernelNode)
            made = kernel_node(device, self.binder.prepared(self.bound, before.launches))
            self.node = replace(made, name=before.name, after=before.after, span=before.span, kernel=before.kernel)
            self._made = True
        return self.node

    def used(self) -> Sequence[object]:
        """The arrays, and what else must stay alive."""
        kept = self.node.keep if self.node is not None else ()
        return kept if self.bound is None else (*kept, *self.bound.arrays)

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """The memory that it reads, and that it writes."""
        if self.bound is not None and self.binder is not None:
            return self.binder.used(self.bound)
        return Resources([self.node] if self.node is not None else []).blocks()


class Tape:
    """The steps of a recording.

    straight  whether all are on one stream, in one line
    launches  how many of the steps are launches
    others    how many are other nodes
    orders    how many note nothing: they order, or allocate
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.straight = all(step.stream is None for step in steps)
        self.launches = sum(isinstance(step, LaunchStep) for step in steps)
        self.orders = sum(step.node is None for step in steps)
        self.others = len(steps) - self.launches - self.orders
        self.calls = list(_next_launches(steps))
        self._shown = -1  # how much memory was shown when all of it was found to be quadpy's alone

    def is_own(self) -> bool:
        """Whether nobody else has a view of the memory that launches use, on the CPU."""
        if self._shown != Exports.count:
            count = Exports.count
            launches = [step for step in self.steps if isinstance(step, LaunchStep)]
            if any(is_exported(thing) for step in launches for thing in step.used()):
                return False
            self._shown = count
        return True

    def resources(self) -> Resources:
        """The memory and the events that one run uses."""
        rest = Resources([step.node for step in self.steps if step.node and not isinstance(step, LaunchStep)])
        each = [rest.blocks(), *(step.blocks() for step in self.steps if isinstance(step, LaunchStep))]
        return rest.with_blocks(
            [block for read, _ in each for block in read], [block for _, written in each for block in written]
        )

    def nodes(self, device: Device) -> Mapping[str, Node]:
        """Those of launches that were bound, by their names."""
        bound = [step for step in self.steps if isinstance(step, LaunchStep) and step.bound is not None]
        made = [step.node_now(device) for step in bound]
        return {node.name: node for node in made if node is not None}


def _next_launches(steps: Sequence[Step]) -> Iterator[tuple[int, LaunchStep] | None]:
    """For each place the launch that comes next, and its number, where only memory is taken before it."""
    found: list[tuple[int, LaunchStep] | None] = [None]
    for number in reversed(range(len(steps))):
        step = steps[number]
        if isinstance(step, LaunchStep):
            found.append((number, step))
        else:
            found.append(found[-1] if _only_allocates(step) else None)
    return reversed(found)


def _only_allocates(step: Step) -> bool:
    return step.node is None and step.result is not None
