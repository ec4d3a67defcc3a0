"""Methods of vectors and matrices in kernels: ``v.norm()``, ``m.inverse()``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from quadpy.core.dtypes import Scalar, promote, u1
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import operation
from quadpy.lang.context import Trace
from quadpy.lang.elimination import (
    LARGEST,
    determinant_by_elimination,
    determinant_by_minors,
    inverse_by_elimination,
    solution,
)
from quadpy.lang.operators import binary
from quadpy.lang.scalars import cast, operand, square_root
from quadpy.lang.values import Value, Vec, shape_text
from quadpy.lang.vectors import dot_product, make_vector, vec_of

OF_TRUTHS: Final = {ir.BinOp.MIN: ir.BinOp.AND, ir.BinOp.MAX: ir.BinOp.OR}
"""Minimum and maximum of truth values."""

LARGEST_DETERMINANT: Final = 6
"""Rows of the largest matrix with a determinant: for integers it is a sum of 720 products."""


def _same_shape(t: Trace, a: Vec, b: Value, span: Span) -> Vec:
    other = make_vector(t, b, span)
    if other.shape != a.shape:
        t.fail_type(f"shapes do not agree: {shape_text(a)} and {shape_text(other)}", span)
    return other


def _square(t: Trace, m: Vec, what: str, span: Span) -> int:
    if len(m.shape) != 2 or m.shape[0] != m.shape[1]:
        t.fail_type(f"{what} needs a square matrix, not {shape_text(m)}", span)
    return m.shape[0]


def _norm_sqr(t: Trace, v: Vec, span: Span) -> ir.Expr:
    """The sum of the squares."""
    return t.build.let(dot_product(t, v, v, span))


def _norm(t: Trace, v: Vec, span: Span, eps: Value = 0) -> ir.Expr:
    """The square root of the sum of the squares plus ``eps``."""
    return t.build.let(square_root(t, _plus(t, _norm_sqr(t, v, span), eps, span), span))


def _norm_inv(t: Trace, v: Vec, span: Span, eps: Value = 0) -> ir.Expr:
    """``1 / v.norm(eps)``."""
    return t.build.let(operation(t, ast.Div, 1.0, _norm(t, v, span, eps), span))


def _normalized(t: Trace, v: Vec, span: Span, eps: Value = 0) -> Value:
    """``v / (v.norm() + eps)``."""
    return binary(t, ast.Div, v, t.build.let(_plus(t, _norm(t, v, span), eps, span)), span)


def _plus(t: Trace, value: ir.Expr, eps: Value, span: Span) -> ir.Expr:
    if isinstance(eps, int) and eps == 0:
        return value
    return operation(t, ast.Add, value, operand(t, eps, "eps must be a number", span), span)


def _dot(t: Trace, v: Vec, span: Span, other: Value) -> ir.Expr:
    """The sum of the products of the components, from the first to the last."""
    return t.build.let(dot_product(t, v, _same_shape(t, v, other, span), span))


def _minor(t: Trace, a: ir.Expr, b: ir.Expr, c: ir.Expr, d: ir.Expr, span: Span) -> ir.Expr:
    """``a * d - b * c``."""
    first, second = operation(t, ast.Mult, a, d, span), operation(t, ast.Mult, b, c, span)
    return t.build.let(operation(t, ast.Sub, first, second, span))


def _cross(t: Trace, v: Vec, span: Span, other: Value) -> ir.Expr | Vec:
    """The cross product: a number for two components, a vector for three."""
    w = _same_shape(t, v, other, span)
    if v.shape not in ((2,), (3,)):
        t.fail_type(f"cross needs 2 or 3 components, not {v.shape[0]}", span)
    pairs = [(0, 1)] if v.shape == (2,) else [(1, 2), (2, 0), (0, 1)]
    minors = [_minor(t, v.elems[i], v.elems[j], w.elems[i], w.elems[j], span) for i, j in pairs]
    return minors[0] if v.shape == (2,) else Vec((3,), tuple(minors))


def _outer_product(t: Trace, v: Vec, span: Span, other: Value) -> Vec:
    """The matrix of the products of each component with each of ``other``."""
    w = make_vector(t, other, span)
    flat = [operation(t, ast.Mult, a, b, span) for a in v.elems for b in w.elems]
    return vec_of(t, flat, (len(v.elems), len(w.elems)), span)


def _transpose(t: Trace, m: Vec, span: Span) -> Vec:
    """Rows as columns."""
    if len(m.shape) != 2:
        t.fail_type(f"transpose needs a matrix, not {shape_text(m)}", span)
    rows, cols = m.shape
    return Vec((cols, rows), tuple(e for j in range(cols) for e in m.column(j).elems))


def _trace(t: Trace, m: Vec, span: Span) -> ir.Expr:
    """The sum of the diagonal of a square matrix."""
    n = _square(t, m, "trace", span)
    return _sum(t, Vec((n,), m.elems[:: n + 1]), span)


def _determinant(t: Trace, m: Vec, span: Span) -> ir.Expr:
    """Up to 6 x 6: by elimination with partial pivoting; of integers by minors, of 2 x 2 as ``a * d - b * c``."""
    n = _square(t, m, "determinant", span)
    if n > LARGEST_DETERMINANT:
        t.fail_type(f"determinant takes up to {LARGEST_DETERMINANT} x {LARGEST_DETERMINANT}, not {n} x {n}", span)
    by_elimination = n > 2 and m.type.is_float
    return (determinant_by_elimination if by_elimination else determinant_by_minors)(t, m, span)


def _inverse(t: Trace, m: Vec, span: Span) -> Vec:
    """Up to 12 x 12: column by column as ``solve``; of a singular matrix, infinities and NaNs."""
    n = _square(t, m, "inverse", span)
    if n > LARGEST:
        t.fail_type(f"inverse takes up to {LARGEST} x {LARGEST}, not {n} x {n}", span)
    return inverse_by_elimination(t, _floats(t, m, span), span)


def _solve(t: Trace, m: Vec, span: Span, right: Value) -> Vec:
    """``x`` with ``m @ x = right``, a vector or the columns of a matrix; up to 12 rows, as ``qp.solve``."""
    n, b = _square(t, m, "solve", span), make_vector(t, right, span)
    if n > LARGEST:
        t.fail_type(f"solve takes up to {LARGEST} rows, not {n}", span)
    if b.shape[0] != n:
        t.fail_type(f"solve needs {n} rows on the right-hand side of {shape_text(m)}, not {shape_text(b)}", span)
    m, b = _floats(t, m, span), _floats(t, b, span)
    type = promote(m.type, b.type)
    return solution(t, make_vector(t, m, span, type), make_vector(t, b, span, type), span)


def _floats(t: Trace, m: Vec, span: Span) -> Vec:
    return m if m.type.is_float else make_vector(t, m, span, t.defaults.fp)


def _sum(t: Trace, v: Vec, span: Span) -> ir.Expr:
    """The sum of all components, from the first to the last."""
    return t.build.let(t.build.chain(lambda x, y: operation(t, ast.Add, x, y, span), v.elems))


def _extreme(op: ir.BinOp, doc: str) -> Callable[..., ir.Expr]:
    def run(t: Trace, v: Vec, span: Span) -> ir.Expr:
        used = OF_TRUTHS[op] if v.type == u1 else op
        return t.build.let(t.build.chain(lambda a, b: ir.Binary(used, a, b, v.type, span=span), v.elems))

    run.__doc__ = doc
    return run


def _truths(op: ir.BinOp, doc: str) -> Callable[..., ir.Expr]:
    def run(t: Trace, v: Vec, span: Span) -> ir.Expr:
        bits = [cast(t, e, u1, span) for e in v.elems]
        return t.build.let(t.build.chain(lambda a, b: ir.Binary(op, a, b, u1, span=span), bits))

    run.__doc__ = doc
    return run


def _cast(t: Trace, v: Vec, span: Span, dtype: Value) -> Vec:
    """Each component cast to ``dtype``."""
    scalar = t.scalar_type(dtype)
    if not isinstance(scalar, Scalar):
        t.fail_type(f"cast needs a scalar type, not {shape_text(dtype)}", span, "such as qp.f32, float or int")
    return make_vector(t, v, span, scalar)


def _filled(t: Trace, v: Vec, span: Span, value: Value) -> Vec:
    """All components set to ``value``; of a variable, in place."""
    return vec_of(t, [value] * len(v.elems), v.shape, span, v.type)


def _get_shape(t: Trace, v: Vec, span: Span) -> Value:
    """``(n,)`` or ``(n, m)``."""
    return v.shape


def _to_list(t: Trace, v: Vec, span: Span) -> Value:
    """The components as a list; of a matrix, a list for each row."""
    return [list(v.row(i).elems) for i in range(v.shape[0])] if len(v.shape) == 2 else list(v.elems)


METHODS: Final[dict[str, Callable[..., Value]]] = {
    "norm": _norm, "norm_sqr": _norm_sqr, "norm_inv": _norm_inv, "normalized": _normalized,
    "dot": _dot, "frobenius_inner": _dot, "cross": _cross, "outer_product": _outer_product,
    "transpose": _transpose, "trace": _trace, "determinant": _determinant, "inverse": _inverse,
    "solve": _solve,
    "sum": _sum,
    "min": _extreme(ir.BinOp.MIN, "The least component."),
    "max": _extreme(ir.BinOp.MAX, "The greatest component."),
    "any": _truths(ir.BinOp.OR, "Whether any component is not 0."),
    "all": _truths(ir.BinOp.AND, "Whether no component is 0."),
    "cast": _cast, "fill": _filled, "get_shape": _get_shape, "to_list": _to_list,
}  # fmt: skip
"""Each takes the trace, the vector, the place, and the arguments of the call; the reference prints their docstrings."""
