"""Decides which loops on a GPU run several iterations per thread.

These are short loops over memory and maps of elementary functions, whose loads are then under way together, and loops
of several axes, whose indices are then computed together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quadpy.codegen.frames import Coarsened
from quadpy.codegen.plans.cost import cost_of
from quadpy.ir import nodes as ir
from quadpy.ir.passes.stores_last import stores_last
from quadpy.ir.touches import kind_of, only_reads
from quadpy.ir.walk import walk

_MOST_COST: Final = 48
"""In units of ``plans.cost``: above this cost, arithmetic hides the latency of memory."""
_MOST_COST_OF_CALLS: Final = 512
"""The same for loops of one axis that call functions, such as elementary ones: code size and compile time grow."""
_MOST_COST_OF_BRANCHES: Final = 192
"""Above this cost, the divisions that compute an iteration's indices no longer matter."""
_SIMPLE: Final = (ir.Assign, ir.AssignOne, ir.Continue)
_LINE: Final = 4
"""Iterations of a strip in a loop of one axis,"""
_COLUMN: Final = 6
"""and in one of several: neighbours on the last axis but one."""


def wants_coarsening(task: ir.ParallelTask, kernel: ir.Kernel) -> bool:
    """Whether an iteration of ``task`` is little more than loads and stores, or elementary functions, one after the other."""
    stmts = task.body.stmts
    if not all(map(_is_plain, stmts)) or not any(map(only_reads, stmts)):
        return False
    calls = len(task.axes) == 1 and any(isinstance(node, (ir.Call, ir.CallMany)) for node in walk(task.body))
    return _cost(task, kernel) <= (_MOST_COST_OF_CALLS if calls else _MOST_COST)


def coarsened_frame(task: ir.ParallelTask, kernel: ir.Kernel) -> Coarsened | None:
    """How threads run several iterations of ``task``; None if each has one.

    Iterations with branches cannot run side by side.  Run one after the other, those of a column still share the
    divisions that compute their indices.
    """
    if wants_coarsening(task, kernel):
        return Coarsened(*_strip_of(task), side_by_side=True)
    if len(task.axes) > 1 and _is_simple(task.body) and _cost(task, kernel) <= _MOST_COST_OF_BRANCHES:
        return Coarsened(*_strip_of(task), side_by_side=False)
    return None


def _cost(task: ir.ParallelTask, kernel: ir.Kernel) -> int:
    return cost_of(task.body, {f.name: f for f in kernel.functions})


def _is_simple(block: ir.Block) -> bool:
    return all(
        _is_simple(stmt.then) and _is_simple(stmt.orelse)
        if isinstance(stmt, ir.If)
        else _is_plain(stmt) or isinstance(stmt, _SIMPLE)
        for stmt in block.stmts
    )


def _is_plain(stmt: ir.Stmt) -> bool:
    """Whether ``stmt`` computes, loads or stores."""
    return isinstance(stmt, (ir.Let, ir.CallMany)) or kind_of(stmt) in (ir.Access.READ, ir.Access.WRITE)


def _strip_of(task: ir.ParallelTask) -> tuple[int, int]:
    """The axis of a thread's iterations, and how many there are."""
    return (0, _LINE) if len(task.axes) == 1 else (len(task.axes) - 2, _COLUMN)


def move_stores(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with the stores after the loads in the loops whose threads may run several iterations.

    A loop that would be left without a load is not changed, so that it is still coarsened.
    """
    return replace(kernel, tasks=tuple(_with_stores_last(task, kernel) for task in kernel.tasks))


def _with_stores_last(task: ir.Task, kernel: ir.Kernel) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or not wants_coarsening(task, kernel):
        return task
    stmts = stores_last(task.body.stmts, disjoint=kernel.noalias)
    if stmts == task.body.stmts or not any(map(only_reads, stmts)):
        return task
    return replace(task, body=ir.Block(stmts, span=task.body.span))
