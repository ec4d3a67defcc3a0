"""What GPU kernels are made of: their head, their thread's number, their loop variables.

Owns: ``finish_kernel``, ``thread_number``, ``grid_size``, ``bind_axes``, ``scratch_slots``, ``strided``.

A kernel takes the values of the argument block as arguments in their order, and scratch memory last where it has any.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.arguments import arguments_of
from quadpy.codegen.lower.axes import AxisOperands, bind_axis
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, symbol
from quadpy.codegen.reduction import MOST_CHUNKS
from quadpy.codegen.targets.amdgpu import kernel_attributes
from quadpy.ir import nodes as ir
from quadpy.target import TargetSpec

__all__ = [
    "bind_axes", "block_number", "finish_kernel", "grid_size", "lane_number", "scratch_slots", "strided",
    "thread_number",
]  # fmt: skip


def scratch_slots(kernel: ir.Kernel) -> int:
    """Eight-byte cells of scratch memory: the kernel's slots, and behind them the chunks' results of a reduction."""
    rows = (len(task.reductions) for task in kernel.tasks if isinstance(task, ir.ParallelTask))
    return kernel.slots + max(rows, default=0) * MOST_CHUNKS


def finish_kernel(s: Scope, kernel: ir.Kernel, name: str, block_dim: int, spec: TargetSpec) -> None:
    """End the function that ``s`` writes as kernel ``name``, launched in blocks of ``block_dim`` threads."""
    if s.text.open:
        s.text.end("ret void")
    pointer = f"{s.rules.pointer} noalias" if kernel.noalias else s.rules.pointer
    params = [f"{argument.llvm_type(pointer)} {argument.operand}" for argument in arguments_of(kernel)]
    if scratch_slots(kernel):
        params.append(f"{pointer} %scratch")
    attributes = kernel_attributes(spec, block_dim)
    s.text.finish(f"define protected amdgpu_kernel void {symbol(name)}({', '.join(params)}) {attributes} nounwind")


def lane_number(out: FunctionText) -> str:
    """The number of this thread in its block, i32."""
    return out.intrinsic("llvm.amdgcn.workitem.id.x", "i32")


def block_number(out: FunctionText) -> str:
    """The number of this block in the grid, i32."""
    return out.intrinsic("llvm.amdgcn.workgroup.id.x", "i32")


def thread_number(out: FunctionText, block_dim: int, bits: int) -> str:
    """The number of this thread in the grid."""
    lane, group = lane_number(out), block_number(out)
    if bits == 64:
        lane, group = (out.op(f"zext i32 {x} to i64") for x in (lane, group))
    return out.op(f"add nuw i{bits} {out.op(f'mul nuw i{bits} {group}, {block_dim}')}, {lane}")


def grid_size(out: FunctionText) -> str:
    """Threads of the launch, i64, from the dispatch packet: hidden arguments would cost 256 bytes."""
    packet = out.intrinsic("llvm.amdgcn.dispatch.ptr", "ptr addrspace(4)")
    where = out.op(f"getelementptr i8, ptr addrspace(4) {packet}, i64 12")
    return out.op(f"zext i32 {out.op(f'load i32, ptr addrspace(4) {where}, align 4')} to i64")


def strided(out: FunctionText, first: str, end: str, stride: str, body: Callable[[str, str], None]) -> None:
    """``body(k, following)`` for each i64 k from ``first`` below ``end`` in steps of ``stride``."""
    loop, following, done = out.label("loop"), out.label("next"), out.label("done")
    enter, before = out.op(f"icmp ult i64 {first}, {end}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    k, next_k = out.reserve(), out.reserve()
    out.define(k, f"phi i64 [ {first}, %{before} ], [ {next_k}, %{following} ]")
    body(k, following)
    out.start(following)
    out.define(next_k, f"add nuw i64 {k}, {stride}")
    out.branch(out.op(f"icmp ult i64 {next_k}, {end}"), loop, done)
    out.start(done)


def bind_axes(s: Scope, axes: list[AxisOperands], at: str, bits: int) -> None:
    """Take the iteration of number ``at`` apart, the last axis fastest."""
    rest = at
    for axis in reversed(axes[1:]):
        above = s.text.op(f"udiv i{bits} {rest}, {axis.count}")
        bind_axis(s, axis, s.text.op(f"sub i{bits} {rest}, {s.text.op(f'mul i{bits} {above}, {axis.count}')}"), bits)
        rest = above
    bind_axis(s, axes[0], rest, bits)
