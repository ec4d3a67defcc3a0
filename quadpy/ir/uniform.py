"""Which values the iterations of a block have in common, and whether all of them reach each barrier.

Iterations of a block differ in their number and in what is computed from it (except its quotient by the size of the
block), in what they load (except from arrays that the loop only reads), and in variables that only some of them assign.
All other conditions are *uniform*.
"""

from __future__ import annotations

from collections.abc import Container
from typing import cast

from quadpy.core.source import Span
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, done_together
from quadpy.ir.effects import effects_of
from quadpy.ir.numbering import Numbers
from quadpy.ir.touches import changed_in, name_of, only_reads, touches
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import children, walk


def decided_by(stmt: ir.If | ir.For | ir.While) -> tuple[ir.Expr, ...]:
    """The expressions that decide which iterations run the blocks of ``stmt``."""
    return (stmt.start, stmt.stop, stmt.step) if isinstance(stmt, ir.For) else (stmt.cond,)


def varying(task: ir.ParallelTask, lanes: ir.Var, *, noalias: bool) -> set[ir.Var]:
    """The variables that may differ between iterations of ``task`` that only the axis of ``lanes`` tells apart."""
    divergence = Divergence(task, {lanes}, noalias=noalias)
    divergence.run()
    return divergence.varying


def is_launch_uniform(e: ir.Expr, known: Container[ir.Var] = ()) -> bool:
    """Whether ``e`` follows from the arguments of the launch, and from the variables ``known``, alone."""
    return all(
        isinstance(n, (ir.Const, ir.ParamRead, ir.ShapeOf)) or (isinstance(n, ir.VarRead) and n.var in known)
        for n in walk(e)
        if not n.CHILDREN
    )


