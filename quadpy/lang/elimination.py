"""The inverse of larger matrices: Gauss-Jordan elimination in place, with partial pivoting, unrolled."""

from __future__ import annotations

import ast

from quadpy.dtypes import u1
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import operation
from quadpy.lang.context import Trace
from quadpy.lang.values import Vec
from quadpy.source import Span

__all__ = ["LARGEST", "inverse_by_elimination"]

LARGEST = 12
"""Rows of the largest matrix; the code grows with the cube of the rows."""


class _Rows:
    """The rows of a matrix, which change."""

    def __init__(self, t: Trace, m: Vec, span: Span) -> None:
        self.t, self.span = t, span
        self.rows = [[t.build.let(e) for e in m.row(i).elems] for i in range(m.shape[0])]

    def _value(self, op: type[ast.operator], a: ir.Expr | float, b: ir.Expr) -> ir.Expr:
        return self.t.build.let(operation(self.t, op, a, b, self.span))

    def _select(self, which: ir.Expr, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return self.t.build.let(ir.Select(which, a, b, a.type, span=self.span))

    def larger_below(self, i: int, k: int) -> ir.Expr:
        """Whether row ``i`` has a larger entry in column ``k`` than row ``k``."""
        size, other = (ir.Unary(ir.UnOp.ABS, self.rows[r][k], self.rows[r][k].type, span=self.span) for r in (i, k))
        return self.t.build.let(ir.Compare(ir.CmpOp.GT, size, other, u1, span=self.span))

    def swap_rows(self, swap: ir.Expr, i: int, k: int) -> None:
        pairs = list(zip(self.rows[i], self.rows[k], strict=True))
        self.rows[i] = [self._select(swap, b, a) for a, b in pairs]
        self.rows[k] = [self._select(swap, a, b) for a, b in pairs]

    def swap_columns(self, swap: ir.Expr, i: int, k: int) -> None:
        for row in self.rows:
            row[i], row[k] = self._select(swap, row[k], row[i]), self._select(swap, row[i], row[k])

    def eliminate(self, k: int) -> None:
        """Column ``k`` becomes that of the identity; in its place stands what this does to the identity."""
        pivot = self._value(ast.Div, 1.0, self.rows[k][k])
        scaled = [pivot if j == k else self._value(ast.Mult, e, pivot) for j, e in enumerate(self.rows[k])]
        for i, row in enumerate(self.rows):
            if i == k:
                continue
            factor = row[k]
            products = [self._value(ast.Mult, factor, e) for e in scaled]
            self.rows[i] = [
                self._value(ast.Sub, 0.0, p) if j == k else self._value(ast.Sub, e, p)
                for j, (e, p) in enumerate(zip(row, products, strict=True))
            ]
        self.rows[k] = scaled


def inverse_by_elimination(t: Trace, m: Vec, span: Span) -> Vec:
    """The inverse of a square matrix of floats; of a singular one, infinities and NaNs."""
    n, a = m.shape[0], _Rows(t, m, span)
    swaps: list[tuple[ir.Expr, int, int]] = []
    for k in range(n):
        for i in range(k + 1, n):
            swaps.append((a.larger_below(i, k), i, k))
            a.swap_rows(*swaps[-1])
        a.eliminate(k)
    for swap in reversed(swaps):
        a.swap_columns(*swap)
    return Vec(m.shape, tuple(e for row in a.rows for e in row))
