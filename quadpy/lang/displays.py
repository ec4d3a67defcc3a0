"""Tuples, lists, dicts, comprehensions and slices: Python's containers, which exist at compile time."""

from __future__ import annotations

import ast

from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.scalars import decide
from quadpy.lang.scope import import_value
from quadpy.lang.values import ArrayRef, Value, Vec, holds_runtime, is_direct, is_runtime, shape_text
from quadpy.source import Span

__all__ = [
    "bind_static", "display_items", "expr_Dict", "expr_List", "expr_ListComp", "expr_Slice",
    "expr_Tuple", "plain_items",
]  # fmt: skip


def expr_Tuple(t: Trace, node: ast.Tuple) -> Value:
    return tuple(display_items(t, node.elts))


def expr_List(t: Trace, node: ast.List) -> Value:
    return display_items(t, node.elts)


def display_items(t: Trace, nodes: list[ast.expr]) -> list[Value]:
    result: list[Value] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = t.expr(node.value)
            result += value.elems if isinstance(value, Vec) else plain_items(t, value, t.span(node))
        else:
            result.append(t.expr(node))
    return result


def plain_items(t: Trace, value: Value, span: Span) -> list[Value]:
    """The items of a Python iterable, at compile time."""
    if is_direct(value):
        t.fail_type(f"the items of {shape_text(value)} are not known at compile time", span)
    return [import_value(t, item) for item in python_call(t, list, [value], {}, span)]


def expr_Dict(t: Trace, node: ast.Dict) -> Value:
    """``{**d}`` includes the entries of ``d``."""
    made: dict[Value, Value] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        if key_node is None:
            entries = t.expr(value_node)
            if not isinstance(entries, dict):
                t.fail_type(f"** takes a dict, not {shape_text(entries)}", t.span(value_node))
            made.update(entries)
            continue
        key = t.expr(key_node)
        if holds_runtime(key):
            t.fail_type(f"the key of a dict must be known at compile time, not {shape_text(key)}", t.span(key_node))
        python_call(t, made.__setitem__, [key, t.expr(value_node)], {}, t.span(key_node))
    return made


def expr_ListComp(t: Trace, node: ast.ListComp) -> Value:
    return _comprehension(t, node.elt, node.generators)


def _comprehension(t: Trace, elt: ast.expr, generators: list[ast.comprehension]) -> list[Value]:
    """Unrolled at compile time; its names end with it."""
    if not generators:
        return [t.expr(elt)]
    first, *rest = generators
    items = t.expr(first.iter)
    if is_runtime(items) or isinstance(items, ArrayRef):
        t.fail_type("a comprehension runs over values that are known at compile time", t.span(first.iter))
    before, result = dict(t.frame.env), []
    for item in items.elems if isinstance(items, Vec) else plain_items(t, items, t.span(first.iter)):
        bind_static(t, first.target, item)
        conditions = [t.expr(test) for test in first.ifs]
        if any(is_runtime(c) for c in conditions):
            t.fail_type("the condition of a comprehension must be known at compile time", t.span(first.target))
        if all(decide(t, c, t.span(first.target)) for c in conditions):
            result += _comprehension(t, elt, rest)
    t.frame.env = before
    return result


def bind_static(t: Trace, target: ast.expr, value: Value) -> None:
    """Binds a name, or a tuple of names, to compile-time values."""
    if isinstance(target, ast.Name):
        t.frame.env[target.id] = import_value(t, value)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        t.fail_syntax("a loop variable is a name or a tuple of names", t.span(target))
    parts = list(value.elems) if isinstance(value, Vec) else plain_items(t, value, t.span(target))
    if len(parts) != len(target.elts):
        t.fail_type(f"{len(target.elts)} names for {len(parts)} values", t.span(target))
    for name, part in zip(target.elts, parts, strict=True):
        bind_static(t, name, part)


def expr_Slice(t: Trace, node: ast.Slice) -> Value:
    ends = [None if e is None else t.expr(e) for e in (node.lower, node.upper, node.step)]
    if any(holds_runtime(e) for e in ends):
        t.fail_type("the ends of a slice must be known at compile time", t.span(node))
    if ends[2] == 0:
        t.fail_type("the step of a slice must not be 0", t.span(node))
    return slice(*ends)
