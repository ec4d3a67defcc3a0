"""What kernels may not do with distributed arrays, as far as their code alone shows."""

from __future__ import annotations

from typing import Final

from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.touches import changed_in, name_of
from quadpy.ir.walk import walk

_RANDOM: Final = ("$seed", "$launch")
_OF_BLOCKS: Final = "blocks and waves of a loop over a distributed grid differ between ranks"
_WITHOUT_BLOCKS: Final = "write the loop without shared arrays, and let iterations read what they need from the grid"


def require_tasks_in_order(kernel: ir.Kernel) -> None:
    """Refuses parallel sections, checkpoints and loops over tasks, and random numbers.

    Raises:
        KernelSyntaxError: as all of this module.
    """
    if kernel.flow or any(task.gate for task in kernel.tasks):
        raise KernelSyntaxError(
            f"{kernel.name}: kernels with parallel sections, checkpoints or loops over tasks cannot take distributed arrays",
            kernel.span, hint="make a kernel of each task, and call them in a Python loop; qp.dist.capture makes graphs of them",
        )  # fmt: skip
    if any(param.name in _RANDOM for param in kernel.params):
        raise KernelSyntaxError(
            f"{kernel.name}: random numbers would depend on the number of ranks", kernel.span,
            hint="make them from the global indices and a seed",
        )  # fmt: skip


def require_loop(kernel: ir.Kernel, task: ir.Task, touched: ir.Element | None) -> None:
    """Refuses ``task`` if it is not a loop that ranks can divide; ``touched`` is what it does with a distributed array."""
    if any(isinstance(node, ir.SlotRead) for node in walk(task)):
        raise KernelSyntaxError(
            "the bounds of a loop that the kernel computes may differ between ranks", task.span,
            hint="pass them as arguments",
        )  # fmt: skip
    if touched is None:
        return
    if isinstance(task, ir.SerialTask):
        raise KernelSyntaxError(
            f"{kernel.called(touched.array)} is distributed, and this is not in a loop over the grid", touched.span,
            hint="loop over the array at the top level of the kernel, with a condition on the indices if only one cell is meant",
        )  # fmt: skip
    if task.shared:
        raise KernelSyntaxError(_OF_BLOCKS, task.span, hint=_WITHOUT_BLOCKS)
    for node in walk(task.body):
        if not ir.MEETINGS.isdisjoint(node.ORDERS) or isinstance(node, (ir.ThreadIndex, ir.BlockIndex)):
            raise KernelSyntaxError(_OF_BLOCKS, node.span, hint=_WITHOUT_BLOCKS)
        for place in changed_in(node) if node.WRITES else ():
            if isinstance(place, ir.Element):
                continue
            name = kernel.called(name_of(place))
            raise KernelSyntaxError(
                f"{name} is set in iterations of a loop over a distributed grid, so each rank would have its own {name}",
                node.span, hint=f"accumulate, for example with {name} += …, qp.atomic_min({name}, …) or qp.atomic_max({name}, …), whose result is not used",
            )  # fmt: skip
