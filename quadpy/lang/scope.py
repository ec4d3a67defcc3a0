"""The meaning of names: variables, parameters, and the user's Python objects."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from quadpy.core.artifact import HIDDEN
from quadpy.core.source import Span
from quadpy.errors import ArgumentError
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import Node
from quadpy.ir.types import Array, Layout, Member
from quadpy.lang.arguments import MemberRefused, StaticArg
from quadpy.lang.context import Trace
from quadpy.lang.dependencies import MISSING
from quadpy.lang.frames import Items, Made, MutableVar
from quadpy.lang.parameters import member_parameter, passed_array, passed_attribute
from quadpy.lang.values import ArrayRef, Container, ElementRef, Record, Value, Vec, is_runtime
from quadpy.lang.variables import check_assigned, freeze_all, read_variable, undefined
from quadpy.lang.vectors import host_vector
from quadpy.mathlib.library import PerWidth


def field_ref(t: Trace, value: Any, called: str = "") -> ArrayRef:
    """The field ``value`` as a parameter of the kernel, bound at compile time.

    ``called`` is what messages call it; words of several fields have the names of all that the kernel uses.
    """
    if id(value) in t.signature.fields:
        ref, params = t.signature.fields[id(value)][0], t.signature.field_params
        number = next((k for k, param in enumerate(params) if param.name == ref.name), None)
        if called and number is not None and called not in (known := params[number].called).split("/"):
            params[number] = replace(params[number], called=f"{known}/{called}")
    else:
        try:
            stored = value.stored_members()
        except ArgumentError as error:  # it has no memory, or has lost it
            t.fail_type(error.message, t.here(), error.hint)
        members = tuple(Member(*member) for member in stored)
        size = sum(member.scalar.nbytes * member.count for member in members)
        extents = tuple(n for axis in value.blocks for n in axis) if value.blocks else tuple(value.shape)
        type = Array(Layout(members, size), len(extents), extents)
        name = f"{HIDDEN}field{len(t.signature.fields)}"
        offset, span = tuple(value.offset or ()), t.frames[0].source.span
        if getattr(value.__class__, "__quadpy_quantised__", False):  # only its words are parameters
            return ArrayRef("", type, offset, element=value.element_shape, blocks=value.blocks, packed=value)
        called = called or t.deps.text(value) or value.described
        param = ir.ArrayParam(name, type, is_field=True, offset=offset, blocks=value.blocks, called=called, span=span)
        t.signature.field_params.append(param)
        ref = ArrayRef(name, type, offset, element=value.element_shape, blocks=value.blocks)
        t.signature.fields[id(value)] = (ref, value)
    return t.signature.fields[id(value)][0]


def static_object(t: Trace, node: ast.expr) -> Any:
    """The Python object that ``a.b.c`` or ``a["b"][0]`` denotes, or an argument's array; None for run-time values."""
    if isinstance(node, ast.Subscript):
        return _static_item(t, node)
    if isinstance(node, ast.Attribute):
        return _static_attribute(t, static_object(t, node.value), node.attr)
    if not isinstance(node, ast.Name):
        return None
    bound = t.frame.env.get(node.id)
    t.frame.finished.pop(node.id, None)
    if isinstance(bound, Made):
        return bound.cls
    if bound is not None:
        return (
            None
            if is_runtime(bound) or isinstance(bound, (Vec, Record, MutableVar, Items, ArrayRef, ElementRef))
            else bound
        )
    try:
        return outside(t, node.id)
    except KeyError:
        return None


def container_member(t: Trace, value: Container, member: str) -> Value:
    """The member of this name, which exists."""
    path = value.path.attribute(member)
    if (name := str(path)) in t.signature.members:
        return t.signature.members[name]
    try:
        arg = value.arg.member(member)
    except ArgumentError as error:
        raise MemberRefused(error) from None
    found = member_parameter(t, path, arg)
    if isinstance(arg, StaticArg):
        t.deps.enter(name, arg.value)
        found = t.signature.members[name] = import_value(t, arg.value)
    return found


def _static_attribute(t: Trace, owner: Any, name: str) -> Any:
    if isinstance(owner, Container):
        found = container_member(t, owner, name) if name in owner.arg.names else None
    else:
        found = None if owner is None else (passed_attribute(t, owner, name) or t.deps.attribute(owner, name))
    return None if found is MISSING or isinstance(found, (Node, Vec, Record)) else found


