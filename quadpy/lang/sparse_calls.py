"""Operations on the cells of sparse trees: activate, deactivate, append and the like."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from quadpy.core.dtypes import i32, u1
from quadpy.core.light import dataclass
from quadpy.core.records import RecordType
from quadpy.core.source import Span
from quadpy.errors import KernelIndexError
from quadpy.ir import nodes as ir
from quadpy.lang.activity import (
    Position,
    TreeNode,
    activate,
    activity_of,
    all_active,
    field_of,
    is_active,
    is_list,
    is_sparse,
    known,
    place_in,
    set_activity,
)
from quadpy.lang.arrays import element_at, index_values, spread_indices, store_element
from quadpy.lang.checks import quietly, require
from quadpy.lang.context import Trace
from quadpy.lang.fills import cleared
from quadpy.lang.functions import inline
from quadpy.lang.iteration import NdRange
from quadpy.lang.operators import binary
from quadpy.lang.promotion import literal
from quadpy.lang.retrace import CellsChange
from quadpy.lang.scalars import to_integer, to_scalar
from quadpy.lang.scope import import_value, outside, static_object
from quadpy.lang.sparse_places import NodeParent, indices_of, node_of, position_in
from quadpy.lang.values import ArrayRef, ScalarValue, Value, Vec


def call_parent(t: Trace, fn: NodeParent, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """The node around a node or a field."""
    given = [*args, *kwargs.values()]
    count = given[0] if given else 1
    if not isinstance(count, int) or len(given) > 1 or count < 0:
        t.fail_type("parent takes one number that is known at compile time", span)
    node = fn.node
    for _ in range(count):
        node = t.deps.attribute(node, "outer")
        if node is None or not node.all_levels:
            t.fail_type(f"there are fewer than {count} nodes around this one", span)
    return node


def _is_active(t: Trace, span: Span, node: Value, index: Value) -> Value:
    found = node_of(t, node, "is_active", span)
    position = position_in(t, found, indices_of(t, index, len(found.cells), "is_active", span), span)
    if not position.nodes:
        return literal(1, u1, span)
    return t.build.let(is_active(t, position, span))


def _activate(t: Trace, span: Span, node: Value, index: Value) -> None:
    found = node_of(t, node, "activate", span)
    activate(t, position_in(t, found, indices_of(t, index, len(found.cells), "activate", span), span), span)


def _deactivate(t: Trace, span: Span, node: Value, index: Value) -> None:
    """The cell and all that is in it: fields become 0, cells of inner nodes inactive."""
    found = node_of(t, node, "deactivate", span)
    if found.activity is None:
        t.fail_type("the cells of a dense node are always active", span, "deactivate a cell of a sparse node around it")
    if is_list(found):
        assert found.outer is not None
        _clear_list(t, found, indices_of(t, index, len(found.outer.cells), "deactivate", span), span)
        return
    _forget_known(t)
    at = indices_of(t, index, len(found.cells), "deactivate", span)
    position = position_in(t, found, at, span)
    with all_active(t), quietly(t):
        for field in t.deps.attribute(found, "fields_below"):
            for array in _parts(import_value(t, field)):
                _clear_box(t, found, at, array, field.leaves()[0].container, span)
        for inner in t.deps.attribute(found, "nodes_below"):
            activity = inner.activity
            _clear_box(t, found, at, activity_of(t, inner), activity.container, span)
    set_activity(t, place_in(t, position, found, span), 0, span)


def _forget_known(t: Trace) -> None:
    """Writes in the enclosing loops can no longer rely on the test at the start of an iteration."""
    for loop in t.cells.loops:
        if loop not in t.cells.changing:
            raise CellsChange(loop)


def _parts(array: Value) -> Iterator[ArrayRef]:
    """A field of numbers or vectors; of structs, its members."""
    assert isinstance(array, ArrayRef)
    if not isinstance(array.element, RecordType):
        yield array
        return
    for name in array.element.names:
        yield from _parts(array.member(name))


def _clear_box(t: Trace, node: TreeNode, at: Sequence[ir.Expr], array: ArrayRef, inside: TreeNode, span: Span) -> None:
    """Zeroes the elements of a field that are in one cell of ``node``; the field's cells are those of ``inside``."""
    bounds: list[tuple[ir.Expr | int, ir.Expr | int]] = []
    starts = array.offset or (0,) * array.ndim
    index = dict(zip(node.cells, at, strict=True))
    for (axis, _), extent, first in zip(inside.cells.items(), inside.shape, starts, strict=True):
        if axis not in index:
            bounds.append((first, first + extent))
            continue
        ratio = extent // max(node.shape[list(node.cells).index(axis)], 1)
        bounds.append(_range(t, to_scalar(t, binary(t, ast.Mult, index[axis], ratio, span), span), first, ratio, span))
    inline(t, cleared, [array, NdRange(tuple(bounds))], {}, span)


