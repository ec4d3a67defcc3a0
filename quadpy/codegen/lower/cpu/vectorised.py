"""Parallel loops on the CPU that are vectorised over their iterations, as ``plans.vectorise`` decides.

The last axis is cut into pieces: first whole groups of iterations, then the remaining iterations one by one.  A group's
loops over its sections become vectors of that width; their tables of values become registers.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.axes import AxisOperands, bind_axis
from quadpy.codegen.lower.cpu.sections import Sections
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText
from quadpy.codegen.plans.vectorise import VectorPlan
from quadpy.ir import nodes as ir


def piece_count(out: FunctionText, count: str, width: int) -> str:
    """The number of pieces, i64, for ``count`` iterations of the last axis."""
    whole = out.op(f"udiv i64 {count}, {width}")
    return out.op(f"add i64 {whole}, {out.op(f'urem i64 {count}, {width}')}")


class VectorGroups(Sections):
    """Groups of iterations of ``task`` along ``axis``, its last one."""

    def __init__(self, s: Scope, task: ir.ParallelTask, axis: AxisOperands, plan: VectorPlan) -> None:
        super().__init__(s, task, plan.sections, plan.width)
        self.axis, self.width, self.first = axis, plan.width, "0"
        text = s.text
        self.vectorised = (
            text.vector_width(plan.width),
            text.module.metadata('!{!"llvm.loop.interleave.count", i32 1}'),
            text.module.metadata('!{!"llvm.loop.unroll.disable"}'),  # once vectorised, it has a single turn
        )

    def hints(self) -> tuple[str, ...]:
        return (self.independent, *self.vectorised)

    def bind(self, number: str) -> None:
        bind_axis(self.s, self.axis, self.s.text.op(f"add nuw nsw i64 {self.first}, {number}"), 64)

    def piece_count(self) -> str:
        """How many pieces a row has."""
        return piece_count(self.s.text, self.axis.count, self.width)

    def pieces(self, first: str, stop: str, one: Callable[[str, str], None]) -> None:
        """Pieces [first, stop) of the row whose other axes are bound; ``one`` writes a single iteration."""
        out = self.s.text
        groups = out.op(f"udiv i64 {self.axis.count}, {self.width}")
        last = out.intrinsic("llvm.smin.i64", "i64", ("i64", stop), ("i64", groups))
        counted(out, first, last, self.group)
        grouped = out.op(f"mul nuw nsw i64 {groups}, {self.width - 1}")
        rest = out.intrinsic("llvm.smax.i64", "i64", ("i64", first), ("i64", groups))
        begin, end = (out.op(f"add nuw nsw i64 {at}, {grouped}") for at in (rest, stop))
        counted(out, begin, end, one, tag=self.s.loop_tag)

    def group(self, number: str, following: str) -> None:
        out, access = self.s.text, self.s.access
        self.first = out.op(f"mul nuw nsw i64 {number}, {self.width}")
        self.begin()
        if self.plan.mutable:
            self.over_group(self.zero)
        self.block(self.task.body)
        out.jump(following)
        self.s.access = access
