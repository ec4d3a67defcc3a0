"""Arithmetic, comparison and selection of scalars: at compile time as in Python, otherwise as IR."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Final

from quadpy.core.dtypes import Scalar, i64, u1, u64
from quadpy.core.source import Span
from quadpy.errors import KernelValueError
from quadpy.ir import nodes as ir
from quadpy.lang.checked_values import checked_binary, require_power
from quadpy.lang.checks import quietly
from quadpy.lang.compile_time import check_size
from quadpy.lang.context import Trace
from quadpy.lang.integer_powers import power_fits, power_of_float, power_of_integer
from quadpy.lang.literals import LITERAL
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import (
    call_library,
    cast,
    convert,
    decide,
    is_whole,
    meet,
    operand,
    to_condition,
    to_integer,
    to_scalar,
)
from quadpy.lang.values import Number, ScalarValue, Value, is_number, is_runtime, shape_text

_PYTHON: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_ARITHMETIC: Final = {
    ast.Add: ir.BinOp.ADD, ast.Sub: ir.BinOp.SUB, ast.Mult: ir.BinOp.MUL, ast.Div: ir.BinOp.DIV,
    ast.FloorDiv: ir.BinOp.FLOORDIV, ast.Mod: ir.BinOp.MOD,
}  # fmt: skip
_BITS: Final = {ast.BitAnd: ir.BinOp.AND, ast.BitOr: ir.BinOp.OR, ast.BitXor: ir.BinOp.XOR}
_SHIFTS: Final = {ast.LShift: ir.BinOp.SHL, ast.RShift: ir.BinOp.SHR}
_COMPARE: Final = {
    ast.Eq: ir.CmpOp.EQ, ast.NotEq: ir.CmpOp.NE, ast.Lt: ir.CmpOp.LT, ast.LtE: ir.CmpOp.LE, ast.Gt: ir.CmpOp.GT,
    ast.GtE: ir.CmpOp.GE,
}  # fmt: skip
_LARGEST_UNROLLED_POWER: Final = 64
_TOO_LARGE: Final = "use floats: 2.0 ** 1000.0"


def fold(t: Trace, op: type[ast.AST], a: Value, b: Value, span: Span) -> Value:
    """``a op b`` at compile time, as Python does it."""
    if is_number(a) and is_number(b):
        return _fold_numbers(t, op, a, b, span)
    check_size(t, op, a, b, span)
    try:
        return _PYTHON[op](a, b)
    except (TypeError, ValueError):
        t.fail_type(f"this operator is not defined for {shape_text(a)} and {shape_text(b)}", span)


def _fold_numbers(t: Trace, op: type[ast.AST], a: Number, b: Number, span: Span) -> ScalarValue:
    """As in Python; where Python has no real result, as at run time."""
    check_size(t, op, a, b, span)
    try:
        result: ScalarValue = LITERAL.get(op, _PYTHON[op])(a, b)
    except ArithmeticError:
        raise KernelValueError("no type can hold this literal", span, hint=_TOO_LARGE) from None
    except (TypeError, ValueError):
        t.fail_type(f"this operator is not defined for {shape_text(a)} and {shape_text(b)}", span)
    return result


def scalar_binary(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> ScalarValue:
    """``a op b``: folded where both are literals.

    Raises:
        KernelTypeError: one of them is not a scalar.
    """
    x, y = (operand(t, value, "this operator needs numbers or vectors", span) for value in (a, b))
    if is_runtime(x) or is_runtime(y):
        return operation(t, op, x, y, span)
    return _fold_numbers(t, op, x, y, span)


def scalar_compare(t: Trace, op: type[ast.cmpop], a: Value, b: Value, span: Span) -> ScalarValue:
    """``a op b``: folded where both are literals.

    Raises:
        KernelTypeError: one of them is not a scalar.
    """
    x, y = (operand(t, value, "a comparison needs numbers", span) for value in (a, b))
    if not is_runtime(x) and not is_runtime(y):
        return _fold_numbers(t, op, x, y, span)
    left, right = meet(t, x, y, span)
    return ir.Compare(_COMPARE[op], left, right, u1, span=span)


def scalar_select(t: Trace, cond: Value, then: ScalarValue, orelse: ScalarValue, span: Span) -> ScalarValue:
    """``then`` where ``cond`` holds, else ``orelse``."""
    if not is_runtime(cond):
        return then if decide(t, cond, span) else orelse
    x, y = meet(t, then, orelse, span)
    return ir.Select(to_condition(t, cond, span), x, y, x.type, span=span)


def operation(t: Trace, op: type[ast.operator], a: ScalarValue, b: ScalarValue, span: Span) -> ir.Expr:
    """``a op b`` at run time."""
    if op is ast.Pow:
        return _power(t, a, b, span)
    if op in _SHIFTS:
        x = to_integer(t, to_scalar(t, a, span), span)
        if isinstance(b, int) and not 0 <= b < x.type.bits:  # shifts everything out; x.type may not hold b
            b = x.type.bits
        y = to_integer(t, b, span) if is_runtime(b) else convert(t, b, x.type, span)
        if y.type != x.type:
            with quietly(t):  # counts that are too large stay too large
                y = _shift_count(t, y, x.type, span)
        return checked_binary(t, _SHIFTS[op], x, y, x.type, span)
    if op is ast.Div and is_whole(a) and is_whole(b):  # before promotion, which could change a value's sign
        a, b = cast(t, a, t.defaults.fp, span), cast(t, b, t.defaults.fp, span)
    x, y = meet(t, a, b, span)
    if op in _BITS:
        if x.type.is_float:
            t.fail_type(f"bitwise operators need integers, not {x.type}", span)
        return ir.Binary(_BITS[op], x, y, x.type, span=span)
    if x.type == u1:
        x, y = cast(t, x, t.defaults.ip, span), cast(t, y, t.defaults.ip, span)
    if x.type.is_float and op in (ast.FloorDiv, ast.Mod):
        return call_library(t, "py_floordiv" if op is ast.FloorDiv else "py_mod", (x, y), span)
    return checked_binary(t, _ARITHMETIC[op], x, y, x.type, span)


def _shift_count(t: Trace, count: ir.Expr, type: Scalar, span: Span) -> ir.Expr:
    """A shift count in the type of what is shifted; counts that it cannot hold stay huge or negative."""
    if count.type.bits <= type.bits:
        return cast(t, count, type, span)
    count = t.build.let(count)
    limit = literal(type.bits, count.type, span)
    huge = ir.Compare(ir.CmpOp.GE, count, limit, u1, span=span)
    beyond: ir.Expr = huge
    if count.type.kind == "int":
        negative = ir.Compare(ir.CmpOp.LT, count, literal(0, count.type, span), u1, span=span)
        beyond = ir.Binary(ir.BinOp.OR, huge, negative, u1, span=span)
    return ir.Select(beyond, literal(type.bits, type, span), cast(t, count, type, span), type, span=span)


def _power(t: Trace, a: ScalarValue, b: ScalarValue, span: Span) -> ir.Expr:
    """``a ** b``: by repeated squaring for an integer ``b``, else the library's ``pow``."""
    if not is_whole(b):
        return call_library(t, "pow", meet(t, a, b, span), span)
    base = to_scalar(t, a, span)
    if base.type == u1:
        base = cast(t, a, t.defaults.ip, span)
    if isinstance(b, int):
        if b < 0 and not base.type.is_float:
            base = cast(t, a, t.defaults.fp, span)
        if abs(b) <= _LARGEST_UNROLLED_POWER:
            return _small_power(t, base, b, span)
        b = literal(b, i64 if b < 0 else u64, span)
    if t.checks is not None and base.type.kind == "int":
        base, exponent = t.build.let(base), t.build.let(to_scalar(t, b, span))
        with quietly(t):
            fits = to_scalar(t, t.call(power_fits, [base, exponent], {}, span), span)
        require_power(t, fits, base, exponent, span)
    with quietly(t):
        return to_scalar(
            t, t.call(power_of_float if base.type.is_float else power_of_integer, [base, b], {}, span), span
        )


