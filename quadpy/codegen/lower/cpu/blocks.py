"""Loops on the CPU whose iterations know their block.

One thread runs a block: each section of the body is a loop over the block's iterations, and between two sections all of
them meet.  Joint statements (see ``ir.blocks``) are decided once, by the values of the first iteration.  A section in
which waves do something together is a loop over waves, cut in the same way: see ``waves``.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.frames import SectionedBlocks
from quadpy.codegen.lower.axes import bind_axes, lower_axes, total_count
from quadpy.codegen.lower.cpu.sections import Sections
from quadpy.codegen.lower.cpu.waves import over_waves
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.statements import declare_variables
from quadpy.codegen.lower.text import memory_type
from quadpy.codegen.plans.fusion import shared_bytes
from quadpy.codegen.plans.privatise import scalar_count
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir

_MOST_BYTES: Final = 2 << 20
"""Working memory of a block, for the shared arrays and the variables that are kept."""


def lower_cpu_blocks(s: Scope, task: ir.ParallelTask, frame: SectionedBlocks) -> None:
    """Blocks [%begin, %end) of ``task``."""
    _Blocks(s, task, frame).run()


class _Blocks(Sections):
    """``size`` is the number of iterations in this block, ``base`` the number of the first."""

    def __init__(self, s: Scope, task: ir.ParallelTask, frame: SectionedBlocks) -> None:
        declare_variables(s, task.body)
        super().__init__(s, task, frame.sections, frame.block_dim)
        self.frame, self.base, self.together = frame, "0", frame.together
        self._make_shared()
        self.axes = lower_axes(s, task.axes, 64)
        self.begin()

    def bind(self, number: str) -> None:
        out = self.s.text
        self.s.thread = out.op(f"trunc i64 {number} to i32")
        bind_axes(self.s, self.axes, out.op(f"add nsw i64 {self.base}, {number}"), 64)

    def _make_shared(self) -> None:
        s, used = self.s, sum(self.frame.block_dim * var.type.nbytes for var in self.plan.kept)
        for array in self.task.shared:
            used += shared_bytes(array)
            if used > _MOST_BYTES:
                raise CodegenError(
                    f"the shared arrays and variables of this loop need {used} bytes per block up to here; the CPU "
                    f"has {_MOST_BYTES}", array.span, hint="make the shared arrays smaller",
                )  # fmt: skip
            t, extents = array.type, tuple(map(str, array.type.shape or ()))
            pointer = s.text.table(scalar_count(t), memory_type(t.elem), t.elem.nbytes)
            s.arrays[array.name] = ArrayOperands(t, pointer, extents, extents)
        s.privates |= {array.name for array in self.task.shared}

    def run(self) -> None:
        total = "" if self.frame.is_whole else total_count(self.s, self.axes, "i64")
        counted(self.s.text, "%begin", "%end", lambda block, following: self.one_block(block, following, total))

    def section(self, stmts: list[ir.Stmt]) -> None:
        if self.plan.together & self.numbers.of(stmts):
            over_waves(self, stmts, self.frame)
        else:
            super().section(stmts)

    def one_block(self, number: str, following: str, total: str) -> None:
        s = self.s
        s.block = s.text.op(f"trunc i64 {number} to i32")
        self.base = s.text.op(f"mul nsw i64 {number}, {self.frame.block_dim}")
        if total:
            rest = s.text.op(f"sub i64 {total}, {self.base}")
            self.size = s.text.intrinsic("llvm.smin.i64", "i64", ("i64", rest), ("i64", str(self.frame.block_dim)))
        if self.plan.mutable:
            self.over_group(self.zero)
        s.iteration = following
        self.block(self.task.body)
        s.text.jump(following)
