"""Methods of structs that change the struct: it is passed as a place, and no copy of it is."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from quadpy.lang.access import member_place
from quadpy.lang.arrays import element_ref, struct_element
from quadpy.lang.context import LocalAtomicFound, Trace
from quadpy.lang.decorators import Func
from quadpy.lang.frames import MutableVar
from quadpy.lang.names import base_name
from quadpy.lang.values import Record, Value, shape_text
from quadpy.lang.variables import check_assigned
from quadpy.records import RecordType

__all__ = ["ChangingMethod", "changing_method", "struct_place"]


@dataclass(frozen=True, slots=True)
class ChangingMethod:
    """A method that assigns members of its struct, which is at ``owner``."""

    func: Func
    owner: ast.expr


def changing_method(t: Trace, node: ast.expr) -> ChangingMethod | None:
    """``s.move`` where ``s`` is a struct that the method changes; None for all else."""
    if not isinstance(node, ast.Attribute) or (record := _record_at(t, node.value)) is None:
        return None
    method = record.method(node.attr)
    if not isinstance(method, Func) or not (names := list(method.source.signature.parameters)):
        return None
    stored = t.stored(method.source.tree.body, method.source)
    return ChangingMethod(method, node.value) if names[0] in stored else None


def struct_place(t: Trace, node: ast.expr) -> Value:
    """The place of the struct that ``node`` is, in memory or in a variable.

    Raises:
        LocalAtomicFound: the name is not yet known to change.
    """
    if struct_element(t, node) is not None:
        return element_ref(t, node)
    if isinstance(node, ast.Attribute):
        _need_variable(t, base_name(node), node)
        return member_place(t, node)
    assert isinstance(node, ast.Name)
    _need_variable(t, node.id, node)
    return t.frame.env[node.id]


def _need_variable(t: Trace, name: str | None, node: ast.expr) -> None:
    assert name is not None
    bound, key = t.frame.env.get(name), (t.frame.source.code, name)
    if isinstance(bound, MutableVar):
        check_assigned(t, name, t.span(node))
    elif key not in t.changing:
        raise LocalAtomicFound(key)
    else:
        t.fail_type(f"this method changes {name!r}, a {shape_text(bound)} that cannot change here", t.span(node),
                    "copy it first, into a variable of its own")  # fmt: skip


def _record_at(t: Trace, node: ast.expr) -> RecordType | None:
    """The type of the struct that ``node`` is, where it is one; found out without emitting anything."""
    if (found := struct_element(t, node)) is not None:
        return found
    match node:
        case ast.Name(id=name) if isinstance(bound := t.frame.env.get(name), (MutableVar, Record)):
            return bound.shape if isinstance(bound.shape, RecordType) else None
        case ast.Attribute(value=outer, attr=name) if (owner := _record_at(t, outer)) is not None:
            member = owner.window(name)
            return member[1] if member is not None and isinstance(member[1], RecordType) else None
    return None
