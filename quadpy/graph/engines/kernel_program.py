"""A graph kernel as graphs: what all its calls have in common, and the driver's graph for a part of it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol, TypeAlias

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.flow import Flow, Loop, Step, tasks_of
from quadpy.graph.engines.executable import Executable
from quadpy.graph.engines.kernel_stats import Counts
from quadpy.graph.engines.parts import PartWork, Placed, ends_of, first_node, parts_of_tasks, place, root_count, work_of
from quadpy.graph.engines.task_nodes import Effects, TaskNode, task_nodes
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import FunctionHandle, StreamHandle
from quadpy.runtime.drivers.graph_driver import CopyWork, EmptyWork, GraphDriver, KernelWork, Work
from quadpy.runtime.launch.launch import MemoryRange

__all__ = ["BoundGraph", "KernelBinding", "KernelProgram", "RepeatedBody"]

MOST_NODES: Final = 192
"""Nodes of a graph that the host repeats, unless one pass has more: with 200, HIP has shown stale pointers."""
_CHUNKS: Final = (1, 4, 16, 64)
"""Passes over a loop's body in one graph; the next larger one comes when the last one has not ended the loop."""
_INNER: Final = 4
"""How often a pass over a loop's body goes over the body of a loop in it."""
_ADDRESS: Final = struct.Struct("Q")


@dataclass(frozen=True, slots=True)
class KernelBinding:
    """What the arguments of a call come to: the argument block, a grid for each launch, where conditions lie."""

    arguments: bytes
    grids: tuple[int, ...]
    conditions: dict[str, MemoryRange]


@dataclass(frozen=True, slots=True)
class RepeatedBody:
    """A loop that the host repeats: ``steps`` of its body, after each part of which the device decides what comes next.

    chunks  for how many passes at a time there may be graphs
    nested  whether there are loops in it
    """

    steps: Flow
    chunks: tuple[int, ...]
    nested: bool

    @staticmethod
    def of(loop: Loop) -> RepeatedBody:
        size = len(list(tasks_of(_one_pass(loop.body))))
        chunks = tuple(count for count in _CHUNKS if count == 1 or count * size <= MOST_NODES)
        return RepeatedBody(loop.body, chunks, any(isinstance(step, Loop) for step in loop.body))


GraphPart: TypeAlias = "tuple[TaskNode, ...] | RepeatedBody"
"""What is one graph, or a loop."""


class Launchable(Protocol):
    """A launch of the code: its function, and the threads of a block."""

    @property
    def function(self) -> FunctionHandle: ...

    @property
    def block(self) -> tuple[int, int, int]: ...


class KernelProgram:
    """What the calls of one kernel have in common: ``parts``, which run one after the other.

    Loops are nodes unless the code has latches, by which it decides itself what comes next: these the host repeats.
    ``ordered`` keeps the order of tasks though nothing is known to need it.  With ``upload_kernels`` it is code that reads
    its arguments from memory, where these put them.  ``expected`` are the iterations of each loop in the last call.
    """

    def __init__(
        self, code: CodeObject, launches: Sequence[Launchable], graphs: GraphDriver, setter: FunctionHandle | None,
        *, ordered: bool, upload_kernels: Mapping[int, FunctionHandle] | None = None,
    ) -> None:  # fmt: skip
        self.code, self.graphs, self.setter, self.upload_kernels = code, graphs, setter, upload_kernels
        self._launches = launches
        ends = [slot.offset for slot in code.layout.slots[1:]]
        self._slots = list(zip(code.layout.slots, [*ends, code.layout.size], strict=False))
        self._touched = [frozenset(name for name, _ in task.effects) for task in code.tasks]
        self._offsets = {slot.param: slot.offset for slot in code.layout.slots if slot.part == "pointer"}
        self.parts: tuple[GraphPart, ...] = tuple(self._split(ordered=ordered))
        self.expected: dict[int, int] = {}
        self._nodes: dict[tuple[int, int], tuple[TaskNode, ...]] = {}
        self._last_change: tuple[KernelBinding, KernelBinding, frozenset[int]] | None = None

    def _split(self, *, ordered: bool) -> Iterator[GraphPart]:
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
        """What the graphs are bound to where the arguments of ``binding`` stand at ``address``."""
        where = {name: (address + self._offsets[name], size) for name, (_, size) in binding.conditions.items()}
        return KernelBinding(_ADDRESS.pack(address), binding.grids, where)

    def nodes(self, number: int, count: int) -> tuple[TaskNode, ...]:
        """The nodes of a part, of a loop those of ``count`` passes."""
        part = self.parts[number]
        if not isinstance(part, RepeatedBody):
            return part
        found = self._nodes.get((number, count))
        if found is None:
            # In order: to look whose turn it is takes less time than branches take to wait for each other.
            found = self._nodes[number, count] = task_nodes(_one_pass(part.steps) * count, None)
        return found

    def work(self, task: int, binding: KernelBinding) -> Work:
        """A launch without blocks finds in one that there is nothing to do; blocks that meet would not look."""
        launch, blocks = self._launches[task], binding.grids[task]
        if not blocks and self.code.tasks[task].has_barrier:
            return EmptyWork()
        return KernelWork(launch.function, (max(blocks, 1), 1, 1), launch.block, 0, binding.arguments)

    def changed(self, before: KernelBinding, now: KernelBinding) -> frozenset[int]:
        """The tasks that read what is not the same in both; each graph of a call asks for the same two."""
        known = self._last_change
        if known is None or known[0] is not before or known[1] is not now:
            known = self._last_change = before, now, self._changed(before, now)
        return known[2]

    def _changed(self, before: KernelBinding, now: KernelBinding) -> frozenset[int]:
        old, new = before.arguments, now.arguments
        names: set[str] = set()
        for slot, end in self._slots:
            if old[slot.offset : end] != new[slot.offset : end]:
                if slot.part != "pointer":
                    return frozenset(range(len(self._launches)))
                names.add(slot.param)
        grids = (k for k, (a, b) in enumerate(zip(before.grids, now.grids, strict=True)) if a != b)
        return frozenset(k for k, touched in enumerate(self._touched) if touched & names).union(grids)