def _small_power(t: Trace, base: ir.Expr, exponent: int, span: Span) -> ir.Expr:
    """``base ** exponent`` as a chain of products; where that overflows, a negative one by those of ``1 / base``."""
    one = literal(1, base.type, span)
    if exponent == 0:
        return one
    base = t.build.let(base)
    power = _squared(t, base, abs(exponent), span)
    if exponent > 0:
        return power
    inverse = ir.Binary(ir.BinOp.DIV, one, power, base.type, span=span)
    if exponent == -1:
        return inverse
    var = t.build.var("power", base.type, mutable=True)
    t.build.assign(var, inverse, span)
    magnitude = ir.Unary(ir.UnOp.ABS, power, base.type, span=span)
    infinite = ir.Compare(ir.CmpOp.EQ, magnitude, literal(math.inf, base.type, span), u1, span=span)
    with t.build.block() as stmts:
        small = t.build.let(ir.Binary(ir.BinOp.DIV, one, base, base.type, span=span))
        t.build.assign(var, _squared(t, small, -exponent, span), span)
    t.build.branch(infinite, stmts, [], span)
    return t.build.let(ir.VarRead(var, span=span))


def _squared(t: Trace, base: ir.Expr, exponent: int, span: Span) -> ir.Expr:
    """``base ** exponent`` by repeated squaring."""
    power: ir.Expr = base
    for bit in bin(exponent)[3:]:
        power = t.build.let(checked_binary(t, ir.BinOp.MUL, power, power, base.type, span))
        if bit == "1":
            power = t.build.let(checked_binary(t, ir.BinOp.MUL, power, base, base.type, span))
    return power
