"""Layout trees: ``qp.root.dense(...)``.

A tree is everything below one ``root.dense``.  Each cell of a node contains, one after the other, the elements of the
fields placed there and the cells of the nodes below it; so fields that are placed together are interleaved.  A tree is
laid out and allocated when one of its fields first needs memory.
"""

from __future__ import annotations

import math
from typing import Final

from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.field import AXIS_NAMES, Field, Placement
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.memory.placement import Memory, allocate_lasting

__all__ = [
    "Dense", "Root", "axes", "i", "ij", "ijk", "ijkl", "ijl", "ik", "ikl", "il", "j", "jk", "jkl", "jl", "k", "kl", "l",
    "root",
]  # fmt: skip

Axes = tuple[int, ...]


def axes(*numbers: int) -> Axes:
    """Axes by number; ``qp.ij`` is ``qp.axes(0, 1)``."""
    if len(set(numbers)) != len(numbers) or not all(0 <= n < len(AXIS_NAMES) for n in numbers):
        raise ArgumentError(f"axes{numbers} must be distinct numbers below {len(AXIS_NAMES)}")
    return numbers


class Tree:
    """Everything below one ``root.dense``; fields can be added until one of them needs memory."""

    def __init__(self) -> None:
        self.top = Dense(self, {}, {})
        self._bound = False
        self._lock = new_lock()  # two threads may use two fields of the tree for the first time

    def bind(self) -> None:
        """Lay out and allocate the tree."""
        with self._lock:
            if not self._bound:
                nbytes, _ = _measure(self.top)
                _assign(self.top, allocate_lasting(nbytes), 0, {})
                self._bound = True

    def need_open(self) -> None:
        if self._bound:
            raise ArgumentError(
                "this layout is in use: its memory is allocated", hint="place all fields before the first one is used"
            )


class Dense:
    """A grid of cells.  ``extents`` maps its axes to extents, the outermost first; ``above`` has those of outer nodes."""

    def __init__(self, tree: Tree, above: dict[int, int], extents: dict[int, int]) -> None:
        self.tree, self.above, self.extents = tree, above, extents
        self.children: list[Dense | Field] = []

    def dense(self, axes: Axes, dimensions: int | tuple[int, ...]) -> Dense:
        """A grid inside each cell, over more axes; an int is the extent of each."""
        self.tree.need_open()
        extents = shape_of(dimensions)
        if len(extents) == 1:
            extents *= len(axes)
        if len(extents) != len(axes):
            raise ArgumentError(f"{len(axes)} axes need as many extents, not {dimensions!r}")
        above = self.above | self.extents
        if shared := sorted(above.keys() & set(axes)):
            names = "".join(AXIS_NAMES[axis] for axis in shared)
            raise ArgumentError(
                f"an outer node already has the extent of axis {names}",
                hint="name each axis in one dense(); blocks are not supported",
            )
        child = Dense(self.tree, above, dict(zip(axes, extents, strict=True)))
        self.children.append(child)
        return child

    def place(self, *fields: Field, offset: int | tuple[int, ...] | None = None) -> Dense:
        """Put fields without a shape into each cell; their axes are those of this node and the outer ones, in order."""
        self.tree.need_open()
        extents = self.above | self.extents
        shape = tuple(extents[axis] for axis in sorted(extents))
        for member in fields:
            member.span(shape, offset, self.tree)
            self.children += member.leaves()
        return self


class Root:
    """``qp.root``: each ``dense`` starts a new tree."""

    def dense(self, axes: Axes, dimensions: int | tuple[int, ...]) -> Dense:
        """A grid over ``axes``; an int is the extent of each."""
        return Tree().top.dense(axes, dimensions)

    def place(self, *fields: Field) -> None:
        """Place fields with a single element, read as ``f[None]``."""
        Tree().top.place(*fields)


def _measure(node: Dense | Field) -> tuple[int, int]:
    """Bytes and alignment of a node's cells, or of one element of a field."""
    if isinstance(node, Field):
        return math.prod(node.element_shape) * node.dtype.nbytes, node.dtype.nbytes
    cell, alignment = _cell(node)
    return cell * math.prod(tuple(node.extents.values())), alignment


def _cell(node: Dense) -> tuple[int, int]:
    """Bytes and alignment of one cell."""
    size, alignment = 0, 1
    for child in node.children:
        nbytes, step = _measure(child)
        size = _round_up(size, step) + nbytes
        alignment = max(alignment, step)
    return _round_up(size, alignment), alignment


def _assign(node: Dense, memory: Memory, start: int, strides: dict[int, int]) -> None:
    """Set the memory of each field; ``strides`` are those of the outer axes, in bytes."""
    stride, _ = _cell(node)
    for axis, extent in reversed(node.extents.items()):
        strides = strides | {axis: stride}
        stride *= extent
    for child in node.children:
        nbytes, step = _measure(child)
        start = _round_up(start, step)
        if isinstance(child, Field):  # sizes of scalars are powers of two, and divide the size of their cell
            child.put(Placement(memory, start, (*(strides[axis] // step for axis in sorted(strides)), 1)))
        else:
            _assign(child, memory, start, strides)
        start += nbytes


def _round_up(nbytes: int, step: int) -> int:
    return -(-nbytes // step) * step


root: Final = Root()

i, j, k, l = axes(0), axes(1), axes(2), axes(3)
ij, ik, il, jk, jl, kl = axes(0, 1), axes(0, 2), axes(0, 3), axes(1, 2), axes(1, 3), axes(2, 3)
ijk, ijl, ikl, jkl = axes(0, 1, 2), axes(0, 1, 3), axes(0, 2, 3), axes(1, 2, 3)
ijkl = axes(0, 1, 2, 3)
