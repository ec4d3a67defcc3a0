"""Loops on the CPU whose iterations know their block.  Owns: ``lower_cpu_blocks``.

One thread runs a block, lane for lane: each section of the body is a loop over the lanes, and between two sections all
of them have met.  What is done together (see ``ir.blocks``) is decided once, by what the first lane has.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.cpu.sections import Lanes
from quadpy.codegen.lower.gpu.kernel import bind_axes
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.text import memory_type
from quadpy.codegen.plans.sections import plan_lanes
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import done_together, has_barrier

__all__ = ["lower_cpu_blocks"]

_MOST_BYTES: Final = 2 << 20
"""Of working memory, for the shared arrays and the lanes' variables."""


def lower_cpu_blocks(s: Scope, task: ir.ParallelTask, block_dim: int) -> None:
    """Blocks [%begin, %end) of ``task``."""
    _Blocks(s, task, block_dim).run()


class _Blocks(Lanes):
    """``lanes`` is how many iterations this block has, ``base`` the number of its first."""

    def __init__(self, s: Scope, task: ir.ParallelTask, block_dim: int) -> None:
        super().__init__(s, plan_lanes(task, done_together(task.body)), block_dim)
        self.task, self.block_dim, self.base = task, block_dim, "0"
        self._make_shared()
        self.axes = lower_axes(s, task.axes, 64)
        self.begin()

    def bind(self, number: str) -> None:
        out = self.s.text
        self.s.thread = out.op(f"trunc i64 {number} to i32")
        bind_axes(self.s, self.axes, out.op(f"add nsw i64 {self.base}, {number}"), 64)

    def _make_shared(self) -> None:
        s, used = self.s, sum(self.block_dim * var.type.nbytes for var in self.plan.kept)
        for array in self.task.shared:
            count = array.type.components
            for extent in array.type.shape or ():
                count *= extent
            used += count * array.type.elem.nbytes
            if used > _MOST_BYTES:
                raise CodegenError(
                    f"this loop's shared arrays and variables have {used} bytes a block up to here; on the CPU there "
                    f"are {_MOST_BYTES}", array.span, hint="make the shared arrays smaller",
                )  # fmt: skip
            extents = tuple(map(str, array.type.shape or ()))
            pointer = s.text.table(count, memory_type(array.type.elem), array.type.elem.nbytes)
            s.arrays[array.name] = ArrayOperands(array.type, pointer, extents, extents)
        s.privates |= {array.name for array in self.task.shared}

    def run(self) -> None:
        total = "" if has_barrier(self.task.body) else total_count(self.s, self.axes, "i64")
        counted(self.s.text, "%begin", "%end", lambda block, following: self.one_block(block, following, total))

    def one_block(self, number: str, following: str, total: str) -> None:
        s = self.s
        s.block = s.text.op(f"trunc i64 {number} to i32")
        self.base = s.text.op(f"mul nsw i64 {number}, {self.block_dim}")
        if total:
            rest = s.text.op(f"sub i64 {total}, {self.base}")
            self.lanes = s.text.intrinsic("llvm.smin.i64", "i64", ("i64", rest), ("i64", str(self.block_dim)))
        if self.plan.mutable:
            self.over_lanes(self.zero)
        s.iteration = following
        self.block(self.task.body)
        s.text.jump(following)
