"""Operators, by the kinds of their operands."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from quadpy.core.dtypes import Scalar, u1
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import fold, scalar_binary, scalar_select
from quadpy.lang.checked_values import checked_unary
from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.literals import LITERAL_UNARY
from quadpy.lang.scalars import cast, decide, operand, to_scalar
from quadpy.lang.structs import record_of
from quadpy.lang.texts import add_texts, percent_text
from quadpy.lang.tiles import combined, is_tile
from quadpy.lang.values import Kind, Record, Value, Vec, holds_runtime, is_number, is_runtime, kind_of, shape_text
from quadpy.lang.vectors import broadcast, map_vec, matmul

Binary: TypeAlias = Callable[[Trace, type[ast.operator], Value, Value, Span], Value]


def unary(t: Trace, op: type[ast.unaryop], value: Value, span: Span) -> Value:
    if isinstance(value, Vec):
        return map_vec(t, lambda e: unary(t, op, e, span), value)
    if op is ast.USub and is_tile(value):
        return combined(t, ast.Mult, value, -1, span)
    if is_runtime(value):
        return _scalar_unary(t, op, value, span)
    if op is ast.Not:
        return not decide(t, value, span)
    if is_number(value):
        return python_call(t, LITERAL_UNARY[op], [value], {}, span)
    t.fail_type(f"this operator needs a number, not {shape_text(value)}", span)


def _scalar_unary(t: Trace, op: type[ast.unaryop], value: ir.Expr, span: Span) -> ir.Expr:
    if op is ast.Not:
        return ~cast(t, value, u1, span)
    if op is ast.UAdd:
        return value
    if op is ast.Invert:
        if value.type.is_float:
            t.fail_type(f"~ needs an integer, not {value.type}", span, "bit_cast it to an integer first")
        return ~value
    number = cast(t, value, t.defaults.ip, span) if value.type == u1 else value
    return checked_unary(t, ir.UnOp.NEG, number, span)


def _percent(t: Trace, template: str, values: Value, span: Span) -> Value:
    try:
        return python_call(t, operator.mod, [template, values], {}, span)
    except ValueError as exc:  # a format that does not exist
        t.fail_type(str(exc), span)


def binary(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
    """``a op b``."""
    if is_tile(a) or is_tile(b):
        return combined(t, op, a, b, span)
    if op is ast.MatMult:
        return matmul(t, a, b, span)
    if isinstance(a, str) and op is ast.Mod:
        return percent_text(t, a, b, span) if holds_runtime(b) else _percent(t, a, b, span)
    return BINARY[max(kind_of(a), kind_of(b))](t, op, a, b, span)


def _by_component(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
    a, b = broadcast(t, a, b, span)
    return map_vec(t, lambda x, y: scalar_binary(t, op, x, y, span), a, b)


def _sequences(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
    """Containers are concatenated and repeated as in Python, whatever they contain; otherwise they act as vectors."""
    joins = op is ast.Add and any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list))
    repeats = op is ast.Mult and isinstance(a, (tuple, list)) and isinstance(b, int)
    return (fold if joins or repeats else _by_component)(t, op, a, b, span)


def _texts(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
    return add_texts(t, a, b, span) if op is ast.Add else _no_operator(t, op, a, b, span)


def _no_operator(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
    kinds = kind_of(a), kind_of(b)
    hint = "combine arrays element by element, in a loop" if Kind.ARRAY in kinds else ""
    hint = "combine the members" if {Kind.RECORD, Kind.CONTAINER} & {*kinds} else hint
    t.fail_type(f"this operator is not defined for {shape_text(a)} and {shape_text(b)}", span, hint)


BINARY: Final[Mapping[Kind, Binary]] = {
    Kind.NUMBER: fold,
    Kind.OBJECT: fold,
    Kind.SCALAR: scalar_binary,
    Kind.SEQUENCE: _sequences,
    Kind.VECTOR: _by_component,
    Kind.RECORD: _no_operator,
    Kind.ARRAY: _no_operator,
    Kind.METHOD: _no_operator,
    Kind.TEXT: _texts,
    Kind.CONTAINER: _no_operator,
}
"""The meaning of an operator, by the higher-ranked kind of its operands."""


def select(t: Trace, cond: Value, then: Value, orelse: Value, span: Span) -> Value:
    """``then`` where ``cond`` holds, else ``orelse``; both are evaluated; vectors component by component."""
    if isinstance(then, Record):
        other = record_of(t, orelse, then.shape, span)
        pairs = zip(then.elems, other.elems, strict=True)
        return Record(then.shape, tuple(t.build.let(to_scalar(t, select(t, cond, x, y, span), span)) for x, y in pairs))
    if any(isinstance(v, Vec) for v in (cond, then, orelse)):
        shape = next(v for v in (cond, then, orelse) if isinstance(v, Vec))
        cond, then, orelse = (broadcast(t, v, shape, span)[0] for v in (cond, then, orelse))
        return map_vec(t, lambda c, x, y: select(t, c, x, y, span), cond, then, orelse)
    if not is_runtime(cond):
        return then if decide(t, cond, span) else orelse
    x, y = (operand(t, value, "a number is needed here", span) for value in (then, orelse))
    return scalar_select(t, cond, x, y, span)


def bit_cast(t: Trace, value: Value, type: Scalar, span: Span) -> Value:
    if isinstance(value, Vec):
        return map_vec(t, lambda e: scalar_bit_cast(t, e, type, span), value)
    return scalar_bit_cast(t, value, type, span)


def scalar_bit_cast(t: Trace, value: Value, type: Scalar, span: Span) -> ir.Expr:
    expr = to_scalar(t, value, span)
    if expr.type.bits != type.bits or u1 in (expr.type, type):
        t.fail_type(f"bit_cast needs equal widths: {expr.type} and {type}", span)
    return expr if expr.type == type else ir.BitCast(expr, type, span=span)


def sum_of(t: Trace, items: Sequence[Value], span: Span) -> Value:
    """The items added from left to right."""
    return t.build.chain(lambda x, y: binary(t, ast.Add, x, y, span), items)
