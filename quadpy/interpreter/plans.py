"""The deviations of compiled kernels from the text of the program, which Python must reproduce.

A loop that only accumulates has partial results in a fixed shape, and loops that accumulate into small arrays have copies
of them (``codegen.reduction``, ``codegen.plans.privatise``).  The passes and the schedule of the CPU decide which loops
do so; here their decisions are mapped back to the loops and statements of the kernel before it was divided into tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from quadpy.codegen.frames import Privatised
from quadpy.codegen.schedule import KernelSchedule
from quadpy.core.source import NOWHERE, Span
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, uses_block
from quadpy.ir.numbering import Numbers, statements
from quadpy.ir.walk import map_children, walk

_FILE: Final = "atomic"
"""Replaces the file in the spans that number atomics."""


def numbered(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with the number of each atomic operation in its span, which passes carry along."""
    numbers = count()

    def visit(node: ir.Node) -> ir.Node:
        inner = map_children(node, visit)
        return replace(inner, span=Span(_FILE, next(numbers))) if isinstance(inner, ir.Atomic) else inner

    return map_children(kernel, visit)


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How the iterations of one parallel loop run.

    reductions    what it accumulates into, after the passes
    block_dim     iterations of a block, where they know their block; else 0
    copied        the arrays that chunks of iterations have copies of, by their operation; and the cost of an iteration
    """

    reductions: tuple[ir.Reduction, ...] = ()
    block_dim: int = 0
    copied: tuple[tuple[ir.ArrayParam, ir.AtomicOp], ...] = ()
    cost: int = 0


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """``loops`` are the plans of the parallel loops, and ``contributions`` the variables of atomics, both by ``numbers``."""

    kernel: ir.Kernel
    loops: Mapping[int, LoopPlan]
    contributions: Mapping[int, ir.Var]
    numbers: Numbers

    def contribution(self, stmt: ir.Atomic) -> ir.Var | None:
        """The variable that an iteration accumulates into instead of ``stmt``; None if ``stmt`` runs as written."""
        return self.contributions.get(self.numbers[stmt]) if self.contributions else None

    def crossing(self, slot: ir.Slot) -> ir.Var:
        """The variable that the trace gave this slot."""
        return self.kernel.crossing[slot.number]


def plan_kernel(kernel: ir.Kernel, tasks: Iterable[ir.Task], schedule: KernelSchedule) -> KernelPlan:
    """The plan of ``kernel``, which was traced with lines.

    ``tasks`` are those of the same kernel without, ``numbered``, and ``schedule`` says how they run.  The passes of the
    target, which come before the schedule, make one statement of several, so numbers are looked for in ``tasks``.
    """
    numbers = Numbers(kernel.body)
    found = [stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.ParallelFor)]
    loops_of_tasks = [
        (task, scheduled.frame)
        for task, scheduled in zip(tasks, schedule.tasks, strict=True)
        if isinstance(task, ir.ParallelTask)
    ]
    loops: dict[int, LoopPlan] = {}
    contributions: dict[int, ir.Var] = {}
    atomics = [stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Atomic)]
    for number, (loop, (task, frame)) in enumerate(zip(found, loops_of_tasks, strict=True)):
        names = {r.var: replace(r.var, name=f"total.{number}.{k}") for k, r in enumerate(task.reductions)}
        for node in walk(task.body):
            if isinstance(node, ir.Assign) and node.span.file == _FILE and node.var in names:
                contributions[numbers[atomics[node.span.line]]] = names[node.var]
        reductions = tuple(replace(r, var=names[r.var]) for r in task.reductions)
        dim = (task.block_dim or DEFAULT_BLOCK) if uses_block(task) else 0
        plan = LoopPlan(reductions, dim)
        if isinstance(frame, Privatised):
            plan = replace(plan, copied=frame.plan.arrays, cost=frame.cost)
        loops[numbers[loop]] = plan
    return KernelPlan(kernel, loops, contributions, numbers)


_NOTHING: Final = ir.Kernel("", (), (), (), ir.Block((), span=NOWHERE), span=NOWHERE)
NO_LOOPS: Final = KernelPlan(_NOTHING, {}, {}, Numbers(_NOTHING))
"""The plan of functions, which have no such loops."""
