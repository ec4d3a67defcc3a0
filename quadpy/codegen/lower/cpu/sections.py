"""Iterations side by side on the CPU: one thread runs several, its *lanes*, section by section.  Owns: ``Lanes``.

Each section of a loop's body (see ``lane_plan``) is a loop over the lanes; what is done together is decided once, by what
the first lane has.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.loops import counted, lower_for, lower_while
from quadpy.codegen.lower.memory import load_at, store_at
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import lower_block, set_variable
from quadpy.codegen.lower.text import constant, llvm_type, memory_type
from quadpy.codegen.plans.sections import LanePlan, bound_by, reads_of, split
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

__all__ = ["Lanes"]


class Lanes:
    """``lanes`` is how many there are, ``cells`` holds, of variables that are kept, the array of the lanes' values.

    ``outside`` is what is known before the body begins: operands, their twins in 64 bits, those that are natural.
    """

    def __init__(self, s: Scope, plan: LanePlan, width: int) -> None:
        self.s, self.plan, self.lanes = s, plan, str(width)
        self.cells = {var: s.text.table(width, memory_type(var.type), var.type.nbytes) for var in plan.kept}
        for var in (*plan.local, *plan.mutable):
            if var.name not in s.cells:
                s.cells[var.name] = s.text.alloca(llvm_type(var.type))
        group = s.text.module.metadata("distinct !{}")
        self.independent = s.text.module.metadata(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
        self.access = f", !llvm.access.group {group}"
        self.outside: tuple[dict[str, str], dict[str, str], set[str]] = ({}, {}, set())

    def begin(self) -> None:
        """What is known now is known in all sections from here on."""
        self.outside = (dict(self.s.values), dict(self.s.wide), set(self.s.natural))
        self.s.access = self.access

    def bind(self, number: str) -> None:
        """Bind what tells lanes apart, for the lane of ``number``."""
        raise NotImplementedError

    def hints(self) -> tuple[str, ...]:
        """Metadata nodes of each loop over the lanes."""
        return (self.independent,)

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
            end = out.label("lane.end")
            self.s.loops.append(("", end))  # all that a lane may leave early here is this section
            for stmt in stmts:
                if out.open:
                    lower_block(self.s, ir.Block((stmt,), span=stmt.span))
                    self.keep(number, [var for var in bound_by(stmt) if var in plan.kept])
            self.s.loops.pop()
            out.start(end)
            self.keep(number, sorted(assigned & plan.mutable, key=lambda v: v.name))
            out.jump(following)

        self.over_lanes(lane)

    def over_lanes(self, lane: Callable[[str, str], None]) -> None:
        tag = self.s.text.module.metadata(f"distinct !{{%s, {', '.join(self.hints())}}}")
        counted(self.s.text, "0", self.lanes, lane, tag=tag)

    def zero(self, number: str, _following: str) -> None:
        for var in sorted(self.plan.mutable, key=lambda v: v.name):
            self.put(var, number, constant(0, var.type))

    def enter(self, number: str, needed: set[ir.Var]) -> None:
        """Make known what ``needed`` says, for the lane of ``number``."""
        s, plan = self.s, self.plan
        values, wide, natural = self.outside
        s.values, s.wide, s.natural = values.copy(), wide.copy(), natural.copy()
        self.bind(number)
        again = needed & plan.again.keys()
        while more := {v for let in again for v in reads_of(plan.again[let].value)} & plan.again.keys() - again:
            again |= more
        for var, let in plan.again.items():
            if var in again:
                lower_block(s, ir.Block((let,), span=let.span))
        for var in plan.kept:
            if var in needed:
                held = load_at(s, self.at(var, number), var.type, s.access)
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
        store_at(self.s, self.at(var, number), value, var.type, self.s.access)

    def at(self, var: ir.Var, number: str) -> str:
        return self.s.text.op(f"getelementptr inbounds {memory_type(var.type)}, ptr {self.cells[var]}, i64 {number}")
