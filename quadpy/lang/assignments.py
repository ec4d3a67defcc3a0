"""Assignment statements, and what each kind of target means.

A target may be ``obj[i, j]``, where ``obj`` is a Python object that collects what kernels add to it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.lang.access import chained
from quadpy.lang.arrays import element_ref, index_values, is_element, load_element, store_element
from quadpy.lang.atomics import atomic_update
from quadpy.lang.components import assign_component, place_of, read_part, variable_named, write_part
from quadpy.lang.decorators import Method
from quadpy.lang.displays import unpacked
from quadpy.lang.frames import ChosenPart, MutableVar
from quadpy.lang.functions import inline
from quadpy.lang.items import assign_list
from quadpy.lang.names import base_name
from quadpy.lang.operators import binary
from quadpy.lang.replacements import instead_of
from quadpy.lang.returns import annotated
from quadpy.lang.scalars import cast
from quadpy.lang.scope import import_value
from quadpy.lang.structs import record_of
from quadpy.lang.tiles import assign_tile, change_tile
from quadpy.lang.values import (
    ElementRef,
    Kind,
    Record,
    Value,
    Vec,
    is_number,
    is_numeric,
    is_struct_type,
    is_vector_type,
    kind_of,
    shape_text,
)
from quadpy.lang.variables import assign_name, check_type, freeze_all
from quadpy.lang.vectors import make_vector

if TYPE_CHECKING:
    from quadpy.core.source import Span
    from quadpy.lang.context import Trace

_CONTAINERS = (list, tuple, dict, set, str)
_ATOMIC_OPERATORS: dict[type[ast.operator], ir.AtomicOp] = {
    ast.Add: ir.AtomicOp.ADD, ast.Sub: ir.AtomicOp.SUB, ast.Mult: ir.AtomicOp.MUL, ast.BitAnd: ir.AtomicOp.AND,
    ast.BitOr: ir.AtomicOp.OR, ast.BitXor: ir.AtomicOp.XOR,
}  # fmt: skip


def stmt_Assign(t: Trace, node: ast.Assign) -> None:
    if assign_tile(t, node):
        return
    value = t.expr(node.value)
    if len(node.targets) > 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
        value = freeze_all(t, value)
    for target in node.targets:
        assign_target(t, target, value, t.span(node))


def stmt_AnnAssign(t: Trace, node: ast.AnnAssign) -> None:
    wanted = t.expr(node.annotation)
    span = t.span(node)
    if not _is_type(wanted):
        hint = "without quotes" if isinstance(wanted, str) else "or qp.types.vector(3, qp.f32)"
        t.fail_type(f"the annotation {ast.unparse(node.annotation)} is not a type", t.span(node.annotation),
                    (isinstance(wanted, type) and instead_of(wanted)) or f"write a type such as qp.f32, {hint}")  # fmt: skip
    if node.value is None:
        t.fail_syntax("an annotated name needs a value", span)
    given = t.expr(node.value)
    if wanted in _CONTAINERS and (is_numeric(given) or given is None):
        t.fail_type(f"a {wanted.__name__} is needed here, not {shape_text(given)}", span,
                    "leave the annotation out, or write the type of a number")  # fmt: skip
    if isinstance(given, Record) and is_struct_type(wanted):  # a call of the type would take it for a member
        value: Value = record_of(t, given, wanted.record(t.scalar_type), span)
    elif is_vector_type(wanted) and wanted.dtype is None:
        value = annotated(t, given, wanted, span, ast.unparse(node.target))
    else:
        value = t.call(wanted, [given], {}, span)
    if is_number(value):
        value = cast(t, value, t.defaults.of(value), span)
    assign_target(t, node.target, value, span)


def _is_type(wanted: Value) -> bool:
    """Whether variables can be annotated with ``wanted``."""
    if isinstance(wanted, type):
        known = (int, float, bool, *_CONTAINERS)
        return wanted in known or getattr(wanted, "__quadpy_constructor__", None) == "entries"  # qp.Vector, qp.Matrix
    return isinstance(wanted, Scalar) or is_vector_type(wanted) or is_struct_type(wanted)


def assign_target(t: Trace, target: ast.expr, value: Value, span: Span) -> None:
    match target:
        case ast.Name(id=name) if t.frame.is_item(name) or not is_element(t, target):
            bind = assign_list if isinstance(value, (list, tuple, dict)) else assign_name
            bind(t, name, value, span)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            items = value.elems if isinstance(value, Vec) else value
            if not isinstance(items, (tuple, list)):
                t.fail_type(f"{len(elts)} names for {shape_text(value)}", span, "name its elements: x[0], x[1]")
            for elt, item in unpacked(t, elts, items, span):
                assign_target(t, elt, import_value(t, item), span)
        case ast.Name() | ast.Subscript() | ast.Attribute() if is_element(t, target):
            store_element(t, element_ref(t, target), value, span)
        case _ if base := base_name(target):
            assign_component(t, base, target, value, span)
        case _:
            t.fail_syntax("this cannot be assigned to", t.span(target),
                          "parts of vectors are v[i], v.xy or v[1:]; parts of matrices are m[i, j], m[i] or m[:, j]")  # fmt: skip


def stmt_AugAssign(t: Trace, node: ast.AugAssign) -> None:
    """Atomic where the target is in memory and such an operation exists, plain on local variables."""
    if change_tile(t, node):
        return None
    span, op = t.span(node), _ATOMIC_OPERATORS.get(type(node.op))
    target = place_of(t, node.target)
    if target is None and (add := collector(t, node.target)) is not None:
        return add_to_collector(t, node, add, span)
    if target is None or op is None:
        return _change_plainly(t, node, target, span)
    value = t.expr(node.value)
    if isinstance(target, MutableVar):
        value = make_vector(t, value, span) if isinstance(value, (tuple, list)) else value
        if is_numeric(value):
            check_type(t, ast.unparse(node.target), target, value, span)
    atomic_update(t, op, target, value, span, in_launch=True)


def _change_plainly(
    t: Trace, node: ast.AugAssign, target: ElementRef | MutableVar | ChosenPart | None, span: Span
) -> None:
    """Evaluates in Python's order: the place (once), its old value, the new value."""
    match node.target:
        case _ if isinstance(target, ElementRef):
            old = load_element(t, target, span)
            store_element(t, target, binary(t, type(node.op), old, t.expr(node.value), span), span)
        case ast.Name(id=one) if isinstance(item := t.frame.env.get(one), MutableVar) and t.frame.is_item(one):
            value = binary(t, type(node.op), freeze_all(t, read_part(t, item, span)), t.expr(node.value), span)
            write_part(t, one, item, value, span)
        case _ if name := base_name(node.target):
            part = target or variable_named(t, name, node.target)
            old = freeze_all(t, read_part(t, part, span))
            write_part(t, name, part, binary(t, type(node.op), old, t.expr(node.value), span), span)
        case _:
            old = t.expr(node.target)
            assign_target(t, node.target, binary(t, type(node.op), old, t.expr(node.value), span), span)


