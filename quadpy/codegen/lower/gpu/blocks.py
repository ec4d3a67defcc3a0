"""Loops on a GPU whose iterations know their block.

An iteration is a thread, a block of iterations a thread block.  If iterations meet at barriers, all blocks are
complete: the launch has refused other numbers of iterations, so each thread has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.frames import Blocks
from quadpy.codegen.lower.axes import bind_axes, lower_axes, total_count
from quadpy.codegen.lower.gpu.threads import barrier, block_number, gpu_rules, grid_size, thread_in_block
from quadpy.codegen.lower.loops import strided
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.text import memory_type, symbol
from quadpy.codegen.plans.fusion import shared_bytes
from quadpy.codegen.plans.privatise import scalar_count
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir

_DYNAMIC: Final = "@dynamic_shared"
"""The shared memory that a launch asks for."""


def lower_blocks(
    s: Scope, task: ir.ParallelTask, frame: Blocks, block_dim: int, iteration: Callable[[], None], *, dynamic: bool
) -> None:
    """``iteration`` writes the statements; shared arrays, the block and the loop variables are bound for it.

    ``dynamic`` says whether the launch asks for the shared memory; if not, the code declares it.
    """
    _define_shared(s, task, dynamic=dynamic)
    s.thread = thread_in_block(s)
    if frame.grid_stride:
        _stride(s, task, frame, block_dim, iteration)
        return
    out = s.text
    s.block = block_number(s)
    axes = lower_axes(s, task.axes, 32)
    wraps = "nuw nsw" if _counts_naturals(task) else "nuw"  # with nsw, LLVM recovers block and thread from the number
    k = out.op(f"add {wraps} i32 {out.op(f'mul {wraps} i32 {s.block}, {block_dim}')}, {s.thread}")
    inside, s.iteration = out.label("inside"), out.label("done")
    if not frame.is_whole:
        wide = lower_axes(s, task.axes, 64)
        here = out.op(f"icmp ult i64 {out.op(f'zext i32 {k} to i64')}, {total_count(s, wide, 'i64')}")
        out.branch(here, inside, s.iteration)
    out.start(inside)
    bind_axes(s, axes, k, 32)
    iteration()
    out.start(s.iteration)


def _counts_naturals(task: ir.ParallelTask) -> bool:
    """Whether the iterations are known to be fewer than 2**31: one signed axis from 0 or more."""
    axis = task.axes[0]
    starts = isinstance(axis.start, ir.Const) and axis.start.value >= 0
    return (
        len(task.axes) == 1
        and starts
        and axis.var.type.kind == "int"
        and isinstance(axis.step, ir.Const)
        and axis.step.value > 0
    )


def _stride(s: Scope, task: ir.ParallelTask, frame: Blocks, block_dim: int, iteration: Callable[[], None]) -> None:
    """A thread block takes one block of iterations after another; no thread writes what another still reads."""
    out = s.text
    axes = lower_axes(s, task.axes, 64)
    total, thread = total_count(s, axes, "i64"), out.op(f"zext i32 {s.thread} to i64")
    blocks = out.op(f"udiv i64 {out.op(f'add nuw i64 {total}, {block_dim - 1}')}, {block_dim}")
    launched = out.op(f"udiv i64 {grid_size(s, block_dim)}, {block_dim}")

    def one(block: str, following: str) -> None:
        s.block = out.op(f"trunc i64 {block} to i32")
        k = out.op(f"add nuw i64 {out.op(f'mul nuw i64 {block}, {block_dim}')}, {thread}")
        s.iteration = last = out.label("last")
        if not frame.is_whole:
            inside = out.label("inside")
            out.branch(out.op(f"icmp ult i64 {k}, {total}"), inside, last)
            out.start(inside)
        bind_axes(s, axes, k, 64)
        iteration()
        out.start(last)
        if frame.is_whole:
            barrier(s)
        out.jump(following)

    strided(out, out.op(f"zext i32 {block_number(s)} to i64"), blocks, launched, one)


def _define_shared(s: Scope, task: ir.ParallelTask, *, dynamic: bool) -> None:
    """Each shared array is a variable of the module, or a part of the memory that the launch asks for.

    LLVM ends the process if variables are too large for the target.
    """
    used, gpu = 0, gpu_rules(s)
    if dynamic:
        s.text.module.define(_DYNAMIC, "external addrspace(3) global [0 x i8], align 16")
    for array in task.shared:
        first, used = used, used + -(-shared_bytes(array) // 16) * 16
        if used > gpu.most_shared_bytes:
            raise CodegenError(
                f"the shared arrays of this loop need {used} bytes up to this one; {s.rules.family} has "
                f"{gpu.most_shared_bytes} per block", array.span, hint="make them smaller, or use a narrower type",
            )  # fmt: skip
        name, t = symbol(array.name), array.type
        if dynamic:
            name = s.text.op(f"getelementptr i8, ptr addrspace(3) {_DYNAMIC}, i32 {first}")
        else:
            cells = f"[{scalar_count(t)} x {memory_type(t.elem)}]"
            s.text.module.define(name, f"internal addrspace(3) global {cells} undef, align 16")
        extents = tuple(map(str, t.shape or ()))
        s.arrays[array.name] = ArrayOperands(t, name, extents, extents)
