"""Parameters of the kernel, and the values that they have in it."""

from __future__ import annotations

import math

from quadpy.ir import nodes as ir
from quadpy.lang.arguments import ArgType, ArrayArg, ContainerArg, MemberPath, ScalarArg, StaticArg, StructArg, VecArg
from quadpy.lang.context import Trace
from quadpy.lang.values import ArrayRef, Container, Record, Value, Vec


def parameter_value(t: Trace, name: str, arg: ArgType) -> Value:
    """The value of the parameter in the trace; a launch passes its scalars and arrays in the order of these calls."""
    span, params = t.frames[0].source.span, t.signature.params
    match arg:
        case ScalarArg(type=type):
            params.append(ir.ScalarParam(name, type, span=span))
            return ir.ParamRead(name, type, span=span)
        case VecArg(shape=shape, type=type):
            scalars = [ir.ScalarParam(f"{name}.{i}", type, span=span) for i in range(math.prod(shape))]
            params += scalars
            return Vec(shape, tuple(ir.ParamRead(each.name, type, span=span) for each in scalars))
        case StructArg(type=record):
            scalars = [ir.ScalarParam(f"{name}.{i}", type, span=span) for i, type in enumerate(record.types)]
            params += scalars
            return Record(record, tuple(ir.ParamRead(each.name, each.type, span=span) for each in scalars))
        case ArrayArg(type=array, writable=writable, record=found, clamped=clamped, same=same):
            params.append(ir.ArrayParam(name, array, span=span))
            return ArrayRef(same or name, array, (), writable, found or array.element, clamped=clamped)
        case ContainerArg():
            return Container(MemberPath.named(name), arg)
        case StaticArg(value=value):
            return value


def member_parameter(t: Trace, path: MemberPath, arg: ArgType) -> Value:
    """Like ``parameter_value``, of a member of an argument; each is one parameter, however often it is used."""
    members, name = t.signature.members, str(path)
    if name not in members:  # the arguments of the trace do not list it
        t.signature.found.append(path)
        members[name] = parameter_value(t, name, arg)
    return members[name]


def passed_attribute(t: Trace, owner: object, name: str) -> Value | None:
    """The parameter that an attribute of an object in an argument is; None where it is known now, or missing."""
    path = t.deps.path(owner)
    if path is None or not hasattr(owner, name):
        return None
    arg = _passed_type(t, path, owner, getattr(owner, name))
    if arg is None:
        return None
    t.deps.kind(owner, name)
    return member_parameter(t, path.attribute(name), arg)


def passed_array(t: Trace, value: object) -> Value | None:
    """The parameter that an array in an argument is; None where ``value`` comes from elsewhere, or is not an array."""
    path = t.deps.path(value)
    arg = _passed_type(t, path, value, value) if path is not None else None
    return None if path is None or arg is None else member_parameter(t, path, arg)


def _passed_type(t: Trace, path: MemberPath, owner: object, value: object) -> ArgType | None:
    """The type of what a launch passes for ``value``, at ``path`` in an argument; None where it is known now."""
    root = t.arguments.get(path.root)
    return root.member(owner, value) if isinstance(root, StaticArg) and root.member is not None else None
