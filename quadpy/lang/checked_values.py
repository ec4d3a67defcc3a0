"""Checks of arithmetic and casts under ``debug=True``.

Signed integers must hold their results.  Unsigned ones wrap by definition, as hash functions and random generators need.
"""

from __future__ import annotations

from typing import Final

from quadpy.core.dtypes import Scalar, f32, i64, u1
from quadpy.core.source import Span
from quadpy.errors import KernelOverflowError, KernelShiftError, KernelZeroDivisionError
from quadpy.ir import build, nodes as ir
from quadpy.ir.build import binary
from quadpy.lang.checks import require
from quadpy.lang.context import Trace
from quadpy.lang.promotion import literal

_SIGNS: Final = {
    ir.BinOp.ADD: "+", ir.BinOp.SUB: "-", ir.BinOp.MUL: "*", ir.BinOp.FLOORDIV: "//", ir.BinOp.MOD: "%", ir.BinOp.SHL: "<<",
    ir.BinOp.SHR: ">>",
}  # fmt: skip
_WIDER: Final = "a wider type holds more, and unsigned types wrap without an error"


def checked_binary(t: Trace, op: ir.BinOp, x: ir.Expr, y: ir.Expr, type: Scalar, span: Span) -> ir.Expr:
    """``x op y``, with its checks if they are on."""
    if t.checks is None or t.checks.indices_only or type.is_float or op not in _SIGNS:
        return ir.Binary(op, x, y, type, span=span)
    x, y = t.build.let(x), t.build.let(y)
    result = ir.Binary(op, x, y, type, span=span)
    match op:
        case ir.BinOp.FLOORDIV | ir.BinOp.MOD:
            _require_divisor(t, result, span)
        case ir.BinOp.SHL | ir.BinOp.SHR:
            _require_count(t, result, span)
    if type.kind != "int" or op in (ir.BinOp.MOD, ir.BinOp.SHR) or t.checks.ranges.fits(op, x, y, type):
        return result
    if op is ir.BinOp.FLOORDIV and not t.checks.ranges.of(y)[0] <= -1 <= t.checks.ranges.of(y)[1]:
        return result
    total = t.build.let(result)
    text = f"{{0}} {_SIGNS[op]} {{1}} overflows {type}"
    require(t, _is_exact(result, total, span), KernelOverflowError, text, (x, y), span, hint=_WIDER)
    return total


def _require_divisor(t: Trace, e: ir.Binary, span: Span) -> None:
    assert t.checks is not None
    low, high = t.checks.ranges.of(e.rhs)
    if low <= 0 <= high:
        holds = e.rhs.ne(0)
        what = "division" if e.op is ir.BinOp.FLOORDIV else "remainder"
        text = f"integer {what} by zero: {{0}} {_SIGNS[e.op]} 0"
        require(t, holds, KernelZeroDivisionError, text, (e.lhs,), span)


def _require_count(t: Trace, e: ir.Binary, span: Span) -> None:
    assert t.checks is not None
    low, high = t.checks.ranges.of(e.rhs)
    if low >= 0 and high < e.type.bits:
        return
    holds = _between(e.rhs, 0, e.type.bits - 1, span)
    text = f"{{0}} {_SIGNS[e.op]} {{1}} shifts {e.type} by a count outside of 0 to {e.type.bits - 1}"
    require(t, holds, KernelShiftError, text, (e.lhs, e.rhs), span)


def _is_exact(e: ir.Binary, total: ir.Expr, span: Span) -> ir.Expr:
    """Whether ``total``, which is ``e`` as the machine computes it, is the result of arithmetic."""
    x, y, type = e.lhs, e.rhs, e.type
    match e.op:
        case ir.BinOp.ADD:  # both operands have the other sign
            return (x ^ total) & (y ^ total) >= 0
        case ir.BinOp.SUB:
            return (x ^ y) & (x ^ total) >= 0
        case ir.BinOp.SHL:
            return (total >> y).eq(x)
        case ir.BinOp.MUL if type.bits < 64:
            return (build.cast(x, i64) * build.cast(y, i64)).eq(build.cast(total, i64))
        case ir.BinOp.MUL:
            return x.eq(0) | binary(ir.BinOp.RAWDIV, total, x).eq(y) & _is_no_wrap(x, y)
        case _:  # a division
            return _is_no_wrap(y, x)


def _is_no_wrap(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """Not -1 and the least integer."""
    return x.ne(-1) | y.ne(y.type.min_int)


def checked_unary(t: Trace, op: ir.UnOp, x: ir.Expr, span: Span) -> ir.Expr:
    """``-x`` or ``abs(x)``, with its check if they are on."""
    type = x.type
    if t.checks is None or t.checks.indices_only or type.kind != "int" or t.checks.ranges.of(x)[0] > type.min_int:
        return ir.Unary(op, x, type, span=span)
    x = t.build.let(x)
    holds = x.ne(type.min_int)
    text = f"{'-({0})' if op is ir.UnOp.NEG else 'abs({0})'} overflows {type}"
    require(t, holds, KernelOverflowError, text, (x,), span, hint=_WIDER)
    return ir.Unary(op, x, type, span=span)


def require_power(t: Trace, holds: ir.Expr, base: ir.Expr, exponent: ir.Expr, span: Span) -> None:
    """The check of ``base ** exponent``, a signed integer's; ``holds`` says whether its type holds it."""
    if t.checks is not None and not t.checks.indices_only:
        text = f"{{0}} ** {{1}} overflows {base.type}"
        require(t, holds, KernelOverflowError, text, (base, exponent), span, hint=_WIDER)


def checked_cast(t: Trace, x: ir.Expr, type: Scalar, span: Span) -> ir.Expr:
    """``x`` cast to ``type``, with its check if they are on: any float to an integer, integers to a signed one."""
    if (
        t.checks is None
        or t.checks.indices_only
        or type.is_float
        or u1 in (type, x.type)
        or (not x.type.is_float and type.kind != "int")
    ):
        return ir.Cast(x, type, span=span)
    if x.type.is_float:
        x = t.build.let(x if x.type.bits >= 32 else ir.Cast(x, f32, span=span))
        holds = _fits_integer(x, type, span)
    else:
        low, high = t.checks.ranges.of(x)
        if type.min_int <= low and high <= type.max_int:
            return ir.Cast(x, type, span=span)
        x = t.build.let(x)
        holds = _between(x, type.min_int, type.max_int, span)
    require(t, holds, KernelOverflowError, f"{{0}} does not fit {type}", (x,), span)
    return ir.Cast(x, type, span=span)


def _between(x: ir.Expr, low: int, high: int, span: Span) -> ir.Expr:
    """Whether an integer is in a range, of which its type may hold only a part."""
    most = literal(min(high, x.type.max_int), x.type, span)
    holds: ir.Expr = x <= most
    if x.type.kind == "int":
        least = literal(max(low, x.type.min_int), x.type, span)
        holds &= x >= least
    return holds


def _fits_integer(x: ir.Expr, type: Scalar, span: Span) -> ir.Expr:
    """Whether a float, without what comes after its point, is in the range of an integer type; false for NaN."""
    digits = 24 if x.type == f32 else 53
    below, exact = type.min_int - 1, (-type.min_int).bit_length() < digits
    least = literal(float(below if exact else type.min_int), x.type, span)
    low = ir.Compare(ir.CmpOp.GT if exact else ir.CmpOp.GE, x, least, u1, span=span)
    beyond = literal(float(type.max_int + 1), x.type, span)
    return low & (x < beyond)