def _static_item(t: Trace, node: ast.Subscript) -> Any:
    """The item of a Python container that a compile-time index picks, or None."""
    owner = static_object(t, node.value)
    if not isinstance(owner, (tuple, list, dict)):
        return None
    t.deps.uses(owner)
    with t.build.block():  # discarded: only the value is needed
        key = t.expr(node.slice)
    try:
        return owner[key]  # type: ignore[call-overload]  # an object that is not a key raises
    except (LookupError, TypeError):
        return None  # reported when it is evaluated


def lookup(t: Trace, name: str, span: Span) -> Value:
    """What ``name`` means here.

    Raises:
        KernelNameError: it is not defined.
    """
    frame = t.frame
    if name in frame.env:
        bound = frame.env[name]
        if not isinstance(bound, MutableVar):
            _keep_around(t, name)
            frame.finished.pop(name, None)
            if isinstance(bound, Made):
                return bound.now()
            return read_items(t, name, bound) if isinstance(bound, Items) else bound
        check_assigned(t, name, span)
        return read_part(t, name, bound, span)
    try:
        value = outside(t, name)
    except KeyError:
        raise undefined(t, name, span) from None
    return import_value(t, value)


def read_part(t: Trace, name: str, part: MutableVar, span: Span) -> Value:
    """The variable ``name``, or a part of it, as it is now: the rest of the statement may change it."""
    value = read_variable(t, part, span)
    return freeze_all(t, value) if (t.frame.source.code, name) in t.changing else value


def items_of(t: Trace, name: str) -> Items | None:
    """The list in variables to which ``name`` is bound."""
    bound = t.frame.env.get(name)
    if not isinstance(bound, Items):
        return None
    _keep_around(t, name)
    return bound


def _keep_around(t: Trace, name: str) -> None:
    """The parallel loop around uses what ``name`` was bound to before it, and may not bind it to anything else."""
    frame = t.frame
    if name in frame.outer and frame.binds(name, frame.outer[name]):
        frame.shared.add(name)


def read_items(t: Trace, name: str, part: MutableVar | Items) -> Value:
    """The list, tuple or dict ``name``, or an item of it, as it is now."""
    if isinstance(part, MutableVar):
        return read_part(t, name, part, part.span)
    if isinstance(part.held, dict):
        return {key: read_items(t, name, item) for key, item in part.held.items()}
    return type(part.held)(read_items(t, name, item) for item in part.held)


def outside(t: Trace, name: str) -> Any:
    """What a name that is not bound here means in the closure or module of the function.

    Names that the math library defines for each width mean those of the function being traced.

    Raises:
        KeyError: it is not defined, or the function has a local variable of that name, as in Python.
    """
    source = t.frame.source
    if name in source.locals and not t.options.as_taichi:
        raise KeyError(name)
    value = t.deps.name(source, name)
    if value is MISSING:
        raise KeyError(name)
    return value.at(t.width) if t.width and isinstance(value, PerWidth) else value


def end_block(t: Trace, before: Mapping[str, Any], names: Collection[str] = ()) -> None:
    """Ends the bindings that a block made, including the indices ``names`` of a loop; variables live on in the function.

    In programs of Taichi's, a variable ends with its block if its name means something outside the function.
    """
    frame = t.frame
    kept = {
        n: v
        for n, v in frame.env.items()
        if isinstance(v, MutableVar) and n not in names and (n in before or not _is_outer(t, n))
    }
    frame.env = {**{n: v for n, v in before.items() if n in names or frame.binds(n, v)}, **kept}


def _is_outer(t: Trace, name: str) -> bool:
    source = t.frame.source
    return t.options.as_taichi and name in source.fn.__globals__ and t.deps.name(source, name) is not MISSING


def import_value(t: Trace, value: Any) -> Value:
    """A Python object as a value of the kernel: NumPy numbers become Python numbers."""
    if t.options.derivative and hasattr(type(value), "__quadpy_number__"):
        t.fail_type(
            f"{value!r} is a value of the compiled code here, and its derivative would be lost", t.here(),
            "pass it as an argument that is annotated with its type",
        )  # fmt: skip
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    if getattr(type(value), "__quadpy_field__", False):
        return field_ref(t, value)
    if getattr(type(value), "__quadpy_array__", False) and (passed := passed_array(t, value)) is not None:
        return passed
    if getattr(type(value), "__quadpy_value__", False):
        record = getattr(value, "record", None)
        if record is None:
            return host_vector(value)
        zero = Span("", 0)
        elems = tuple(ir.Const(e, type, span=zero) for e, type in zip(value.entries, record.types, strict=True))
        return Record(record, elems)
    return value
