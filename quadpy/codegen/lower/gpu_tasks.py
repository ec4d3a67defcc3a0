"""Tasks on a GPU: one kernel each.  Owns: ``lower_gpu_task``, ``block_dim_of``, ``strides_grid``.

A kernel takes the values of the argument block as arguments in their order, and the kernel's scratch memory last where
it has slots.  A thread runs one iteration, the number of which is its place in the grid.  Where the host cannot know
how many iterations there are (an axis depends on a slot), or threads might be too few (64-bit loops), threads go on in
steps of the whole grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.arguments import Argument, arguments_of
from quadpy.codegen.lower.axes import AxisOperands, bind_axis, lower_axes, total_count
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, zero_variables
from quadpy.codegen.lower.task import task_scope, task_symbol
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.targets.amdgpu import kernel_attributes
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.target import TargetSpec

__all__ = ["block_dim_of", "lower_gpu_task", "strides_grid"]

DEFAULT_BLOCK: Final = 256


def block_dim_of(task: ir.Task) -> int:
    """Threads in a block; a serial task is one thread."""
    if isinstance(task, ir.SerialTask):
        return 1
    return task.block_dim or DEFAULT_BLOCK


def strides_grid(task: ir.Task, kernel: ir.Kernel) -> bool:
    """Whether a launch of any number of blocks runs all iterations; else there must be a thread for each."""
    if isinstance(task, ir.SerialTask):
        return False
    reads_slot = any(isinstance(node, ir.SlotRead) for axis in task.axes for node in walk(axis))
    return reads_slot or kernel.index.bits == 64 or _flat_bits(task, kernel) == 64


def lower_gpu_task(module: ModuleText, kernel: ir.Kernel, number: int, rules: TargetRules, spec: TargetSpec) -> None:
    """Write task ``number`` of ``kernel``."""
    task, arguments = kernel.tasks[number], arguments_of(kernel)
    s = task_scope(module, kernel, rules, arguments, "%scratch")
    variables = declare_variables(s, task.body)

    def iteration() -> None:
        zero_variables(s, variables)
        lower_block(s, task.body)

    if isinstance(task, ir.SerialTask):
        iteration()
    elif strides_grid(task, kernel):
        _grid_loop(s, task, kernel, iteration)
    else:
        _one_each(s, task, kernel, iteration)
    if s.text.open:
        s.text.end("ret void")
    params = _parameters(kernel, arguments, rules)
    attributes = kernel_attributes(spec, block_dim_of(task))
    s.text.finish(f"define protected amdgpu_kernel void {task_symbol(kernel, number)}({params}) {attributes} nounwind")


def _parameters(kernel: ir.Kernel, arguments: tuple[Argument, ...], rules: TargetRules) -> str:
    pointer = f"{rules.pointer} noalias" if kernel.noalias else rules.pointer
    params = [f"{argument.llvm_type(pointer)} {argument.operand}" for argument in arguments]
    return ", ".join(params + [f"{pointer} %scratch"] * (kernel.slots > 0))


def _flat_bits(task: ir.ParallelTask, kernel: ir.Kernel) -> int:
    """The width that iterations are numbered in."""
    return max(kernel.index.bits, 32, *(axis.var.type.bits for axis in task.axes))


def _thread(s: Scope, block_dim: int, bits: int) -> str:
    """The number of this thread in the grid."""
    lane = s.text.intrinsic("llvm.amdgcn.workitem.id.x", "i32")
    group = s.text.intrinsic("llvm.amdgcn.workgroup.id.x", "i32")
    if bits == 64:
        lane, group = (s.text.op(f"zext i32 {x} to i64") for x in (lane, group))
    return s.text.op(f"add nuw i{bits} {s.text.op(f'mul nuw i{bits} {group}, {block_dim}')}, {lane}")


def _one_each(s: Scope, task: ir.ParallelTask, kernel: ir.Kernel, iteration: Callable[[], None]) -> None:
    out, bits = s.text, _flat_bits(task, kernel)
    inside, done = out.label("inside"), out.label("done")
    axes = lower_axes(s, task.axes, bits)
    at = _thread(s, block_dim_of(task), bits)
    out.branch(_below_total(s, at, axes), inside, done)
    out.start(inside)
    _bind(s, axes, at, bits)
    s.iteration = done
    iteration()
    out.start(done)


def _below_total(s: Scope, at: str, axes: list[AxisOperands]) -> str:
    """Whether thread ``at`` (32 bits) has an iteration; the product of several counts needs 64 bits."""
    if len(axes) == 1:
        return s.text.op(f"icmp ult i32 {at}, {axes[0].count}")
    total = "1"
    for axis in axes:
        total = s.text.op(f"mul i64 {total}, {s.text.op(f'zext i32 {axis.count} to i64')}")
    return s.text.op(f"icmp ult i64 {s.text.op(f'zext i32 {at} to i64')}, {total}")


def _grid_loop(s: Scope, task: ir.ParallelTask, kernel: ir.Kernel, iteration: Callable[[], None]) -> None:
    """In 64 bits, where adding the grid's size cannot wrap."""
    out = s.text
    axes = lower_axes(s, task.axes, 64)
    first, total, stride = _thread(s, block_dim_of(task), 64), total_count(s, axes, "i64"), _grid_size(s)
    loop, latch, done = out.label("loop"), out.label("next"), out.label("done")
    enter, before = out.op(f"icmp ult i64 {first}, {total}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    at, following = out.reserve(), out.reserve()
    out.define(at, f"phi i64 [ {first}, %{before} ], [ {following}, %{latch} ]")
    _bind(s, axes, at, 64)
    s.iteration = latch
    iteration()
    out.start(latch)
    out.define(following, f"add nuw i64 {at}, {stride}")
    out.branch(out.op(f"icmp ult i64 {following}, {total}"), loop, done)
    out.start(done)


def _grid_size(s: Scope) -> str:
    """Threads of the launch, from the dispatch packet: hidden arguments would cost 256 bytes."""
    packet = s.text.intrinsic("llvm.amdgcn.dispatch.ptr", "ptr addrspace(4)")
    where = s.text.op(f"getelementptr i8, ptr addrspace(4) {packet}, i64 12")
    return s.text.op(f"zext i32 {s.text.op(f'load i32, ptr addrspace(4) {where}, align 4')} to i64")


def _bind(s: Scope, axes: list[AxisOperands], at: str, bits: int) -> None:
    """Take iteration ``at`` apart, the last axis fastest."""
    rest = at
    for axis in reversed(axes[1:]):
        above = s.text.op(f"udiv i{bits} {rest}, {axis.count}")
        bind_axis(s, axis, s.text.op(f"sub i{bits} {rest}, {s.text.op(f'mul i{bits} {above}, {axis.count}')}"), bits)
        rest = above
    bind_axis(s, axes[0], rest, bits)
