"""Arguments by reference: a template parameter that its function assigns refers to a place of the caller."""

from __future__ import annotations

import ast

from quadpy.lang.arrays import element_ref, is_element
from quadpy.lang.components import named_part
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, is_template
from quadpy.lang.frames import ChosenPart, Items, MutableVar
from quadpy.lang.items import is_variable
from quadpy.lang.names import base_name
from quadpy.lang.retrace import LocalAtomicFound
from quadpy.lang.scope import static_object
from quadpy.lang.values import ElementRef, Value, is_number, is_struct_type
from quadpy.lang.variables import check_assigned


def argument_places(t: Trace, fn: Value, node: ast.Call) -> dict[ast.expr, ElementRef | MutableVar | Items]:
    """The arguments of a call that are passed as places, and these places."""
    if isinstance(fn, Method):
        names = list(fn.func.source.signature.parameters)[1:]
    elif isinstance(fn, Func):
        names = list(fn.source.signature.parameters)
    else:
        return {}
    source = (fn.func if isinstance(fn, Method) else fn).source
    stored = t.stored(source.tree.body, source)
    changed = {name for name in names if name in stored and is_template(t.deps.annotation(source, name))}
    if isinstance(node.func, ast.Attribute) and is_struct_type(static_object(t, node.func.value)):
        changed |= stored.intersection(names[:1])  # Base.move(self)
    if not changed:
        return {}
    given = [(keyword.arg, keyword.value) for keyword in node.keywords]
    for name, arg in zip(names, node.args, strict=False):
        if isinstance(arg, ast.Starred):
            break
        given.append((name, arg))
    places = {arg: named_place(t, arg) for name, arg in given if name in changed}
    return {arg: place for arg, place in places.items() if place is not None}


def named_place(t: Trace, node: ast.expr) -> ElementRef | MutableVar | Items | None:
    """The place that ``node`` names; None where it is a value.

    Raises:
        LocalAtomicFound: the name is not yet known to change.
        KernelTypeError: it is a compile-time number.
    """
    if is_element(t, node):
        return element_ref(t, node)
    name = node.id if isinstance(node, ast.Name) else base_name(node)
    bound = None if name is None else t.frame.env.get(name)
    if name is None or not is_variable(bound):
        return None
    key = t.frame.source.code, name
    if key not in t.changing:
        raise LocalAtomicFound(key)
    if isinstance(node, ast.Name) and is_number(bound):
        t.fail_type(f"{name!r} is known at compile time and cannot be changed by a function", t.span(node),
                    "assign it to a variable, and pass that")  # fmt: skip
    if not isinstance(bound, (MutableVar, Items)):
        return None
    check_assigned(t, name, t.span(node))
    part = bound if isinstance(node, ast.Name) else named_part(t, name, node)
    if isinstance(part, ChosenPart):
        t.fail_type("a component chosen at run time cannot be passed by reference", t.span(node),
                    "copy it to a variable, pass that, and store it back")  # fmt: skip
    return part
