"""``value.name`` and ``value[…]``, by the kind of value.

Attributes of the user's objects and dataclasses are known at compile time, or passed by each launch.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from quadpy.core.messages import closest, one_of, with_article
from quadpy.core.records import RecordType, function_of
from quadpy.core.source import Span
from quadpy.lang.array_slices import array_slice
from quadpy.lang.arrays import (
    array_attribute,
    array_item,
    element_ref,
    index_values,
    is_element,
    load_element,
    spread_indices,
    struct_element,
)
from quadpy.lang.compile_time import python_call
from quadpy.lang.components import item_named, part_at, read_item
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Method
from quadpy.lang.dependencies import MISSING
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.frames import MutableVar
from quadpy.lang.names import base_name
from quadpy.lang.parameters import passed_attribute
from quadpy.lang.scope import container_member, import_value, lookup, read_part
from quadpy.lang.sparse_places import NodeParent, is_node
from quadpy.lang.structs import record_attribute
from quadpy.lang.supers import Super, class_attribute, import_attribute, super_attribute
from quadpy.lang.tiles import column_of
from quadpy.lang.values import (
    ArrayRef,
    BoundMethod,
    Container,
    ElementRef,
    Kind,
    Record,
    Text,
    Value,
    Vec,
    holds_runtime,
    is_number,
    is_runtime,
    is_struct_type,
    kind_of,
    shape_text,
)
from quadpy.lang.variables import check_assigned
from quadpy.lang.vecmethods import METHODS
from quadpy.lang.vectors import make_vector, names_of_components, vec_attribute, vec_index

if TYPE_CHECKING:
    from quadpy.ir import nodes as ir


def object_attribute(t: Trace, value: Value, name: str, span: Span) -> Value:
    """``value.name`` of a Python object; arrays in arguments, and numbers that may change, are parameters."""
    if isinstance(value, Super):
        return super_attribute(t, value, name, span)
    if name == "parent" and is_node(value):
        return NodeParent(value)
    if (passed := passed_attribute(t, value, name)) is not None:
        return passed
    found = t.deps.attribute(value, name)
    if found is MISSING and is_struct_type(value) and name in value.methods:
        return function_of(t.deps.attribute(value, "methods")[name])
    if found is MISSING:
        if is_number(value) and is_our_module(t.frame.source.fn.__module__):
            t.fail_type(f"a vector or matrix is needed, not {shape_text(value)}", span)
        t.fail_type(f"{_named(value)} has no attribute {name!r}", span, closest(name, _attributes(value)))
    made = import_attribute(t, found)
    if isinstance(made, Method) and made.instance is type(value):  # a classmethod, which reads attributes of the class
        t.deps.class_of(value)
    return made


def container_attribute(t: Trace, value: Container, name: str, span: Span) -> Value:
    """A member of a dataclass, or one of its functions."""
    if name in value.arg.names:
        return container_member(t, value, name)
    found = t.deps.attribute(value.arg.type, name)
    if t.deps.spot(value.arg.type) is None:
        t.deps.complete = False  # its functions are not in the log
    if found is MISSING:
        t.fail_type(
            f"{shape_text(value)} has no member {name!r}",
            span,
            one_of(name, value.arg.names),
        )
    raw = next((vars(base)[name] for base in value.arg.type.__mro__ if name in vars(base)), None)
    return class_attribute(t, raw, found, value, span)


def _named(value: Value) -> str:
    """What a message calls a Python object."""
    return f"the module {value.__name__!r}" if isinstance(value, ModuleType) else shape_text(value)


def _attributes(value: Value) -> list[str]:
    try:
        return dir(value)
    except Exception:  # noqa: BLE001 - __dir__ may be the user's code
        return []


Attribute: TypeAlias = Callable[[Trace, Any, str, Span], Value]
Subscript: TypeAlias = Callable[[Trace, Any, tuple[Value, ...], Span], Value]
# ``Any``: a rule takes values of its own kind, which a mapping cannot express.


def expr_Attribute(t: Trace, node: ast.Attribute) -> Value:
    value = chained(t, node)
    t.deps.uses(value)
    return value


def chained(t: Trace, node: ast.expr) -> Value:
    """The value of ``a.b`` in ``a.b.c``, of which only an attribute is read."""
    if isinstance(node, ast.Attribute):
        if (place := member_place(t, node)) is not None:
            span = t.span(node)
            if isinstance(place, ElementRef):
                return load_element(t, place, span)
            return read_part(t, str(base_name(node)), place, span)
        return attribute_of(t, chained(t, node.value), node.attr, t.span(node))
    if isinstance(node, ast.Name) and not is_element(t, node):
        return lookup(t, node.id, t.span(node))
    return t.expr(node)


def member_place(t: Trace, node: ast.expr) -> ElementRef | MutableVar | None:
    """The place of a struct's member, in memory or in a variable; only the requested part of a struct is read."""
    if isinstance(node, ast.Attribute):
        if struct_element(t, node.value) is not None and is_element(t, node):
            return element_ref(t, node)
        owner = (
            member_place(t, node.value) if isinstance(node.value, ast.Attribute) else _struct_variable(t, node.value)
        )
        return owner.member(node.attr) if owner is not None else None
    return None


