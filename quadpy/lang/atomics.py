"""Atomic operations: on memory, and on variables of one thread, where they are plain operations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from typing import Final

from quadpy.core.dtypes import BY_NAME, u1
from quadpy.core.records import RecordType
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS
from quadpy.ir import nodes as ir
from quadpy.lang.activity import activate_element
from quadpy.lang.arrays import chosen_parts, is_number_at, places_of, written_places
from quadpy.lang.checks import values_where
from quadpy.lang.comparisons import compare
from quadpy.lang.components import place_of, read_part, variable_named, write_part
from quadpy.lang.context import Trace
from quadpy.lang.frames import ChosenPart, MutableVar
from quadpy.lang.items import is_variable
from quadpy.lang.names import base_name
from quadpy.lang.operators import binary, bit_cast, select
from quadpy.lang.promotion import literal
from quadpy.lang.quantised import change_packed
from quadpy.lang.retrace import LocalAtomicFound
from quadpy.lang.scalars import cast
from quadpy.lang.scope import lookup
from quadpy.lang.values import ElementRef, Record, Value, Vec, elems_of, is_runtime, shaped
from quadpy.lang.variables import freeze, freeze_all
from quadpy.lang.vectors import components_for, map_vec

_LOCAL_OPERATORS: Final[dict[ir.AtomicOp, type[ast.operator]]] = {
    ir.AtomicOp.ADD: ast.Add, ir.AtomicOp.SUB: ast.Sub, ir.AtomicOp.MUL: ast.Mult, ir.AtomicOp.AND: ast.BitAnd,
    ir.AtomicOp.OR: ast.BitOr, ir.AtomicOp.XOR: ast.BitXor,
}  # fmt: skip

_ON_U1: Final = {
    ir.AtomicOp.ADD: ir.AtomicOp.OR, ir.AtomicOp.MAX: ir.AtomicOp.OR, ir.AtomicOp.SUB: ir.AtomicOp.XOR,
    ir.AtomicOp.MUL: ir.AtomicOp.AND, ir.AtomicOp.MIN: ir.AtomicOp.AND,
}  # fmt: skip
"""Operations that give the same u1 as arithmetic in the default integer type, converted back: 1 + 1 is not 0, so True."""


def atomic_call(t: Trace, op: ir.AtomicOp, node: ast.Call) -> Value:
    """``atomic_add(x[i], v)``: the first argument is a place."""
    span = t.span(node)
    written, *given = _arguments(t, op, node)
    target = place_of(t, written)
    local = _changed_part(t, op, written) if target is None else None
    values = [t.expr(arg) for arg in given]
    if local is not None:
        return _atomic_on_local(t, op, local, values, span)
    assert target is not None
    return atomic_update(t, op, target, values[-1], span, expected=values[0] if op is ir.AtomicOp.CAS else None)


def _arguments(t: Trace, op: ir.AtomicOp, node: ast.Call) -> list[ast.expr]:
    """The arguments in the order of the parameters, of which some may be given by name."""
    names = ("x", "expected", "desired") if op is ir.AtomicOp.CAS else ("x", "y")
    by_name = {keyword.arg: keyword.value for keyword in node.keywords}
    found = [*node.args, *(by_name[name] for name in names[len(node.args) :] if name in by_name)]
    if len(found) != len(names) or len(node.args) + len(by_name) != len(names):
        t.fail_type(
            f"atomic_{op.value} takes {len(names)} arguments", t.span(node), f"{', '.join(names)}, in this order"
        )
    return found


def _changed_part(t: Trace, op: ir.AtomicOp, target: ast.expr) -> tuple[str, MutableVar | ChosenPart]:
    """The variable of this thread that ``target`` names, or the part of it; and its name.

    Raises:
        LocalAtomicFound: the name is not yet known to change.
    """
    name = target.id if isinstance(target, ast.Name) else base_name(target)
    if name is None:
        t.fail_type(f"atomic_{op.value} needs a target that can be assigned", t.span(target),
                    "such as an element, x[i], or a variable")  # fmt: skip
    key, bound = (t.frame.source.code, name), t.frame.env.get(name)
    if key not in t.changing and is_variable(bound):
        raise LocalAtomicFound(key)
    if not isinstance(target, ast.Name):
        return name, variable_named(t, name, target)
    lookup(t, name, t.span(target))
    if not isinstance(bound, MutableVar):
        t.fail_type(f"atomic_{op.value} needs an element of an array or a variable", t.span(target))
    return name, bound


def _atomic_on_local(
    t: Trace, op: ir.AtomicOp, local: tuple[str, MutableVar | ChosenPart], values: list[Value], span: Span
) -> Value:
    """The plain operation on a variable of this thread; returns the old value."""
    name, part = local
    old = freeze(t, read_part(t, part, span))
    write_part(t, name, part, _changed(t, op, old, values[-1], values[0], span), span)
    return old


def _changed_number(
    t: Trace, op: ir.AtomicOp, old: ir.Expr, new: ir.Expr, expected: ir.Expr | None, span: Span
) -> ir.Expr:
    return cast(t, _changed(t, op, old, new, expected, span), old.type, span)


def _changed(t: Trace, op: ir.AtomicOp, old: ir.Expr | Vec | Record, new: Value, expected: Value, span: Span) -> Value:
    """The value of a place that held ``old``, after the operation."""
    if op is ir.AtomicOp.CAS:
        return select(t, _same_bits(t, old, expected, span), new, old, span)
    if op in (ir.AtomicOp.MIN, ir.AtomicOp.MAX):
        return t.call(BUILTINS[op.value], [old, new], {}, span)
    return new if op is ir.AtomicOp.EXCHANGE else binary(t, _LOCAL_OPERATORS[op], old, new, span)


def _same_bits(t: Trace, old: ir.Expr | Vec | Record, expected: Value, span: Span) -> Value:
    """The comparison of a compare-and-swap: floats are compared by their bits, as in memory."""
    if isinstance(old, Record):
        t.fail_type("a struct cannot be compared and swapped", span, "name one of its members")
    shape = old.shape if isinstance(old, Vec) else ()
    new = shaped(shape, components_for(t, expected, shape, old.type, span))
    if isinstance(old, Vec):
        return map_vec(t, lambda x, y: _same_scalar_bits(t, x, y, span), old, new)
    return _same_scalar_bits(t, old, new, span)


def _same_scalar_bits(t: Trace, x: Value, y: Value, span: Span) -> Value:
    if is_runtime(x) and x.type.is_float:
        bits = BY_NAME[f"u{x.type.bits}"]
        x, y = bit_cast(t, x, bits, span), bit_cast(t, y, bits, span)
    return compare(t, ast.Eq, x, y, span)


def atomic_update(
    t: Trace, op: ir.AtomicOp, target: ElementRef | MutableVar | ChosenPart, value: Value, span: Span, *,
    expected: Value = None, in_launch: bool = False,
) -> ir.Expr | Vec | Record | None:  # fmt: skip
    """Read-modify-write of a place; vectors component by component.

    Gives the old value, except of updates ``in_launch``, as ``ir.Atomic`` has it.
    """
    if isinstance(target, ChosenPart):
        return _atomic_on_chosen(t, op, target.parts, target.at, value, span, expected, in_launch=in_launch)
    if isinstance(target, ElementRef) and target.chooses:
        return _atomic_on_chosen(t, op, *chosen_parts(t, target, span), value, span, expected, in_launch=in_launch)
    places: Sequence[ir.Place]
    if isinstance(target, MutableVar):
        places = [t.slot(var, span) for var in target.vars]
    else:
        activate_element(t, target, span)
        places = written_places(t, target, span)
    type = places[0].type
    if isinstance(target.shape, RecordType):
        t.fail_type(f"atomic_{op.value} changes numbers and vectors, not a struct", span, "name one of its members")
    if op in (ir.AtomicOp.AND, ir.AtomicOp.OR, ir.AtomicOp.XOR) and type.is_float:
        t.fail_type(f"atomic_{op.value} needs an integer target, not {type}", span,
                    "bitwise operations need integers; atomic_min and atomic_max take floats")  # fmt: skip
    items = components_for(t, value, target.shape, type, span)
    op = _ON_U1.get(op, op) if type == u1 else op
    compared = components_for(t, expected, target.shape, type, span) if expected is not None else [None] * len(places)

    def update() -> list[ir.Expr]:
        if isinstance(target, ElementRef) and target.array.packed is not None:
            changes = [
                partial(_changed_number, t, op, new=item, expected=wanted_old, span=span)
                for item, wanted_old in zip(items, compared, strict=True)
            ]
            return change_packed(t, target, changes, span, in_launch=in_launch)
        olds: list[ir.Expr] = []
        for place, item, wanted_old in zip(places, items, compared, strict=True):
            result = None if in_launch else t.build.var("old", type)
            t.build.emit(ir.Atomic(op, place, item, result, wanted_old, in_launch, span=span))
            if result:
                olds.append(ir.VarRead(result, span=span))
        return olds

    olds = values_where(t, target.inside if isinstance(target, ElementRef) else None, update, span)
    return None if in_launch else shaped(target.shape, olds)


def _atomic_on_chosen(
    t: Trace, op: ir.AtomicOp, parts: Sequence[MutableVar | ElementRef], at: ir.Expr, value: Value, span: Span,
    expected: Value, *, in_launch: bool,
) -> ir.Expr | Vec | Record | None:  # fmt: skip
    """The operation on the part whose number is ``at``; the old value is 0 where no part is chosen."""
    value, expected = freeze_all(t, value), freeze_all(t, expected)
    old = [] if in_launch else [t.build.var("old", type, mutable=True) for type in parts[0].types]
    for var in old:
        t.build.assign(var, literal(0, var.type, span), span)
    for number, part in enumerate(parts):
        with t.build.block() as stmts:
            found = atomic_update(t, op, part, value, span, expected=expected, in_launch=in_launch)
            for var, item in zip(old, elems_of(found) if found is not None else (), strict=True):
                t.build.assign(var, item, span)
        t.build.branch(is_number_at(at, number, span), stmts, [], span)
    return None if in_launch else shaped(parts[0].shape, [t.build.let(ir.VarRead(var, span=span)) for var in old])


def volatile_load(t: Trace, node: ast.Call) -> Value:
    """``volatile_load(x[i])``: an atomic operation that changes nothing, which is a load that nothing moves."""
    span = t.span(node)
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "x")]
    if len(given) != 1 or len(node.args) + len(node.keywords) != 1:
        t.fail_type("volatile_load takes one argument", span, "an element of an array, such as volatile_load(x[i])")
    target = place_of(t, given[0])
    return t.expr(given[0]) if target is None else _loaded_now(t, target, span)


def _loaded_now(t: Trace, target: ElementRef | MutableVar | ChosenPart, span: Span) -> Value:
    """What the place holds; of components that are chosen at run time, all are read."""
    if isinstance(target, ElementRef) and target.chooses:
        return _chosen_now(t, *chosen_parts(t, target, span), span)
    if isinstance(target, ChosenPart):
        return _chosen_now(t, target.parts, target.at, span)
    if isinstance(target, ElementRef) and target.array.packed is not None:
        return atomic_update(t, ir.AtomicOp.ADD, target, 0, span)
    places = [t.slot(var, span) for var in target.vars] if isinstance(target, MutableVar) else places_of(target, span)

    def read() -> list[ir.Expr]:
        held: list[ir.Expr] = []
        for place in places:
            var, type = t.build.var("now", place.type), place.type
            op = ir.AtomicOp.ADD if type.is_float else ir.AtomicOp.OR
            t.build.emit(ir.Atomic(op, place, literal(-0.0 if type.is_float else 0, type, span), var, span=span))
            held.append(ir.VarRead(var, span=span))
        return held

    inside = target.inside if isinstance(target, ElementRef) else None
    return shaped(target.shape, values_where(t, inside, read, span))


def _chosen_now(t: Trace, parts: Sequence[MutableVar | ElementRef], at: ir.Expr, span: Span) -> Value:
    found = [_loaded_now(t, part, span) for part in parts]
    held = found[0]
    for number, value in enumerate(found[1:], 1):
        held = select(t, is_number_at(at, number, span), value, held, span)
    return held
