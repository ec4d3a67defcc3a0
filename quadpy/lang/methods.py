"""Methods of structs that change the struct: it is passed as a place, not as a copy."""

from __future__ import annotations

import ast

from quadpy.core.records import RecordType
from quadpy.lang.arrays import struct_element
from quadpy.lang.components import item_named
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method
from quadpy.lang.frames import MutableVar
from quadpy.lang.references import named_place
from quadpy.lang.scope import static_object
from quadpy.lang.structs import changes_self, fail_to_change
from quadpy.lang.values import Record


def changing_method(t: Trace, node: ast.expr) -> Method | None:
    """``s.move`` where ``s`` is a struct that the method changes, bound to the place of ``s``; None for all else.

    Raises:
        LocalAtomicFound: the name is not yet known to change.
    """
    if not isinstance(node, ast.Attribute) or (record := record_at(t, node.value)) is None:
        return None
    method = record.method(node.attr)
    if not isinstance(method, Func) or not changes_self(t, method):
        return None
    place = named_place(t, node.value)
    if place is None:
        fail_to_change(t, node.attr, t.span(node))
    return Method(method, place)


def record_at(t: Trace, node: ast.expr) -> RecordType | None:
    """The type of the struct that ``node`` is, where it is one; emits nothing."""
    if (found := struct_element(t, node)) is not None:
        return found
    match node:
        case ast.Name(id=name) if isinstance(bound := t.frame.env.get(name), (MutableVar, Record)):
            return bound.shape if isinstance(bound.shape, RecordType) else None
        case ast.Subscript() if isinstance(item := item_named(t, node) or static_object(t, node), (MutableVar, Record)):
            return item.shape if isinstance(item.shape, RecordType) else None
        case ast.Attribute(value=outer, attr=name) if (owner := record_at(t, outer)) is not None:
            member = owner.window(name)
            return member[1] if member is not None and isinstance(member[1], RecordType) else None
    return None
