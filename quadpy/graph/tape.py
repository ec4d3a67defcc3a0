"""The calls of a recorded function, in their order.  Owns: Tape, Step, LaunchStep, Mark, is_settled.

Imports: kernels as nodes, usage, arrays.

A replay runs the function again and holds each call against the one at its place here; see ``ReplaySession``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.graph.kernels import kernel_node
from quadpy.graph.nodes import KernelNode, Node
from quadpy.graph.usage import Usage
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.device import Device
from quadpy.runtime.launch import Binder, Bound, KernelLaunch
from quadpy.runtime.ndarray import NDArray
from quadpy.runtime.stream import Stream

__all__ = ["LaunchStep", "Mark", "Step", "Tape", "is_settled"]

Mark: TypeAlias = "tuple[tuple[int, ...], int]"
"""How far a session is: what it took of its arena, and how many of its launches draw random numbers."""

_SETTLED: Final = {NDArray, int, float, complex, bool, str, bytes, type(None), *np.sctypeDict.values()} - {
    np.void,
    np.object_,
}


def is_settled(given: object) -> bool:
    """Whether it never changes, by its exact type: the same object is the same argument."""
    return type(given) in _SETTLED


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

    draws    whether each call has a random number of its own
    settled  whether the same objects are the same call
    bound    arguments of a later call; a node of them is made when somebody asks
    """

    kernel: Any
    args: tuple[Any, ...]
    draws: bool
    settled: bool = False
    bound: Bound | None = None
    _binder: Binder | None = None
    _looked: bool = False
    _made: bool = False
    _blocks: tuple[list[Block], list[Block]] | None = None

    def __post_init__(self) -> None:
        self.settled = not self.draws and all(map(is_settled, self.args))

    def bind(self, args: tuple[Any, ...]) -> Bound | None:
        """What a call with ``args`` comes to where it runs the same code; None where that is not known."""
        if not self._looked:
            self._looked, self._binder = True, self.kernel.binder(*self.args)
        return None if self._binder is None else self._binder.bind(args)

    def does(self, bound: Bound) -> bool:
        """Whether the last call had these arguments: what it kept alive is then still at the same addresses."""
        block = self.bound.block if self.bound is not None else self._launches[0].arguments
        return block.startswith(bound.block)  # the rest is the address of scratch memory

    def change_arguments(self, args: tuple[Any, ...], bound: Bound) -> None:
        """Launch with ``args``."""
        self.args, self.bound, self._made, self._blocks = args, bound, False, None
        self.settled = not self.draws and all(map(is_settled, args))

    def node_now(self, device: Device) -> Node | None:
        before = self.node
        if not self._made and self.bound is not None and self._binder is not None:
            assert isinstance(before, KernelNode)
            made = kernel_node(device, self._binder.prepared(self.bound, before.launches))
            self.node = replace(made, name=before.name, after=before.after, span=before.span, kernel=before.kernel)
            self._made = True
        return self.node

    def has_grids_of(self, bound: Bound) -> bool:
        """Whether nothing but the arguments is another."""
        return tuple(one.grid[0] for one in self._launches if isinstance(one, KernelLaunch)) == bound.grids

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """The memory that it reads, and that it writes."""
        if self._blocks is None:
            if self.bound is not None and self._binder is not None:
                self._blocks = self._binder.used(self.bound)
            else:
                self._blocks = Usage([self.node] if self.node is not None else []).blocks()
        return self._blocks

    @property
    def _launches(self) -> Sequence[Any]:
        assert isinstance(self.node, KernelNode)
        return self.node.launches


class Tape:
    """The steps of a recording; ``straight`` says that all are on one stream, in one line."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.straight = all(step.stream is None for step in steps)
        self.launch_from = list(_next_launches(steps))

    def usage(self) -> Usage:
        """The memory and the events that one run uses."""
        rest = Usage([step.node for step in self.steps if step.node and not isinstance(step, LaunchStep)])
        each = [rest.blocks(), *(step.blocks() for step in self.steps if isinstance(step, LaunchStep))]
        return rest.of(
            [block for read, _ in each for block in read], [block for _, written in each for block in written]
        )

    def nodes(self, device: Device) -> Mapping[str, Node]:
        """Those of launches that were bound, by their names."""
        bound = [step for step in self.steps if isinstance(step, LaunchStep) and step.bound is not None]
        made = [step.node_now(device) for step in bound]
        return {node.name: node for node in made if node is not None}


def _next_launches(steps: Sequence[Step]) -> Iterator[int]:
    """For each place the launch that comes next, where only memory is taken before; else -1."""
    found, last = [-1], -1
    for number in reversed(range(len(steps))):
        step = steps[number]
        last = number if isinstance(step, LaunchStep) else last if _only_allocates(step) else -1
        found.append(last)
    return reversed(found)


def _only_allocates(step: Step) -> bool:
    return step.node is None and step.result is not None