class Divergence:
    """``varying`` holds variables that may differ in a block; ``split``, by the number of a loop or labelled block, where some
    iterations leave it earlier than others.  Both grow until nothing changes.

    A *cause* is the source line that separates iterations; None if they are together.  ``size`` iterations are a group:
    a block has ``threads``.  ``counter`` is the number of an iteration, if groups start at its multiples of ``size``.
    """

    def __init__(self, task: ir.ParallelTask, varying: set[ir.Var], *, noalias: bool) -> None:
        self.task, self.together, self.numbers = task, self.steps(task.body), Numbers(task.body)
        self.threads = self.size = task.block_dim or DEFAULT_BLOCK
        self.counter = _counter(task)
        self.varying = varying
        self.split: dict[int, Span] = {}
        self.around: list[ir.For | ir.While | ir.LabelledBlock] = []
        self.left: Span | None = None
        self.checks = False
        elements = {node.array for node in walk(task) if isinstance(node, ir.Element)}
        written = {name for name, access in effects_of(task) if access is not ir.Access.READ} & elements
        arrays = elements - {array.name for array in task.shared}
        self.constant = arrays - written if noalias or not written else set()
        self.changed = set(map(name_of, changed_in(task.body)))

    def steps(self, body: ir.Block) -> frozenset[int]:
        """The numbers of the statements that iterations must execute in step."""
        return done_together(body)

    def run(self) -> None:
        known = -1
        while known != (known := len(self.varying) + len(self.split)):
            self.left = None
            self.block(self.task.body, None)

    def check(self) -> None:
        self.run()
        self.left, self.checks = None, True
        self.block(self.task.body, None)

    def block(self, block: ir.Block, cause: Span | None) -> None:
        for stmt in block.stmts:
            apart = cause or self.left
            if (
                self.checks
                and apart
                and self.numbers[stmt] in self.together
                and (isinstance(stmt, _JUMPS) or not ir.MEETINGS.isdisjoint(stmt.ORDERS))
            ):
                self.refuse(stmt, apart)
            self.stmt(stmt, apart)

    def refuse(self, stmt: ir.Stmt, cause: Span) -> None:
        what = (
            "this block.sync() is" if ir.Order.BLOCK in stmt.ORDERS else "a block.sync() comes after this, and is then"
        )
        raise KernelSyntaxError(
            f"{what} not reached by all threads of a block: the condition in line {cause.line} may differ between them",
            stmt.span, hint="let the condition depend only on parameters, shapes, block_idx() or loop counters, or move the barrier out",
        )  # fmt: skip

    def stmt(self, stmt: ir.Stmt, cause: Span | None) -> None:
        match stmt:
            case ir.Let(var=var, value=value):
                self.bind(var, varies=self.varies(value))
            case ir.Wave(result=result) if result is not None:
                self.bind(result, varies=self.result_varies(stmt))
            case ir.Assign(var=var, value=value):
                self.bind(var, varies=cause is not None or self.varies(value))
            case ir.AssignOne(options=options, at=at):
                for option in options:
                    self.bind(option.var, varies=cause is not None or self.varies(at) or self.varies(option.value))
            case ir.CallMany(results=results, args=args):
                for var in results:
                    self.bind(var, varies=any(map(self.varies, args)))
            case ir.If(then=then, orelse=orelse):
                cause = cause or (stmt.span if self.decides_apart(stmt) else None)
                self.block(then, cause)
                self.block(orelse, cause)
            case ir.For() | ir.While() | ir.LabelledBlock():
                self.construct(stmt, cause)
            case ir.Break() | ir.Continue() | ir.Leave() if cause:
                self.jump(stmt, cause)
            case _:
                constant = only_reads(stmt) and all(self.is_constant(place) for place, _ in touches(stmt))
                for var in bound_by(stmt):
                    self.bind(var, varies=not constant)

    def construct(self, stmt: ir.For | ir.While | ir.LabelledBlock, cause: Span | None) -> None:
        cause = cause or self.split.get(self.numbers[stmt])
        if isinstance(stmt, ir.For):
            self.bind(stmt.var, varies=self.varies(stmt.start) or self.varies(stmt.step))
            if self.decides_apart(stmt):
                cause = cause or stmt.span
        elif isinstance(stmt, ir.While) and self.decides_apart(stmt):
            cause = cause or stmt.span
            self.split.setdefault(self.numbers[stmt], stmt.span)
        self.around.append(stmt)
        left = self.left
        for block in (stmt.head, stmt.body) if isinstance(stmt, ir.While) else (stmt.body,):
            self.block(block, cause)
        if not isinstance(stmt, ir.LabelledBlock):
            self.left = left
        self.around.pop()

    def jump(self, stmt: ir.Break | ir.Continue | ir.Leave, cause: Span) -> None:
        """Some iterations jump and others do not: the statements that the jump skips are executed separately."""
        for outer in reversed(self.around):
            if isinstance(stmt, ir.Continue) and self.rejoins(outer):
                break
            self.split.setdefault(self.numbers[outer], cause)
            if isinstance(stmt, ir.Leave) and isinstance(outer, ir.LabelledBlock) and outer.label == stmt.label:
                return
            if not isinstance(stmt, ir.Leave) and not isinstance(outer, ir.LabelledBlock):
                return
        self.left = cause

    def bind(self, var: ir.Var, *, varies: bool) -> None:
        if varies:
            self.varying.add(var)

    def rejoins(self, outer: ir.For | ir.While | ir.LabelledBlock) -> bool:
        """Whether iterations meet again in the next turn of ``outer`` after some of them ``continue``."""
        return False

    def decides_apart(self, stmt: ir.If | ir.For | ir.While) -> bool:
        """Whether some iterations may go into ``stmt``, or on in it, and others not."""
        return any(map(self.varies, decided_by(stmt)))

    def result_varies(self, stmt: ir.Wave) -> bool:
        return stmt.op is not ir.WaveOp.COMMON

    def is_constant(self, place: ir.Place) -> bool:
        if isinstance(place, ir.Slot):
            return name_of(place) not in self.changed
        return place.array in self.constant and not any(map(self.varies, place.index))

    def varies(self, e: ir.Expr) -> bool:
        if isinstance(e, ir.ThreadIndex) or (isinstance(e, ir.VarRead) and e.var in self.varying):
            return True
        return not self.is_group_number(e) and any(self.varies(cast("ir.Expr", part)) for part in children(e))

    def is_group_number(self, e: ir.Expr) -> bool:
        """Whether ``e`` is the iteration's number divided by a multiple of ``size``."""
        match e:
            case ir.Binary(op=ir.BinOp.FLOORDIV, lhs=ir.VarRead(var=var), rhs=ir.Const(value=by)):
                return var == self.counter and by > 0 and by % self.size == 0
            case _:
                return False


def _counter(task: ir.ParallelTask) -> ir.Var | None:
    axis = task.axes[0]
    bounds = [e.value if isinstance(e, ir.Const) else None for e in (axis.start, axis.step)]
    return axis.var if len(task.axes) == 1 and bounds == [0, 1] else None


_JUMPS = (ir.Break, ir.Continue, ir.Leave)
