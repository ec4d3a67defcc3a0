"""Checks for kernels that a target cannot run: loops that the host cannot count, or too many arguments."""

from __future__ import annotations

from typing import Final

from quadpy.codegen.extent import extent_of
from quadpy.core.artifact import AbiLayout
from quadpy.core.target import TargetSpec
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks

_MOST_PARAMETERS: Final = {"amdgpu": 32_764, "nvptx": 32_764}
"""Bytes of arguments that a launch takes: PTX's limit from sm_70 on; AMD documents none, and gets the same."""


def require_counts(kernel: ir.Kernel, layout: AbiLayout) -> None:
    """The host must be able to count the blocks of a loop whose iterations wait for each other."""
    for task in kernel.tasks:
        if not isinstance(task, ir.ParallelTask) or not needs_whole_blocks(task.body):
            continue
        if extent_of(task, layout) is None:
            raise KernelTypeError(
                "the number of iterations of this loop must follow from arguments and shapes: its iterations wait for each "
                "other, so the loop runs in whole blocks", task.axes[0].span,
                hint="pass the number as an argument, or compute it from arguments with only + - * // % min and max, "
                     "outside run-time branches and loops",
            )  # fmt: skip


def require_parameters(kernel: ir.Kernel, layout: AbiLayout, spec: TargetSpec) -> None:
    """The arguments must fit into a launch."""
    size, most = layout.size + 8, _MOST_PARAMETERS.get(spec.family)
    if most is not None and size > most:
        raise KernelTypeError(
            f"{kernel.name} takes {len(kernel.params):,} parameters of {size:,} bytes; a launch on {spec} takes at most {most:,}",
            kernel.span, hint="combine arrays of the same shape into one array with one more axis",
        )  # fmt: skip
