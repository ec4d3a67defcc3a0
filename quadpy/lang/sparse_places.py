"""Nodes of layout trees in kernels, and positions in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quadpy.core.light import dataclass
from quadpy.core.messages import counted
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.activity import Position, TreeNode, field_of
from quadpy.lang.checked_indices import check_element
from quadpy.lang.context import Trace
from quadpy.lang.levels import on_levels
from quadpy.lang.scalars import to_integer, to_scalar
from quadpy.lang.scope import import_value
from quadpy.lang.values import ArrayRef, Value, Vec, shape_text


@dataclass(frozen=True, slots=True)
class NodeParent:
    """``node.parent`` before it is called."""

    node: Any


def is_node(value: Value) -> bool:
    return getattr(type(value), "__quadpy_node__", False) is True


def node_of(t: Trace, value: Any, what: str, span: Span) -> TreeNode:
    """The node ``value`` itself, or the node that holds the elements of the field ``value``."""
    if isinstance(value, ArrayRef) and (field := field_of(t, value)) is not None:
        value = t.deps.attribute(field, "snode")
    if not is_node(value):
        t.fail_type(f"{what} takes a node of a layout, or a field, not {shape_text(value)}", span,
                    "such as qp.root.pointer(qp.ij, n), or x.parent()")  # fmt: skip
    t.deps.uses(value)
    found: TreeNode = value if hasattr(value, "levels") else t.deps.attribute(value, "outer")
    return found


def array_of_place(t: Trace, value: Any) -> ArrayRef | None:
    """The array ``value`` itself, or the array of the field whose node it is."""
    if is_node(value) and hasattr(value, "field"):
        value = import_value(t, t.deps.attribute(value, "field"))
    return value if isinstance(value, ArrayRef) else None


def indices_of(t: Trace, index: Value, count: int, what: str, span: Span) -> list[ir.Expr]:
    """Indices that the user wrote as a vector, a list, or a number."""
    items = index.elems if isinstance(index, Vec) else index if isinstance(index, (tuple, list)) else (index,)
    if index is None:
        items = ()
    if len(items) != count:
        t.fail_type(f"{what} takes {counted(count, 'index')} here, not {len(items)}", span)
    found: list[ir.Expr] = []
    for item in items:
        expr = to_scalar(t, item, span)
        if expr.type.is_float:
            t.fail_type(f"an index must be an integer, not {expr.type}", span, "cast it: qp.i32(...)")
        found.append(t.build.let(to_integer(t, expr, span)))
    return found


def position_in(t: Trace, node: TreeNode, index: Sequence[ir.Expr], span: Span) -> Position:
    """The cell of ``node`` at ``index``, which has one number for each axis."""
    nodes = t.deps.attribute(node, "sparse_nodes")
    check_element(t, "this node", index, node.shape, (0,) * len(index), span)
    levels = [
        level
        for at, extents in zip(index, node.cells.values(), strict=True)
        for level in on_levels(t, at, extents, span)
    ]
    return Position(nodes, node.cells, tuple(levels))
