"""Inverse roots of numbers that are certainly not subnormal: the library's ``rsqrt`` without its step for those.

Softened distances are such numbers, and the step is three instructions of an inner loop.  The bits are the same.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quadpy.core.dtypes import Scalar, f32, f64
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children, walk

_LEAST_NORMAL: Final = {f32: 2.0**-126, f64: 2.0**-1022}
_DEEPEST: Final = 16


def with_normal_roots(stmts: tuple[ir.Stmt, ...]) -> tuple[tuple[ir.Stmt, ...], set[Scalar]]:
    """``stmts`` with a call of ``inverse_root`` where that is enough, and the types that it is needed for."""
    roots = _Roots({node.var: node.value for stmt in stmts for node in walk(stmt) if isinstance(node, ir.Let)})
    return tuple(map_children(stmt, roots.rewritten) for stmt in stmts), roots.types


class _Roots:
    """Rewrites statements; ``lets`` are the values that have names."""

    def __init__(self, lets: dict[ir.Var, ir.Expr]) -> None:
        self.lets, self.types = lets, set[Scalar]()

    def rewritten(self, node: ir.Node) -> ir.Node:
        node = map_children(node, self.rewritten)
        if not isinstance(node, ir.Call) or node.function not in ("rsqrt.f32", "rsqrt.f64"):
            return node
        if self.least(node.args[0]) < _LEAST_NORMAL[node.type]:
            return node
        self.types.add(node.type)
        return replace(node, function=f"inverse_root.{node.type}")

    def least(self, e: ir.Expr, depth: int = 0) -> float:
        """A lower bound of ``e``; ``e`` may also be NaN."""
        if e.type not in _LEAST_NORMAL or depth > _DEEPEST:
            return -math.inf
        found = _least(e, lambda operand: self.least(operand, depth + 1), self.lets)
        rounded = ctypes.c_float(found).value if e.type == f32 else found  # infinite where it overflows
        return -math.inf if math.isnan(rounded) else rounded


def _least(e: ir.Expr, of: Callable[[ir.Expr], float], lets: dict[ir.Var, ir.Expr]) -> float:
    """The bound of ``e`` from those of its operands, before it is rounded as ``e`` is: rounding keeps the order of numbers."""
    match e:
        case ir.Const(value=value):
            return float(value)
        case ir.VarRead(var=var) if var in lets:
            return of(lets[var])
        case ir.Binary(op=ir.BinOp.ADD, lhs=lhs, rhs=rhs):
            return of(lhs) + of(rhs)
        case ir.Binary(op=ir.BinOp.MUL, lhs=lhs, rhs=rhs):
            a, b = of(lhs), of(rhs)
            if a >= 0 and b >= 0:
                return a * b
            return 0.0 if lhs == rhs else -math.inf
        case ir.Binary(op=ir.BinOp.MAX, lhs=ir.Const() as c) | ir.Binary(op=ir.BinOp.MAX, rhs=ir.Const() as c):
            return of(c)  # whatever the other is, even a NaN
        case ir.Binary(op=ir.BinOp.MIN, lhs=lhs, rhs=rhs):
            return min(of(lhs), of(rhs))
        case ir.Select(then=then, orelse=orelse):
            return min(of(then), of(orelse))
        case ir.Unary(op=ir.UnOp.ABS, operand=operand):
            return max(0.0, of(operand))
        case ir.Unary(op=ir.UnOp.SQRT, operand=operand):
            return math.sqrt(max(0.0, of(operand)))
        case _:
            return -math.inf