def collector(t: Trace, target: ast.expr) -> Method | None:
    """``obj.__quadpy_add__``, a function of the kernel language, where ``target`` is ``obj[…]``; None where there is none."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, (ast.Name, ast.Attribute)):
        return None
    owner: ast.expr = target.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    bound = t.frame.env.get(owner.id) if isinstance(owner, ast.Name) else None
    if not isinstance(owner, ast.Name) or isinstance(bound, MutableVar) or kind_of(bound) is not Kind.OBJECT:
        return None
    value = chained(t, target.value)
    add = getattr(value, "__quadpy_add__", None) if kind_of(value) is Kind.OBJECT else None
    return add if isinstance(add, Method) else None


def add_to_collector(t: Trace, node: ast.AugAssign, add: Method, span: Span) -> None:
    """Calls ``add`` with the indices and what is added.

    Raises:
        KernelSyntaxError: another operator than ``+=`` and ``-=``.
    """
    assert isinstance(node.target, ast.Subscript)
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        name = type(add.instance).__name__
        t.fail_syntax(f"a {name} only takes += and -=", span, "add the final value")
    index = index_values(t, node.target.slice)
    value = t.expr(node.value)
    if isinstance(node.op, ast.Sub):
        value = binary(t, ast.Sub, 0, value, span)
    inline(t, add.func, [add.instance, *index, value], {}, span)
