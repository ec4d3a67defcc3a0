"""Structs: construction, conversion member by member, and errors about their methods."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn

from quadpy.core.dtypes import Scalar
from quadpy.core.messages import one_of
from quadpy.core.records import Plain, RecordType, Shape, function_of
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import scalar_compare
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, func_of
from quadpy.lang.scalars import cast, convert, join_conditions, to_scalar
from quadpy.lang.values import (
    Record,
    Value,
    Vec,
    elems_of,
    is_number,
    is_runtime,
    shape_text,
)
from quadpy.lang.vectors import components_for, make_vector


def scalars_for(t: Trace, value: Value, shape: Shape, types: Sequence[Scalar], span: Span) -> list[ir.Expr]:
    """``value`` as the scalars of a value of this shape; see ``components_for``."""
    if isinstance(shape, RecordType):
        return list(record_of(t, value, shape, span).elems)
    if isinstance(value, Record):
        t.fail_type(f"{shape_text(value)} where {Plain(types[0], shape)} is needed", span, "name one of its members")
    return components_for(t, value, shape, types[0], span)


def record_of(t: Trace, value: Value, wanted: RecordType, span: Span, what: str = "") -> Record:
    """``value``, which must be a struct with the members of ``wanted``, with its numbers converted to their types."""
    if isinstance(value, dict):
        if missing := [name for name in wanted.names if name not in value]:
            t.fail_type(f"{wanted!r} needs a value for its member {missing[0]!r}", span)
        return make_record(t, wanted, {}, [], value, span)
    prefix = f"{what}: " if what else ""
    if not isinstance(value, Record):
        t.fail_type(f"{prefix}{shape_text(value)} where {wanted!r} is needed", span,
                    "make one by calling the struct type")  # fmt: skip
    if value.shape.names != wanted.names:
        missing = [name for name in wanted.names if name not in value.shape.names]
        extra = [name for name in value.shape.names if name not in wanted.names]
        which = (
            f"has no member {missing[0]!r}"
            if missing
            else f"has a member {extra[0]!r} too"
            if extra
            else "has another order"
        )
        t.fail_type(f"{prefix}{shape_text(value)} {which}, where {wanted!r} is needed", span)
    elems: list[ir.Expr] = []
    for name, member in wanted.members:
        elems += _member_scalars(t, value.member(name), member, name, span)
    return Record(wanted, tuple(elems))


def _member_scalars(
    t: Trace, value: Value, member: Plain | RecordType, name: str, span: Span, *, explicit: bool = False
) -> list[ir.Expr]:
    """The scalars of a member that is set to ``value``; an ``explicit`` conversion may cut floats to integers."""
    if isinstance(member, RecordType):
        return list(record_of(t, value, member, span, f"the member {name!r}").elems)
    if isinstance(value, (tuple, list)) and member.shape:
        value = make_vector(t, value, span)
    shape = value.shape if isinstance(value, (Vec, Record)) else ()
    fits = shape == member.shape or (explicit and not shape)
    if not fits or not (isinstance(value, Vec) or is_runtime(value) or is_number(value)):
        t.fail_type(f"the member {name!r} is {member!r}, not {shape_text(value)}", span)
    given = elems_of(value) if isinstance(value, Vec) or is_runtime(value) else ()
    if not explicit and any(e.type.is_float for e in given) and not member.scalar.is_float:
        t.fail_type(f"the member {name!r} is {member!r} and cannot become {shape_text(value)}", span,
                    f"cast it: {member.scalar}(...)")  # fmt: skip
    if isinstance(value, Vec):
        return [t.build.let(cast(t, e, member.scalar, span)) for e in value.elems]
    item = t.build.let(convert(t, value, member.scalar, span))
    return [item] * len(member.types)


def make_record(
    t: Trace,
    type: RecordType,
    defaults: Mapping[str, Value],
    args: Sequence[Value],
    kwargs: dict[str, Value],
    span: Span,
) -> Record:
    """The struct of these members, by position and by name; missing members get their defaults, or 0."""
    if len(args) > len(type.members):
        t.fail_type(f"{len(args)} values for the {len(type.members)} members of {type!r}", span)
    given = dict(zip(type.names, args, strict=False))
    for name, value in kwargs.items():
        if name not in type.names:
            t.fail_type(f"{type!r} has no member {name!r}", span, one_of(name, type.names))
        if name in given:
            t.fail_type(f"the member {name!r} is given twice", span)
        given[name] = value
    elems: list[ir.Expr] = []
    for name, member in type.members:
        value = given.get(name, defaults.get(name, 0))
        if isinstance(member, RecordType) and name not in given and name not in defaults:
            elems += make_record(t, member, {}, [], {}, span).elems
        else:
            elems += _member_scalars(t, value, member, name, span, explicit=True)
    return Record(type, tuple(elems))


def cast_record(t: Trace, wanted: RecordType, value: Value, span: Span) -> Record:
    """``S.cast(value)``: a struct or a dict with the members of ``wanted``, with its numbers cast to their types."""
    given: dict[Any, Value] = value if isinstance(value, dict) else {}
    if isinstance(value, Record):
        given = {name: value.member(name) for name in value.shape.names}
    if sorted(map(str, given)) != sorted(wanted.names):
        t.fail_type(f"{wanted!r} is cast from a struct with the same members, not from {shape_text(value)}", span)
    elems: list[ir.Expr] = []
    for name, member in wanted.members:
        item = given[name]
        if isinstance(member, RecordType):
            elems += cast_record(t, member, item, span).elems
        else:
            elems += _member_scalars(t, item, member, name, span, explicit=True)
    return Record(wanted, tuple(elems))


def filled_record(t: Trace, wanted: RecordType, value: Value, span: Span) -> Record:
    """``S.filled_with_scalar(value)``: all numbers are ``value``."""
    elems: list[ir.Expr] = []
    for name, member in wanted.members:
        if isinstance(member, RecordType):
            elems += filled_record(t, member, value, span).elems
        else:
            elems += _member_scalars(t, value, member, name, span, explicit=True)
    return Record(wanted, tuple(elems))


def struct_value(t: Trace, args: Sequence[Value], kwargs: dict[str, Value], span: Span) -> Record:
    """``qp.Struct({…})`` and ``qp.Struct(a=…)``: the types of the members are those of their values."""
    if len(args) > 1 or (args and not isinstance(args[0], dict)):
        t.fail_type(
            "qp.Struct takes one dict, or members by name", span, "write qp.Struct({'a': 1.0}) or qp.Struct(a=1.0)"
        )
    given: dict[Any, Value] = {**(args[0] if args and isinstance(args[0], dict) else {}), **kwargs}
    members: list[tuple[str, Plain | RecordType]] = []
    elems: list[ir.Expr] = []
    for name, item in given.items():
        value: Any = item
        if isinstance(value, dict):
            value = struct_value(t, [value], {}, span)
        elif isinstance(value, (tuple, list)):
            value = make_vector(t, value, span)
        elif not isinstance(value, (Vec, Record)):
            value = to_scalar(t, value, span)
        parts = [t.build.let(e) for e in elems_of(value)]
        members.append(
            (name, value.shape if isinstance(value, Record) else Plain(parts[0].type, getattr(value, "shape", ())))
        )
        elems += parts
    if not members:
        t.fail_type("a struct has at least one member", span)
    return Record(RecordType(tuple(members)), tuple(elems))


def record_attribute(t: Trace, value: Record, name: str, span: Span) -> Value:
    found = value.member(name)
    if found is not None:
        return found
    method = value.shape.method(name)
    if isinstance(method, Func):
        if changes_self(t, method):
            fail_to_change(t, name, span)
        return Method(method, value)
    if isinstance(method, property):
        return t.call(func_of(method.fget), [value], {}, span)
    if method is not None:  # a static method
        return function_of(method)
    t.fail_type(f"{shape_text(value)} has no member {name!r}", span, _instead(value.shape, name))


def no_member(t: Trace, type: RecordType, node: ast.expr, span: Span) -> NoReturn:
    """Raises the error for ``s.x`` and ``s[i]`` where the struct ``s`` has no such part."""
    if isinstance(node, ast.Attribute):
        t.fail_type(f"{type!r} has no member {node.attr!r}", span, _instead(type, node.attr))
    t.fail_type(f"{type!r} cannot be indexed", span, one_of(None, type.names))


def _instead(type: RecordType, name: str) -> str:
    if isinstance(getattr(type.cls, name, None), FunctionType):
        return f"mark the method {name} with @qp.func"
    return one_of(name, type.names)


def changes_self(t: Trace, method: Func) -> bool:
    """Whether ``method`` assigns its first parameter, or a part of it."""
    names = list(method.source.signature.parameters)
    return bool(names) and names[0] in t.stored(method.source.tree.body, method.source)


def fail_to_change(t: Trace, name: str, span: Span) -> NoReturn:
    """Raises the error for a method that changes a struct which is not a variable or an element."""
    t.fail_type(f"{name} changes its struct, which cannot change here", span,
                "copy the struct into a separate variable first")  # fmt: skip


def compare_records(t: Trace, op: type[ast.cmpop], a: Value, b: Value, span: Span) -> Value:
    """``==`` and ``!=``: whether all members are equal."""
    if not (isinstance(a, Record) and isinstance(b, Record)) or a.shape.members != b.shape.members:
        t.fail_type(f"{shape_text(a)} and {shape_text(b)} cannot be compared", span)
    if op not in (ast.Eq, ast.NotEq):
        t.fail_type("structs have no order", span, "compare their members")
    if cls := _with_own_equality(t, a.shape):
        t.fail_type(f"{cls.__name__} says itself when two objects are equal, which operators in kernels do not ask", span,
                    "compare the members, or give the method a name of its own and call it")  # fmt: skip
    pairs = zip(a.elems, b.elems, strict=True)
    join = ir.BinOp.AND if op is ast.Eq else ir.BinOp.OR
    return join_conditions(t, join, [scalar_compare(t, op, x, y, span) for x, y in pairs], span)


def _with_own_equality(t: Trace, type: RecordType) -> Any:
    """The class of the struct, or of one in it, that has an ``__eq__`` or ``__ne__`` of its own; None where there is none."""
    own = (t.deps.attribute(type.cls, name) for name in ("__eq__", "__ne__") if type.cls)
    if any(isinstance(found, (Func, FunctionType)) for found in own):
        return type.cls
    inside = (_with_own_equality(t, member) for _, member in type.members if isinstance(member, RecordType))
    return next(filter(None, inside), None)
