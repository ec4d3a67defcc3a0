"""A graph kernel as graphs: the parts that all its calls share."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol, TypeAlias

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.flow import Flow, Loop, Step, tasks_of
from quadpy.graph.device_graphs import graphs_of
from quadpy.graph.engines.task_nodes import Effects, TaskNode, task_nodes
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.runtime.drivers.graph_driver import EmptyWork, KernelWork, Work
from quadpy.runtime.launch.launch import MemoryRange

__all__ = ["KernelBinding", "KernelProgram", "RepeatedBody", "loops_are_nodes"]

MOST_NODES: Final = 192
"""Limit for a graph that the host repeats, unless a single pass has more: with 200 nodes, HIP has shown stale pointers."""
_CHUNKS: Final = (1, 4, 16, 64)
"""Passes over a loop's body in one graph; a longer chunk follows each one that has not ended the loop."""
_INNER: Final = 4
"""How often one pass over a loop's body repeats the body of a nested loop."""
_ADDRESS: Final = struct.Struct("Q")


@dataclass(frozen=True, slots=True)
class KernelBinding:
    """The arguments of a call: the argument block, a grid for each launch, and where the conditions of loops are."""

    arguments: bytes
    grids: tuple[int, ...]
    conditions: dict[str, MemoryRange]


@dataclass(frozen=True, slots=True)
class RepeatedBody:
    """A loop that the host repeats: the ``steps`` of its body, with a latch after each segment, which decides what comes next.

    chunks  the numbers of passes for which there may be graphs
    nested  whether it contains loops
    """

    steps: Flow
    chunks: tuple[int, ...]
    nested: bool

    @staticmethod
    def of(loop: Loop) -> RepeatedBody:
        size = len(list(tasks_of(_one_pass(loop.body))))
        chunks = tuple(count for count in _CHUNKS if count == 1 or count * size <= MOST_NODES)
        return RepeatedBody(loop.body, chunks, any(isinstance(step, Loop) for step in loop.body))


Segment: TypeAlias = "tuple[TaskNode, ...] | RepeatedBody"
"""One graph, or one loop."""


def loops_are_nodes(device: Device) -> bool:
    """Whether graphs of ``device`` may repeat a part of themselves."""
    return "loops" in graphs_of(device).features


class Launchable(Protocol):
    """A launch of the code."""

    @property
    def function(self) -> FunctionHandle: ...

    @property
    def block(self) -> tuple[int, int, int]: ...


class KernelProgram:
    """The parts that all calls of one kernel share: ``segments``, which run one after the other.

    Loops are nodes, unless the code has latches: then the host repeats them.  ``ordered`` keeps the order of tasks, for
    arrays that may overlap.  With ``upload_kernels`` the code reads its arguments from memory, where these kernels write
    them.  ``expected`` holds the iterations that each loop needed in the last call.
    """

    def __init__(
        self, device: Device, code: CodeObject, launches: Sequence[Launchable], setter: FunctionHandle | None,
        *, ordered: bool, upload_kernels: Mapping[int, FunctionHandle] | None = None,
    ) -> None:  # fmt: skip
        self.code, self.graphs, self.setter, self.upload_kernels = code, graphs_of(device), setter, upload_kernels
        self._launches = launches
        ends = [value.offset for value in code.layout.values[1:]]
        self._values = list(zip(code.layout.values, [*ends, code.layout.size], strict=False))
        self._touched = [frozenset(name for name, _ in task.effects) for task in code.tasks]
        self._offsets = {value.param: value.offset for value in code.layout.values if value.part == "pointer"}
        self.segments: tuple[Segment, ...] = tuple(self._split(ordered=ordered))
        self.expected: dict[int, int] = {}
        self._nodes: dict[tuple[int, int], tuple[TaskNode, ...]] = {}
        self._last_change: tuple[KernelBinding, KernelBinding, frozenset[int]] | None = None

    def _split(self, *, ordered: bool) -> Iterator[Segment]:
        tasks = self.code.tasks
        effects = None if ordered else list(map(_effects_of, tasks))
        flow = self.code.flow or tuple(range(len(tasks)))
        if not any(task.latch for task in tasks):
            yield task_nodes(flow, effects)
            return
        for loops, steps in groupby(flow, lambda step: isinstance(step, Loop)):
            if loops:
                yield from (RepeatedBody.of(step) for step in steps if isinstance(step, Loop))
            else:
                yield task_nodes(tuple(steps), effects)

    def bound_at(self, address: int, binding: KernelBinding) -> KernelBinding:
        """``binding`` for graphs that read its arguments from memory at ``address``."""
        where = {name: (address + self._offsets[name], size) for name, (_, size) in binding.conditions.items()}
        return KernelBinding(_ADDRESS.pack(address), binding.grids, where)

    def nodes(self, number: int, count: int) -> tuple[TaskNode, ...]:
        """The nodes of a segment; for a loop, those of ``count`` passes."""
        segment = self.segments[number]
        if not isinstance(segment, RepeatedBody):
            return segment
        found = self._nodes.get((number, count))
        if found is None:
            # In order: a task that has nothing to do ends sooner than branches could wait for each other.
            found = self._nodes[number, count] = task_nodes(_one_pass(segment.steps) * count, None)
        return found

    def work(self, task: int, binding: KernelBinding) -> Work:
        """The launch of a task.  Without iterations it is one block, which finds none; code with barriers would not check."""
        launch, blocks = self._launches[task], binding.grids[task]
        if not blocks and self.code.tasks[task].has_barrier:
            return EmptyWork()
        return KernelWork(launch.function, (max(blocks, 1), 1, 1), launch.block, 0, binding.arguments)

    def changed(self, before: KernelBinding, now: KernelBinding) -> frozenset[int]:
        """The tasks that read what differs; each graph of a call asks about the same two bindings."""
        known = self._last_change
        if known is None or known[0] is not before or known[1] is not now:
            known = self._last_change = before, now, self._changed(before, now)
        return known[2]

    def _changed(self, before: KernelBinding, now: KernelBinding) -> frozenset[int]:
        old, new = before.arguments, now.arguments
        names: set[str] = set()
        for value, end in self._values:
            if old[value.offset : end] != new[value.offset : end]:
                if value.part != "pointer":
                    return frozenset(range(len(self._launches)))
                names.add(value.param)
        grids = (k for k, (a, b) in enumerate(zip(before.grids, now.grids, strict=True)) if a != b)
        return frozenset(k for k, touched in enumerate(self._touched) if touched & names).union(grids)


def _effects_of(task: TaskInfo) -> Effects:
    touched = {name: letters != "r" for name, letters in task.effects}
    if task.scratch:
        touched["$scratch"] = task.scratch != "r"
    return touched


def _one_pass(steps: Flow) -> Flow:
    """Steps that run a loop's body once, and the body of a nested loop a few times."""
    found: list[Step] = []
    for step in steps:
        found += _one_pass(step.body) * _INNER if isinstance(step, Loop) else (step,)
    return tuple(found)