def _struct_variable(t: Trace, node: ast.expr) -> MutableVar | None:
    bound = t.frame.env.get(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(bound, MutableVar) or not isinstance(bound.shape, RecordType):
        return None
    assert isinstance(node, ast.Name)
    check_assigned(t, node.id, t.span(node))
    return bound


def attribute_of(t: Trace, value: Value, name: str, span: Span) -> Value:
    """``value.name``."""
    return ATTRIBUTES[kind_of(value)](t, value, name, span)


def _scalar_attribute(t: Trace, value: ir.Expr, name: str, span: Span) -> Value:
    if is_our_module(t.frame.source.fn.__module__):  # the caller of the function does not care about the attribute
        t.fail_type(f"a vector or matrix is needed, not {with_article(str(value.type))}", span)
    t.fail_type(f"{with_article(str(value.type))} has no attribute {name!r}", span)


def _no_attributes(t: Trace, value: Text, name: str, span: Span) -> Value:
    t.fail_type(f"{shape_text(value)} has no attribute {name!r}: it can only be printed", span)


def _vector_attribute(t: Trace, value: Vec, name: str, span: Span) -> Value:
    found = vec_attribute(value, name)
    if found is not None:
        return found
    if name in METHODS:
        return BoundMethod(value, name)
    t.fail_type(f"{with_article(shape_text(value))} has no component or method {name!r}", span,
                closest(name, METHODS) or names_of_components(value))  # fmt: skip


def _struct_attribute(t: Trace, value: Record, name: str, span: Span) -> Value:
    """A member or method, else what the class of the struct has."""
    if value.member(name) is None and value.shape.method(name) is None and isinstance(value.shape.cls, type):
        found = t.deps.attribute(value.shape.cls, name)
        if found is not MISSING and not isinstance(found, FunctionType) and not name.startswith("__"):
            return import_attribute(t, found)
    return record_attribute(t, value, name, span)


def _sequence_attribute(t: Trace, value: Any, name: str, span: Span) -> Value:
    """A list of numbers is also a vector: it may be the index of an unrolled ``grouped`` loop."""
    if isinstance(value, list) and value and all(map(is_number, value)):
        if name in METHODS:
            return BoundMethod(make_vector(t, value, span), name)
        if len(name) == 1 and name in "xyzw"[: len(value)]:
            return value["xyzw".index(name)]  # still known at compile time
    return object_attribute(t, value, name, span)


ATTRIBUTES: Final[Mapping[Kind, Attribute]] = {
    Kind.NUMBER: object_attribute,
    Kind.OBJECT: object_attribute,
    Kind.SCALAR: _scalar_attribute,
    Kind.SEQUENCE: _sequence_attribute,
    Kind.VECTOR: _vector_attribute,
    Kind.RECORD: _struct_attribute,
    Kind.ARRAY: array_attribute,
    Kind.METHOD: object_attribute,
    Kind.TEXT: _no_attributes,
    Kind.CONTAINER: container_attribute,
}


def expr_Subscript(t: Trace, node: ast.Subscript) -> Value:
    bound = t.frame.env.get(node.value.id) if isinstance(node.value, ast.Name) else None
    if isinstance(bound, MutableVar) and isinstance(bound.shape, tuple) and bound.shape:
        return _part_of_variable(t, bound, node)
    if (item := item_named(t, node)) is not None:
        return read_item(t, item, node)
    if (column := column_of(t, node)) is not None:
        return column
    if is_element(t, node):
        return load_element(t, element_ref(t, node), t.span(node))
    value, span = t.expr(node.value), t.span(node)
    if isinstance(value, ArrayRef) and isinstance(node.slice, ast.Slice):
        return array_slice(t, value, node.slice, span)
    index = index_values(t, node.slice)
    return SUBSCRIPTS[kind_of(value)](t, value, index, span)


def _part_of_variable(t: Trace, bound: MutableVar, node: ast.Subscript) -> Value:
    """Reads only the requested component or row of a variable."""
    span = t.span(node)
    check_assigned(t, ast.unparse(node.value), t.span(node.value))
    index = spread_indices(index_values(t, node.slice))
    if isinstance(bound.shape, tuple) and len(index) <= len(bound.shape) and all(isinstance(i, int) for i in index):
        part = part_at(t, bound, index, span)
        assert isinstance(part, MutableVar)
        return read_part(t, ast.unparse(node.value), part, span)
    return _vector_item(t, read_part(t, ast.unparse(node.value), bound, span), index, span)


def _vector_item(t: Trace, value: Any, index: tuple[Value, ...], span: Span) -> Value:
    return vec_index(t, value, spread_indices(index), span)


def _member_item(t: Trace, value: Record, index: tuple[Value, ...], span: Span) -> Value:
    if len(index) != 1 or not isinstance(index[0], str):
        _no_items(t, value, index, span)
    return record_attribute(t, value, index[0], span)


def _container_item(t: Trace, value: Any, index: tuple[Value, ...], span: Span) -> Value:
    if holds_runtime(index):
        t.fail_type("the index of a Python container must be known at compile time", span,
                    "make the index static, or put the items in a qp.Vector")  # fmt: skip
    return _python_item(t, type(value).__getitem__, value, index, span)


def _object_item(t: Trace, value: Value, index: tuple[Value, ...], span: Span) -> Value:
    if isinstance(value, (dict, str)):
        return _container_item(t, value, index, span)
    if not (hasattr(type(value), "__class_getitem__") or hasattr(type(value), "__getitem__")):
        _no_items(t, value, index, span)
    if any(is_runtime(i) or isinstance(i, Vec) for i in index):
        t.fail_type(f"{shape_text(value)} is not an array of the kernel: its index must be known at compile time", span,
                    "pass the array as an argument, or make the index static")  # fmt: skip
    return _python_item(t, operator.getitem, value, index, span)


def _python_item(t: Trace, getitem: Callable[..., Value], value: Value, index: tuple[Value, ...], span: Span) -> Value:
    key = index[0] if len(index) == 1 else index
    return import_value(t, python_call(t, getitem, [value, key], {}, span))


def _no_items(t: Trace, value: Value, index: tuple[Value, ...], span: Span) -> NoReturn:
    hint = one_of(None, value.shape.names) if isinstance(value, Record) else ""
    t.fail_type(f"{shape_text(value)} cannot be indexed", span, hint)


SUBSCRIPTS: Final[Mapping[Kind, Subscript]] = {
    Kind.NUMBER: _no_items,
    Kind.OBJECT: _object_item,
    Kind.SCALAR: _no_items,
    Kind.SEQUENCE: _container_item,
    Kind.VECTOR: _vector_item,
    Kind.RECORD: _member_item,
    Kind.ARRAY: array_item,  # of an array with a name, ``arrays`` reads and writes the place
    Kind.METHOD: _no_items,
    Kind.TEXT: _no_items,
    Kind.CONTAINER: _no_items,
}
