"""What code generation asks of a kernel's flow.  Owns: ``flow_data``, ``reduction_rows``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quadpy.ir.flow import Flow, Fork, Loop
from quadpy.ir.nodes import Kernel, ParallelTask

__all__ = ["flow_data", "reduction_rows"]


def flow_data(flow: tuple[Flow, ...], launches: Sequence[range]) -> tuple[Any, ...]:
    """``flow`` with the launches of each task, by their numbers, in place of the task."""
    data: list[Any] = []
    for part in flow:
        match part:
            case Fork(branches=branches):
                data.append({"fork": [list(flow_data(branch, launches)) for branch in branches]})
            case Loop(condition=condition, body=body):
                data.append({"loop": condition, "body": list(flow_data(body, launches))})
            case _:
                data += launches[part]
    return tuple(data)


def reduction_rows(kernel: Kernel) -> tuple[dict[str, int], int]:
    """The first row of partial results of each task, by its name, and how many rows there are.

    Tasks that follow each other use the same rows, those of branches that run at once have rows of their own.
    """
    first: dict[str, int] = {}

    def place(flow: Sequence[Flow], base: int) -> int:
        """Rows from ``base`` on; where they end."""
        end = base
        for part in flow:
            match part:
                case Fork(branches=branches):
                    top = base
                    for branch in branches:
                        top = place(branch, top)
                case Loop(body=body):
                    top = place(body, base)
                case _:
                    task = kernel.tasks[part]
                    first[task.name] = base
                    top = base + (len(task.reductions) if isinstance(task, ParallelTask) else 0)
            end = max(end, top)
        return end

    rows = place(kernel.flow or range(len(kernel.tasks)), 0)
    return first, rows
