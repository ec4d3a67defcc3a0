"""Texts with run-time values: f-strings, ``"…".format(…)`` and ``"…" % …``.

Everything but the values is known when the kernel is compiled: the kernel reports these as 64-bit words, and the host
inserts them.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping, Sequence
from typing import Final

from quadpy.core.dtypes import Scalar, f32, i64, u1, u32, u64
from quadpy.core.forms import Fixed, Form, Items, Members, Number, Numbers
from quadpy.core.output import Field, Style, apply
from quadpy.core.records import Plain, RecordType
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.scalars import cast, to_scalar
from quadpy.lang.values import (
    ArrayRef,
    Record,
    Text,
    TextField,
    Value,
    Vec,
    holds_runtime,
    is_direct,
    is_runtime,
    shape_text,
)

_FIXED: Final = re.compile(r"[-+ #0]*\d*\.\d+")
"""A precision without a type."""
TEXTS: Final = (str, repr, ascii, format)
"""Python functions that return text."""
_CONVERSIONS: Final[dict[object, str]] = {str: "s", repr: "r", ascii: "a"}
_MOST_WIDTH: Final = 10_000
_PERCENT: Final = re.compile(
    r"%(?P<key>\(\w*\))?(?P<flags>[-#0 +]*(?:\*|\d*)(?:\.(?:\*|\d*))?)[hlL]*(?P<type>.?)", re.DOTALL
)


def expr_JoinedStr(t: Trace, node: ast.JoinedStr) -> Value:
    parts: list[str | TextField] = []
    for item in node.values:
        if not isinstance(item, ast.FormattedValue):
            parts.append(str(t.expr(item)))
            continue
        span = t.span(item.value)
        value = t.expr(item.value)
        spec = t.expr(item.format_spec) if item.format_spec else ""
        if not isinstance(spec, str):
            t.fail_type("a format specification must be known at compile time", span)
        conversion = chr(item.conversion) if item.conversion > 0 else ""
        parts += parts_of_value(t, value, conversion, spec, "format", span)
    return _joined(parts)


def format_text(t: Trace, template: str, args: Sequence[Value], kwargs: Mapping[str, Value], span: Span) -> Value:
    """``template.format(*args, **kwargs)``."""
    parts: list[str | TextField] = []
    given = iter(range(len(args)))
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as exc:
        t.fail_type(f"{template!r}: {exc}", span)
    for literal, name, spec, conversion in pieces:
        parts.append(literal)
        if name is None:
            continue
        if conversion not in (None, "r", "s", "a"):
            t.fail_type(
                f"{template!r}: there is no conversion !{conversion}", span, "the conversions are !r, !s and !a"
            )
        if "{" in (spec or ""):
            t.fail_type(
                "a format specification must be known at compile time", span, "write it out, or use an f-string"
            )
        try:
            value = (
                args[int(name) if name.isdecimal() else next(given)] if name.isdecimal() or not name else kwargs[name]
            )
        except (StopIteration, IndexError):
            t.fail_type(f"{template!r} asks for more values than the {len(args)} of this call", span)
        except KeyError:
            t.fail_type(f"{template!r} asks for {name!r}, which this call does not pass", span,
                        "name what is passed: '{x}'.format(x=v[0])")  # fmt: skip
        parts += parts_of_value(t, value, conversion or "", spec or "", "format", span)
    return _joined(parts)


def percent_text(t: Trace, template: str, values: Value, span: Span) -> Value:
    """``template % values``."""
    given = list(values) if isinstance(values, tuple) else [values]
    parts: list[str | TextField] = []
    end = taken = 0
    for found in _PERCENT.finditer(template):
        parts.append(template[end : found.start()])
        end = found.end()
        if found["type"] == "%":
            parts.append("%")
            continue
        if found["key"] or "*" in found["flags"]:
            t.fail_type(f"{found[0]!r} in {template!r}: names and * are not part of the kernel language", span)
        if taken == len(given):
            t.fail_type(f"{template!r} asks for more values than the {len(given)} of this text", span)
        parts += parts_of_value(t, given[taken], "", f"%{found['flags']}{found['type']}", "percent", span)
        taken += 1
    if taken < len(given):
        t.fail_type(f"{template!r} takes {taken} values, not {len(given)}", span)
    return _joined([*parts, template[end:]])


def add_texts(t: Trace, a: Value, b: Value, span: Span) -> Value:
    """``a + b``, where at least one is a text with run-time values."""
    if isinstance(a, (str, Text)) and isinstance(b, (str, Text)):
        return _joined([part for x in (a, b) for part in (x.parts if isinstance(x, Text) else (x,))])
    t.fail_type(f"this operator is not defined for {shape_text(a)} and {shape_text(b)}", span)


def text_of(t: Trace, value: Value, span: Span, conversion: str = "", spec: str = "") -> str | Text:
    """``str(value)``, or ``value`` as an f-string shows it with ``conversion`` and ``spec``."""
    return _joined(parts_of_value(t, value, conversion, spec, "format", span))


def text_call(t: Trace, fn: object, args: Sequence[Value], span: Span) -> str | Text:
    """``str(x)``, ``repr(x)``, ``ascii(x)``, ``format(x, spec)``."""
    if fn is not format and len(args) == 1:
        return text_of(t, args[0], span, _CONVERSIONS[fn])
    if fn is format and len(args) in (1, 2):
        spec = args[1] if len(args) == 2 else ""
        if not isinstance(spec, str):
            t.fail_type(f"a format specification must be a string at compile time, not {shape_text(spec)}", span)
        return text_of(t, args[0], span, spec=spec)
    t.fail_type(f"{getattr(fn, '__name__', fn)} takes one value{' and a format' * (fn is format)}", span)


def parts_of_value(
    t: Trace, value: Value, conversion: str, spec: str, style: Style, span: Span
) -> Sequence[str | TextField]:
    """The parts of a text that show ``value``."""
    if any(int(digits) > _MOST_WIDTH for digits in re.findall(r"\d+", spec)):
        t.fail_type(f"the width in {spec!r} is above {_MOST_WIDTH:,}", span)
    if t.options.as_taichi and style == "format" and _FIXED.fullmatch(spec) and _is_float(value):
        spec += "f"  # as in C
    if isinstance(value, Text):
        if conversion not in ("", "s") or spec not in ("", "%s"):
            t.fail_type("a string with run-time values cannot be formatted as a whole", span, "format the values in it")
        return value.parts
    if not holds_runtime(value):
        return [_checked(t, value, conversion, spec, style, span)]
    form, words = reported(t, value, span)
    _checked(t, form.sample, conversion, spec, style, span, shape_text(value))
    return [TextField(Field(form, conversion, spec, style), tuple(map(t.build.freeze, words)))]


def _is_float(value: Value) -> bool:
    return isinstance(value, float) or ((is_runtime(value) or isinstance(value, Vec)) and value.type.is_float)


def _checked(t: Trace, value: object, conversion: str, spec: str, style: Style, span: Span, what: str = "") -> str:
    try:
        return apply(value, conversion, spec, style)
    except (TypeError, ValueError, OverflowError) as exc:
        given = what or shape_text(value)
        hint = {
            float: "formats of floats are such as .3f and .2e",
            int: "formats of integers are such as 4d and x",
        }.get(type(value), "")
        t.fail_type(f"{spec!r} does not format {given}: {exc}" if spec else f"{given} has no text: {exc}", span, hint)


def _joined(parts: Sequence[str | TextField]) -> str | Text:
    """The parts, with neighbouring literals joined."""
    joined: list[str | TextField] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    if all(isinstance(part, str) for part in joined):
        return "".join(part for part in joined if isinstance(part, str))
    return Text(tuple(joined))


def words_of(text: str | Text) -> tuple[tuple[str | Field, ...], tuple[ir.Expr, ...]]:
    """The parts of a message, and the words of its record."""
    if isinstance(text, str):
        return (text,), ()
    parts = tuple(part if isinstance(part, str) else part.field for part in text.parts)
    return parts, tuple(word for part in text.parts if isinstance(part, TextField) for word in part.words)


def reported(t: Trace, value: Value, span: Span) -> tuple[Form, list[ir.Expr]]:
    """How ``value`` is reported, and the words of 64 bits that a device writes."""
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
