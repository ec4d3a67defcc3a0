"""Loops over the active cells of sparse trees.

A loop at the top level visits the cells that are active when it begins, whatever its iterations activate.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from quadpy.ir import nodes as ir
from quadpy.lang.activity import Position, activity_of, field_of, is_active, is_sparse, known, position_of, writes
from quadpy.lang.arrays import element_at
from quadpy.lang.checks import quietly
from quadpy.lang.context import Trace
from quadpy.lang.fills import copied
from quadpy.lang.functions import inline
from quadpy.lang.iteration import Grouped
from quadpy.lang.sparse_places import is_node, position_in
from quadpy.lang.values import ArrayRef, Value
from quadpy.source import Span

__all__ = ["active_only", "remember_cells"]


def remember_cells(t: Trace, items: Value, span: Span) -> bool:
    """Before a loop over ``items``: copies which cells are active; False where all are visited."""
    nodes = _sparse_nodes(t, items)
    if nodes:
        now, before = (activity_of(t, nodes[-1], name) for name in ("activity", "before"))
        inline(t, copied, [now, before], {}, span)
    return bool(nodes)


@contextmanager
def active_only(
    t: Trace, node: ast.For, items: Value, axes: Sequence[ir.Axis], *, top: bool, remembered: bool = False
) -> Iterator[Visit]:
    """Context manager around the trace of a loop's body: it runs where the cells over which the loop runs are active.

    With ``remembered`` or, at the ``top`` level, where the body changes them: where they were active before the loop.
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
            yield visit
    finally:
        t.frame.runtime_depth -= 1
        t.cells.loops.pop()
    visit.changes = top and writes(stmts, activity_of(t, position.nodes[-1]).name)
    holds = is_active(t, position, span, "before" if visit.changes or remembered else "activity")
    t.build.branch(holds, stmts, [], span)


@dataclass(slots=True)
class Visit:
    """Whether a loop visits some cells only, and whether its body changes which."""

    is_partial: bool = False
    changes: bool = False


def _sparse_nodes(t: Trace, items: Any) -> Any:
    """The sparse nodes around what a loop runs over, the outermost first."""
    items = items.over if isinstance(items, Grouped) else items
    if isinstance(items, ArrayRef):
        field = field_of(t, items)
        return t.deps.attribute(field, "sparse_nodes") if is_sparse(field) else ()
    return t.deps.attribute(items, "sparse_nodes") if is_node(items) else ()


def _position(t: Trace, items: Any, index: list[ir.Expr], span: Span) -> Position | None:
    """Where the loop is in a sparse tree; None where all cells are visited."""
    if not _sparse_nodes(t, items):
        return None
    items = items.over if isinstance(items, Grouped) else items
    with quietly(t):  # it is inside
        if isinstance(items, ArrayRef):
            return position_of(t, element_at(t, items, tuple(index), "this array", span))
        return position_in(t, items, index, span)
