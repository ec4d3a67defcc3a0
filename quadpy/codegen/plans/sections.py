"""The sections of a loop's body, if one thread of the CPU runs a group of iterations side by side.

The body is cut at statements that the group does together: barriers and their surroundings, inner loops that all
iterations run alike, or loads of one element for all of them.  Each section between two cuts is a loop over the group.
A variable that one section binds and another reads is kept for each iteration, or computed again where that is cheap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.numbering import Numbers
from quadpy.ir.variables import assigned_in, bound_by, reads_of
from quadpy.ir.walk import children, walk


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """The place of each variable of a body.

    together  the numbers of the statements that the group does in one step
    again     bindings that each section repeats, in their order
    kept      variables with a value for each iteration of the group
    mutable   those of ``kept`` that statements assign
    local     assigned variables that live in one section
    """

    together: frozenset[int]
    again: tuple[ir.Let, ...]
    kept: tuple[ir.Var, ...]
    mutable: frozenset[ir.Var]
    local: frozenset[ir.Var]


def split(block: ir.Block, numbers: Numbers, together: frozenset[int]) -> Iterator[ir.Stmt | list[ir.Stmt]]:
    """The statements of ``block`` that the group does together, and the runs of others between them."""
    run: list[ir.Stmt] = []
    for stmt in block.stmts:
        if numbers[stmt] not in together:
            run.append(stmt)
            continue
        if run:
            yield run
        run = []
        yield stmt
    if run:
        yield run


def plan_sections(task: ir.ParallelTask, together: frozenset[int]) -> SectionPlan:
    """The plan for ``task``, whose groups do the statements ``together``, given by their numbers, in one step."""
    finder = _Finder(task, together)
    finder.block(task.body, in_loop=False)
    return finder.plan()


class _Finder:
    """``touched`` maps a variable to the sections that mention it; joint loops' bounds are a separate section."""

    def __init__(self, task: ir.ParallelTask, together: frozenset[int]) -> None:
        self.task, self.together, self.numbers = task, together, Numbers(task.body)
        self.touched: dict[ir.Var, set[int]] = defaultdict(set)
        self.lets: dict[ir.Var, ir.Let] = {}
        self.bound: dict[ir.Var, None] = {}
        self.counters: set[ir.Var] = set()
        self.restarts: dict[ir.Var, bool] = {}
        self.sections = 0

    def block(self, block: ir.Block, *, in_loop: bool) -> None:
        for part in split(block, self.numbers, self.together):
            if isinstance(part, list):
                self.section(part, in_loop=in_loop)
            else:
                self.step(part, in_loop=in_loop)

    def section(self, stmts: list[ir.Stmt], *, in_loop: bool) -> None:
        self.sections += 1
        for stmt in stmts:
            for var in bound_by(stmt):
                self.bound[var] = None
            if isinstance(stmt, ir.Let):
                self.lets[stmt.var] = stmt
            self.touch(stmt)
            for var in {n.var for n in walk(stmt) if isinstance(n, (ir.Assign, ir.VarRead))}:
                starts = isinstance(stmt, ir.Assign) and stmt.var == var and var not in reads_of(stmt.value)
                self.restarts.setdefault(var, starts or not in_loop)

    def step(self, stmt: ir.Stmt, *, in_loop: bool) -> None:
        """A joint statement: its own expressions are evaluated for the group's first iteration."""
        self.sections += 1
        match stmt:
            case ir.If(cond=cond, then=then, orelse=orelse):
                self.touch(cond)
                self.block(then, in_loop=in_loop)
                self.block(orelse, in_loop=in_loop)
            case ir.For(start=start, stop=stop, step=step, body=body):
                for bound in (start, stop, step):
                    self.touch(bound)
                self.counters.add(stmt.var)
                self.block(body, in_loop=True)
            case ir.While(head=head, cond=cond, body=body):
                self.block(head, in_loop=True)
                self.sections += 1
                self.touch(cond)
                self.block(body, in_loop=True)
            case ir.LabelledBlock(body=body):
                self.block(body, in_loop=in_loop)
            case _:
                for var in bound_by(stmt) if stmt.ORDERS else ():  # a load is done once for all iterations
                    self.bound[var] = None
                for child in children(stmt):
                    self.touch(child)
                self.bind(stmt)

    def touch(self, node: ir.Node) -> None:
        for n in walk(node):
            if isinstance(n, (ir.VarRead, ir.Assign)):
                self.touched[n.var].add(self.sections)
        self.bind(node)

    def bind(self, node: ir.Node) -> None:
        for var in bound_by(node):
            self.touched[var].add(self.sections)

    def plan(self) -> SectionPlan:
        again: dict[ir.Var, ir.Let] = {}
        kept: list[ir.Var] = []
        local: set[ir.Var] = set()
        free = {axis.var for axis in self.task.axes} | self.counters
        assigned = assigned_in(self.task.body)
        for var in self.bound:
            if len(self.touched[var]) < 2:
                continue
            let = self.lets.get(var)
            if let is not None and _is_cheap(let.value) and reads_of(let.value) <= free | again.keys():
                again[var] = let
            else:
                kept.append(var)
        for var in sorted(assigned, key=lambda v: v.name):
            if len(self.touched[var]) == 1 and self.restarts[var]:
                local.add(var)
            else:
                kept.append(var)
        mutable = frozenset(assigned - local)
        return SectionPlan(self.together, tuple(again.values()), tuple(kept), mutable, frozenset(local))


def _is_cheap(value: ir.Expr) -> bool:
    return not any(isinstance(n, ir.Call) for n in walk(value))
