"""Code without what it does for the user's eyes: no decision may depend on a print, or on a check of ``debug=True``."""

from __future__ import annotations

from dataclasses import replace

from quadpy.ir import nodes as ir
from quadpy.ir.touches import is_binding
from quadpy.ir.variables import bound_by, reads_of
from quadpy.ir.walk import map_children


def unprinted(body: ir.Block) -> ir.Block:
    """``body`` without prints, without bindings that nothing else reads, and without blocks that this leaves empty."""
    return _block(body, set())


def _block(block: ir.Block, used: set[ir.Var]) -> ir.Block:
    """``used`` are the variables that later statements read; those of ``block`` are added."""
    kept: list[ir.Stmt] = []
    for stmt in reversed(block.stmts):
        left = _stmt(stmt, used)
        if left is not None:
            used |= reads_of(left)
            kept.append(left)
    return replace(block, stmts=tuple(reversed(kept)))


def _stmt(stmt: ir.Stmt, used: set[ir.Var]) -> ir.Stmt | None:
    """What is left of ``stmt``."""
    match stmt:
        case ir.Print():
            return None
        case _ if is_binding(stmt):
            return None if used.isdisjoint(bound_by(stmt)) else stmt
        case ir.If():
            then, orelse = _block(stmt.then, used), _block(stmt.orelse, used)
            return replace(stmt, then=then, orelse=orelse) if then.stmts or orelse.stmts else None
        case ir.For():
            body = _block(stmt.body, used)
            return replace(stmt, body=body) if body.stmts else None
        case ir.LabelledBlock():
            return replace(stmt, body=_block(stmt.body, used))
        case ir.While():
            body = _block(stmt.body, used)
            used |= reads_of(stmt.cond)
            return replace(stmt, head=_block(stmt.head, used), body=body)
        case _:
            return stmt


def unchecked(node: ir.Node) -> ir.Node:
    """``node`` without branches for checks that fail."""
    left = map_children(node, unchecked)
    if not isinstance(left, ir.Block):
        return left
    kept = tuple(stmt for stmt in left.stmts if not _is_check(stmt))
    return replace(left, stmts=kept) if len(kept) < len(left.stmts) else left


def _is_check(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.If) and any(isinstance(each, ir.Fault) for each in stmt.then.stmts)
