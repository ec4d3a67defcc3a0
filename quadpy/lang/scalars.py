"""Conversions of scalars, conditions, and calls of the math library."""

from __future__ import annotations

from collections.abc import Iterable

from quadpy.core.dtypes import Scalar, bf16, f16, f32, promote, u1
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import binary, unary
from quadpy.lang.checked_values import checked_cast
from quadpy.lang.context import Trace
from quadpy.lang.library import library_function, required
from quadpy.lang.promotion import literal
from quadpy.lang.values import ScalarValue, Value, Vec, holds_runtime, is_direct, is_number, is_runtime, shape_text


def saturated(value: float, type: Scalar) -> float:
    """A compile-time number as a run-time cast would make it: floats are cut and saturate, integers must fit."""
    if isinstance(value, int):
        return value
    if value != value:
        return 0
    return int(min(max(value, type.min_int), type.max_int))


def to_scalar(t: Trace, value: Value, span: Span) -> ir.Expr:
    """A run-time scalar of ``value``; a literal takes its default type."""
    if is_runtime(value):
        return value
    if is_number(value):
        return literal(value, t.defaults.of(value), span)
    hint = "kernels compute with numbers; use qp.static for a value that is known at compile time"
    t.fail_type(f"a number is needed here, not {shape_text(value)}", span,
                "give the variable a number first, such as 0.0; a function returns one" if value is None else hint)  # fmt: skip


def cast(t: Trace, value: Value, type: Scalar, span: Span) -> ir.Expr:
    """``value`` converted to ``type``; a literal is converted once, from its exact value."""
    if is_number(value):
        if not type.is_float and type != u1:
            value = saturated(value, type)
        return literal(value, type, span)
    expr = to_scalar(t, value, span)
    return expr if expr.type == type else checked_cast(t, expr, type, span)


def operand(t: Trace, value: Value, what: str, span: Span) -> ScalarValue:
    """``value``, which must be a scalar; ``what`` names it in the error."""
    if is_runtime(value) or is_number(value):
        return value
    t.fail_type(f"{what}, not {shape_text(value)}", span)


def type_of(t: Trace, value: ScalarValue) -> Scalar:
    """The type of a scalar; of a literal, its default type."""
    return value.type if is_runtime(value) else t.defaults.of(value)


def meet(t: Trace, a: ScalarValue, b: ScalarValue, span: Span) -> tuple[ir.Expr, ir.Expr]:
    """Both operands, cast to their common type."""
    type = promote(type_of(t, a), type_of(t, b))
    return convert(t, a, type, span), convert(t, b, type, span)


def convert(t: Trace, value: Value, type: Scalar, span: Span) -> ir.Expr:
    """An implicit conversion: like ``cast``, but a literal must fit."""
    return literal(value, type, span) if is_number(value) else cast(t, value, type, span)


def is_whole(value: ScalarValue) -> bool:
    return not value.type.is_float if is_runtime(value) else isinstance(value, int)


def to_integer(t: Trace, value: ir.Expr, span: Span) -> ir.Expr:
    if value.type.is_float:
        t.fail_type(f"an integer is needed here, not {value.type}", span)
    return cast(t, value, t.defaults.ip, span) if value.type == u1 else value


def decide(t: Trace, value: Value, span: Span) -> bool:
    """The truth of a compile-time value."""
    if isinstance(value, Vec):
        t.fail_type("a condition must be a single value, not a vector", span, "use .any() or .all()")
    if is_direct(value):
        t.fail_type(f"a condition must be a single value, not {shape_text(value)}", span)
    try:
        return bool(value)
    except (TypeError, ValueError) as exc:
        t.fail_type(str(exc), span)


def to_condition(t: Trace, value: Value, span: Span) -> ir.Expr:
    """A run-time condition: not zero."""
    return cast(t, value if is_runtime(value) else decide(t, value, span), u1, span)


def join_conditions(t: Trace, op: ir.BinOp, items: Iterable[Value], span: Span) -> ScalarValue:
    """The truths of all ``items`` under ``and`` or ``or``."""
    decisive = op is ir.BinOp.OR
    rest: list[ir.Expr] = []
    for item in items:
        if holds_runtime(item):
            rest.append(to_condition(t, item, span))
        elif decide(t, item, span) is decisive:
            return decisive
    if not rest:
        return not decisive
    return t.build.chain(lambda x, y: binary(op, x, y), rest)


def square_root(t: Trace, value: ir.Expr, span: Span) -> ir.Expr:
    value = value if value.type.is_float else cast(t, value, t.defaults.fp, span)
    return unary(ir.UnOp.SQRT, value)


def call_library(t: Trace, name: str, args: tuple[ir.Expr, ...], span: Span) -> ir.Expr:
    """A call of a math function with one result, for operands of one float type.

    16-bit floats are computed in f32, and rounded once.
    """
    type = args[0].type
    if type in (f16, bf16):
        return cast(t, call_library(t, name, tuple(cast(t, arg, f32, span) for arg in args), span), type, span)
    (result,) = library_results(t, name, args, span)
    return result


def library_results(t: Trace, name: str, args: tuple[ir.Expr, ...], span: Span) -> tuple[ir.Expr, ...]:
    """The results of a call of a math function."""
    function = library_function(name, tuple(a.type for a in args), fast_math=t.options.fast_math)
    if function is None:
        t.fail_type(f"{name} is not defined for {', '.join(a.type.name for a in args)}", span)
    return call_function(t, function, args, span)


def call_function(t: Trace, function: ir.Function, args: tuple[ir.Expr, ...], span: Span) -> tuple[ir.Expr, ...]:
    """The results of a call of ``function``, which is added to the kernel."""
    for needed in required(function):
        t.signature.functions.setdefault(needed.name, needed)
    return emit_call(t, function, args, span)


def emit_call(t: Trace, function: ir.Function, args: tuple[ir.Expr, ...], span: Span) -> tuple[ir.Expr, ...]:
    """The results of a call of ``function``, which the kernel already has."""
    if len(function.results) == 1:
        return (ir.Call(function.name, args, function.results[0], span=span),)
    results = tuple(t.build.var("result", type) for type in function.results)
    t.build.emit(ir.CallMany(results, function.name, args, span=span))
    return tuple(ir.VarRead(var, span=span) for var in results)
