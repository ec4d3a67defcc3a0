"""From the IR to machine code: one call for every target.  Owns: ``lower``, ``compile_kernel``."""

from __future__ import annotations

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.codegen.abi import layout_of
from quadpy.codegen.emit import AMDGPU_LAYOUT, AMDGPU_TRIPLE, compile_amdgpu
from quadpy.codegen.host import compile_host, compile_host_asm, host_header
from quadpy.codegen.lower.gpu_tasks import block_dim_of, strides_grid
from quadpy.codegen.lower.kernel import lower_for_amdgpu, lower_for_cpu
from quadpy.codegen.lower.task import task_name
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.printer import print_effects, print_expr
from quadpy.ir.verify import verify
from quadpy.target import TargetSpec

__all__ = ["compile_kernel", "lower"]


def lower(kernel: ir.Kernel, spec: TargetSpec) -> str:
    """``kernel`` as LLVM IR for ``spec``; CodegenError where the IR breaks a rule."""
    verify(kernel)
    if spec.family == "cpu":
        return lower_for_cpu(kernel, host_header())
    if spec.family == "amdgpu":
        header = f'target datalayout = "{AMDGPU_LAYOUT}"\ntarget triple = "{AMDGPU_TRIPLE}"\n'
        return lower_for_amdgpu(kernel, spec, header)
    raise CodegenError(f"there is no code generation for {spec}", hint="there is for the CPU and for AMD GPUs")


def compile_kernel(kernel: ir.Kernel, spec: TargetSpec, *, want_asm: bool = False) -> CodeObject:
    """Machine code of ``kernel`` for ``spec``, with its assembly where ``want_asm`` asks for it.

    CodegenError where the IR breaks a rule or LLVM refuses the module.
    """
    text = lower(kernel, spec)
    if spec.family == "cpu":
        image, asm = compile_host(text, spec.arch), compile_host_asm(text, spec.arch) if want_asm else ""
    else:
        image, asm = compile_amdgpu(text, spec, want_asm=want_asm)
    return CodeObject(
        target=str(spec),
        image=image,
        entry=kernel.name if spec.family == "cpu" else "",
        layout=layout_of(kernel),
        tasks=tuple(_task_info(kernel, number, spec) for number in range(len(kernel.tasks))),
        results=tuple(t.name for t in kernel.results),
        slots=kernel.slots,
        asm=asm,
    )


def _task_info(kernel: ir.Kernel, number: int, spec: TargetSpec) -> TaskInfo:
    task, on_gpu = kernel.tasks[number], spec.family != "cpu"
    axes = task.axes if isinstance(task, ir.ParallelTask) else ()
    return TaskInfo(
        symbol=task_name(kernel, number),
        parallel=bool(axes),
        block_dim=block_dim_of(task) if on_gpu else 0,
        count=" * ".join(map(_count, axes)),
        effects=print_effects(effects_of(task)),
        grid_stride=on_gpu and strides_grid(task, kernel),
    )


def _count(axis: ir.Axis) -> str:
    start, stop, step = (print_expr(e) for e in (axis.start, axis.stop, axis.step))
    return f"range({start}, {stop}, {step})"
