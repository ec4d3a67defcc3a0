"""Loops over the active cells of sparse trees.

A loop at the top level visits the cells that are active when it begins, whatever its iterations activate.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from quadpy.dtypes import i32
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
from quadpy.source import Span

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
    """How a loop goes through a field cell by cell: ``axes`` number the cells, and the elements in a cell.

    ``indices`` are the indices of the user's loop, ``cell`` is the position of the cell.  The elements of a cell lie
    together in memory, and one test tells for all of them whether the cell is active.
    """

    axes: tuple[ir.Axis, ir.Axis]
    indices: tuple[tuple[ir.Var, ir.Expr], ...]
    cell: Position


def cell_by_cell(t: Trace, items: Any, axes: Sequence[ir.Axis], span: Span) -> CellByCell | None:
    """The order of a parallel loop over cells of several elements; None if the loop does not need one.

    There is none under ``debug=True``, since index checks know only the axes of the user's loop.
    """
    nodes = _sparse_nodes(t, items)
    if not nodes or t.checks is not None or is_list(nodes[-1]):
        return None
    items = items.over if isinstance(items, Grouped) else items
    offset = (items.offset or (0,) * items.ndim) if isinstance(items, ArrayRef) else (0,) * len(axes)
    grid: Any = field_of(t, items).leaves()[0].container if isinstance(items, ArrayRef) else items
    cells = dict(zip(nodes[-1].cells, nodes[-1].shape, strict=True))
    inside = [extent // max(cells.get(axis, 1), 1) for axis, extent in zip(grid.cells, grid.shape, strict=True)]
    if math.prod(grid.shape) > i32.max_int or math.prod(inside) < 2 or 0 in grid.shape:
        return None
    with quietly(t):
        made = [
            _counter(t, name, count, span)
            for name, count in (("cell", math.prod(cells.values())), ("inside", math.prod(inside)))
        ]
        cell, element = (ir.VarRead(axis.var, span=span) for axis in made)
        at = dict(zip(cells, on_levels(t, cell, list(cells.values()), span), strict=True))
        indices = []
        parts = on_levels(t, element, inside, span)
        for own, axis, first, count, part in zip(axes, grid.cells, offset, inside, parts, strict=True):
            start = binary(t, ast.Mult, at[axis], count, span) if axis in at else 0
            index = binary(t, ast.Add, binary(t, ast.Add, start, part, span), first, span)
            indices.append((own.var, to_scalar(t, index, span)))
        levels = [each for axis, extents in nodes[-1].cells.items() for each in on_levels(t, at[axis], extents, span)]
    return CellByCell((made[0], made[1]), tuple(indices), Position(nodes, nodes[-1].cells, tuple(levels)))


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
    t.frame.runtime_depth += 1
    try:
        with t.build.block() as stmts, nullcontext() if place in t.cells.changing else known(t, position, span):
            for var, value in order.indices if order else ():
                t.build.emit(ir.Let(var, value, span=span))
            yield visit
    finally:
        t.frame.runtime_depth -= 1
        t.cells.loops.pop()
    visit.changes = top and writes(stmts, activity_of(t, position.nodes[-1]).name)
    holds = is_active(
        t, order.cell if order else position, span, "before" if visit.changes or remembered else "activity"
    )
    t.build.branch(holds, stmts, [], span)


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
