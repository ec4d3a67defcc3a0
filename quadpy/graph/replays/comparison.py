"""Compares the calls of a function with those of an earlier recording."""

from __future__ import annotations

from operator import is_
from typing import Any

from quadpy.graph.building.graph import Graph
from quadpy.graph.captures.arena import Arena, ArenaMark
from quadpy.graph.model.nodes import ChildNode, EventRecordNode, HostNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.model.recording import Call, LaunchStep, Recording, Step
from quadpy.runtime.device.current import State, launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.captured_work import CapturedWork, GraphLaunch
from quadpy.runtime.launch.capturing import CapturedStream
from quadpy.runtime.launch.launch import Bound, HostLaunch, KernelLaunch
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline


class Comparison:
    """Follows a function through ``recording``, which is None for a function that was not recorded yet.

    active   whether all calls so far were those of the recording
    bound    launches with other arguments than before, and these
    changed  other calls with other arguments, by the number of the step: the node, the work and what it keeps alive
    packed   how many launches had to be packed for the comparison
    after    the names of the nodes that the next one on each stream comes after
    """

    def __init__(
        self, device: Device, origin: Stream, after: dict[Timeline, tuple[str, ...]], recording: Recording | None
    ) -> None:
        self.active = recording is not None
        self.bound: list[tuple[LaunchStep, tuple[Any, ...], Bound]] = []
        self.changed: dict[int, tuple[Node, CapturedWork, tuple[object, ...]]] = {}
        self.packed = 0
        recording = recording or Recording(())
        self._steps, self._next_launches, self._linear = recording.steps, recording.next_launches, recording.linear
        self._origin, self._after = origin, after
        self._position = 0
        self._config, self._thread, self._timeline = State.config, device.streams.thread, origin.timeline

    @property
    def is_complete(self) -> bool:
        """Whether the function has repeated the whole recording."""
        return self.active and self._position == len(self._steps)

    def repeats(self, kernel: Any, args: tuple[Any, ...], stream: object) -> bool:
        """Whether the call is the next launch of the recording, perhaps with other arguments; it then counts as done."""
        found = self._next_launches[self._position] if self.active else None
        if found is None:
            return False
        number, step = found
        on = self._thread.uses[-1].stream if stream is None else stream
        if step.kernel is not kernel or on is not (step.stream or self._origin) or State.config is not self._config:
            return False
        if not (all(map(is_, args, step.args)) and (step.immutable or step.check_immutable())):
            if (binder := step.binder or step.find_binder()) is None:
                return False
            drawn = launches_so_far() if step.draws else 0
            bound = binder.bind(self._timeline, *args)
            is_same = bound and step.block.startswith(bound.block)  # then the step keeps the same memory alive
            if not bound or not (is_same or self._linear):  # with forks, other memory may need another order
                if step.draws:
                    take_back_launches(drawn, launches_so_far())
                return False
            self.packed += 1
            if not is_same:
                self.bound.append((step, args, bound))
        self._position = number + 1
        if not self._linear:
            self._after[(step.stream or self._origin).timeline] = step.after
        return True

    def match(self, call: Call, stream: CapturedStream, keep: tuple[object, ...] = ()) -> Step | None:
        """The next step if it is this call; ``advance`` then goes past it."""
        if not self.active or self._position >= len(self._steps):
            return None
        step = self._steps[self._position]
        alike = stream.timeline is (step.stream or self._origin).timeline and step.call == call
        return step if alike and len(keep) == len(step.keep) and all(map(is_, keep, step.keep)) else None

    def can_change(self, work: CapturedWork, stream: CapturedStream) -> bool:
        """Whether the next step is work of the same kind, whose node can be replaced by one for ``work``."""
        if not self.active or not self._linear or self._position >= len(self._steps):
            return False
        known = self._steps[self._position].call
        return type(known) is type(work) and not isinstance(work, GraphLaunch) and stream.timeline is self._timeline

    def change(self, node: Node, work: CapturedWork, keep: tuple[object, ...]) -> None:
        """Replace the node of the next step, and go past it."""
        self.changed[self._position] = node, work, keep
        self.advance(self._steps[self._position])

    def advance(self, step: Step) -> None:
        """Go past ``step``, which is the next one."""
        self._position += 1
        if not self._linear:
            self._after[(step.stream or self._origin).timeline] = step.after

    def arena_mark(self) -> ArenaMark:
        """The state of the arena before the next step."""
        return self._steps[self._position - 1].mark if self._position else Arena.START

    def matched_steps(self) -> list[Step]:
        """Copies of the steps so far, with the arguments of this time."""
        matched = [step.copy() for step in self._steps[: self._position]]
        numbers = {id(step): number for number, step in enumerate(self._steps)}
        for known, args, bound in self.bound:
            step = matched[numbers[id(known)]]
            assert isinstance(step, LaunchStep)
            step.bind(args, bound)
        for number, change in self.changed.items():
            matched[number].change(*change)
        return matched


def changes_between(before: tuple[Node, ...], after: Graph) -> tuple[dict[str, Node], int] | None:
    """The nodes to replace, by name, and how many of them do other work; None if the structure differs."""
    nodes = tuple(after)
    if len(nodes) != len(before):
        return None
    changes: dict[str, Node] = {}
    different = 0
    for old, new in zip(before, nodes, strict=True):
        if type(old) is not type(new) or (old.name, old.after) != (new.name, new.after):
            return None
        if isinstance(new, ChildNode) and isinstance(old, ChildNode) and old.nodes is not new.nodes:
            return None
        other = _work(old) != _work(new)
        different += other
        if other or list(map(id, old.keep)) != list(map(id, new.keep)):
            changes[new.name] = new
    return changes, different


def _work(node: Node) -> object:
    """The work of a node, for comparison."""
    match node:
        case KernelNode():
            return node.flow, tuple(map(_launch, node.launches))
        case MemcpyNode():
            return node.target, node.source, node.nbytes, node.direction
        case MemsetNode():
            return node.target, node.value, node.element, node.width, node.height, node.pitch
        case HostNode():
            return id(node.function), tuple(map(id, node.arguments))
        case EventRecordNode():
            return id(node.event)
        case ChildNode():
            return tuple(map(id, node.nodes))
        case _:
            return node.kind


def _launch(launch: KernelLaunch | HostLaunch) -> object:
    if isinstance(launch, HostLaunch):
        return id(launch.keep[0]), launch.arguments  # the plan, and the arguments that it is called with
    return launch.function, launch.grid, launch.block, launch.shared_bytes, launch.arguments
