"""Loops on the CPU whose iterations know their block.  Owns: ``lower_cpu_blocks``.

One thread runs a block, lane for lane: each section of the body is a loop over the lanes, and between two sections all
of them have met.  What is done together (see ``ir.blocks``) is decided once, by what the first lane has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.gpu_kernel import bind_axes
from quadpy.codegen.lower.lane_plan import LanePlan, bound_by, plan_lanes, reads_of, split
from quadpy.codegen.lower.loops import counted, lower_for, lower_while
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.statements import lower_block, set_variable
from quadpy.codegen.lower.text import constant, llvm_type, memory_type
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import has_barrier
from quadpy.ir.walk import walk

__all__ = ["lower_cpu_blocks"]

_MOST_BYTES: Final = 2 << 20
"""Of a thread's stack, for the shared arrays and the lanes' variables."""


def lower_cpu_blocks(s: Scope, task: ir.ParallelTask, block_dim: int) -> None:
    """Blocks [%begin, %end) of ``task``."""
    _Lowering(s, task, block_dim).run()


class _Lowering:
    """``lanes`` is how many iterations this block has, ``base`` the number of its first; ``cells`` holds, of variables
    that are kept, the array of the lanes' values.
    """

    def __init__(self, s: Scope, task: ir.ParallelTask, block_dim: int) -> None:
        self.s, self.task, self.block_dim = s, task, block_dim
        self.plan: LanePlan = plan_lanes(task)
        self.lanes, self.base = str(block_dim), "0"
        self.cells = {var: s.text.alloca(f"[{block_dim} x {llvm_type(var.type)}]") for var in self.plan.kept}
        for var in (*self.plan.local, *self.plan.mutable):
            s.cells[var.name] = s.text.alloca(llvm_type(var.type))
        self._make_shared()
        self.group = s.text.module.metadata("distinct !{}")
        self.independent = s.text.module.metadata(f'!{{!"llvm.loop.parallel_accesses", {self.group}}}')
        s.access = f", !llvm.access.group {self.group}"
        self.axes = lower_axes(s, task.axes, 64)
        self.outside = (dict(s.values), dict(s.wide), set(s.natural))

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
            pointer = s.text.alloca(f"[{count} x {memory_type(array.type.elem)}], align 64")
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

    # ------------------------------------------------------- what is done together

    def block(self, block: ir.Block) -> None:
        for part in split(block, self.plan.together):
            if not self.s.text.open:
                return
            if isinstance(part, list):
                self.section(part)
            else:
                self.step(part)

    def step(self, stmt: ir.Stmt) -> None:
        s = self.s
        match stmt:
            case ir.If():
                self.branch(stmt)
            case ir.For(body=body):
                self.enter("0", reads_of(stmt.start, stmt.stop, stmt.step))
                lower_for(s, stmt, lambda: self.counted_body(stmt.var, body))
            case ir.While(head=head, cond=cond, body=body):
                lower_while(s, stmt, lambda: self.head(head, cond), lambda: self.block(body))
            case ir.Region(label=label, body=body):
                s.regions[label] = s.text.label("region")
                self.block(body)
                s.text.start(s.regions[label])
            case ir.Barrier():
                pass  # the lanes have met: a section ends here
            case _:
                lower_block(s, ir.Block((stmt,), span=stmt.span))

    def head(self, head: ir.Block, cond: ir.Expr) -> None:
        self.block(head)
        if self.s.text.open:
            self.enter("0", reads_of(cond))

    def branch(self, stmt: ir.If) -> None:
        out = self.s.text
        then, orelse, end = out.label("then"), out.label("else"), out.label("endif")
        self.enter("0", reads_of(stmt.cond))
        out.branch(lower_expr(self.s, stmt.cond), then, orelse)
        for label, side in ((then, stmt.then), (orelse, stmt.orelse)):
            out.start(label)
            self.block(side)
            out.jump(end)
        out.start(end)

    def counted_body(self, var: ir.Var, body: ir.Block) -> None:
        """The counter of a loop around sections is known in all of them."""
        s, (values, wide, natural) = self.s, self.outside
        values[var.name] = s.values[var.name]
        if var.name in s.wide:
            wide[var.name] = s.wide[var.name]
        if var.name in s.natural:
            natural.add(var.name)
        self.block(body)

    # ------------------------------------------------------------------ sections

    def section(self, stmts: list[ir.Stmt]) -> None:
        out, plan = self.s.text, self.plan
        reads = reads_of(*stmts)
        assigned = {n.var for stmt in stmts for n in walk(stmt) if isinstance(n, ir.Assign)}

        def lane(number: str, following: str) -> None:
            self.enter(number, reads | assigned)
            for var in sorted(assigned & plan.local, key=lambda v: v.name):
                set_variable(self.s, var, constant(0, var.type))
            outer, self.s.iteration = self.s.iteration, out.label("lane.end")
            for stmt in stmts:
                if out.open:
                    lower_block(self.s, ir.Block((stmt,), span=stmt.span))
                    self.keep(number, [var for var in bound_by(stmt) if var in plan.kept])
            out.start(self.s.iteration)
            self.s.iteration = outer
            self.keep(number, sorted(assigned & plan.mutable, key=lambda v: v.name))
            out.jump(following)

        self.over_lanes(lane)

    def over_lanes(self, lane: Callable[[str, str], None]) -> None:
        tag = self.s.text.module.metadata("distinct !{%s, " + self.independent + "}")
        counted(self.s.text, "0", self.lanes, lane, tag=tag)

    def zero(self, number: str, _following: str) -> None:
        for var in sorted(self.plan.mutable, key=lambda v: v.name):
            self.put(var, number, constant(0, var.type))

    def enter(self, number: str, needed: set[ir.Var]) -> None:
        """Make known what ``needed`` says, for the lane of ``number``."""
        s, plan, out = self.s, self.plan, self.s.text
        values, wide, natural = self.outside
        s.values, s.wide, s.natural = values.copy(), wide.copy(), natural.copy()
        s.thread = out.op(f"trunc i64 {number} to i32")
        bind_axes(s, self.axes, out.op(f"add nsw i64 {self.base}, {number}"), 64)
        again = needed & plan.again.keys()
        while more := {v for let in again for v in reads_of(plan.again[let].value)} & plan.again.keys() - again:
            again |= more
        for var, let in plan.again.items():
            if var in again:
                lower_block(s, ir.Block((let,), span=let.span))
        for var in plan.kept:
            if var in needed:
                ty = llvm_type(var.type)
                held = out.op(f"load {ty}, ptr {self.at(var, number)}{s.access}")
                if var in plan.mutable:
                    set_variable(s, var, held)
                else:
                    s.values[var.name] = held

    def keep(self, number: str, variables: list[ir.Var]) -> None:
        """Store what this lane has of ``variables``."""
        s = self.s
        for var in variables if s.text.open else ():
            cell = s.cells.get(var.name)
            value = s.text.op(f"load {llvm_type(var.type)}, ptr {cell}") if cell else s.values[var.name]
            self.put(var, number, value)

    def put(self, var: ir.Var, number: str, value: str) -> None:
        self.s.text.do(f"store {llvm_type(var.type)} {value}, ptr {self.at(var, number)}{self.s.access}")

    def at(self, var: ir.Var, number: str) -> str:
        return self.s.text.op(f"getelementptr inbounds {llvm_type(var.type)}, ptr {self.cells[var]}, i64 {number}")
