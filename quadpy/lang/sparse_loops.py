"""Loops over the active cells of sparse trees.

A loop at the top level visits the cells that are active when it begins, whatever its iterations activate.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from quadpy.core.dtypes import i32
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.activity import (
    Position,
    activity_of,
    field_of,
    is_active,
    is_list,
    is_sparse,
    known,
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
from quadpy.lang.scalars import to_scalar
from quadpy.lang.sparse_places import is_node, position_in
from quadpy.lang.values import ArrayRef, Value


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
    together in memory, and one test tells for all of it whether the cell is active.
    """

    axes: tuple[ir.Axis, ...]
    indices: tuple[tuple[ir.Var, ir.Expr], ...]
    cells: tuple[Position, ...]


def cell_by_cell(t: Trace, items: Any, axes: Sequence[ir.Axis], span: Span) -> CellByCell | None:
    """The order of a parallel loop over cells of several elements, or of several cells; None if the loop does not need one.

    There is none under ``debug=True``, since index checks know only the axes of the user's loop.
    """
    nodes = _sparse_nodes(t, items)
    if not nodes or t.checks is not None or is_list(nodes[-1]):
        return None
    items = items.over if isinstance(items, Grouped) else items
    offset = (items.offset or (0,) * items.ndim) if isinstance(items, ArrayRef) else (0,) * len(axes)
    grid: Any = field_of(t, items).leaves()[0].container if isinstance(items, ArrayRef) else items
    if 0 in grid.shape:
        return None
    levels = [*((node, dict(zip(node.cells, node.shape, strict=True))) for node in nodes),
              (None, dict(zip(grid.cells, grid.shape, strict=True)))]  # fmt: skip
    counters: list[ir.Axis] = []
    cells: list[Position] = []
    at, zero = dict[int, Any](), literal(0, t.options.index, span)
    above: dict[int, int] = {}
    with quietly(t):
        for node, extents in levels:
            inside = {axis: extent // max(above.get(axis, 1), 1) for axis, extent in extents.items()}
            if math.prod(inside.values()) > i32.max_int:
                return None
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
                cells.append(Position(nodes[: len(cells) + 1], node.cells, tuple(position)))
        if len(counters) < 2:
            return None
        indices = [
            (own.var, to_scalar(t, binary(t, ast.Add, at.get(axis, zero), first, span), span))
            for own, axis, first in zip(axes, grid.cells, offset, strict=True)
        ]
    return CellByCell(tuple(counters), tuple(indices), tuple(cells))


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
    *outer, inner = order.cells if order else (position,)
    for cell in [inner] if name == "before" else [inner, *reversed(outer)]:  # only the innermost cells are remembered
        with t.build.block() as tested:
            t.build.branch(is_active(t, cell, span, name), stmts, [], span)
        stmts = tested
    t.build.splice(stmts)


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
