"""One graph of a call, in the driver.  Owns: Binding, Piece.  Imports: ``artifact``, ``runtime``.

A node is one launch, and has the whole argument block of the kernel.  When a call has another block, only the nodes that
read what is different are changed.  Of code that reads its arguments from memory, a node has the address of the block, and
is changed where the grid is another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from quadpy.artifact import CodeObject
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.jit.graph_shape import GraphNode
from quadpy.jit.graph_stats import Counts
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import FunctionHandle, StreamHandle
from quadpy.runtime.drivers.graph_driver import (
    ConditionHandle,
    CopyWork,
    EmptyWork,
    GraphDriver,
    GraphHandle,
    KernelWork,
    NodeHandle,
    Work,
)
from quadpy.runtime.launch.graph_parts import first_node, tell
from quadpy.runtime.launch.launch import MemoryRange

__all__ = ["MOST_UPDATES", "Binding", "Launches", "Piece"]

MOST_UPDATES: Final = 1000
"""Changes of nodes before the executable graph is made anew: HIP takes new memory for each, until it is destroyed."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What the arguments of a call come to: the argument block, a grid for each launch, where conditions lie."""

    arguments: bytes
    grids: tuple[int, ...]
    conditions: dict[str, MemoryRange]


class Launches:
    """The launches of one code object: what each reads of the argument block, and what it is in a graph."""

    def __init__(self, code: CodeObject, launches: Sequence[TaskLaunch]) -> None:
        self.launches, self._infos = launches, code.tasks
        ends = [slot.offset for slot in code.layout.slots[1:]]
        self._slots = list(zip(code.layout.slots, [*ends, code.layout.size], strict=False))
        self._touched = [frozenset(name for name, _ in info.effects) for info in code.tasks]

    def work(self, task: int, binding: Binding) -> Work:
        """A launch without blocks finds in one that there is nothing to do; whole blocks would not look."""
        launch, blocks = self.launches[task], binding.grids[task]
        if not blocks and self._infos[task].has_barrier:
            return EmptyWork()
        return KernelWork(launch.function, (max(blocks, 1), 1, 1), launch.block, 0, binding.arguments)

    def changed(self, before: Binding, now: Binding) -> frozenset[int]:
        """The launches to which the two are not the same."""
        old, new = before.arguments, now.arguments
        names: set[str] = set()
        for slot, end in self._slots:
            if old[slot.offset : end] != new[slot.offset : end]:
                if slot.part != "pointer":
                    return frozenset(range(len(self.launches)))
                names.add(slot.param)
        grids = (k for k, (a, b) in enumerate(zip(before.grids, now.grids, strict=True)) if a != b)
        return frozenset(k for k, touched in enumerate(self._touched) if touched & names).union(grids)


@dataclass(slots=True)
class _Placed:
    """A node of the driver's; ``condition`` is the loop of which it tells."""

    handle: NodeHandle
    node: GraphNode
    work: Work
    condition: ConditionHandle = ConditionHandle(0)


class Piece:
    """``nodes`` as an executable graph, bound to the arguments of a call; ``tail`` comes behind all of them.

    ``teller`` is the function by which the device is told of a loop.  ``retire`` gives things back when the launches
    that are pending are complete.
    """

    def __init__(
        self,
        graphs: GraphDriver,
        launches: Launches,
        nodes: tuple[GraphNode, ...],
        binding: Binding,
        counts: Counts,
        reaper: Reaper,
        retire: Callable[[ResourceStack], None],
        *,
        tail: CopyWork | None = None,
        teller: FunctionHandle | None = None,
    ) -> None:
        self._graphs, self._launches, self._nodes, self._counts = graphs, launches, nodes, counts
        self._tail, self._teller = tail, teller
        self._reaper, self._retire = reaper, retire
        self._binding = binding
        self._build()

    def bind(self, binding: Binding) -> None:
        """Let later launches do what ``binding`` says, by changing nodes or by making the graph anew.

        An exception leaves it of no use.
        """
        if binding is self._binding or binding == self._binding:
            return
        before, self._binding = self._binding, binding
        changed = self._launches.changed(before, binding)
        concerned = (placed for placed in self._placed if placed.condition or placed.node.task in changed)
        if not all(map(self._change, concerned)):
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

    def _change(self, placed: _Placed) -> bool:
        """Whether the node does now what is bound."""
        work = self._work(placed.node, placed.condition)
        if work == placed.work:
            return True
        if type(work) is not type(placed.work) or self._updates >= MOST_UPDATES:
            return False
        if not self._graphs.update(self._exec, placed.handle, work):
            return False
        placed.work = work
        self._updates += 1
        self._counts.updates += 1
        return True

    def _build(self) -> None:
        """The driver's graph for what is bound."""
        placed: list[_Placed] = []
        owned = ResourceStack(self._reaper)
        try:
            graph = owned.make(self._graphs.graph_destroy, self._graphs.graph_create)
            leaves = self._add(graph, self._nodes, ConditionHandle(0), placed)
            if self._tail is not None:
                self._graphs.add(graph, leaves, self._tail)
            exec_ = owned.make(self._graphs.exec_destroy, self._graphs.instantiate, graph)
        except BaseException:
            owned.give_back()
            raise
        self.graph, self._exec, self._placed, self._updates, self._owned = graph, exec_, placed, 0, owned
        self._counts.builds += 1

    def _add(
        self, graph: GraphHandle, nodes: Sequence[GraphNode], around: ConditionHandle, placed: list[_Placed]
    ) -> list[NodeHandle]:
        """Add ``nodes`` of the body of the loop ``around``; those that nothing comes after."""
        handles: list[NodeHandle] = []
        conditions: dict[int, ConditionHandle] = {}
        first = first_node(self._graphs, graph, sum(not node.after for node in nodes))
        for number, node in enumerate(nodes):
            after = [handles[k] for k in node.after] or first
            if node.kind == "loop":
                begin = next((k for k in node.after if nodes[k].kind == "begin"), -1)
                condition = conditions[begin] if begin >= 0 else self._graphs.condition_create(graph)
                handle, body = self._graphs.add_loop(graph, after, condition)
                self._add(body, node.body, condition, placed)
            else:
                told = around if node.kind == "again" else ConditionHandle(0)
                if node.kind == "begin":
                    told = conditions[number] = self._graphs.condition_create(graph)
                work = self._work(node, told)
                handle = self._graphs.add(graph, after, work)
                placed.append(_Placed(handle, node, work, told))
            handles.append(handle)
        followed = {k for node in nodes for k in node.after}
        return [handle for k, handle in enumerate(handles) if k not in followed]

    def _work(self, node: GraphNode, told: ConditionHandle) -> Work:
        if node.kind == "task":
            return self._launches.work(node.task, self._binding)
        assert self._teller is not None
        address, nbytes = self._binding.conditions[node.name] if node.kind == "again" else (0, 0)
        return tell(self._teller, told, address, nbytes)
