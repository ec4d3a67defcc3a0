"""A kernel as the text of an LLVM module.  Owns: ``lower_for_cpu``, ``lower_for_gpu``, ``gpu_rules``."""

from __future__ import annotations

from quadpy.codegen.lower.cpu.entry import lower_cpu_entry
from quadpy.codegen.lower.cpu.tasks import lower_cpu_task
from quadpy.codegen.lower.functions import lower_functions
from quadpy.codegen.lower.gpu.fused import lower_fused
from quadpy.codegen.lower.gpu.latch import lower_latch
from quadpy.codegen.lower.gpu.tasks import lower_gpu_task
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.predication import predication_of
from quadpy.codegen.targets.amdgpu import amdgpu_rules
from quadpy.codegen.targets.cpu import CPU
from quadpy.codegen.targets.nvptx import nvptx_rules
from quadpy.codegen.targets.rules import TargetRules
from quadpy.dtypes import f16
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.target import TargetSpec, amd_arch

__all__ = ["gpu_rules", "lower_for_cpu", "lower_for_gpu"]


def lower_for_cpu(kernel: ir.Kernel, header: str) -> str:
    """The module of ``kernel``; ``header`` holds data layout and triple."""
    module = ModuleText(has_halves=_has_halves(kernel))
    lower_functions(module, kernel, CPU)
    recorded = [lower_cpu_task(module, kernel, number, CPU) for number in range(len(kernel.tasks))]
    lower_cpu_entry(module, kernel, CPU, recorded)
    return module.text(header)


def _has_halves(kernel: ir.Kernel) -> bool:
    """Whether any value of ``kernel`` is an f16."""
    return any(getattr(node, "type", None) == f16 for node in walk(kernel))


def gpu_rules(spec: TargetSpec) -> TargetRules:
    """The rules of a GPU."""
    return amdgpu_rules(spec) if spec.family == "amdgpu" else nvptx_rules()


def lower_for_gpu(kernel: ir.Kernel, spec: TargetSpec, header: str) -> str:
    """The module of ``kernel``: a GPU kernel for each task, or one for all; ``header`` holds data layout and triple."""
    module = ModuleText(has_halves=_has_halves(kernel))
    rules = gpu_rules(spec)
    if spec.family == "amdgpu":
        module.flag("amdhsa_code_object_version", amd_arch(spec.arch).code_object)
    lower_functions(module, kernel, rules)
    if kernel.fused:
        lower_fused(module, kernel, rules)
        return module.text(header)
    for number in range(len(kernel.tasks)):
        lower_gpu_task(module, kernel, number, rules)
    if (found := predication_of(kernel)) is not None:
        for number, latch in enumerate(found.latches):
            lower_latch(module, kernel, number, latch, rules)
    return module.text(header)
