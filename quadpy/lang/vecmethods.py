"""Methods of vectors and matrices inside kernels: ``v.norm()``, ``m.inverse()``.

``METHODS`` maps a name to a function of the trace, the vector and the arguments of the call.
Imports: ``ir``, ``lang`` and leaves only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from quadpy.dtypes import Scalar, u1
from quadpy.ir.nodes import Binary, BinOp, Expr
from quadpy.lang.values import Value, Vec, shape_text
from quadpy.lang.vectors import Vectors
from quadpy.source import Span

__all__ = ["METHODS", "OF_TRUTHS"]

OF_TRUTHS: Final = {BinOp.MIN: BinOp.AND, BinOp.MAX: BinOp.OR}
"""What the extremes of truth values are."""


def _same_shape(t: Vectors, a: Vec, b: Value, span: Span) -> Vec:
    other = t.vector(b, span)
    if other.shape != a.shape:
        t.fail_type(f"shapes do not agree: {shape_text(a)} and {shape_text(other)}", span)
    return other


def _square(t: Vectors, m: Vec, what: str, span: Span) -> int:
    if len(m.shape) != 2 or m.shape[0] != m.shape[1]:
        t.fail_type(f"{what} needs a square matrix, not {shape_text(m)}", span)
    return m.shape[0]


def norm_sqr(t: Vectors, v: Vec, span: Span) -> Expr:
    return t.build.let(t.sum_of([t.binary(ast.Mult, e, e, span) for e in v.elems], span))


def norm(t: Vectors, v: Vec, span: Span, eps: Value = 0) -> Expr:
    """sqrt of the sum of squares plus ``eps``."""
    total: Value = norm_sqr(t, v, span)
    if eps != 0:
        total = t.binary(ast.Add, total, eps, span)
    return t.build.let(t.sqrt(total, span))


def norm_inv(t: Vectors, v: Vec, span: Span, eps: Value = 0) -> Value:
    return t.build.let(t.binary(ast.Div, 1.0, norm(t, v, span, eps), span))


def normalized(t: Vectors, v: Vec, span: Span, eps: Value = 0) -> Value:
    """``v / (norm + eps)``."""
    length: Value = norm(t, v, span)
    if eps != 0:
        length = t.binary(ast.Add, length, eps, span)
    return t.binary(ast.Div, v, t.build.let(length), span)


def dot(t: Vectors, v: Vec, span: Span, other: Value) -> Value:
    return t.build.let(t.dot(v, _same_shape(t, v, other, span), span))


def cross(t: Vectors, v: Vec, span: Span, other: Value) -> Value:
    """A scalar for two components, a vector for three."""
    w = _same_shape(t, v, other, span)

    def minor(i: int, j: int) -> Value:
        first = t.binary(ast.Mult, v.elems[i], w.elems[j], span)
        return t.build.let(t.binary(ast.Sub, first, t.binary(ast.Mult, v.elems[j], w.elems[i], span), span))

    if v.shape == (2,):
        return minor(0, 1)
    if v.shape != (3,):
        t.fail_type(f"cross needs 2 or 3 components, not {v.shape[0]}", span)
    return Vec((3,), (minor(1, 2), minor(2, 0), minor(0, 1)))


def outer_product(t: Vectors, v: Vec, span: Span, other: Value) -> Value:
    w = t.vector(other, span)
    flat = [t.binary(ast.Mult, a, b, span) for a in v.elems for b in w.elems]
    return t.vec_of(flat, (len(v.elems), len(w.elems)), span)


def transpose(t: Vectors, m: Vec, span: Span) -> Vec:
    if len(m.shape) != 2:
        t.fail_type(f"transpose needs a matrix, not {shape_text(m)}", span)
    rows, cols = m.shape
    return Vec((cols, rows), tuple(m.elems[i * cols + j] for j in range(cols) for i in range(rows)))


def trace(t: Vectors, m: Vec, span: Span) -> Value:
    n = _square(t, m, "trace", span)
    return t.build.let(t.sum_of([m.elems[i * n + i] for i in range(n)], span))


def _without(m: Vec, row: int, col: int) -> Vec:
    n = m.shape[0]
    flat = tuple(m.elems[i * n + j] for i in range(n) for j in range(n) if i != row and j != col)
    return Vec((n - 1, n - 1), flat)


def determinant(t: Vectors, m: Vec, span: Span) -> Value:
    """By cofactors along the first row (up to 4 x 4)."""
    n = _square(t, m, "determinant", span)
    if n > 4:
        t.fail_type(f"determinant takes up to 4 x 4, not {n} x {n}", span)
    if n == 1:
        return m.elems[0]
    if n == 2:
        a, b, c, d = m.elems
        return t.build.let(t.binary(ast.Sub, t.binary(ast.Mult, a, d, span), t.binary(ast.Mult, b, c, span), span))
    terms = [t.binary(ast.Mult, m.elems[j], determinant(t, _without(m, 0, j), span), span) for j in range(n)]
    total = terms[0]
    for j, term in enumerate(terms[1:], 1):
        total = t.binary(ast.Sub if j % 2 else ast.Add, total, term, span)
    return t.build.let(total)


def inverse(t: Vectors, m: Vec, span: Span) -> Value:
    """The adjugate over the determinant (up to 4 x 4); of a singular matrix, infinities and NaNs."""
    n = _square(t, m, "inverse", span)
    inv_det = t.build.let(t.binary(ast.Div, 1.0, determinant(t, m, span), span))
    if n == 1:
        return Vec((1, 1), (inv_det,))
    cofactors: list[Value] = []
    for i in range(n):
        for j in range(n):
            minor = determinant(t, _without(m, j, i), span)
            signed = t.unary(ast.USub, minor, span) if (i + j) % 2 else minor
            cofactors.append(t.binary(ast.Mult, signed, inv_det, span))
    return t.vec_of(cofactors, (n, n), span)


def _fold(op: BinOp) -> Callable[..., Expr]:
    def run(t: Vectors, v: Vec, span: Span) -> Expr:
        def step(a: Expr, b: Expr) -> Expr:
            return Binary(OF_TRUTHS[op] if v.type == u1 else op, a, b, v.type, span=span)

        return t.build.let(reduce(step, v.elems))

    return run


def _truths(op: BinOp) -> Callable[..., Expr]:
    def run(t: Vectors, v: Vec, span: Span) -> Expr:
        bits = [t.cast(e, u1, span) for e in v.elems]
        return t.build.let(reduce(lambda a, b: Binary(op, a, b, u1, span=span), bits))

    return run


def total(t: Vectors, v: Vec, span: Span) -> Expr:
    return t.build.let(t.sum_of(v.elems, span))


def cast(t: Vectors, v: Vec, span: Span, dtype: Any) -> Vec:
    scalar = t.scalar_type(dtype)
    if not isinstance(scalar, Scalar):
        t.fail_type(f"cast needs a scalar type, not {shape_text(dtype)}", span, "such as qp.f32, float or int")
    return t.vector(v, span, scalar)


def frobenius_inner(t: Vectors, m: Vec, span: Span, other: Value) -> Value:
    return t.build.let(t.dot(m, _same_shape(t, m, other, span), span))


def filled(t: Vectors, v: Vec, span: Span, value: Value) -> Vec:
    return t.vec_of([value] * len(v.elems), v.shape, span, v.type)


METHODS: Final[dict[str, Callable[..., Any]]] = {
    "norm": norm, "norm_sqr": norm_sqr, "norm_inv": norm_inv, "normalized": normalized, "dot": dot, "cross": cross,
    "outer_product": outer_product, "transpose": transpose, "trace": trace, "determinant": determinant,
    "inverse": inverse, "sum": total, "max": _fold(BinOp.MAX), "min": _fold(BinOp.MIN), "any": _truths(BinOp.OR),
    "all": _truths(BinOp.AND), "cast": cast, "frobenius_inner": frobenius_inner, "fill": filled,
    "get_shape": lambda t, v, span: v.shape, "to_list": lambda t, v, span: list(v.elems),
}  # fmt: skip
