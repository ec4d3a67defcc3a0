"""From the IR to machine code: one call for every target.  Owns: ``lower``, ``compile_kernel``."""

from __future__ import annotations

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.codegen.abi import layout_of
from quadpy.codegen.host import compile_host, compile_host_asm, host_header
from quadpy.codegen.lower.kernel import lower_for_cpu
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
    raise CodegenError(f"there is no code generation for {spec}")


def compile_kernel(kernel: ir.Kernel, spec: TargetSpec, *, want_asm: bool = False) -> CodeObject:
    """Machine code of ``kernel`` for ``spec``, with its assembly where ``want_asm`` asks for it.

    CodegenError where the IR breaks a rule or LLVM refuses the module.
    """
    text = lower(kernel, spec)
    return CodeObject(
        target=str(spec),
        image=compile_host(text, spec.arch),
        entry=kernel.name,
        layout=layout_of(kernel),
        tasks=tuple(_task_info(kernel, number) for number in range(len(kernel.tasks))),
        results=tuple(t.name for t in kernel.results),
        slots=kernel.slots,
        asm=compile_host_asm(text, spec.arch) if want_asm else "",
    )


def _task_info(kernel: ir.Kernel, number: int) -> TaskInfo:
    task = kernel.tasks[number]
    parallel = isinstance(task, ir.ParallelTask)
    count = " * ".join(_count(axis) for axis in task.axes) if isinstance(task, ir.ParallelTask) else ""
    return TaskInfo(f"{kernel.name}_t{number}", parallel, 0, count, print_effects(effects_of(task)))


def _count(axis: ir.Axis) -> str:
    start, stop, step = (print_expr(e) for e in (axis.start, axis.stop, axis.step))
    return f"range({start}, {stop}, {step})"
