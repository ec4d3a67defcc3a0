"""Tuples, lists, dicts, comprehensions and slices: Python's containers, which exist at compile time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from quadpy.core.source import Span
from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.names import stored_names
from quadpy.lang.scalars import decide
from quadpy.lang.scope import import_value
from quadpy.lang.values import ArrayRef, Value, Vec, holds_runtime, is_direct, is_runtime, shape_text


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
        _add_entry(t, made, key_node, value_node)
    return made


def expr_Set(t: Trace, node: ast.Set) -> Value:
    return _set_of(t, display_items(t, node.elts), t.span(node))


def _set_of(t: Trace, items: list[Value], span: Span) -> Value:
    for item in items:
        if holds_runtime(item):
            t.fail_type(
                f"the items of a set must be known at compile time, not {shape_text(item)}", span, "use a tuple"
            )
    return python_call(t, set, [items], {}, span)


def expr_ListComp(t: Trace, node: ast.ListComp | ast.GeneratorExp) -> Value:
    return _comprehension(t, lambda: t.expr(node.elt), node.generators)


def expr_SetComp(t: Trace, node: ast.SetComp) -> Value:
    return _set_of(t, _comprehension(t, lambda: t.expr(node.elt), node.generators), t.span(node))


def expr_DictComp(t: Trace, node: ast.DictComp) -> Value:
    made: dict[Value, Value] = {}
    _comprehension(t, lambda: _add_entry(t, made, node.key, node.value), node.generators)
    return made


def _add_entry(t: Trace, made: dict[Value, Value], key_node: ast.expr, value_node: ast.expr) -> None:
    key, span = t.expr(key_node), t.span(key_node)
    if holds_runtime(key):
        t.fail_type(f"the key of a dict must be known at compile time, not {shape_text(key)}", span)
    python_call(t, made.__setitem__, [key, t.expr(value_node)], {}, span)


def _comprehension(t: Trace, item_now: Callable[[], Value], generators: list[ast.comprehension]) -> list[Value]:
    """Unrolled at compile time; its names end with it."""
    if not generators:
        return [item_now()]
    first, *rest = generators
    if first.is_async:
        t.fail_syntax("async for is not part of the kernel language", t.span(first.iter))
    items = t.expr(first.iter)
    if is_runtime(items) or isinstance(items, ArrayRef):
        t.fail_type("a comprehension runs over values that are known at compile time", t.span(first.iter),
                    "such as qp.static(range(3)) or a vector; else write a loop")  # fmt: skip
    frame = t.frame
    before, outer, result = dict(frame.env), frame.comprehended, []
    frame.comprehended = dict(outer)  # a lambda keeps it, and sees the last values
    for item in items.elems if isinstance(items, Vec) else plain_items(t, items, t.span(first.iter)):
        bind_static(t, first.target, item)
        frame.comprehended.update((name, frame.env[name]) for name in stored_names([first.target]))
        conditions = [t.expr(test) for test in first.ifs]
        if any(is_runtime(c) for c in conditions):
            t.fail_type("the condition of a comprehension must be known at compile time", t.span(first.target))
        if all(decide(t, c, t.span(first.target)) for c in conditions):
            result += _comprehension(t, item_now, rest)
    frame.env, frame.comprehended = before, outer
    return result


def bind_static(t: Trace, target: ast.expr, value: Value) -> None:
    """Binds a name, or a tuple of names, to compile-time values."""
    if isinstance(target, ast.Name):
        t.frame.env[target.id] = import_value(t, value)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        t.fail_syntax("a loop variable must be a name or a tuple of names", t.span(target))
    parts = list(value.elems) if isinstance(value, Vec) else plain_items(t, value, t.span(target))
    for name, part in unpacked(t, target.elts, parts, t.span(target)):
        bind_static(t, name, part)


def unpacked(
    t: Trace, targets: Sequence[ast.expr], values: Sequence[Value], span: Span
) -> list[tuple[ast.expr, Value]]:
    """Each target with its value; one with a star takes what the others leave, as a list."""
    stars = [k for k, target in enumerate(targets) if isinstance(target, ast.Starred)]
    if len(values) < len(targets) - len(stars) or (not stars and len(values) > len(targets)):
        t.fail_type(f"{len(targets)} names for {len(values)} values", span,
                    "name each value; a name with a star takes the rest: a, *rest")  # fmt: skip
    given: list[Value] = list(values)
    for k in stars:  # Python allows one
        end = len(values) - (len(targets) - k - 1)
        given[k:end] = [given[k:end]]
    plain = (target.value if isinstance(target, ast.Starred) else target for target in targets)
    return list(zip(plain, given, strict=True))


def expr_Slice(t: Trace, node: ast.Slice) -> Value:
    ends = [None if e is None else t.expr(e) for e in (node.lower, node.upper, node.step)]
    if any(holds_runtime(e) for e in ends):
        t.fail_type("the ends of a slice must be known at compile time", t.span(node))
    if ends[2] == 0:
        t.fail_type("the step of a slice must not be 0", t.span(node))
    return slice(*ends)
