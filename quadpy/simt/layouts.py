"""Which elements of a tile each thread of its block has.

A block of ``down * across`` threads is a grid, and so is the tile.  A thread has ``high * wide`` elements: vectors of 16
bytes, which lie ``down`` vectors apart in each column and ``across`` vectors apart in each row.  Hence neighbouring threads
read neighbouring vectors.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any, Final

from quadpy.core.light import dataclass
from quadpy.errors import ArgumentError
from quadpy.intrinsics import BUILTINS, namespace
from quadpy.lang.decorators import func

static = BUILTINS["static"]
thread_idx = namespace("block")["thread_idx"]

_BYTES: Final = 16
"""A vector."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A tile of ``rows`` x ``columns`` elements in a block of ``down * across`` threads, ``nbytes`` each.

    If a tile of one column has ``across`` > 1, all threads of a row have the same elements; likewise for one row.
    """

    rows: int
    columns: int
    down: int
    across: int
    nbytes: int

    @property
    def vector(self) -> int:
        """How many elements one instruction loads from shared memory."""
        return max(_BYTES // self.nbytes, 1)

    @property
    def high(self) -> int:
        """How many rows a thread has elements of."""
        return max(self.rows // self.down, 1)

    @property
    def wide(self) -> int:
        """How many columns a thread has elements of."""
        return max(self.columns // self.across, 1)

    def step(self, axis: int, k: int) -> int:
        """How far row or column ``k`` of a thread is from its first."""
        count, threads = (self.high, self.down) if axis == 0 else (self.wide, self.across)
        width = gcd(self.vector, count)
        return k // width * width * threads + k % width

    def row(self, i: int) -> int:
        return self.step(0, i)

    def column(self, j: int) -> int:
        return self.step(1, j)

    def line(self, axis: int, k: int) -> list[int]:
        """The numbers of a thread's elements in its column ``k``, along axis 0, or in its row ``k``, along axis 1."""
        return (
            [i * self.wide + k for i in range(self.high)]
            if axis == 0
            else [k * self.wide + j for j in range(self.wide)]
        )

    def place(self, other: Layout, i: int, j: int) -> int:
        """The number of the element of a thread that belongs to element (i, j) of ``other``, where this repeats or fits."""
        return (i if self.rows == other.rows else 0) * self.wide + (j if self.columns == other.columns else 0)

    def reduced(self, axis: int) -> Layout:
        """The layout of one row, or of one column, which all threads of a column or row have."""
        rows, columns = (1, self.columns) if axis == 0 else (self.rows, 1)
        return Layout(rows, columns, self.down, self.across, self.nbytes)

    def turned(self) -> Layout:
        """The layout of the transposed tile."""
        if self.rows < self.down or self.columns < self.across:
            return Layout(self.columns, self.rows, self.across, self.down, self.nbytes)
        return layout_of(self.columns, self.rows, self.down * self.across, self.nbytes)

    @func
    def first(self) -> Any:
        """The row and the column of this thread's first element."""
        lane = thread_idx()
        return (
            lane // self.across * static(gcd(self.vector, self.high)) if static(self.rows >= self.down) else 0,
            lane % self.across * static(gcd(self.vector, self.wide)) if static(self.columns >= self.across) else 0,
        )

    @func
    def stores(self) -> Any:
        """Whether this thread stores its elements: the first of those that have the same."""
        lane = thread_idx()
        is_first = True
        if static(self.rows < self.down):
            is_first = lane < self.across
        if static(self.columns < self.across):
            is_first = is_first and lane % self.across == 0
        return is_first

    def __quadpy_fingerprint__(self) -> str:
        return repr(self)


def joined(layouts: list[Layout]) -> Layout:
    """The layout of an operation on tiles, of which one may have one row or column that is repeated.

    Raises:
        ArgumentError: they do not fit.
    """
    rows, columns = (max(sizes) for sizes in zip(*((each.rows, each.columns) for each in layouts), strict=True))
    found = replace(layouts[0], rows=rows, columns=columns)
    for each in layouts:
        is_like = each.rows in (1, rows) and each.columns in (1, columns)
        if not is_like or replace(each, rows=rows, columns=columns, nbytes=found.nbytes) != found:
            sizes = " and ".join(f"{each.rows} x {each.columns}" for each in layouts)
            raise ArgumentError(f"tiles of {sizes} elements do not fit", hint="one row or column fits the tile that it was reduced from")  # fmt: skip
    return found


def layout_of(rows: int, columns: int, threads: int, nbytes: int) -> Layout:
    """The layout with the fewest loads for each product of a row and a column; of those, the one with the widest rows."""
    grids = [(down, threads // down) for down in range(1, threads + 1) if threads % down == 0 and rows % down == 0]
    fits = [(down, across) for down, across in grids if columns % across == 0]
    down, across = min(fits, key=lambda grid: (rows // grid[0] + columns // grid[1], grid[1]))
    return Layout(rows, columns, down, across, nbytes)
