"""Loops on a GPU whose iterations know their block.  Owns: ``lower_blocks``.

An iteration is a thread, a block of iterations a thread block.  Where iterations meet at barriers all blocks are whole:
the launch has refused other numbers, so no thread is without an iteration.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.gpu.kernel import barrier, bind_axes, block_number, grid_size, lane_number, strided
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.text import memory_type, symbol
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import has_barrier

__all__ = ["lower_blocks"]


def lower_blocks(
    s: Scope, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None], *, grid_stride: bool
) -> None:
    """``iteration`` writes the statements; it finds shared arrays, the block and the loop variables bound."""
    _define_shared(s, task)
    s.thread = lane_number(s)
    if grid_stride:
        _stride(s, task, block_dim, iteration)
        return
    out = s.text
    s.block = block_number(s)
    axes = lower_axes(s, task.axes, 32)
    wraps = "nuw nsw" if _counts_naturals(task) else "nuw"  # with nsw, LLVM finds block and thread in the number again
    k = out.op(f"add {wraps} i32 {out.op(f'mul {wraps} i32 {s.block}, {block_dim}')}, {s.thread}")
    inside, s.iteration = out.label("inside"), out.label("done")
    if not has_barrier(task.body):
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


def _stride(s: Scope, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None]) -> None:
    """A thread block takes one block of iterations after another, and none writes what is still read of the last."""
    out, meets = s.text, has_barrier(task.body)
    axes = lower_axes(s, task.axes, 64)
    total, thread = total_count(s, axes, "i64"), out.op(f"zext i32 {s.thread} to i64")
    blocks = out.op(f"udiv i64 {out.op(f'add nuw i64 {total}, {block_dim - 1}')}, {block_dim}")
    launched = out.op(f"udiv i64 {grid_size(s, block_dim)}, {block_dim}")

    def one(block: str, following: str) -> None:
        s.block = out.op(f"trunc i64 {block} to i32")
        k = out.op(f"add nuw i64 {out.op(f'mul nuw i64 {block}, {block_dim}')}, {thread}")
        s.iteration = last = out.label("last")
        if not meets:
            inside = out.label("inside")
            out.branch(out.op(f"icmp ult i64 {k}, {total}"), inside, last)
            out.start(inside)
        bind_axes(s, axes, k, 64)
        iteration()
        out.start(last)
        if meets:
            barrier(s)
        out.jump(following)

    strided(out, out.op(f"zext i32 {block_number(s)} to i64"), blocks, launched, one)


def _define_shared(s: Scope, task: ir.ParallelTask) -> None:
    """Each shared array is a variable of the module; LLVM ends the process where they are too large for the target."""
    assert s.rules.gpu is not None
    used, limit = 0, s.rules.gpu.shared_bytes
    for array in task.shared:
        count = array.type.components
        for extent in array.type.shape or ():
            count *= extent
        used += -(-count * array.type.elem.nbytes // 16) * 16
        if used > limit:
            raise CodegenError(
                f"the shared arrays of this loop have {used} bytes up to this one; {s.rules.family} has {limit} a block",
                array.span, hint="make them smaller, or of a narrower type",
            )  # fmt: skip
        name = symbol(array.name)
        s.text.module.define(
            name, f"internal addrspace(3) global [{count} x {memory_type(array.type.elem)}] undef, align 16"
        )
        extents = tuple(map(str, array.type.shape or ()))
        s.arrays[array.name] = ArrayOperands(array.type, name, extents, extents)
