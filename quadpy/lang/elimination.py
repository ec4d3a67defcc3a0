"""Determinants, inverses and systems of equations: Gaussian elimination with partial pivoting, unrolled.

Backward-stable (Higham, Accuracy and Stability of Numerical Algorithms, 9.3): the result solves a system whose matrix
differs from the given one by a few units of rounding of its largest entry.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import combinations

from quadpy.core.dtypes import u1
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import operation
from quadpy.lang.context import Trace
from quadpy.lang.promotion import literal
from quadpy.lang.values import Vec

LARGEST = 12
"""Rows of the largest matrix; the code grows with the cube of the rows."""


class _System:
    """The rows of a matrix, each with its right-hand sides, which change."""

    def __init__(self, t: Trace, m: Vec, right: Vec | None, span: Span) -> None:
        self.t, self.span, self.n = t, span, m.shape[0]
        self.rows = [[*m.row(i).elems, *(right.row(i).elems if right else ())] for i in range(self.n)]
        self.swaps: list[ir.Expr] = []

    def value(self, op: type[ast.operator], a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return self.t.build.let(operation(self.t, op, a, b, self.span))

    def select(self, which: ir.Expr, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return self.t.build.let(ir.Select(which, a, b, a.type, span=self.span))

    def triangular(self, *, singular: bool) -> None:
        """Makes the matrix upper triangular; ``singular``: a column of zeros does not give NaNs."""
        for k in range(self.n - 1):
            for i in range(k + 1, self.n):
                self._greater_first(k, i)
            pivot = self._not_zero(self.rows[k][k]) if singular else self.rows[k][k]
            for i in range(k + 1, self.n):
                factor = self.value(ast.Div, self.rows[i][k], pivot)
                for j in range(k + 1, len(self.rows[k])):
                    self.rows[i][j] = self._minus_product(self.rows[i][j], factor, self.rows[k][j])

    def _greater_first(self, k: int, i: int) -> None:
        """Swaps row ``i`` with row ``k`` if its entry in column ``k`` is larger."""
        ours, other = (ir.Unary(ir.UnOp.ABS, self.rows[r][k], self.rows[r][k].type, span=self.span) for r in (k, i))
        swap = self.t.build.let(ir.Compare(ir.CmpOp.GT, other, ours, u1, span=self.span))
        self.swaps.append(swap)
        for j in range(k, len(self.rows[k])):
            upper, lower = self.rows[k][j], self.rows[i][j]
            self.rows[k][j], self.rows[i][j] = self.select(swap, lower, upper), self.select(swap, upper, lower)

    def _not_zero(self, pivot: ir.Expr) -> ir.Expr:
        zero, one = (literal(number, pivot.type, self.span) for number in (0, 1))
        is_zero = ir.Compare(ir.CmpOp.EQ, pivot, zero, u1, span=self.span)
        return self.select(is_zero, one, pivot)

    def _minus_product(self, a: ir.Expr, b: ir.Expr, c: ir.Expr) -> ir.Expr:
        return self.value(ast.Sub, a, self.value(ast.Mult, b, c))

    def substitute(self, divide: Callable[[int], Callable[[ir.Expr], ir.Expr]]) -> None:
        """The right-hand sides become the solutions; ``divide(i)`` divides by entry ``i`` of the diagonal."""
        for i in reversed(range(self.n)):
            row, divided = self.rows[i], divide(i)
            for column in range(self.n, len(row)):
                for j in range(i + 1, self.n):
                    row[column] = self._minus_product(row[column], row[j], self.rows[j][column])
                row[column] = divided(row[column])

    def by_diagonal(self, i: int) -> Callable[[ir.Expr], ir.Expr]:
        return lambda value: self.value(ast.Div, value, self.rows[i][i])

    def by_reciprocal(self, i: int) -> Callable[[ir.Expr], ir.Expr]:
        """One division for all columns."""
        pivot = self.rows[i][i]
        inverse = self.value(ast.Div, literal(1, pivot.type, self.span), pivot)
        return lambda value: self.value(ast.Mult, value, inverse)

    def right(self) -> tuple[ir.Expr, ...]:
        return tuple(e for row in self.rows for e in row[self.n :])


def solution(t: Trace, m: Vec, right: Vec, span: Span) -> Vec:
    """``x`` with ``m @ x = right``, of the same float type; of a singular matrix, infinities and NaNs."""
    columns = right if len(right.shape) == 2 else Vec((*right.shape, 1), right.elems)
    system = _System(t, m, columns, span)
    system.triangular(singular=False)
    system.substitute(system.by_diagonal)
    return Vec(right.shape, system.right())


def inverse_by_elimination(t: Trace, m: Vec, span: Span) -> Vec:
    """The inverse of a square matrix of floats; of a singular one, infinities and NaNs."""
    n = m.shape[0]
    identity = Vec(m.shape, tuple(literal(int(i == j), m.type, span) for i in range(n) for j in range(n)))
    system = _System(t, m, identity, span)
    system.triangular(singular=False)
    system.substitute(system.by_reciprocal)
    return Vec(m.shape, system.right())


def determinant_by_elimination(t: Trace, m: Vec, span: Span) -> ir.Expr:
    """The determinant of a square matrix of floats."""
    system = _System(t, m, None, span)
    system.triangular(singular=True)
    value = t.build.chain(lambda x, y: operation(t, ast.Mult, x, y, span), [system.rows[k][k] for k in range(system.n)])
    for swap in system.swaps:
        value = t.build.let(value)
        value = ir.Select(swap, ir.Unary(ir.UnOp.NEG, value, value.type, span=span), value, value.type, span=span)
    return t.build.let(value)


def determinant_by_minors(t: Trace, m: Vec, span: Span) -> ir.Expr:
    """The determinant of a square matrix of integers, which wraps as their products do."""
    n = m.shape[0]
    minors: dict[tuple[int, ...], ir.Expr] = {
        (j,): m.elems[(n - 1) * n + j] for j in range(n)
    }  # by their columns: of the last rows
    for i in reversed(range(n - 1)):
        minors = {columns: _minor(t, m, i, columns, minors, span) for columns in combinations(range(n), n - i)}
    (value,) = minors.values()
    return value


def _minor(
    t: Trace, m: Vec, i: int, columns: tuple[int, ...], smaller: dict[tuple[int, ...], ir.Expr], span: Span
) -> ir.Expr:
    """The minor of these columns and the rows from ``i`` on, by the smaller ones."""
    n, total = m.shape[0], None
    for at, j in enumerate(columns):
        rest = smaller[columns[:at] + columns[at + 1 :]]
        term = operation(t, ast.Mult, m.elems[i * n + j], rest, span)
        total = term if total is None else operation(t, ast.Sub if at % 2 else ast.Add, total, term, span)
    assert total is not None
    return t.build.let(total)
