"""Moves loads before the inner loops that use them, in CPU loops whose iterations run side by side."""

from __future__ import annotations

from dataclasses import replace

from quadpy.codegen.plans.vectorise import plan_vector
from quadpy.ir import nodes as ir
from quadpy.ir.passes.early_loads import with_early_loads
from quadpy.ir.walk import walk


def move_loads(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with early loads in the tasks that are then vectorised over their iterations."""
    return replace(kernel, tasks=tuple(_moved(kernel, task) for task in kernel.tasks))


def _moved(kernel: ir.Kernel, task: ir.Task) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or not any(isinstance(node, ir.For) for node in walk(task.body)):
        return task
    arrays = kernel.array_types
    moved = with_early_loads(task, arrays, noalias=kernel.noalias)
    return task if plan_vector(kernel, moved) is None else moved
