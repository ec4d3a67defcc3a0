"""What each builtin does in a trace: functions of the trace, the place and the arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from quadpy.dtypes import Scalar, i32, promote, u1
from quadpy.ir import nodes as ir
from quadpy.lang.builtins import UNARY_MATH
from quadpy.lang.comparisons import compare
from quadpy.lang.context import Trace
from quadpy.lang.literals import greatest, least
from quadpy.lang.operators import binary, bit_cast, select
from quadpy.lang.promotion import literal
from quadpy.lang.random_numbers import random_number
from quadpy.lang.scalars import call_library, cast, convert, decide, meet, square_root, to_integer, to_scalar
from quadpy.lang.simt import SIMT_RULES
from quadpy.lang.values import Value, Vec, holds_runtime, is_number, is_runtime, shape_text
from quadpy.lang.vecmethods import OF_TRUTHS
from quadpy.lang.vectors import broadcast, make_vector, map_vec
from quadpy.source import Span

__all__ = ["RULES"]


_ROUNDING: Final = {"floor": ir.UnOp.FLOOR, "ceil": ir.UnOp.CEIL, "round": ir.UnOp.RINT, "trunc": ir.UnOp.TRUNC}


def _library(name: str) -> Callable[..., Value]:
    """A math function of floats, by component; integers are converted to the default float type first."""
    arity = 1 if name in UNARY_MATH else 2

    def run(t: Trace, span: Span, *args: Value) -> Value:
        if len(args) != arity:
            t.fail_type(f"{name} takes {arity} argument{'s' * (arity > 1)}, not {len(args)}", span)
        if any(isinstance(a, (Vec, list, tuple)) for a in args):
            first = next(make_vector(t, a, span) for a in args if isinstance(a, (Vec, list, tuple)))
            spread = [broadcast(t, a, first, span)[0] for a in args]
            return map_vec(t, lambda *row: run(t, span, *row), *spread)
        exprs = [to_scalar(t, a, span) for a in args]
        type = reduce(promote, (e.type for e in exprs), exprs[0].type)
        type = type if type.is_float else t.defaults.fp
        return call_library(t, name, tuple(convert(t, a, type, span) for a in args), span)

    return run


def _rounding(name: str) -> Callable[..., Value]:
    def run(t: Trace, span: Span, x: Value, dtype: Scalar | None = None) -> Value:
        if isinstance(x, Vec):
            return map_vec(t, lambda e: run(t, span, e, dtype), x)
        if is_number(dtype) or is_runtime(dtype):
            t.fail_type(f"{name} takes a type and no number of digits", span, "scale: round(x * 100.0) / 100.0")
        expr = to_scalar(t, x, span)
        if expr.type.is_float:
            expr = ir.Unary(_ROUNDING[name], expr, expr.type, span=span)
        return expr if dtype is None else cast(t, expr, _scalar_type(t, dtype, span), span)

    return run


def _abs(t: Trace, span: Span, x: Value) -> Value:
    if isinstance(x, Vec):
        return map_vec(t, lambda e: _abs(t, span, e), x)
    if is_number(x):
        return abs(x)
    expr = to_scalar(t, x, span)
    if expr.type.kind in ("uint", "bool"):
        return expr
    return ir.Unary(ir.UnOp.ABS, expr, expr.type, span=span)


def _sqrt(t: Trace, span: Span, x: Value) -> Value:
    if isinstance(x, Vec):
        return map_vec(t, lambda e: _sqrt(t, span, e), x)
    return square_root(t, to_scalar(t, x, span), span)


def _extreme(op: ir.BinOp) -> Callable[..., Value]:
    def pair(t: Trace, span: Span, a: Value, b: Value) -> Value:
        if isinstance(a, (Vec, tuple, list)) or isinstance(b, (Vec, tuple, list)):
            a, b = broadcast(t, a, b, span)
            return map_vec(t, lambda x, y: pair(t, span, x, y), a, b)
        if is_number(a) and is_number(b):
            return least(a, b) if op is ir.BinOp.MIN else greatest(a, b)
        x, y = meet(t, a, b, span)
        return ir.Binary(OF_TRUTHS[op] if x.type == u1 else op, x, y, x.type, span=span)

    def run(t: Trace, span: Span, *args: Value) -> Value:
        if len(args) == 1 and isinstance(args[0], (Vec, tuple, list)):
            args = args[0].elems if isinstance(args[0], Vec) else tuple(args[0])
        elif len(args) == 1 and not (is_runtime(args[0]) or is_number(args[0])):
            t.fail_type(
                f"{shape_text(args[0])} has no items to compare", span, "there are vectors, tuples, two values and more"
            )
        if not args:
            t.fail_type("this needs at least one argument", span)
        return reduce(lambda a, b: pair(t, span, a, b), args)

    return run


def _integers(op: ir.BinOp) -> Callable[..., Value]:
    def run(t: Trace, span: Span, a: Value, b: Value) -> Value:
        if isinstance(a, Vec) or isinstance(b, Vec):
            return map_vec(t, lambda x, y: run(t, span, x, y), a, b)
        x, y = meet(t, a, b, span)
        x, y = to_integer(t, x, span), to_integer(t, y, span)
        return ir.Binary(op, x, y, x.type, span=span)

    return run


def _bits(name: str) -> Callable[..., Value]:
    def run(t: Trace, span: Span, x: Value) -> Value:
        if isinstance(x, Vec):
            return map_vec(t, lambda e: run(t, span, e), x)
        expr = to_integer(t, to_scalar(t, x, span), span)
        return ir.Intrinsic(name, (expr,), i32, span=span)

    return run


def _ffs(t: Trace, span: Span, x: Value) -> Value:
    """One more than the trailing zeros, or 0 for 0."""
    if isinstance(x, Vec):
        return map_vec(t, lambda e: _ffs(t, span, e), x)
    expr = t.build.let(to_integer(t, to_scalar(t, x, span), span))
    position = binary(t, ast.Add, ir.Intrinsic("ctz", (expr,), i32, span=span), 1, span)
    return select(t, compare(t, ast.NotEq, expr, 0, span), position, 0, span)


def _float_intrinsic(name: str, arity: int) -> Callable[..., Value]:
    def run(t: Trace, span: Span, *args: Value) -> Value:
        if len(args) != arity:
            t.fail_type(f"{name} takes {arity} arguments, not {len(args)}", span)
        vec = next((a for a in args if isinstance(a, Vec)), None)
        if vec is not None:
            return map_vec(t, lambda *row: run(t, span, *row), *(broadcast(t, a, vec, span)[0] for a in args))
        type = reduce(promote, (to_scalar(t, a, span).type for a in args))
        type = type if type.is_float else t.defaults.fp
        return ir.Intrinsic(name, tuple(convert(t, a, type, span) for a in args), type, span=span)

    return run


def _pow(t: Trace, span: Span, x: Value, y: Value) -> Value:
    return binary(t, ast.Pow, x, y, span)


def _select(t: Trace, span: Span, cond: Value, a: Value, b: Value) -> Value:
    return select(t, cond, a, b, span)


def _cast(t: Trace, span: Span, x: Value, dtype: Scalar) -> Value:
    return t.call(dtype, [x], {}, span)


def _bit_cast(t: Trace, span: Span, x: Value, dtype: Scalar) -> Value:
    return bit_cast(t, x, _scalar_type(t, dtype, span), span)


def _random(t: Trace, span: Span, dtype: Any = float) -> Value:
    return random_number(t, "uniform", _scalar_type(t, dtype, span), span)


def _randn(t: Trace, span: Span, dtype: Any = float) -> Value:
    return random_number(t, "normal", _scalar_type(t, dtype, span), span)


def _scalar_type(t: Trace, dtype: Any, span: Span) -> Scalar:
    scalar = t.scalar_type(dtype)
    if not isinstance(scalar, Scalar):
        t.fail_type(f"a scalar type is needed, not {shape_text(dtype)}", span)
    return scalar


def _static(t: Trace, span: Span, x: Value) -> Value:
    if is_runtime(x) or isinstance(x, Vec):
        t.fail_type("static() needs a value that is known at compile time", span,
                    "constants, shapes of fields, template parameters and static loop variables are")  # fmt: skip
    return x


def _static_assert(t: Trace, span: Span, cond: Value, message: str = "static assertion failed") -> None:
    if not decide(t, _static(t, span, cond), span):
        t.fail_type(str(_static(t, span, message)), span)


def _static_print(t: Trace, span: Span, *args: Value) -> None:
    t.printed += 1
    if t.printed > t.already_printed:
        print(*(shape_text(a) if holds_runtime(a) else a for a in args))  # noqa: T201  (what the user asked for)


def _filled(number: int) -> Callable[..., Value]:
    def run(t: Trace, span: Span, x: Value) -> Value:
        if isinstance(x, Vec):
            return Vec(x.shape, (literal(number, x.type, span),) * len(x.elems))
        return type(x)(number) if is_number(x) else literal(number, to_scalar(t, x, span).type, span)

    return run


RULES: Final[dict[str, Callable[..., Any]]] = {
    **SIMT_RULES,
    **{name: _library(name) for name in UNARY_MATH},
    **{name: _rounding(name) for name in _ROUNDING},
    **{name: _library(name) for name in ("atan2", "hypot", "fmod")},
    "abs": _abs, "sqrt": _sqrt, "popcnt": _bits("popcnt"), "clz": _bits("clz"), "ffs": _ffs, "pow": _pow,
    "min": _extreme(ir.BinOp.MIN), "max": _extreme(ir.BinOp.MAX), "copysign": _float_intrinsic("copysign", 2),
    "fma": _float_intrinsic("fma", 3), "raw_div": _integers(ir.BinOp.RAWDIV), "raw_mod": _integers(ir.BinOp.RAWMOD),
    "bit_shr": _integers(ir.BinOp.USHR), "select": _select, "cast": _cast, "bit_cast": _bit_cast,
    "random": _random, "randn": _randn, "static": _static, "static_assert": _static_assert,
    "static_print": _static_print, "zero": _filled(0), "one": _filled(1),
}  # fmt: skip
