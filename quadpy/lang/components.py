"""Places of assignments: variables, whole or in part.

An assignment writes what its target names, and nothing else.  Iterations of a parallel loop, and sections that run at
once, share the variables from outside of them: to load a vector, change a component and store all of it would undo what
others stored in the meantime.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from quadpy.dtypes import u1
from quadpy.ir import nodes as ir
from quadpy.lang.arrays import Step, element_ref, index_values, is_element, part_of, spread_indices
from quadpy.lang.context import Trace
from quadpy.lang.frames import ChosenPart, MutableVar
from quadpy.lang.names import base_name
from quadpy.lang.operators import select
from quadpy.lang.promotion import literal
from quadpy.lang.scope import lookup
from quadpy.lang.values import ArrayRef, ElementRef, Value, Vec, shape_text
from quadpy.lang.variables import assign_name, check_assigned, in_memory, read_variable, write_variable
from quadpy.lang.vectors import components_for, flat_index
from quadpy.source import Span

__all__ = ["assign_component", "is_chosen", "named_part", "part_at", "place_of", "read_part", "write_part"]


def place_of(t: Trace, node: ast.expr) -> ElementRef | MutableVar | ChosenPart | None:
    """The memory that ``node`` names; None for a variable of this thread."""
    if is_element(t, node):
        return element_ref(t, node)
    match node:
        case ast.Name(id=name):
            bound = t.frame.env.get(name)
            if in_memory(bound, t):
                check_assigned(t, name, t.span(node))
                return bound
            if bound is None or isinstance(bound, ArrayRef):
                _check_augmented(t, node)
        case _ if base := base_name(node):
            bound = t.frame.env.get(base)
            if in_memory(bound, t) and bound.shape:
                check_assigned(t, base, t.span(node))
                return _part_named(t, bound, node)
    return None


def _check_augmented(t: Trace, node: ast.Name) -> None:
    value = lookup(t, node.id, t.span(node))
    if isinstance(value, ArrayRef):
        t.fail_type(f"{node.id!r} is an array; an element of it is meant", t.span(node))


def assign_component(t: Trace, name: str, target: ast.expr, value: Value, span: Span) -> None:
    """``v[i] = x``, ``m[i, j] = x``, ``m[i] = w``, ``v.xy = w`` on a local vector."""
    write_part(t, name, named_part(t, name, target), value, span)


def named_part(t: Trace, name: str, target: ast.expr) -> MutableVar | ChosenPart:
    """The part of the local vector ``name`` that ``target`` names, to be read and written."""
    bound, span = t.frame.env.get(name), t.span(target)
    if bound is None:
        lookup(t, name, span)
        t.fail_type(f"{name!r} belongs to the module around the kernel, and is constant here", span,
                    f"copy it first: {name}_ = {name} + 0")  # fmt: skip
    if isinstance(bound, Vec):
        assign_name(t, name, bound, span)
        bound = t.frame.env[name]
    if not isinstance(bound, MutableVar) or not bound.shape:
        t.fail_type(f"{name!r} is no vector whose components could be set", span)
    check_assigned(t, name, span)
    return _part_named(t, bound, target)


def read_part(t: Trace, part: MutableVar | ChosenPart, span: Span) -> Value:
    """What a part holds; 0 where none is chosen."""
    if isinstance(part, MutableVar):
        return read_variable(t, part, span)
    held: list[ir.Expr] = [literal(0, var.type, span) for var in part.vars]
    for number, one in enumerate(part.parts):
        hit = is_chosen(t, part, number, span)
        value = read_variable(t, one, span)
        elems = value.elems if isinstance(value, Vec) else (value,)
        held = [select(t, hit, x, h, span) for x, h in zip(elems, held, strict=True)]
    shape = part.parts[0].shape
    elems = tuple(t.build.let(e) for e in held)
    return Vec(shape, elems) if shape else elems[0]


def write_part(t: Trace, name: str, part: MutableVar | ChosenPart, value: Value, span: Span) -> None:
    """Assigns a variable called ``name``, or a part of it."""
    if part is t.frame.env.get(name):
        assign_name(t, name, value, span)
        return
    one = part if isinstance(part, MutableVar) else part.parts[0]
    items = components_for(t, value, one.shape or (), one.vars[0].type, span)
    if isinstance(part, MutableVar):
        write_variable(t, part, items, span)
    else:
        _write_chosen(t, part, [t.build.let(item) for item in items], span)


def _part_named(t: Trace, bound: MutableVar, target: ast.expr) -> MutableVar | ChosenPart:
    """The components of the vector ``bound`` that ``target`` names."""
    span = t.span(target)
    assert isinstance(target, (ast.Attribute, ast.Subscript))
    if not isinstance(target.value, ast.Name):
        outer = _part_named(t, bound, target.value)
        if isinstance(outer, ChosenPart) or not outer.shape:
            what = "a row chosen at run time" if isinstance(outer, ChosenPart) else "a number"
            t.fail_type(f"no part of {what} can be named", span, "of a matrix it is m[i, j]")
        bound = outer
    shape = bound.shape or ()
    stand_in = Vec(shape, tuple(ir.VarRead(var, span=span) for var in bound.vars))
    step: Step
    if isinstance(target, ast.Attribute):
        step = target.attr
    else:
        step = spread_indices(t, index_values(t, target.slice), span)
        if not all(isinstance(i, (int, slice)) for i in step):
            if len(step) not in (1, len(shape)) or any(isinstance(i, slice) for i in step):
                t.fail_type(f"this names no component and no row of a {shape_text(stand_in)}", span)
            return part_at(t, bound, stand_in, step, span)
    found = part_of(t, stand_in, step, span)
    numbers = [stand_in.elems.index(e) for e in (found.elems if isinstance(found, Vec) else (found,))]
    if len({*numbers}) < len(numbers):
        t.fail_type("this names a component twice", span, "what is written is named once")
    return bound.part(numbers, found.shape if isinstance(found, Vec) else None)


def part_at(
    t: Trace, bound: MutableVar, stand_in: Vec, index: tuple[Value, ...], span: Span
) -> MutableVar | ChosenPart:
    """The component of ``bound`` at ``index``, or the row; ``stand_in`` has its type and shape."""
    shape = stand_in.shape
    row = shape[1:] if len(index) < len(shape) else ()
    size = row[0] if row else 1
    starts = Vec(shape[: len(index)], stand_in.elems[::size])
    at = flat_index(t, starts, index, span)
    if isinstance(at, int):
        return bound.part(range(at * size, (at + 1) * size), row or None)
    parts = tuple(bound.part(range(k, k + size), row or None) for k in range(0, len(bound.vars), size))
    return ChosenPart(parts, t.build.let(at))


def _write_chosen(t: Trace, chosen: ChosenPart, items: Sequence[ir.Expr], span: Span) -> None:
    """In memory only what is chosen is written; of a variable of this thread, which is in registers, all is."""
    for number, part in enumerate(chosen.parts):
        hit = is_chosen(t, chosen, number, span)
        if in_memory(part, t):
            with t.build.block() as stmts:
                write_variable(t, part, items, span)
            t.build.emit(ir.If(hit, ir.Block(tuple(stmts), span=span), ir.Block((), span=span), span=span))
        else:
            kept = [ir.VarRead(var, span=span) for var in part.vars]
            write_variable(t, part, [select(t, hit, x, old, span) for x, old in zip(items, kept, strict=True)], span)


def is_chosen(t: Trace, chosen: ChosenPart, number: int, span: Span) -> ir.Expr:
    return ir.Compare(ir.CmpOp.EQ, chosen.at, literal(number, chosen.at.type, span), u1, span=span)
