"""Rows of a parallel loop that do nothing: the condition around the whole body does not depend on the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

__all__ = ["RowGuard", "row_guard"]


@dataclass(frozen=True, slots=True)
class RowGuard:
    """After ``before``, the iterations of a row run ``body`` if ``holds``, otherwise nothing."""

    before: ir.Block
    holds: ir.Expr
    body: ir.Block


def row_guard(task: ir.ParallelTask) -> RowGuard | None:
    """The condition that all iterations along the last axis of ``task`` share; None if they may differ.

    Its loads are done for the row's first iteration, so no iteration may store to their elements.
    """
    stmts = [stmt for stmt in task.body.stmts if not isinstance(stmt, (ir.Line, ir.Names))]
    if len(task.axes) < 2 or not stmts:
        return None
    *before, last = stmts
    if not isinstance(last, ir.If) or last.orelse.stmts or _depends(task, [*before, last.cond]):
        return None
    kept = tuple(stmt for stmt in before if isinstance(stmt, (ir.Let, ir.Load)))
    return RowGuard(ir.Block(kept, span=last.span), last.cond, last.then) if len(kept) == len(before) else None


def _depends(task: ir.ParallelTask, asked: Sequence[ir.Node]) -> bool:
    """Whether ``asked`` depends on the last axis, or on what iterations assign, store or update."""
    read = [node for each in asked for node in walk(each)]
    changed = {
        node.place.array if isinstance(node.place, ir.Element) else node.place.number
        for node in walk(task.body)
        if isinstance(node, (ir.Store, ir.Atomic))
    }
    varying = {task.axes[-1].var, *(node.var for node in walk(task.body) if isinstance(node, ir.Assign))}
    return any(
        (isinstance(node, ir.VarRead) and node.var in varying)
        or (isinstance(node, ir.Load) and (not isinstance(node.place, ir.Element) or node.place.array in changed))
        for node in read
    )
