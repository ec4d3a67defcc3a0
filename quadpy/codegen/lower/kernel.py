"""A kernel as the text of an LLVM module: its functions, then a frame for each task."""

from __future__ import annotations

from collections.abc import Mapping

from quadpy.codegen.lower.cpu.entry import lower_cpu_entry
from quadpy.codegen.lower.cpu.tasks import lower_cpu_task
from quadpy.codegen.lower.functions import lower_functions
from quadpy.codegen.lower.gpu.fused import lower_fused
from quadpy.codegen.lower.gpu.latch import lower_latch
from quadpy.codegen.lower.gpu.tasks import lower_gpu_task
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.schedule import KernelSchedule
from quadpy.core.dtypes import f16
from quadpy.ir.walk import walk


def lower_kernel(schedule: KernelSchedule, header: str, flags: Mapping[str, int] | None = None) -> str:
    """The module of a kernel; ``header`` holds data layout and triple, ``flags`` are the module's."""
    kernel = schedule.kernel
    module = ModuleText(has_halves=any(getattr(node, "type", None) == f16 for node in walk(kernel)))
    for name, value in (flags or {}).items():
        module.flag(name, value)
    lower_functions(module, kernel, schedule.rules)
    if schedule.rules.gpu is None:
        recorded = [lower_cpu_task(module, schedule, task) for task in schedule.tasks]
        lower_cpu_entry(module, schedule, recorded)
    elif schedule.fused is not None:
        lower_fused(module, schedule, schedule.fused)
    else:
        for task in schedule.tasks:
            lower_gpu_task(module, schedule, task)
        for latch, launch in zip(schedule.latches, schedule.latch_launches, strict=True):
            lower_latch(module, schedule, launch.symbol, latch)
    return module.text(header)
