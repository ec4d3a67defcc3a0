"""Loops over the active cells of sparse trees.

A loop at the top level visits the cells that are active when it begins, whatever its iterations activate.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from quadpy.dtypes import u1
from quadpy.ir import nodes as ir
from quadpy.lang.activity import (
    Position,
    activity_of,
    field_of,
    is_active,
    is_list,
    is_sparse,
    known,
    place_in,
    position_of,
    writes,
)
from quadpy.lang.arrays import element_at
from quadpy.lang.checks import quietly
from quadpy.lang.context import Trace
from quadpy.lang.fills import copied
from quadpy.lang.functions import inline
from quadpy.lang.iteration import Grouped
from quadpy.lang.levels import on_levels
from quadpy.lang.operators import binary
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import cast, to_scalar
from quadpy.lang.sparse_places import is_node, position_in
from quadpy.lang.values import ArrayRef, Value
from quadpy.source import Span

_LANES: Final = 32
"""How many iterations share the elements of a list."""

__all__ = ["active_only", "cell_by_cell", "remember_cells"]


def remember_cells(t: Trace, items: Value, span: Span) -> bool:
    """Before a loop over ``items``: copies the set of active cells; False if all cells are visited."""
    nodes = _sparse_nodes(t, items)
    if nodes:
        now, before = (activity_of(t, nodes[-1], name) for name in ("activity", "before"))
        inline(t, copied, [now, before], {}, span)
    return bool(nodes)


@dataclass(frozen=True, slots=True)
class CellByCell:
    """How a loop goes through a field cell by cell: ``axes`` number the cells of each sparse node in a cell of the node
    around it, the outermost first, and the elements in a cell.

    ``indices`` are the indices of the user's loop, ``cells`` are the positions of the cells.  What a cell contains lies
    together in memory, and one test tells for all of it whether the cell is active.  The elements of a list are divided
    among the iterations of ``lanes``; those of a list that is alone are the only axis.
    """

    axes: tuple[ir.Axis, ...]
    indices: tuple[tuple[ir.Var, ir.Expr], ...]
    cells: tuple[Position, ...]
    lanes: ir.Axis | None = None
    is_list: bool = False


def cell_by_cell(t: Trace, items: Any, axes: Sequence[ir.Axis], span: Span) -> CellByCell | None:
    """The order of a parallel loop over cells of several elements, or of several cells; None if the loop does not need one.

    There is none under ``debug=True``, since index checks know only the axes of the user's loop.
    """
    nodes = _sparse_nodes(t, items)
    if not nodes or t.checks is not None:
        return None
    items = items.over if isinstance(items, Grouped) else items
    offset = (items.offset or (0,) * items.ndim) if isinstance(items, ArrayRef) else (0,) * len(axes)
    grid: Any = field_of(t, items).leaves()[0].container if isinstance(items, ArrayRef) else items
    if 0 in grid.shape:
        return None
    if is_list(nodes[-1]):
        *nodes, in_list = nodes
        if math.prod(grid.shape[:-1]) == 1:
            return _list_alone(t, in_list, grid, axes, offset, span)
        around = dict(zip(tuple(grid.cells)[:-1], grid.shape[:-1], strict=True))
    else:
        in_list, around = None, dict(zip(grid.cells, grid.shape, strict=True))
    if math.prod(around.values()) > t.options.index.max_int:
        return None
    levels = [*((node, dict(zip(node.cells, node.shape, strict=True))) for node in nodes), (None, around)]
    counters: list[ir.Axis] = []
    cells: list[Position] = []
    at, zero = dict[int, Any](), literal(0, t.options.index, span)
    above: dict[int, int] = {}
    with quietly(t):
        for node, extents in levels:
            inside = {axis: extent // max(above.get(axis, 1), 1) for axis, extent in extents.items()}
            if math.prod(inside.values()) > 1:
                counters.append(_counter(t, "cell" if node else "inside", math.prod(inside.values()), span))
                parts = on_levels(t, ir.VarRead(counters[-1].var, span=span), list(inside.values()), span)
                for axis, part in zip(inside, parts, strict=True):
                    start = binary(t, ast.Mult, at[axis], inside[axis], span) if axis in at else 0
                    at[axis] = binary(t, ast.Add, start, part, span)
            above = extents
            if node is not None:
                position = [
                    each
                    for axis, levels_ in node.cells.items()
                    for each in on_levels(t, at.get(axis, zero), levels_, span)
                ]
                cells.append(Position(tuple(nodes[: len(cells) + 1]), node.cells, tuple(position)))
        if len(counters) < 2 and in_list is None:
            return None
        indices = [
            (own.var, to_scalar(t, binary(t, ast.Add, at.get(axis, zero), first, span), span))
            for own, axis, first in zip(axes, around, offset, strict=False)
        ]
        if in_list is None:
            return CellByCell(tuple(counters), tuple(indices), tuple(cells))
        first = [
            each for axis, levels_ in grid.cells.items() for each in on_levels(t, at.get(axis, zero), levels_, span)
        ]
        cells.append(Position((*nodes, in_list), grid.cells, tuple(first)))
    lanes = _counter(t, "lane", min(grid.shape[-1], _LANES), span)
    return CellByCell((*counters, lanes), tuple(indices), tuple(cells), lanes, is_list=True)


def _list_alone(
    t: Trace, node: Any, grid: Any, axes: Sequence[ir.Axis], offset: Sequence[int], span: Span
) -> CellByCell:
    """A loop over the elements that the list has now."""
    zero = literal(0, t.options.index, span)
    first = Position((node,), grid.cells, (zero,) * sum(map(len, grid.cells.values())))
    length = t.build.load(place_in(t, first, node, span), span, "length")
    with quietly(t):
        *outer, own = axes
        start, stop = (to_scalar(t, binary(t, ast.Add, end, offset[-1], span), span) for end in (0, length))
        indices = [(axis.var, literal(at, axis.var.type, span)) for axis, at in zip(outer, offset, strict=False)]
        ends = [t.build.let(cast(t, end, own.var.type, span)) for end in (start, stop)]
    counted = ir.Axis(own.var, *ends, literal(1, own.var.type, span), span=span)
    return CellByCell((counted,), tuple(indices), (), is_list=True)


def _counter(t: Trace, name: str, count: int, span: Span) -> ir.Axis:
    type = t.options.index
    start, stop, step = (literal(number, type, span) for number in (0, count, 1))
    return ir.Axis(t.build.var(name, type), start, stop, step, span=span)


@contextmanager
def active_only(
    t: Trace, node: ast.For, items: Value, axes: Sequence[ir.Axis], *, top: bool, remembered: bool = False,
    order: CellByCell | None = None,
) -> Iterator[Visit]:  # fmt: skip
    """Context manager around the trace of a loop's body: the body runs only for active cells.

    With ``remembered``, or if a loop at the ``top`` level changes them, those are the cells active before the loop.
    """
    visit, span = Visit(), t.span(node)
    position = _position(t, items, [ir.VarRead(axis.var, span=span) for axis in axes], span)
    if position is None:
        yield visit
        return
    visit.is_partial = True
    place = t.frame.source.code, node.lineno, node.col_offset
    t.cells.loops.append(place)
    try:
        with (
            t.frame.conditional(),
            t.build.block() as stmts,
            nullcontext() if place in t.cells.changing else known(t, position, span),
        ):
            for var, value in order.indices if order else ():
                t.build.emit(ir.Let(var, value, span=span))
            yield visit
    finally:
        t.cells.loops.pop()
    visit.changes = top and writes(stmts, activity_of(t, position.nodes[-1]).name)
    name = "before" if visit.changes or remembered else "activity"
    if order is not None and not order.cells:  # a list that is alone: the length from before the loop is known
        visit.changes = False
        t.build.splice(stmts)
        return
    *outer, inner = order.cells if order else (position,)
    if order is not None and order.is_list:
        stmts = _elements_of_list(t, inner, order, axes[-1], name, stmts, span)
        cells = [] if name == "before" else outer
    else:
        cells = [inner] if name == "before" else [*outer, inner]  # only the innermost cells are remembered
    for cell in reversed(cells):
        with t.build.block() as tested:
            t.build.branch(is_active(t, cell, span, name), stmts, [], span)
        stmts = tested
    t.build.splice(stmts)


def _elements_of_list(
    t: Trace, first: Position, order: CellByCell, axis: ir.Axis, name: str, body: list[ir.Stmt], span: Span
) -> list[ir.Stmt]:
    """The elements that one of the lanes visits."""
    assert order.lanes is not None
    type = axis.var.type
    with quietly(t), t.build.block() as stmts:
        length = t.build.load(place_in(t, first, first.nodes[-1], span, name), span, "length")
        ends = [
            to_scalar(t, binary(t, ast.Add, cast(t, end, type, span), axis.start, span), span)
            for end in (ir.VarRead(order.lanes.var, span=span), length)
        ]
        step = literal(_LANES, type, span)
        with t.build.block() as some:
            t.build.emit(ir.For(axis.var, *ends, step, ir.Block(tuple(body), span=span), span=span))
        empty = ir.Compare(ir.CmpOp.GT, length, literal(0, length.type, span), u1, span=span)
        t.build.branch(empty, some, [], span)
    return stmts


@dataclass(slots=True)
class Visit:
    """Whether a loop visits only some cells, and whether its body changes which cells are active."""

    is_partial: bool = False
    changes: bool = False


def _sparse_nodes(t: Trace, items: Any) -> Any:
    """The sparse nodes that contain the object a loop runs over, outermost first."""
    items = items.over if isinstance(items, Grouped) else items
    if isinstance(items, ArrayRef):
        field = field_of(t, items)
        return t.deps.attribute(field, "sparse_nodes") if is_sparse(field) else ()
    return t.deps.attribute(items, "sparse_nodes") if is_node(items) else ()


def _position(t: Trace, items: Any, index: list[ir.Expr], span: Span) -> Position | None:
    """Where the loop is in a sparse tree; None if all cells are visited."""
    if not _sparse_nodes(t, items):
        return None
    items = items.over if isinstance(items, Grouped) else items
    with quietly(t):  # it is inside
        if isinstance(items, ArrayRef):
            return position_of(t, element_at(t, items, tuple(index), "this array", span))
        return position_in(t, items, index, span)
