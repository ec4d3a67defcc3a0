"""How run-time values are reported: their forms, and the words of 64 bits that a device writes."""

from __future__ import annotations

from quadpy.dtypes import Scalar, f32, i64, u1, u32, u64
from quadpy.forms import Fixed, Form, Items, Members, Number, Numbers
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.scalars import cast, to_scalar
from quadpy.lang.values import ArrayRef, Record, Value, Vec, holds_runtime, is_direct, shape_text
from quadpy.records import Plain, RecordType
from quadpy.source import Span

__all__ = ["reported"]


def reported(t: Trace, value: Value, span: Span) -> tuple[Form, list[ir.Expr]]:
    """How ``value`` is reported, and its words."""
    match value:
        case Vec(shape=shape, elems=elems):
            return Numbers(_number(value.type), shape), [_word(t, e, span) for e in elems]
        case Record(shape=record, elems=elems):
            return _members(record), [_word(t, e, span) for e in elems]
        case tuple() | list():
            inner = [reported(t, item, span) for item in value]
            words = [word for _, own in inner for word in own]
            return Items(isinstance(value, tuple), tuple(form for form, _ in inner)), words
        case ArrayRef():
            t.fail_type(f"{shape_text(value)} cannot be printed as a whole", span,
                        "print elements, such as x[i], in a loop; or the array from Python, after the call")  # fmt: skip
        case ir.Node():
            scalar = to_scalar(t, value, span)
            return _number(scalar.type), [_word(t, scalar, span)]
        case _ if is_direct(value) or holds_runtime(value):
            t.fail_type(
                f"{shape_text(value)} has no text", span, "print numbers, vectors, structs, tuples or lists of them"
            )
        case _:
            return Fixed(repr(value)), []


def _number(scalar: Scalar) -> Number:
    if scalar.is_float:
        return Number("double" if scalar.bits == 64 else "single")
    return Number("bool" if scalar == u1 else scalar.kind)


def _members(record: RecordType) -> Members:
    def form(member: Plain | RecordType) -> Form:
        if isinstance(member, RecordType):
            return _members(member)
        return Numbers(_number(member.scalar), member.shape) if member.shape else _number(member.scalar)

    return Members(tuple((name, form(member)) for name, member in record.members))


def _word(t: Trace, e: ir.Expr, span: Span) -> ir.Expr:
    """The bits of a scalar in 64."""
    if e.type.is_float:
        narrow = e if e.type.bits == 64 else cast(t, e, f32, span)
        return cast(t, ir.BitCast(narrow, u64 if e.type.bits == 64 else u32, span=span), u64, span)
    if e.type.kind == "int":
        return ir.BitCast(cast(t, e, i64, span), u64, span=span)
    return cast(t, e, u64, span)
