"""Where the partial results of concurrent tasks go."""

from __future__ import annotations

from collections.abc import Iterable

from quadpy.flow import Fork, Loop, Step
from quadpy.ir.nodes import Kernel, ParallelTask

__all__ = ["reduction_rows"]


def reduction_rows(kernel: Kernel) -> tuple[dict[str, int], int]:
    """The first row of partial results of each task, by its name, and how many rows there are.

    Tasks that follow each other use the same rows, those of branches that run at once have rows of their own.
    """
    first: dict[str, int] = {}

    def assign_rows(flow: Iterable[Step], base: int) -> int:
        """Rows from ``base`` on; where they end."""
        end = base
        for part in flow:
            match part:
                case Fork(branches=branches):
                    top = base
                    for branch in branches:
                        top = assign_rows(branch, top)
                case Loop(body=body):
                    top = assign_rows(body, base)
                case _:
                    task = kernel.tasks[part]
                    first[task.name] = base
                    top = base + (len(task.reductions) if isinstance(task, ParallelTask) else 0)
            end = max(end, top)
        return end

    rows = assign_rows(kernel.flow or range(len(kernel.tasks)), 0)
    return first, rows
