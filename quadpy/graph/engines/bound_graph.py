"""A segment of a graph kernel as the driver's graph, bound to the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quadpy.graph.engines.driver_nodes import (
    NodeWork,
    Placed,
    driver_nodes_of_tasks,
    ends_of,
    first_node,
    place,
    root_count,
    work_of,
)
from quadpy.graph.engines.executable import Executable
from quadpy.graph.engines.kernel_program import KernelBinding, KernelProgram
from quadpy.graph.engines.stats import Counts
from quadpy.graph.engines.task_nodes import TaskNode
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.drivers.graph_driver import CopyWork, Work

__all__ = ["BoundGraph"]


class BoundGraph:
    """Nodes of a program as an executable graph, bound to the arguments of a call; ``tail`` runs after all of them.

    Each node is one launch, with the whole argument block of the kernel.  For another block, only the nodes that read a
    difference are changed.  Nodes of code that reads its arguments from memory hold the address of the block, and
    change only with the grid.  ``retire`` gives resources back when pending launches are complete.
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
        """Let later launches do what ``binding`` says, by changing nodes or by rebuilding the graph.

        After an exception it must not be used.
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
        """Give the graph back when pending launches are complete."""
        self._retire(self._owned)

    def give_back(self) -> None:
        """Give the graph back; no launch may be pending."""
        self._owned.give_back()

    def _change(self, placed: Placed, node: TaskNode, works: Mapping[int, Work]) -> bool:
        """Let ``node`` do what is bound; False if that is refused."""
        work: NodeWork | None = works.get(node.task)
        if node.kind == "again":
            work = work_of(node, works, self._program.setter, self._binding.conditions)
        if work is None or work == placed.work:
            return True
        if not self._executable.update(placed, work):
            return False
        self._counts.updates += 1
        return True

    def _build(self) -> None:
        """Make the driver's graph for what is bound."""
        program, graphs = self._program, self._graphs
        works = [program.work(task, self._binding) for task in range(len(program.code.tasks))]
        made = driver_nodes_of_tasks(self._nodes, works, program.setter, self._binding.conditions)
        owned = ResourceStack(self._reaper)
        try:
            graph = owned.make(graphs.graph_destroy, graphs.graph_create)
            placed = place(graphs, graph, first_node(graphs, graph, root_count(made)), made)
            if self._tail is not None:
                graphs.add(graph, [one.handle for one in ends_of(placed)], self._tail)
            executable = Executable(graphs, graph, owned)
        except BaseException:
            owned.give_back()
            raise
        self.graph, self._executable, self._placed, self._owned = graph, executable, placed, owned
        self._exec = executable.handle
        self._counts.builds += 1
