"""Where the fields of a layout tree are in its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Placement
from quadpy.runtime.memory.placement import Memory

Levels: TypeAlias = tuple[tuple[int, int], ...]
"""Axes with their extents, the outermost first."""
Cells: TypeAlias = dict[int, tuple[int, ...]]
"""For each axis, in order, its extents from the outermost level on."""


class GridOfCells(Protocol):
    """A node, as far as its layout is concerned."""

    @property
    def above(self) -> Levels: ...
    @property
    def levels(self) -> Levels: ...
    @property
    def children(self) -> Sequence[GridOfCells | Field]: ...


def blocks_of(levels: Levels) -> Cells:
    axes = sorted({axis for axis, _ in levels})
    return {axis: tuple(extent for each, extent in levels if each == axis) for axis in axes}


def measure(node: GridOfCells | Field) -> tuple[int, int]:
    """Bytes and alignment of a node's cells, or of one element of a field."""
    if isinstance(node, Field):
        return math.prod(node.element_shape) * node.dtype.nbytes, node.dtype.nbytes
    cell, alignment = _cell(node)
    return cell * math.prod(extent for _, extent in node.levels), alignment


def _cell(node: GridOfCells) -> tuple[int, int]:
    """Bytes and alignment of one cell."""
    size, alignment = 0, 1
    for child in node.children:
        nbytes, step = measure(child)
        size = _round_up(size, step) + nbytes
        alignment = max(alignment, step)
    return _round_up(size, alignment), alignment


def assign(node: GridOfCells, memory: Memory, start: int, steps: tuple[int, ...]) -> None:
    """Set the memory of each field; ``steps`` are those of the outer levels, in bytes."""
    own: list[int] = []
    step, _ = _cell(node)
    for _, extent in reversed(node.levels):
        own.append(step)
        step *= extent
    steps = (*steps, *reversed(own))
    levels = node.above + node.levels
    order = sorted(range(len(levels)), key=lambda level: levels[level][0])  # stable: the outermost level first
    blocks = tuple(blocks_of(levels).values())
    for child in node.children:
        nbytes, item = measure(child)
        start = _round_up(start, item)
        if isinstance(child, Field):  # sizes of scalars are powers of two, and divide the size of their cell
            strides = (*(steps[level] // item for level in order), 1)
            child.put(Placement(memory, start, strides, blocks if len(levels) > len(blocks) else ()))
        else:
            assign(child, memory, start, steps)
        start += nbytes


def _round_up(nbytes: int, step: int) -> int:
    return -(-nbytes // step) * step
