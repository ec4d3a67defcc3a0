"""Copies and sums with 0 of the backward kernel, which begins each adjoint at 0 and adds to it, are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import is_number
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import map_children

_Known: TypeAlias = dict[ir.Var, ir.Expr]
"""Variables that hold a number, or what another variable holds."""


def tidy(block: ir.Block, known: _Known | None = None) -> ir.Block:
    """``block`` with variables read where they were first set; ``known`` is what holds before it, and then after it."""
    known = {} if known is None else known
    return ir.Block(tuple(new for stmt in block.stmts for new in _tidied(stmt, known)), span=block.span)


def _tidied(stmt: ir.Stmt, known: _Known) -> Iterable[ir.Stmt]:
    match stmt:
        case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
            value = _value(value, known)
            if value == ir.VarRead(var, span=value.span):
                return ()
            _forget(known, (var,))
            if isinstance(value, (ir.Const, ir.VarRead)) and value.type == var.type:
                known[var] = value
            return (replace(stmt, value=value),)
        case ir.AssignOne(options=options):
            given, at = _value(options[0].value, known), _value(stmt.at, known)
            _forget(known, [option.var for option in options])
            return (replace(stmt, options=tuple(replace(each, value=given) for each in options), at=at),)
        case ir.If(cond=cond, then=then, orelse=orelse):
            made = replace(
                stmt, cond=_value(cond, known), then=tidy(then, dict(known)), orelse=tidy(orelse, dict(known))
            )
            _forget(known, assigned_in(then, orelse))
            return (made,)
        case ir.For(start=start, stop=stop, step=step, body=body):
            start, stop, step = (_value(e, known) for e in (start, stop, step))
            _forget(known, assigned_in(body))
            return (replace(stmt, start=start, stop=stop, step=step, body=tidy(body, dict(known))),)
        case ir.While(body=body):
            _forget(known, assigned_in(body))
            return (replace(stmt, body=tidy(body, dict(known))),)
        case ir.ParallelFor(body=body):
            known.clear()  # its iterations may update variables from outside
            return (replace(stmt, body=tidy(body)),)
        case _:
            return (map_children(stmt, lambda node: _value(node, known)),)


def _forget(known: _Known, changed: Iterable[ir.Var]) -> None:
    """``changed`` get other values."""
    gone = set(changed)
    for var, value in list(known.items()):
        if var in gone or (isinstance(value, ir.VarRead) and value.var in gone):
            del known[var]


def _value(e: ir.Node, known: _Known) -> ir.Expr:
    if isinstance(e, ir.VarRead):
        return replace(known[e.var], span=e.span) if e.var in known else e
    e = map_children(e, lambda child: _value(child, known))
    match e:
        case ir.Binary(op=ir.BinOp.ADD, lhs=lhs, rhs=rhs) if is_number(lhs, 0):
            return rhs
        case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB, lhs=lhs, rhs=rhs) if is_number(rhs, 0):
            return lhs
    return e  # type: ignore[return-value]  # an expression for an expression