def _range(t: Trace, at: ir.Expr, first: int, count: ScalarValue, span: Span) -> tuple[ir.Expr, ir.Expr]:
    """``count`` indices of a field from the position ``at`` on, where ``first`` is the index of its first element."""
    start = t.build.let(to_integer(t, to_scalar(t, binary(t, ast.Add, at, first, span), span), span))
    return start, t.build.let(to_scalar(t, binary(t, ast.Add, start, count, span), span))


def _clear_list(t: Trace, node: TreeNode, at: list[ir.Expr], span: Span) -> None:
    _forget_known(t)
    position = _list_position(t, node, at, span)
    place = place_in(t, position, node, span)
    length = t.build.load(place, span, "length")
    with all_active(t), quietly(t):
        for field in t.deps.attribute(node, "fields_below"):
            for array in _parts(import_value(t, field)):
                starts = array.offset or (0,) * array.ndim
                ends = [*((i, 1) for i in at), (literal(0, i32, span), length)]
                box = tuple(_range(t, i, first, count, span) for (i, count), first in zip(ends, starts, strict=True))
                inline(t, cleared, [array, NdRange(box)], {}, span)
    set_activity(t, place, 0, span)


def _list_position(t: Trace, node: TreeNode, at: Sequence[ir.Expr], span: Span) -> Position:
    """The position of a list, which is that of its first element."""
    return position_in(t, node, [*at, literal(0, i32, span)], span)


def _length(t: Trace, span: Span, node: Value, index: Value = None) -> Value:
    found = _list_node(t, node, "length", span)
    return _length_at(t, found, indices_of(t, index, len(found.cells) - 1, "length", span), span)


def _length_at(t: Trace, node: TreeNode, at: list[ir.Expr], span: Span) -> Value:
    return t.build.load(place_in(t, _list_position(t, node, at, span), node, span), span, "length")


def _list_node(t: Trace, value: Value, what: str, span: Span) -> TreeNode:
    found = node_of(t, value, what, span)
    if not is_list(found):
        t.fail_type(f"{what} takes a dynamic node, not a {found.kind.value} one", span,
                    "lists are made with qp.root.dense(...).dynamic(qp.j, n)")  # fmt: skip
    return found


def _append(t: Trace, span: Span, node: Value, index: Value, value: Value) -> Value:
    found = _list_node(t, node, "append", span)
    fields = t.deps.attribute(found, "fields_below")
    if len(fields) != 1:
        t.fail_type(f"append needs a list of one field, but this node has {len(fields)}", span,
                    "place a field of structs; or append to one of the fields: x[i].append(value)")  # fmt: skip
    array = import_value(t, fields[0])
    if hasattr(fields[0], "word"):
        t.fail_type("the elements of this list are quantised", span, "append to the field: x.append(value)")
    return _append_to(t, array, found, indices_of(t, index, len(found.cells) - 1, "append", span), value, span)


def _append_to(t: Trace, array: Value, node: TreeNode, at: list[ir.Expr], value: Value, span: Span) -> Value:
    """The position of the new element; the capacity, or more, if the list is full and nothing is stored."""
    assert isinstance(array, ArrayRef)
    start = _list_position(t, node, at, span)
    around = replace(start, nodes=start.nodes[:-1])
    activate(t, around, span)
    lengths, one = place_in(t, start, node, span), literal(1, i32, span)
    old = t.build.var("position", i32)
    t.build.emit(ir.Atomic(ir.AtomicOp.ADD, lengths, one, old, span=span))
    position = ir.VarRead(old, span=span)
    capacity = literal(node.shape[-1], i32, span)
    fits = t.build.let(position < capacity)
    with quietly(t):
        starts = array.offset or (0,) * array.ndim
        index = [binary(t, ast.Add, i, o, span) if o else i for i, o in zip([*at, position], starts, strict=True)]
        with t.build.block() as stored:
            place = element_at(t, array, tuple(index), "this list", span)
            with known(t, replace(start, index=place.index), span):
                store_element(t, place, value, span)
        with t.build.block() as undone:
            t.build.emit(ir.Atomic(ir.AtomicOp.SUB, lengths, one, None, span=span))
    t.build.branch(fits, stored, undone, span)
    if t.checks is not None:
        require(t, fits, KernelIndexError, f"this list is full: it has {node.shape[-1]} elements", (), span,
                hint="make the dynamic node larger")  # fmt: skip
    return position


