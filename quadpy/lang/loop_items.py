"""Names of unrolled loops that stand for places: ``for s in qp.static([a, b]): s.k += 1`` changes ``a`` and ``b``.

A name that the body changes refers to what the syntax names there, a variable or an element that holds a struct or a
vector.  Where the syntax shows a container only, its items are copies, and changes of their parts are refused.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from quadpy.intrinsics import BUILTINS
from quadpy.lang.context import Trace
from quadpy.lang.references import named_place
from quadpy.lang.scope import static_object
from quadpy.lang.values import Record, Vec

Origin: TypeAlias = "ast.expr | tuple[Origin, ...] | None"
"""The expression of an item, or of its parts; None for an item of a container that lives on."""


def origins(t: Trace, node: ast.expr, count: int) -> Sequence[Origin]:
    """Where each of the ``count`` items of an iterable comes from."""
    found = _origins(t, node, count)
    return found if len(found) == count else [None] * count


def _origins(t: Trace, node: ast.expr, count: int) -> Sequence[Origin]:
    match node:
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return elts
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            return [item] * count
        case ast.Call(func=function, args=[first, *rest] as args):
            fn = static_object(t, function)
            if fn is BUILTINS["static"] and rest:
                return args
            if fn is BUILTINS["static"] or fn is list or fn is tuple:
                return _origins(t, first, count)
            if fn is reversed:
                return _origins(t, first, count)[::-1]
            if fn is enumerate:
                return [(function, origin) for origin in _origins(t, first, count)]
            if fn is zip:
                return [*zip(*(_origins(t, arg, count) for arg in args), strict=False)]
            return [node] * count  # made by the call
        case _:
            return [None] * count


def refer(t: Trace, target: ast.expr, origin: Origin, changed: Collection[str]) -> None:
    """Makes the names of ``target`` that are ``changed`` refer to the places of their values."""
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = origin.elts if isinstance(origin, (ast.Tuple, ast.List)) else origin
        known = isinstance(parts, (tuple, list)) and len(parts) == len(target.elts)
        for number, part in enumerate(target.elts):
            refer(t, part, parts[number] if known else None, changed)  # type: ignore[index]  # as known
        return
    if not isinstance(target, ast.Name) or target.id not in changed:
        return
    env = t.frame.env
    if not isinstance(env[target.id], (Vec, Record)) or not (origin is None or _is_named(origin)):
        return  # a number, or a value of the loop's own
    place = None if origin is None or isinstance(origin, tuple) else named_place(t, origin)
    if place is not None:
        env[target.id] = replace(place)  # to be told from the variable itself
    t.frame.items[target.id] = env[target.id]


def _is_named(origin: Origin) -> bool:
    return isinstance(origin, (ast.Name, ast.Attribute, ast.Subscript))
