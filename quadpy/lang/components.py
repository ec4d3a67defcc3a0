"""Places of assignments: variables, whole or in part.

An assignment writes only what its target names.  Iterations of a parallel loop, and concurrent sections, share the
variables from outside: loading a vector, changing a component and storing all of it would undo what others stored in
the meantime.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from quadpy.core.messages import with_article
from quadpy.core.records import RecordType
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arrays import element_ref, index_values, is_element, part_indices
from quadpy.lang.context import Trace
from quadpy.lang.frames import ChosenPart, Items, MutableVar
from quadpy.lang.items import assign_items, item_at
from quadpy.lang.names import base_name
from quadpy.lang.scope import items_of, lookup, read_items
from quadpy.lang.structs import no_member, scalars_for
from quadpy.lang.values import (
    ArrayRef,
    Container,
    ElementRef,
    Kind,
    Record,
    Value,
    Vec,
    elems_of,
    is_numeric,
    kind_of,
    shape_text,
    shaped,
)
from quadpy.lang.variables import (
    as_bound,
    assign_name,
    check_assigned,
    in_memory,
    read_variable,
    set_variable,
    write_variable,
)
from quadpy.lang.vectors import MOST_SELECTS, chosen_numbers, numbers_of, picked


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
            if isinstance(bound, Items) and bound.shared and t.in_parallel:
                return _variable(t, _part_named(t, bound, node), node)
            if in_memory(bound, t) and bound.shape:
                check_assigned(t, base, t.span(node))
                return _variable(t, _part_named(t, bound, node), node)
    return None


def _check_augmented(t: Trace, node: ast.Name) -> None:
    value = lookup(t, node.id, t.span(node))
    if isinstance(value, ArrayRef):
        t.fail_type(f"{node.id!r} is an array: name one of its elements", t.span(node))


def assign_component(t: Trace, name: str, target: ast.expr, value: Value, span: Span) -> None:
    """``v[i] = x``, ``m[i, j] = x``, ``m[i] = w``, ``v.xy = w`` on a local vector."""
    write_part(t, name, named_part(t, name, target), value, span)


def named_part(t: Trace, name: str, target: ast.expr) -> MutableVar | ChosenPart | Items:
    """The part of the local vector or list ``name`` that ``target`` names, or all of it, to be read and written."""
    bound, span = t.frame.env.get(name), t.span(target)
    if bound is None:
        lookup(t, name, span)
        t.fail_type(f"{name!r} belongs to the module, and is constant in the kernel", span,
                    f"copy it first: {name}_ = {name} + 0")  # fmt: skip
    if isinstance(bound, (Vec, Record)):
        if t.frame.is_item(name):
            t.fail_type(f"{name!r} is a copy of an item, which would not change", span,
                        f"name the items in the loop: for {name} in qp.static([a, b]); or copy it first")  # fmt: skip
        assign_name(t, name, bound, span)
        bound = t.frame.env[name]
    if (items := items_of(t, name)) is not None:
        return items if isinstance(target, ast.Name) else _part_named(t, items, target)
    is_object = isinstance(bound, Container) or (kind_of(bound) is Kind.OBJECT and not isinstance(bound, MutableVar))
    if isinstance(target, ast.Attribute) and is_object:
        what = "members of a dataclass" if isinstance(bound, Container) else "attributes of an object"
        t.fail_type(f"a kernel cannot set {what}: {ast.unparse(target)}", span,
                    "set an element of an array or field in it, or return the value and set it in Python")  # fmt: skip
    if not isinstance(bound, MutableVar) or not bound.shape:
        owner = name
        if isinstance(target, (ast.Attribute, ast.Subscript)) and is_object:
            t.expr(target.value)  # fails with its own message where an attribute is missing
            owner = ast.unparse(target.value)
        hint = "copy the item to a variable, and change that" if isinstance(bound, (list, tuple, dict)) else ""
        if isinstance(bound, ArrayRef):
            t.fail_type("a kernel cannot assign a slice of an array", span, "write a loop, or x[a:b].fill(value)")
        t.fail_type(f"{owner!r} is not a vector or struct whose parts can be set", span, hint)
    check_assigned(t, name, span)
    return bound if isinstance(target, ast.Name) else _part_named(t, bound, target)


def variable_named(t: Trace, name: str, target: ast.expr) -> MutableVar | ChosenPart:
    """Like ``named_part``, for what takes a number, a vector or a struct."""
    return _variable(t, named_part(t, name, target), target)


def _variable(t: Trace, part: MutableVar | ChosenPart | Items, node: ast.expr) -> MutableVar | ChosenPart:
    if isinstance(part, Items):
        t.fail_type(f"{ast.unparse(node)!r} has items, which change one by one", t.span(node))
    return part


def read_part(t: Trace, part: MutableVar | ChosenPart, span: Span) -> ir.Expr | Vec | Record:
    """The value of a part; 0 where no part is chosen."""
    if isinstance(part, MutableVar):
        return read_variable(t, part, span)
    columns = zip(*(elems_of(read_variable(t, one, span)) for one in part.parts), strict=True)
    return shaped(part.shape, [picked(t, column, part.at, span) for column in columns])


def write_part(t: Trace, name: str, part: MutableVar | ChosenPart | Items, value: Value, span: Span) -> None:
    """Assigns a variable called ``name``, or a part of it."""
    if isinstance(part, Items):
        assign_items(t, name, part, value, span)
        return
    if part is t.frame.env.get(name) and not t.frame.is_item(name):
        assign_name(t, name, value, span)
        return
    if isinstance(part, MutableVar) and part.whole and is_numeric(value := as_bound(t, name, part, value, span)):
        set_variable(t, name, part, value, span)
        return
    items = scalars_for(t, value, part.shape, part.types, span)
    if isinstance(part, MutableVar):
        write_variable(t, part, items, span)
    else:
        _write_chosen(t, part, [t.build.let(item) for item in items], span)


def _part_named(t: Trace, bound: MutableVar | Items, target: ast.expr) -> MutableVar | ChosenPart | Items:
    """The components of the vector ``bound`` that ``target`` names, or the item of a list, or a part of it."""
    span = t.span(target)
    assert isinstance(target, (ast.Attribute, ast.Subscript))
    if not isinstance(target.value, ast.Name):
        outer = _part_named(t, bound, target.value)
        if isinstance(outer, ChosenPart) or not (isinstance(outer, Items) or outer.shape):
            what = "an item chosen at run time" if isinstance(outer, ChosenPart) else "a number"
            t.fail_type(f"{what} has no parts that can be named", span, "write m[i, j] for an element of a matrix")
        bound = outer
    if isinstance(bound, Items):
        if isinstance(target, ast.Attribute):
            t.fail_type(f"a {type(bound.held).__name__} has no attribute {target.attr!r} that can be set", span)
        if isinstance(bound.held, tuple) and not t.options.as_taichi and isinstance(target.ctx, ast.Store):
            t.fail_type("the items of a tuple cannot be assigned", span, "make it a list: [a, b]")
        return item_at(t, bound, index_values(t, target.slice), span)
    if isinstance(target, ast.Attribute) and (member := bound.member(target.attr)) is not None:
        return member
    if isinstance(bound.shape, RecordType):
        no_member(t, bound.shape, target, span)
    step = (
        target.attr if isinstance(target, ast.Attribute) else part_indices(index_values(t, target.slice), bound.shape)
    )
    if not isinstance(step, str) and not all(isinstance(i, (int, slice)) for i in step):
        if len(step) not in (1, len(bound.shape)):
            t.fail_type(
                f"this names neither a component nor a row of {with_article(shape_text(bound.stand_in(span)))}",
                span,
                "where an index is known at run time only, assign m[i, j], a row, m[i], or a column, m[:, j]",
            )
        return part_at(t, bound, step, span)
    numbers, shape = numbers_of(t, bound.vars[0].type, bound.shape, step, span)
    if len({*numbers}) < len(numbers):
        t.fail_type("this names the same component twice", span, "name each component once")
    return bound.part(numbers, shape)


def item_named(t: Trace, node: ast.expr) -> MutableVar | ChosenPart | Items | None:
    """The item of a list in variables, or the list, that ``node`` names; None for all else."""
    match node:
        case ast.Name(id=name):
            return items_of(t, name)
        case ast.Subscript(value=owner, slice=index) if isinstance(items := item_named(t, owner), Items):
            return item_at(t, items, index_values(t, index), t.span(node))
        case _:
            return None


def read_item(t: Trace, item: MutableVar | ChosenPart | Items, node: ast.expr) -> Value:
    """The value of an item of a list, which ``node`` names."""
    return (
        read_part(t, item, t.span(node)) if isinstance(item, ChosenPart) else read_items(t, str(base_name(node)), item)
    )


def part_at(t: Trace, bound: MutableVar, index: tuple[Value, ...], span: Span) -> MutableVar | ChosenPart:
    """The component of ``bound`` at ``index``, or the row or column."""
    assert isinstance(bound.shape, tuple)
    numbers, shape, at = chosen_numbers(t, bound.vars[0].type, bound.shape, index, span)
    if isinstance(at, int):
        return bound.part(numbers[at], shape)
    return ChosenPart(tuple(bound.part(each, shape) for each in numbers), t.build.let(at))


def _write_chosen(t: Trace, chosen: ChosenPart, items: Sequence[ir.Expr], span: Span) -> None:
    """Writes only the chosen part in memory, but all of a small variable of this thread, which is in registers."""
    if len(chosen.parts) > MOST_SELECTS and not in_memory(chosen.parts[0], t):
        for column, item in zip(zip(*(part.vars for part in chosen.parts), strict=True), items, strict=True):
            options = tuple(ir.Assign(var, item, span=span) for var in column)
            t.build.emit(ir.AssignOne(options, chosen.at, span=span))
        return
    for number, part in enumerate(chosen.parts):
        hit = chosen.is_at(number, span)
        if in_memory(part, t):
            with t.build.block() as stmts:
                write_variable(t, part, items, span)
            t.build.branch(hit, stmts, [], span)
        else:
            kept = elems_of(part.stand_in(span))
            write_variable(
                t, part, [ir.Select(hit, x, k, k.type, span=span) for x, k in zip(items, kept, strict=True)], span
            )