def _effects_of(task: TaskInfo) -> Effects:
    touched = {name: letters != "r" for name, letters in task.effects}
    if task.scratch:
        touched["$scratch"] = task.scratch != "r"
    return touched


def _one_pass(steps: Flow) -> Flow:
    """Steps that go over a loop's body once, and a few times over that of a loop in it."""
    found: list[Step] = []
    for step in steps:
        found += _one_pass(step.body) * _INNER if isinstance(step, Loop) else (step,)
    return tuple(found)


class BoundGraph:
    """Nodes of a program as an executable graph, bound to the arguments of a call; ``tail`` comes after all of them.

    A node is one launch, and has the whole argument block of the kernel.  For another block, only the nodes that read
    what is different are changed.  Of code that reads its arguments from memory, a node has the address of the block,
    and is changed where the grid is another.  ``retire`` gives things back when the launches that are pending are complete.
    """

    def __init__(
        self,
        program: KernelProgram,
        nodes: tuple[TaskNode, ...],
        binding: KernelBinding,
        counts: Counts,
        reaper: Reaper,
        retire: Callable[[ResourceStack], None],
        *,
        tail: CopyWork | None = None,
    ) -> None:
        self._program, self._nodes, self._binding, self._counts = program, nodes, binding, counts
        self._reaper, self._retire, self._tail = reaper, retire, tail
        self._graphs = program.graphs
        self._build()

    def bind(self, binding: KernelBinding) -> None:
        """Let later launches do what ``binding`` says, by changing nodes or by making the graph anew.

        An exception leaves it of no use.
        """
        if binding is self._binding or binding == self._binding:
            return
        before, self._binding = self._binding, binding
        changed = self._program.changed(before, binding)
        works = {task: self._program.work(task, binding) for task in changed}
        if not all(self._change(placed, node, works) for placed, node in zip(self._placed, self._nodes, strict=True)):
            old = self._owned
            self._build()
            self._retire(old)
            self._counts.rebuilds += 1

    def launch(self, stream: StreamHandle) -> None:
        """Put one run of all nodes on ``stream``."""
        self._graphs.launch(self._exec, stream)
        self._counts.launches += 1

    def retire(self) -> None:
        """Give it back when the launches that are pending are complete."""
        self._retire(self._owned)

    def give_back(self) -> None:
        """Give it back: no launch is pending."""
        self._owned.give_back()

    def _change(self, placed: Placed, node: TaskNode, works: Mapping[int, Work]) -> bool:
        """Whether the node does now what is bound."""
        work: PartWork | None = works.get(node.task)
        if node.kind == "again":
            work = work_of(node, works, self._program.setter, self._binding.conditions)
        if work is None or work == placed.work:
            return True
        if not self._executable.update(placed, work):
            return False
        self._counts.updates += 1
        return True

    def _build(self) -> None:
        """The driver's graph for what is bound."""
        program, graphs = self._program, self._graphs
        works = [program.work(task, self._binding) for task in range(len(program.code.tasks))]
        parts = parts_of_tasks(self._nodes, works, program.setter, self._binding.conditions)
        owned = ResourceStack(self._reaper)
        try:
            graph = owned.make(graphs.graph_destroy, graphs.graph_create)
            placed = place(graphs, graph, first_node(graphs, graph, root_count(parts)), parts)
            if self._tail is not None:
                graphs.add(graph, [one.handle for one in ends_of(placed)], self._tail)
            executable = Executable(graphs, graph, owned)
        except BaseException:
            owned.give_back()
            raise
        self.graph, self._executable, self._placed, self._owned = graph, executable, placed, owned
        self._exec = executable.handle
        self._counts.builds += 1
