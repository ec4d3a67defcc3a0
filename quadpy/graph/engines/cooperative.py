"""Graphs that run as one cooperative launch.

The kernels' origins fuse the launches; this module does not know how code is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from quadpy.graph.engines.engine import BoundStep, Engine
from quadpy.graph.engines.lowering import fills_of
from quadpy.graph.model.nesting import flattened, in_levels
from quadpy.graph.model.nodes import EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork
from quadpy.runtime.launch.fusion import Fuse, OneLaunch
from quadpy.runtime.launch.launch import Call, Origin
from quadpy.runtime.streams.stream import Stream


def cooperative_engine(nodes: Iterable[Node], wanted: Fuse) -> CooperativeEngine | str:
    """One launch for all of ``nodes``, or the reason why it is impossible or not expected to be faster."""
    every = flattened(nodes, lambda _: True)
    origin = next((node.origin for node in every if isinstance(node, KernelNode) and node.origin is not None), None)
    placed: list[tuple[Node, list[_Placed]]] = []
    for node in every:
        calls = _calls(node, origin)
        if isinstance(calls, str):
            return calls
        placed.append((node, [_Placed(node.name, call) for call in calls]))
    if origin is None:
        return "there is nothing to launch"
    levels = in_levels(placed)
    one = origin.fuse([[each.call for each in level] for level in levels], wanted)
    if isinstance(one, str):
        return one
    return one.why_not() or CooperativeEngine(one, [each for level in levels for each in level], origin)


@dataclass(slots=True)
class _Placed:
    """A call of the launch, and the node that it does, or does a part of."""

    node: str
    call: Call


def _calls(node: Node, origin: Origin | None) -> list[Call] | str:
    """The calls that do ``node``, or the reason why none can; ``origin`` is that of any kernel."""
    match node:
        case EmptyNode():
            return []
        case KernelNode():
            if node.origin is None:
                return f"the launches of {node.name!r} were prepared without the IR of their kernel"
            return [(node.origin, node.arguments)]
        case MemcpyNode(nbytes=0, direction="within") | MemsetNode(width=0):
            return []
        case MemcpyNode(direction="within") if origin is not None:
            return _calls_of([CopyWork(node.target, node.source, node.nbytes, "within")], node, origin)
        case MemsetNode() if origin is not None:
            return _calls_of(fills_of(node), node, origin)
        case _:
            return f"{node.name!r} is a node of kind {node.kind}"


def _calls_of(works: Iterable[FillWork | CopyWork], node: Node, origin: Origin) -> list[Call] | str:
    calls = []
    for work in works:
        call = origin.of(work)
        if isinstance(call, str):
            return f"{node.name!r} {call}"
        calls.append(call)
    return calls


class CooperativeEngine(Engine):
    """One cooperative launch that does all nodes; its scratch memory goes with it, when no launch is pending."""

    one_launch: ClassVar[bool] = True
    binds: ClassVar[bool] = True

    def __init__(self, one: OneLaunch, placed: list[_Placed], origin: Origin) -> None:
        self._one, self._placed, self._origin = one, placed, origin

    @property
    def reason(self) -> str:
        """A description for people."""
        return self._one.description

    def move(self, on: Stream) -> None:
        """See ``Engine.move``."""
        self._one.move(on)

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        self._one.launch(stream)

    def change(self, node: Node) -> bool:
        """See ``Engine.change``."""
        numbers = [number for number, placed in enumerate(self._placed) if placed.node == node.name]
        calls = _calls(node, self._origin)
        if isinstance(calls, str) or [call[0] for call in calls] != [self._placed[k].call[0] for k in numbers]:
            return False
        for number, call in zip(numbers, calls, strict=True):
            self._placed[number].call = call
            self._one.bind(number, call[1])
        return bool(calls) and not self._one.why_not()

    def bind(self, steps: Iterable[BoundStep]) -> None:
        """Like ``Engine.bind``, which leaves the number of blocks as it is."""
        named = {step.name: step for step in steps}
        for number, placed in enumerate(self._placed):
            if (step := named.get(placed.node)) is not None:
                self._one.bind(number, step.block.ljust(len(placed.call[1]), b"\0"))

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """Like ``Engine.enable``: it does all of its nodes."""
        return False