def _rescale_index(t: Trace, span: Span, a: Value, b: Value, index: Value) -> Value:
    """The index in ``b`` of the cell that corresponds to an index of ``a``."""
    source, target = (node_of(t, each, "rescale_index", span) for each in (a, b))
    given = dict(zip(source.cells, indices_of(t, index, len(source.cells), "rescale_index", span), strict=True))
    extents = dict(zip(source.cells, source.shape, strict=True))
    found: list[ir.Expr] = []
    for axis, extent in zip(target.cells, target.shape, strict=True):
        if axis not in given:
            t.fail_type("rescale_index: the first node lacks an axis of the second", span)
        larger, smaller = max(extents[axis], extent), max(min(extents[axis], extent), 1)
        op = ast.FloorDiv if extents[axis] >= extent else ast.Mult
        found.append(to_scalar(t, binary(t, op, given[axis], larger // smaller, span), span))
    return Vec((len(found),), tuple(found)) if found else ()


def _hinted(t: Trace, span: Span, *fields: Value) -> None:
    """Accepted and ignored: writes to active cells cost next to nothing."""
    for each in fields:
        node_of(t, each, "no_activate", span)


SPARSE_RULES: Final[dict[str, Callable[..., Any]]] = {
    "is_active": _is_active,
    "activate": _activate,
    "deactivate": _deactivate,
    "append": _append,
    "length": _length,
    "rescale_index": _rescale_index,
    "no_activate": _hinted,
}


@dataclass(frozen=True, slots=True)
class ListMethod:
    """``x[i].append``, ``x[i].length`` or ``x[i].deactivate`` before it is called."""

    array: ArrayRef
    node: Any
    index: tuple[Value, ...]
    name: str


_METHODS: Final = {"append": 1, "length": 0, "deactivate": 0}
"""Methods of lists, and how many arguments they take."""


def list_method(t: Trace, node: ast.expr) -> ListMethod | None:
    """The method of a list that ``node`` names, without evaluating anything else; None for any other expression."""
    if not isinstance(node, ast.Attribute) or node.attr not in _METHODS:
        return None
    owner = node.value.value if isinstance(node.value, ast.Subscript) else node.value
    field = _field_named(t, owner)
    nodes = field.sparse_nodes if is_sparse(field) else ()
    if not nodes or not is_list(nodes[-1]) or nodes[-1] is not field.leaves()[0].container:
        return None
    if node.attr in getattr(field, "keys", ()):
        return None  # a member of the structs
    array = t.expr(owner)
    assert isinstance(array, ArrayRef)
    index = spread_indices(index_values(t, node.value.slice)) if isinstance(node.value, ast.Subscript) else ()
    return ListMethod(array, t.deps.attribute(field, "sparse_nodes")[-1], index, node.attr)


def _field_named(t: Trace, node: ast.expr) -> Any:
    """The field that ``node`` names; None for any other expression."""
    if isinstance(node, ast.Name):
        found: Any = t.frame.env.get(node.id)
        if found is None:
            try:
                found = outside(t, node.id)
            except KeyError:
                return None
    else:
        found = static_object(t, node)
    if isinstance(found, ArrayRef):
        return field_of(t, found)
    return found if getattr(type(found), "__quadpy_field__", False) else None


def call_list(t: Trace, fn: ListMethod, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """A call of a list's method."""
    given = [*args, *kwargs.values()]
    if len(given) != _METHODS[fn.name]:
        t.fail_type(
            f"{fn.name} of a list takes {_METHODS[fn.name] or 'no'} argument{'s' * (fn.name != 'append')}", span
        )
    at = indices_of(t, fn.index, len(fn.node.cells) - 1, f"{fn.name} of a list", span)
    with quietly(t):
        starts = fn.array.offset or (0,) * len(at)
        at = [to_scalar(t, binary(t, ast.Sub, i, o, span), span) if o else i for i, o in zip(at, starts, strict=False)]
    match fn.name:
        case "append":
            return _append_to(t, fn.array, fn.node, at, given[0], span)
        case "length":
            return _length_at(t, fn.node, at, span)
        case _:
            _clear_list(t, fn.node, at, span)
            return None
