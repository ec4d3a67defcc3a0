"""Which cells of sparse trees are active: how writes change this, and how loops test it.

Each sparse node has a companion field with a number for each cell: whether it is active, or for a list how many
elements it holds.  A cell is active only if all cells that contain it are, and the contents of inactive cells are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

from quadpy.core.dtypes import i32
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.touches import changed_in, name_of
from quadpy.lang.checks import only_where
from quadpy.lang.context import Trace
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import cast
from quadpy.lang.scope import import_value
from quadpy.lang.values import ArrayRef, ElementRef

Cells: TypeAlias = Mapping[int, tuple[int, ...]]
"""For each axis, in order, its extents from the outermost level on."""


class TreeNode(Protocol):
    """A node of a layout tree: a grid of cells.

    ``activity`` is a field with a number for each cell, or for each list; None where all cells are active.  ``kind`` is
    an enumeration of the words that users write.
    """

    kind: Any
    activity: Any
    outer: TreeNode | None

    @property
    def cells(self) -> Cells: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a tree: on each level of each axis of ``cells``; ``nodes`` are the sparse nodes there, the outermost first."""

    nodes: tuple[TreeNode, ...]
    cells: Cells
    index: tuple[ir.Expr, ...]

    def within(self, outer: Cells) -> tuple[ir.Expr, ...]:
        """The position of the cell of an outer node."""
        found: list[ir.Expr] = []
        first = 0
        for axis, extents in self.cells.items():
            found += self.index[first : first + len(outer.get(axis, ()))]
            first += len(extents)
        return tuple(found)


def field_of(t: Trace, array: ArrayRef) -> Any:
    """The field that ``array`` is, or is a member of; None for what is passed."""
    if array.packed is not None:
        return array.packed
    return next((field for ref, field in t.signature.fields.values() if ref.name == array.name), None)


def is_sparse(field: Any) -> bool:
    """Whether ``field``, or None, is in a sparse tree; fields of other kinds are not."""
    return bool(getattr(field, "sparse_nodes", ()))


def is_list(node: TreeNode) -> bool:
    return str(node.kind.value) == "dynamic"


def position_of(t: Trace, ref: ElementRef) -> Position | None:
    """The position of an element in its tree; None if no node around it is sparse."""
    field = field_of(t, ref.array)
    if not is_sparse(field):
        return None
    nodes = t.deps.attribute(field, "sparse_nodes")  # which trees share nodes is a part of the key
    return Position(nodes, field.leaves()[0].container.cells, ref.index)


def activity_of(t: Trace, node: TreeNode, name: str = "activity") -> ArrayRef:
    """The field that says which cells are active, or were active before the loop."""
    found = import_value(t, t.deps.attribute(node, name))
    assert isinstance(found, ArrayRef)
    return found


def place_in(t: Trace, position: Position, node: TreeNode, span: Span, name: str = "activity") -> ir.Element:
    """Where the activity of the cell of ``node`` is."""
    array = activity_of(t, node, name)
    return ir.Element(array.name, position.within(node.activity.container.cells), 0, array.scalar, span=span)


def _key(place: ir.Element, position: Position, node: TreeNode) -> tuple[object, ...]:
    return place.array, place.index, position.index[-1] if is_list(node) else None


def activate_element(t: Trace, ref: ElementRef, span: Span) -> None:
    """Activates the cells that contain an element that is written."""
    if not t.cells.suppressed and (position := position_of(t, ref)) is not None:
        with only_where(t, ref.inside, span):
            activate(t, position, span)


def activate(t: Trace, position: Position, span: Span) -> None:
    """Activates the cells that contain a position, the outermost first, unless they are known to be active."""
    for node in position.nodes:
        place = place_in(t, position, node, span)
        if any(_key(place, position, node) in keys for keys in t.cells.known):
            continue
        if is_list(node):
            one: ir.Expr = literal(1, i32, span)
            reached = cast(t, position.index[-1], i32, span) + one
            t.build.emit(ir.Atomic(ir.AtomicOp.MAX, place, reached, None, span=span))
        else:
            set_activity(t, place, 1, span)


_REASON: Final = "iterations that use one cell set the same activity"


def set_activity(t: Trace, place: ir.Element, number: int, span: Span) -> None:
    """Several iterations may do so."""
    if t.loop is not None:
        t.loop.allowed[place.array] = _REASON
    t.build.emit(ir.Store(place, literal(number, place.type, span), span=span))


def is_active(t: Trace, position: Position, span: Span, name: str = "activity") -> ir.Expr:
    """Whether the cell of the innermost node is active; then the cells that contain it are also active."""
    node = position.nodes[-1]
    place = place_in(t, position, node, span, name)
    if t.loop is not None and not is_list(node):
        t.loop.allowed[place.array] = _REASON
    found = t.build.load(place, span, "active")
    if is_list(node):
        return cast(t, position.index[-1], i32, span) < found
    return found.ne(0)


@contextmanager
def known(t: Trace, position: Position, span: Span) -> Iterator[None]:
    """Context manager: inside, the cells around a position are known to be active."""
    keys = [_key(place_in(t, position, node, span), position, node) for node in position.nodes]
    t.cells.known.append(keys)
    try:
        yield
    finally:
        t.cells.known.pop()


@contextmanager
def all_active(t: Trace) -> Iterator[None]:
    """Context manager: inside, writes activate nothing."""
    before, t.cells.suppressed = t.cells.suppressed, True
    try:
        yield
    finally:
        t.cells.suppressed = before


def writes(stmts: Sequence[ir.Stmt], array: str) -> bool:
    """Whether the activity ``array`` is changed."""
    return any(name_of(place) == array for place in changed_in(*stmts))
