"""``value[…]``, by the kind of value."""

from __future__ import annotations

import ast
import operator

from quadpy.lang.arrays import element_ref, index_values, is_element, load_element, spread_indices
from quadpy.lang.compile_time import python_call
from quadpy.lang.components import part_at
from quadpy.lang.context import Trace
from quadpy.lang.frames import MutableVar
from quadpy.lang.scope import import_value
from quadpy.lang.values import Value, Vec, holds_runtime, is_runtime, shape_text
from quadpy.lang.variables import check_assigned, read_variable
from quadpy.lang.vectors import vec_index

__all__ = ["expr_Subscript"]


def expr_Subscript(t: Trace, node: ast.Subscript) -> Value:
    bound = t.frame.env.get(node.value.id) if isinstance(node.value, ast.Name) else None
    if isinstance(bound, MutableVar) and bound.shape:
        return _part_of_variable(t, bound, node)
    if is_element(t, node):
        return load_element(t, element_ref(t, node), t.span(node))
    value, index, span = t.expr(node.value), index_values(t, node.slice), t.span(node)
    if isinstance(value, Vec):
        return vec_index(t, value, spread_indices(index), span)
    if isinstance(value, (tuple, list, dict, str)):
        if holds_runtime(index):
            t.fail_type("the index of a Python container must be known at compile time", span,
                        "make the index static, or put the items in a qp.Vector")  # fmt: skip
        key = index[0] if len(index) == 1 else index
        return import_value(t, python_call(t, type(value).__getitem__, [value, key], {}, span))
    if hasattr(type(value), "__class_getitem__") or hasattr(type(value), "__getitem__"):
        if any(is_runtime(i) or isinstance(i, Vec) for i in index):
            t.fail_type(f"{shape_text(value)} is not an array of the kernel: its index must be known at compile time", span,
                        "pass the array as an argument, or make the index static")  # fmt: skip
        items = python_call(t, operator.getitem, [value, index[0] if len(index) == 1 else index], {}, span)
        return import_value(t, items)
    t.fail_type(f"{shape_text(value)} cannot be indexed", span)


def _part_of_variable(t: Trace, bound: MutableVar, node: ast.Subscript) -> Value:
    """Of a variable, only the component or row that is asked for is read."""
    span = t.span(node)
    check_assigned(t, ast.unparse(node.value), t.span(node.value))
    index = spread_indices(index_values(t, node.slice))
    if len(index) <= len(bound.shape) and all(isinstance(i, int) for i in index):
        part = part_at(t, bound, index, span)
        assert isinstance(part, MutableVar)
        return read_variable(t, part, span)
    whole = read_variable(t, bound, span)
    assert isinstance(whole, Vec)
    return vec_index(t, whole, index, span)
