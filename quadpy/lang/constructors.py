"""Calls of types: casts, and vectors and matrices from their parts."""

from __future__ import annotations

import math
from typing import Any

from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.returns import items_of
from quadpy.lang.scalars import cast, saturated
from quadpy.lang.values import Value, Vec, is_number
from quadpy.lang.vecmethods import METHODS
from quadpy.lang.vectors import make_vector, vec_of
from quadpy.source import Span

__all__ = ["call_type", "construct"]


def call_type(t: Trace, fn: Any, args: list[Value], span: Span) -> Value:
    """``qp.f32(x)``, ``int(x)``: a cast; a literal stays one."""
    type = t.scalar_type(fn)
    if len(args) != 1:
        t.fail_type(f"a cast takes one value, not {len(args)}", span)
    value = args[0]
    if isinstance(value, (Vec, list, tuple)):
        return make_vector(t, value, span, type)
    if fn in (int, float, bool) and is_number(value):
        if fn is int and (value != value or abs(value) == math.inf):
            return saturated(value, type)
        return python_call(t, fn, [value], {}, span)
    return cast(t, value, type, span)


def construct(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    """``qp.Vector([…])``, ``qp.Matrix.rows([…])`` and calls of vector types; None for all else."""
    dtype = kwargs.get("dt", kwargs.get("dtype"))
    kind = getattr(fn, "__quadpy_constructor__", None)
    if kind is None or (kind == "type" and isinstance(fn, type)):  # qp.types.vector itself makes a type
        return None
    if kind == "type":  # a vector or matrix type: its shape and scalar are given
        flat = items_of(t, args[0] if len(args) == 1 else args)
        shape = fn.element_shape
        count = math.prod(shape)
        if len(flat) not in (1, count):
            t.fail_type(f"{len(flat)} numbers for {count} components", span)
        return vec_of(t, flat * (count if len(flat) == 1 else 1), shape, span, t.scalar_type(fn.dtype))
    if not 1 <= len(args) <= 2:
        t.fail_type(f"a {fn.__name__} is made from one list, not from {len(args)} arguments", span,
                    "write qp.Vector([x, y]) or qp.Matrix([[a, b], [c, d]])")  # fmt: skip
    if len(args) > 1:
        dtype = args[1]
    rows = make_vector(t, args[0], span, t.scalar_type(dtype))
    return METHODS["transpose"](t, rows, span) if kind == "cols" else rows
