"""Turns ``while k < n: ...; k += 64`` into a range loop.

Threads that share an array in steps of the whole grid are often written so.  The number of turns of a range loop is known
before it, so that the loads of several turns can be under way together.  Where the last ``k += 64`` might wrap, the loop
stays as it is: a wrapped ``k`` is below ``n`` again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from quadpy.ir import nodes as ir
from quadpy.ir.build import At
from quadpy.ir.touches import kind_of
from quadpy.ir.variables import assigned_in, reads_of, set_in
from quadpy.ir.walk import map_children, walk

_PLAIN: Final = (ir.Assign, ir.CallMany, ir.Let)
_ACCESSES: Final = (ir.Access.READ, ir.Access.ATOMIC)
_FIXED: Final = (ir.Binary, ir.Cast, ir.Const, ir.ParamRead, ir.ShapeOf, ir.VarRead)
_WITH_BLOCKS: Final = (ir.Block, ir.If, ir.LabelledBlock)  # not loops: a later turn of one may read the counter


def count_whiles(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with range loops in place of the while loops that count, if nothing else reads their counters."""
    return replace(kernel, tasks=tuple(map(_counted, kernel.tasks)))


def _counted(task: ir.Task) -> ir.Task:
    def rewritten(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.While) and (found := _range_of(node, task)) is not None:
            counts, stays = found.versions
            return At(node.span).when(found.never_wraps, [counts], [stays])
        return map_children(node, rewritten) if isinstance(node, _WITH_BLOCKS) else node

    return map_children(task, rewritten)


class _Range(NamedTuple):
    """A loop that counts, as a range loop and as it was, which are the same where its counter ``never_wraps``."""

    versions: tuple[ir.For, ir.While]
    never_wraps: ir.Expr


def _range_of(loop: ir.While, task: ir.Task) -> _Range | None:
    *stmts, last = loop.body.stmts or (None,)
    if loop.head.stmts or not all(isinstance(stmt, _PLAIN) or kind_of(stmt) in _ACCESSES for stmt in stmts):
        return None
    match loop.cond, last:
        case (
            ir.Compare(ir.CmpOp.LT, ir.VarRead(counter), stop),
            ir.Assign(var, ir.Binary(ir.BinOp.ADD, ir.VarRead(read), ir.Const(value=step) as by)),
        ) if counter == var == read and counter.type.is_integral and counter.type.bits > 1 and step > 0:
            pass
        case _:
            return None
    if (
        counter in assigned_in(*stmts)
        or reads_of(stop) & {*set_in(loop)}
        or _reads(counter, task) > _reads(counter, loop)
    ):
        return None
    if not all(isinstance(node, _FIXED) for node in walk(stop)):
        return None
    turn = ir.Var(f"{counter.name}.turn", counter.type)

    def in_turn(node: ir.Node) -> ir.Node:
        return replace(node, var=turn) if node == ir.VarRead(counter, span=node.span) else map_children(node, in_turn)

    body = ir.Block(tuple(map(in_turn, stmts)), span=loop.body.span)  # type: ignore[arg-type]  # statements as before
    counts = ir.For(turn, At(loop.span).read(counter), stop, by, body, span=loop.span)
    return _Range((counts, loop), stop <= counter.type.max_int - int(step) + 1)


def _reads(var: ir.Var, node: ir.Node) -> int:
    return sum(isinstance(inner, ir.VarRead) and inner.var == var for inner in walk(node))
