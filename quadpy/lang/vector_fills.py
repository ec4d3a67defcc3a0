"""``v.fill(x)`` sets all numbers of a vector, matrix or struct where it is: in a variable, in memory, or in a part of these."""

from __future__ import annotations

import ast
from typing import TypeAlias

from quadpy.core.source import Span
from quadpy.lang.arrays import element_ref, is_element, load_element, store_element, struct_element
from quadpy.lang.components import variable_named, write_part
from quadpy.lang.context import Trace
from quadpy.lang.frames import ChosenPart, Items, MutableVar
from quadpy.lang.methods import record_at
from quadpy.lang.names import base_name
from quadpy.lang.promotion import literal
from quadpy.lang.values import BoundMethod, ElementRef, Record, Value, Vec, shaped

Place: TypeAlias = ElementRef | MutableVar | ChosenPart


def vector_to_fill(t: Trace, node: ast.expr) -> tuple[Place, Vec | Record] | None:
    """The place whose ``fill`` the expression ``node`` is, and a vector or struct of its type; None for all else."""
    if not isinstance(node, ast.Attribute) or node.attr != "fill":
        return None
    owner, span = node.value, t.span(node)
    struct = struct_element(t, owner) or record_at(t, owner)
    if struct is not None and ("fill" in struct.names or struct.method("fill") is not None):
        return None  # its own
    place: Place
    if is_element(t, owner):
        place = element_ref(t, owner)
        zeros = [literal(0, type, span) for type in place.types]
        held: Value = load_element(t, place, span) if place.steps else shaped(place.shape, zeros)
    elif isinstance(t.frame.env.get(name := _name_of(owner)), (MutableVar, Items, Vec, Record)):
        place = variable_named(t, name, owner)
        part = place.parts[0] if isinstance(place, ChosenPart) else place
        held = part.stand_in(span)
    else:
        return None
    return (place, held) if isinstance(held, (Vec, Record)) else None


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else base_name(node) or ""


def store_filled(t: Trace, node: ast.expr, place: Place, value: Value, span: Span) -> None:
    """Stores what ``node``, the expression ``v.fill``, makes of what is at ``place``."""
    assert isinstance(node, ast.Attribute)
    if isinstance(place, ElementRef):
        store_element(t, place, value, span)
    else:
        write_part(t, _name_of(node.value), place, value, span)


def check_filled(t: Trace, node: ast.expr, method: BoundMethod) -> None:
    """Refuses ``v.fill`` where ``v`` names a vector that cannot change: the change would be lost."""
    if not (isinstance(node, ast.Attribute) and isinstance(method.receiver, Vec) and method.name == "fill"):
        return
    if name := _name_of(node.value):
        variable_named(t, name, node.value)
        t.fail_type(f"{ast.unparse(node.value)!r} cannot change here", t.span(node), "copy it to a variable first")
