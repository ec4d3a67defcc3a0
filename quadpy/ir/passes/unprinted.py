"""A body without prints and their operands: decisions that affect bits must not depend on a print."""

from __future__ import annotations

from dataclasses import replace

from quadpy.ir import nodes as ir
from quadpy.ir.variables import reads_of

__all__ = ["unprinted"]


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
        case ir.Let(var=var) | ir.Load(var=var):
            return stmt if var in used else None
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
