"""``value.name``, by the kind of value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Final

from quadpy.lang.arrays import array_attribute
from quadpy.lang.context import Trace
from quadpy.lang.dependencies import MISSING
from quadpy.lang.scope import import_value, lookup
from quadpy.lang.values import BoundMethod, Kind, Value, Vec, kind_of, shape_text
from quadpy.lang.vecmethods import METHODS
from quadpy.lang.vectors import vec_attribute
from quadpy.source import Span

__all__ = ["attribute_of", "chained", "expr_Attribute"]


def expr_Attribute(t: Trace, node: ast.Attribute) -> Value:
    value = chained(t, node)
    t.deps.uses(value)
    return value


def chained(t: Trace, node: ast.expr) -> Value:
    """The value of ``a.b`` in ``a.b.c``, of which only an attribute is read."""
    if isinstance(node, ast.Attribute):
        return attribute_of(t, chained(t, node.value), node.attr, t.span(node))
    return lookup(t, node.id, t.span(node)) if isinstance(node, ast.Name) else t.expr(node)


def attribute_of(t: Trace, value: Value, name: str, span: Span) -> Value:
    """``value.name``."""
    return _ATTRIBUTES.get(kind_of(value), _object_attribute)(t, value, name, span)


def _object_attribute(t: Trace, value: Value, name: str, span: Span) -> Value:
    found = t.deps.attribute(value, name)
    if found is MISSING:
        t.fail_type(f"{shape_text(value)} has no attribute {name!r}", span)
    return import_value(t, found)


def _scalar_attribute(t: Trace, value: Value, name: str, span: Span) -> Value:
    t.fail_type(f"a {shape_text(value)} has no attribute {name!r}", span)


def _vector_attribute(t: Trace, value: Vec, name: str, span: Span) -> Value:
    found = vec_attribute(value, name)
    if found is not None:
        return found
    if name in METHODS:
        return BoundMethod(value, name)
    t.fail_type(f"a {shape_text(value)} has no component or method {name!r}", span)


_ATTRIBUTES: Final[Mapping[Kind, Callable[[Trace, Any, str, Span], Value]]] = {
    Kind.SCALAR: _scalar_attribute,
    Kind.VECTOR: _vector_attribute,
    Kind.ARRAY: array_attribute,
}
"""The attributes of each kind (``Any``: a rule takes values of its kind); all other kinds are Python objects."""
