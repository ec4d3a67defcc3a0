"""From traced statements to tasks: plain functions, in order.  Owns: run_passes.  Imports: ``ir`` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quadpy.ir.blocks import uses_block
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Kernel, ParallelTask, SerialTask, Var
from quadpy.ir.passes.accumulate import accumulate
from quadpy.ir.passes.demote import demote_atomics
from quadpy.ir.passes.shared_atomics import kept_atomics
from quadpy.ir.passes.split_tasks import split_tasks
from quadpy.ir.passes.uniform import check_barriers
from quadpy.ir.passes.unused import drop_unused_results

__all__ = ["run_passes"]


def run_passes(kernel: Kernel, slots: Mapping[Var, int]) -> Kernel:
    """``kernel`` cut into tasks, with atomics replaced where nothing can observe it, and effects noted.

    ``slots`` numbers the variables that parallel loops touch.
    """
    kernel = split_tasks(kernel, slots)
    kept = kept_atomics(kernel)
    return replace(
        kernel, tasks=tuple(_improved(task, kernel, kept.get(k, frozenset())) for k, task in enumerate(kernel.tasks))
    )


def _improved(task: SerialTask | ParallelTask, kernel: Kernel, kept: frozenset[str]) -> SerialTask | ParallelTask:
    task = drop_unused_results(task)
    task = demote_atomics(task, noalias=kernel.noalias, kept=kept)
    if isinstance(task, ParallelTask) and not uses_block(task):
        task = accumulate(task, kernel, kept)
    elif isinstance(task, ParallelTask):
        check_barriers(task, kernel)
    return replace(task, effects=effects_of(task))
