"""Rows of a parallel loop that do nothing: conditions around the whole body that do not depend on the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

__all__ = ["Guard", "RowGuard", "row_guard"]


@dataclass(frozen=True, slots=True)
class Guard:
    """After ``before``, the iterations that agree on the first ``depth`` axes go on if ``holds``, otherwise do nothing."""

    depth: int
    before: ir.Block
    holds: ir.Expr


@dataclass(frozen=True, slots=True)
class RowGuard:
    """Guards, the outermost first, and the ``body`` of the iterations that go on after all of them."""

    guards: tuple[Guard, ...]
    body: ir.Block


def row_guard(task: ir.ParallelTask) -> RowGuard | None:
    """The conditions that all iterations along the last axis of ``task`` share; None if they may differ.

    Their loads are done once for all these iterations, so none may store to their elements.
    """
    guards: list[Guard] = []
    body, asked = task.body, list[ir.Node]()
    while True:
        stmts = [stmt for stmt in body.stmts if not isinstance(stmt, (ir.Line, ir.Names))]
        if not stmts or not isinstance(last := stmts[-1], ir.If) or last.orelse.stmts:
            break
        before = tuple(stmt for stmt in stmts[:-1] if isinstance(stmt, (ir.Let, ir.Load)))
        asked += [*before, last.cond]
        depth = _depth(task, asked)
        if len(before) < len(stmts) - 1 or not 0 < depth < len(task.axes):
            break
        guards.append(Guard(depth, ir.Block(before, span=last.span), last.cond))
        body = last.then
    return RowGuard(tuple(guards), body) if guards else None


def _depth(task: ir.ParallelTask, asked: Sequence[ir.Node]) -> int:
    """How many of the first axes decide ``asked``; 0 if it depends on what iterations assign, store or update."""
    read = [node for each in asked for node in walk(each)]
    changed = {
        node.place.array if isinstance(node.place, ir.Element) else node.place.number
        for node in walk(task.body)
        if isinstance(node, (ir.Store, ir.Atomic))
    }
    assigned = {node.var for node in walk(task.body) if isinstance(node, ir.Assign)}
    for node in read:
        if isinstance(node, ir.VarRead) and node.var in assigned:
            return 0
        if isinstance(node, ir.Load) and (not isinstance(node.place, ir.Element) or node.place.array in changed):
            return 0
    used = {node.var for node in read if isinstance(node, ir.VarRead)}
    return max((number for number, axis in enumerate(task.axes, 1) if axis.var in used), default=1)
