"""Rows of a parallel loop that do nothing: conditions around the whole body that do not depend on the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.touches import changed_in, name_of, only_reads, touches
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import walk


@dataclass(frozen=True, slots=True)
class Guard:
    """After ``before``, the iterations that agree on the first ``depth`` axes go on if ``holds``, otherwise do nothing."""

    depth: int
    before: ir.Block
    holds: ir.Expr


@dataclass(frozen=True, slots=True)
class Bound:
    """After ``before``, only the iterations of the row whose number along the last axis is below ``stop`` go on."""

    before: ir.Block
    stop: ir.Expr
    start: int


@dataclass(frozen=True, slots=True)
class RowGuard:
    """Guards, the outermost first, then perhaps a bound, and the ``body`` of the iterations that go on after all of them."""

    guards: tuple[Guard, ...]
    bound: Bound | None
    body: ir.Block


def row_guard(task: ir.ParallelTask) -> RowGuard | None:
    """What decides once for all iterations along the last axis of ``task`` which of them do anything; None if nothing does.

    The loads are done once for all these iterations, so none may store to their elements.
    """
    guards: list[Guard] = []
    bound: Bound | None = None
    body, asked = task.body, list[ir.Node]()
    while True:
        stmts = [stmt for stmt in body.stmts if not isinstance(stmt, (ir.Line, ir.Names))]
        if not stmts or not isinstance(last := stmts[-1], ir.If) or last.orelse.stmts:
            break
        before = tuple(stmt for stmt in stmts[:-1] if isinstance(stmt, ir.Let) or only_reads(stmt))
        block, cond = ir.Block(before, span=last.span), last.cond
        if len(before) < len(stmts) - 1 or bound is not None:
            break
        bound = _bound(task, asked, block, cond)
        if bound is None:
            asked += [*before, cond]
            depth = max(1, _depth(task, asked))
            if depth >= len(task.axes):
                break
            guards.append(Guard(depth, block, cond))
        body = last.then
    return RowGuard(tuple(guards), bound, body) if guards or bound else None


def _bound(task: ir.ParallelTask, asked: Sequence[ir.Node], before: ir.Block, cond: ir.Expr) -> Bound | None:
    """The bound if ``cond`` says ``the last variable < something``, and the variable steps by 1 from a constant on."""
    match task.axes[-1], cond:
        case (
            ir.Axis(var=var, start=ir.Const(value=start), step=ir.Const(value=1)),
            ir.Compare(op=ir.CmpOp.LT, lhs=ir.VarRead(var=below), rhs=stop),
        ) if below == var and (var.type.kind == "int" or var.type.bits < 64):  # a signed number of 64 bits holds it
            if _depth(task, [*asked, *before.stmts, stop]) < len(task.axes):
                return Bound(before, stop, int(start))
    return None


def _depth(task: ir.ParallelTask, asked: Sequence[ir.Node]) -> int:
    """How many of the first axes decide ``asked``; all if it depends on what iterations assign, store or update."""
    read = [node for each in asked for node in walk(each)]
    changed, used = (
        set(map(name_of, changed_in(task.body))),
        {node.var for node in read if isinstance(node, ir.VarRead)},
    )
    places = [place for node in read for place, _ in touches(node)]
    if used & assigned_in(task.body) or any(
        isinstance(place, ir.Slot) or name_of(place) in changed for place in places
    ):
        return len(task.axes)
    return max((number for number, axis in enumerate(task.axes, 1) if axis.var in used), default=0)
