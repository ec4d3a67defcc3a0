"""Groups of iterations side by side on the CPU: one thread runs them, section by section.

Each section of a loop's body (see ``plans.sections``) is a loop over the group; joint statements are decided once, by the
values of the group's first iteration.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.loops import counted, lower_for, lower_while
from quadpy.codegen.lower.memory import load_at, store_at
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import lower_block, set_variable
from quadpy.codegen.lower.text import constant, llvm_type, memory_type
from quadpy.codegen.plans.sections import SectionPlan, split
from quadpy.ir import nodes as ir
from quadpy.ir.numbering import Numbers
from quadpy.ir.variables import assigned_in, bound_by, reads_of


class Sections:
    """Writes the body of a loop for groups of iterations.

    size     how many iterations a group has
    together the numbers of the statements that the group does in one step
    again    bindings that each section repeats
    cells    of variables that are kept, the table of the group's values; all variables are declared already
    outside  what is known before the body: operands, their 64-bit twins, and which are natural
    """

    def __init__(self, s: Scope, task: ir.ParallelTask, plan: SectionPlan, width: int) -> None:
        self.s, self.task, self.plan, self.size, self.together = s, task, plan, str(width), plan.together
        self.numbers, self.again = Numbers(task.body), {let.var: let for let in plan.again}
        self.cells = {var: s.text.table(width, memory_type(var.type), var.type.nbytes) for var in plan.kept}
        group = s.text.module.metadata("distinct !{}")
        self.independent = s.text.module.metadata(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
        self.access = f", !llvm.access.group {group}"
        self.outside: tuple[dict[str, str], dict[str, str], set[str]] = ({}, {}, set())

    def begin(self) -> None:
        """Values known now are known in all sections from here on."""
        self.outside = (dict(self.s.values), dict(self.s.wide), set(self.s.natural))
        self.s.access = self.access

    def bind(self, number: str) -> None:
        """Bind the variables that tell iterations apart, for iteration ``number`` of the group."""
        raise NotImplementedError

    def hints(self) -> tuple[str, ...]:
        """Metadata nodes of each loop over the group."""
        return (self.independent,)

    def block(self, block: ir.Block) -> None:
        for part in split(block, self.numbers, self.together):
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
            case ir.LabelledBlock(label=label, body=body):
                s.labels[label] = s.text.label("region")
                self.block(body)
                s.text.start(s.labels[label])
            case ir.Barrier():
                pass  # a section ends here, so all iterations have met
            case _:
                if bound := bound_by(stmt):
                    self.enter("0", reads_of(stmt))
                lower_block(s, ir.Block((stmt,), span=stmt.span))
                self.outside[0].update((var.name, s.values[var.name]) for var in bound)

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

    def section(self, stmts: list[ir.Stmt]) -> None:
        out, plan = self.s.text, self.plan
        reads = reads_of(*stmts)
        assigned = assigned_in(*stmts)

        def one(number: str, following: str) -> None:
            self.enter(number, reads | assigned)
            for var in sorted(assigned & plan.local, key=lambda v: v.name):
                set_variable(self.s, var, constant(0, var.type))
            end = out.label("one.end")
            self.s.loops.append(("", end))  # an iteration can leave nothing but this section early
            for stmt in stmts:
                if out.open:
                    lower_block(self.s, ir.Block((stmt,), span=stmt.span))
                    self.keep(number, [var for var in bound_by(stmt) if var in self.cells])
            self.s.loops.pop()
            out.start(end)
            self.keep(number, sorted(assigned & plan.mutable, key=lambda v: v.name))
            out.jump(following)

        self.over_group(one)

    def over_group(self, one: Callable[[str, str], None]) -> None:
        tag = self.s.text.module.metadata(f"distinct !{{%s, {', '.join(self.hints())}}}")
        counted(self.s.text, "0", self.size, one, tag=tag)

    def zero(self, number: str, _following: str) -> None:
        for var in sorted(self.plan.mutable, key=lambda v: v.name):
            self.put(var, number, constant(0, var.type))

    def enter(self, number: str, needed: set[ir.Var]) -> None:
        """Make the variables ``needed`` known, for iteration ``number`` of the group."""
        s, plan = self.s, self.plan
        values, wide, natural = self.outside
        s.values, s.wide, s.natural = values.copy(), wide.copy(), natural.copy()
        self.bind(number)
        again = needed & self.again.keys()
        while more := {v for let in again for v in reads_of(self.again[let].value)} & self.again.keys() - again:
            again |= more
        for var, let in self.again.items():
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
        """Store this iteration's values of ``variables``."""
        s = self.s
        for var in variables if s.text.open else ():
            cell = s.cells.get(var.name)
            value = s.text.op(f"load {llvm_type(var.type)}, ptr {cell}") if cell else s.values[var.name]
            self.put(var, number, value)

    def put(self, var: ir.Var, number: str, value: str) -> None:
        store_at(self.s, self.at(var, number), value, var.type, self.s.access)

    def at(self, var: ir.Var, number: str) -> str:
        return self.s.text.op(f"getelementptr inbounds {memory_type(var.type)}, ptr {self.cells[var]}, i64 {number}")
