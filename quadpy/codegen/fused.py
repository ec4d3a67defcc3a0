"""What a launch needs to know of a kernel whose tasks are one GPU kernel.  Owns: ``fused_info``, ``require_fusable``, NotFusable."""

from __future__ import annotations

from typing import Final

from quadpy.artifact import Formula, TaskInfo
from quadpy.codegen.abi import layout_of
from quadpy.codegen.extent import extent_of
from quadpy.codegen.lower.gpu.fused import fused_block, fused_name, why_not_fused
from quadpy.codegen.lower.kernel import gpu_rules
from quadpy.errors import CodegenError
from quadpy.flow import conditions_of
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Access
from quadpy.ir.printer import print_effects
from quadpy.target import TargetSpec

__all__ = ["NotFusable", "fused_info", "require_fusable"]

_UNKNOWN: Final = 1 << 16
"""Iterations of a loop that only the device can count, as far as the number of blocks is concerned."""


class NotFusable(CodegenError):
    """The tasks of a kernel cannot be one launch; the message says why."""


def require_fusable(kernel: ir.Kernel, spec: TargetSpec) -> None:
    """NotFusable where the tasks of ``kernel`` cannot be one launch on ``spec``."""
    gpu = gpu_rules(spec).gpu if spec.family != "cpu" else None
    if why := why_not_fused(kernel, gpu) if gpu else "a CPU runs all tasks in one call anyway":
        raise NotFusable(why, kernel.span)


def fused_info(kernel: ir.Kernel) -> TaskInfo:
    """The one launch: its iterations are those of the largest task."""
    effects = dict.fromkeys(conditions_of(kernel.flow), Access.READ)
    for task in kernel.tasks:
        for name, access in effects_of(task):
            effects[name] = effects.get(name, Access(0)) | access
    return TaskInfo(
        fused_name(kernel), True, fused_block(kernel), effects=print_effects(tuple(sorted(effects.items()))), grid_stride=True,
        extent=_most(kernel), scratch="rw", cooperative=True,
    )  # fmt: skip


def _most(kernel: ir.Kernel) -> Formula:
    loops = [task for task in kernel.tasks if isinstance(task, ir.ParallelTask)]
    found = [extent_of(loop, layout_of(kernel)) for loop in loops]
    most: Formula = 1
    for extent in found:
        most = ["max", 64, True, most, _UNKNOWN if extent is None else extent]
    return most
