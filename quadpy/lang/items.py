"""Lists, tuples and dicts in variables: where a function assigns items of one, each item is a variable of its own.

As everywhere, an assignment copies: ``b = a`` gives ``b`` items of its own.
"""

from __future__ import annotations

import ast
from typing import Any

from quadpy.core.source import Span
from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.displays import display_items, plain_items
from quadpy.lang.frames import ChosenPart, Items, MutableVar
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import to_scalar
from quadpy.lang.scope import read_items
from quadpy.lang.values import Value, Vec, holds_runtime, is_numeric, shape_text
from quadpy.lang.variables import assign_name, freeze_all, new_variable, set_variable
from quadpy.lang.vectors import flat_index


def assign_list(t: Trace, name: str, value: Value, span: Span) -> None:
    """``name = [a, b]``: of the items that a list already has as variables, the numbers change."""
    env = t.frame.env
    if isinstance(bound := env.get(name), Items) and bound.same_form(value):
        assign_items(t, name, bound, value, span)
        return
    assign_name(t, name, value, span)
    if has_variables(t, name, held := env.get(name)):
        env[name] = in_variables(t, name, held, span)


def has_variables(t: Trace, name: str, value: Value) -> bool:
    """Whether items of ``name`` are assigned, and ``value`` has items for that: numbers, vectors and structs alone."""
    assigned = name in t.frame.source.item_targets or name in t.changed(t.frame.source)
    return assigned and isinstance(value, (list, tuple, dict)) and _of_numbers(value) and bool(value)


def is_variable(value: object) -> bool:
    """Whether a name that is bound to ``value`` is a variable, or can be one."""
    is_empty = isinstance(value, (list, tuple, dict)) and not value
    return isinstance(value, (MutableVar, Items)) or (not is_empty and _of_numbers(value))


def _of_numbers(value: Value) -> bool:
    if not isinstance(value, (list, tuple, dict)):
        return is_numeric(value)
    return all(map(_of_numbers, value.values() if isinstance(value, dict) else value))


def in_variables(t: Trace, name: str, value: Value, span: Span) -> Items | MutableVar:
    """``value`` in new variables."""
    if isinstance(value, dict):
        return Items({key: in_variables(t, name, item, span) for key, item in value.items()}, not t.in_parallel)
    if isinstance(value, (list, tuple)):
        return Items(type(value)(in_variables(t, name, item, span) for item in value), not t.in_parallel)
    return new_variable(t, name, value, span)


def assign_items(t: Trace, name: str, items: Items, value: Value, span: Span) -> None:
    """Sets each item to that of ``value``.

    Raises:
        KernelTypeError: ``value`` has other items.
    """
    if not items.same_form(value):
        t.fail_type(f"{name!r} has {len(items.held)} items and cannot become {shape_text(value)} here", span,
                    "assign a list with as many items, of the same shapes")  # fmt: skip
    for item, given in zip(_parts(items.held), _parts(freeze_all(t, value)), strict=True):
        if isinstance(item, Items):
            assign_items(t, name, item, given, span)
        else:
            set_variable(t, name, item, given, span)


def _parts(value: Any) -> list[Any]:
    return [*value.values()] if isinstance(value, dict) else [*value]


def item_at(t: Trace, items: Items, index: tuple[Value, ...], span: Span) -> MutableVar | ChosenPart | Items:
    """The item at ``index``; a run-time index chooses one of items that are alike."""
    key = index[0] if len(index) == 1 else index
    if not holds_runtime(key):
        found = python_call(t, type(items.held).__getitem__, [items.held, key], {}, span)
        return found if isinstance(found, MutableVar) else Items(getattr(found, "held", found), items.shared)
    parts = _parts(items.held)
    alike = all(isinstance(p, MutableVar) and (p.shape, p.types) == (parts[0].shape, parts[0].types) for p in parts)
    if isinstance(items.held, dict) or not alike:
        t.fail_type("the index of a Python container must be known at compile time, unless its items are of one type", span,
                    "make the index static, or put the items in a qp.Vector")  # fmt: skip
    choices = Vec((len(parts),), tuple(literal(0, t.defaults.ip, span) for _ in parts))
    return ChosenPart(tuple(parts), t.build.let(to_scalar(t, flat_index(t, choices, (key,), span), span)))


def lengthen(t: Trace, node: ast.Call) -> bool:
    """Does ``a.append(x)`` and ``a.extend(b)``, where ``a`` is a list of the function; False for all else.

    They bind the name to a longer list, and can be where ``a = [*a, x]`` can.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" as method), keywords=[]):
            bound = t.frame.env.get(name)
        case _:
            return False
    if not isinstance(bound, list) and not (isinstance(bound, Items) and isinstance(bound.held, list)):
        return False
    span = t.span(node)
    if name in t.frame.source.signature.parameters:
        t.fail_type(f"{name!r} belongs to the caller, whose list would not change", span, f"return it: [*{name}, …]")
    given = display_items(t, node.args)
    if len(given) != 1:
        t.fail_type(f"{method} takes 1 argument, not {len(given)}", span)
    more = given if method == "append" else plain_items(t, given[0], span)
    before: Any = read_items(t, name, bound) if isinstance(bound, Items) else bound
    assign_list(t, name, [*before, *more], span)
    return True
