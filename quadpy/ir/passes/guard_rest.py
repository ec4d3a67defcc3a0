"""Makes ``continue`` skip what comes after a construct in which iterations meet.

On the CPU such a construct ends a section, and an iteration can leave only the section that it is in.  Therefore, the jump sets a
variable, and the statements after the construct test it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quadpy.core.dtypes import u1
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import done_together, needs_whole_blocks
from quadpy.ir.numbering import Numbers
from quadpy.ir.walk import map_children, walk


def guard_rest(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` where no ``continue`` needs to leave more than one section, unless all iterations take it together."""
    return replace(kernel, tasks=tuple(map(_guarded, kernel.tasks)))


def _guarded(task: ir.Task) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or not needs_whole_blocks(task.body):
        return task
    if not any(isinstance(n, ir.Continue) for n in walk(task.body)):
        return task
    return replace(task, body=_Guard(task.body).loop_body(task.body))


_NAME: Final = "$skipped"


class _Guard:
    """``together`` are the numbers of the jumps that the block takes in one step; ``count`` numbers the variables."""

    def __init__(self, body: ir.Block) -> None:
        self.together, self.numbers = done_together(body), Numbers(body)
        self.count = 0

    def loop_body(self, body: ir.Block) -> ir.Block:
        """The body of a loop, whose iterations begin with nothing skipped."""
        body = map_children(body, self.loops_in)
        flag = ir.Var(f"{_NAME}{self.count}", u1)
        stmts, _, guards = self.guarded(body.stmts, flag)
        if not guards:
            return body
        self.count += 1
        return replace(body, stmts=(_set(flag, False, body.span), *stmts))

    def loops_in(self, node: ir.Node) -> ir.Node:
        if isinstance(node, (ir.For, ir.While)):
            return replace(node, body=self.loop_body(node.body))
        return map_children(node, self.loops_in) if isinstance(node, (ir.Block, ir.If, ir.LabelledBlock)) else node

    def guarded(self, stmts: tuple[ir.Stmt, ...], flag: ir.Var) -> tuple[tuple[ir.Stmt, ...], bool, bool]:
        """``stmts``; whether some jump to the end of the iteration; whether any is guarded."""
        made: list[ir.Stmt] = []
        jumps = guards = False
        for number, stmt in enumerate(stmts, 1):
            new, jumps_here, guards_here = self.inside(stmt, flag)
            made += new
            jumps, guards = jumps or jumps_here, guards or guards_here
            if jumps_here and stmts[number:] and needs_whole_blocks(stmt):
                rest, _, _ = self.guarded(stmts[number:], flag)
                goes_on = ir.Unary(ir.UnOp.NOT, ir.VarRead(flag, span=stmt.span), u1, span=stmt.span)
                blocks = ir.Block(rest, span=stmt.span), ir.Block((), span=stmt.span)
                return (*made, ir.If(goes_on, *blocks, span=stmt.span)), True, True
        return tuple(made), jumps, guards

    def inside(self, stmt: ir.Stmt, flag: ir.Var) -> tuple[tuple[ir.Stmt, ...], bool, bool]:
        """Like ``guarded``, for one statement."""
        match stmt:
            case ir.Continue() if self.numbers[stmt] not in self.together:
                return (_set(flag, True, stmt.span), stmt), True, False
            case ir.If(then=then, orelse=orelse):
                first, second = self.guarded(then.stmts, flag), self.guarded(orelse.stmts, flag)
                new: ir.Stmt = replace(
                    stmt, then=replace(then, stmts=first[0]), orelse=replace(orelse, stmts=second[0])
                )
                return (new,), first[1] or second[1], first[2] or second[2]
            case ir.LabelledBlock(body=body):
                stmts, jumps, guards = self.guarded(body.stmts, flag)
                return (replace(stmt, body=replace(body, stmts=stmts)),), jumps, guards
            case _:
                return (stmt,), False, False


def _set(flag: ir.Var, value: bool, span: Span) -> ir.Assign:
    return ir.Assign(flag, ir.Const(value, u1, span=span), span=span)
