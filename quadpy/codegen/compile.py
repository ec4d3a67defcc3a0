"""From the IR to machine code: one call for every target.  Owns: ``lower``, ``compile_kernel``."""

from __future__ import annotations

from collections.abc import Iterator

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.codegen.abi import layout_of
from quadpy.codegen.emit import compile_amdgpu, compile_nvptx, gpu_header
from quadpy.codegen.extent import extent_of
from quadpy.codegen.host import compile_host, compile_host_asm, host_header
from quadpy.codegen.lower.gpu_kernel import scratch_slots
from quadpy.codegen.lower.gpu_tasks import launches_of
from quadpy.codegen.lower.kernel import lower_for_cpu, lower_for_gpu
from quadpy.codegen.lower.task import task_name
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
    return lower_for_gpu(kernel, spec, gpu_header(spec))


def compile_kernel(kernel: ir.Kernel, spec: TargetSpec, *, want_asm: bool = False) -> CodeObject:
    """Machine code of ``kernel`` for ``spec``, with its assembly where ``want_asm`` asks for it.

    CodegenError where the IR breaks a rule or LLVM refuses the module.
    """
    text = lower(kernel, spec)
    image, asm = _machine_code(text, spec, want_asm=want_asm)
    return CodeObject(
        target=str(spec),
        image=image,
        entry=kernel.name if spec.family == "cpu" else "",
        layout=layout_of(kernel),
        tasks=tuple(info for number in range(len(kernel.tasks)) for info in _task_infos(kernel, number, spec)),
        results=tuple(t.name for t in kernel.results),
        slots=kernel.slots if spec.family == "cpu" else scratch_slots(kernel),
        asm=asm,
    )


def _machine_code(text: str, spec: TargetSpec, *, want_asm: bool) -> tuple[bytes, str]:
    """What the target's driver loads, and its assembly where that is wanted."""
    match spec.family:
        case "cpu":
            return compile_host(text, spec.arch), compile_host_asm(text, spec.arch) if want_asm else ""
        case "amdgpu":
            return compile_amdgpu(text, spec, want_asm=want_asm)
        case "nvptx":
            ptx = compile_nvptx(text, spec)
            return ptx.encode(), ptx


def _task_infos(kernel: ir.Kernel, number: int, spec: TargetSpec) -> Iterator[TaskInfo]:
    task = kernel.tasks[number]
    axes = task.axes if isinstance(task, ir.ParallelTask) else ()
    count, effects = " * ".join(map(_count, axes)), print_effects(effects_of(task))
    if spec.family == "cpu":
        yield TaskInfo(task_name(kernel, number), bool(axes), 0, count, effects)
        return
    for launch in launches_of(kernel, number):
        counted = count if launch.parallel else ""
        extent = extent_of(task, layout_of(kernel)) if launch.parallel and isinstance(task, ir.ParallelTask) else None
        yield TaskInfo(launch.symbol, launch.parallel, launch.block_dim, counted, effects, launch.grid_stride, extent)


def _count(axis: ir.Axis) -> str:
    start, stop, step = (print_expr(e) for e in (axis.start, axis.stop, axis.step))
    return f"range({start}, {stop}, {step})"
