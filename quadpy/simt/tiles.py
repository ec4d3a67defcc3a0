"""Matrices in the registers of a block: ``qp.simt.Tile[m, n, dtype]``, and square ones with a row in each lane."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.core.messages import shown
from quadpy.errors import ArgumentError
from quadpy.hostmath import StructType, Vector, VectorType
from quadpy.intrinsics import BUILTINS, namespace
from quadpy.lang.decorators import Func, Template, func
from quadpy.simt.layouts import Layout, joined, layout_of
from quadpy.simt.products import add_product_of_arrays, add_product_of_tiles
from quadpy.simt.square import METHODS as OF_SQUARES

if TYPE_CHECKING:
    Changed: TypeAlias = Any
else:
    Changed = Template

ndrange, select, static, static_assert = (BUILTINS[name] for name in ("ndrange", "select", "static", "static_assert"))
SharedArray, block_dim, sync, thread_idx = (
    namespace("block")[name] for name in ("SharedArray", "block_dim", "sync", "thread_idx")
)
larger, smaller = BUILTINS["max"], BUILTINS["min"]

_MOST: Final = 256
"""Elements of a tile in the registers of one thread."""


@func
def _load(self: Changed, x: Any, before: Any, rows: Any, columns: Any, is_transposed: Any) -> None:
    own = self.layout()
    top, left = own.first()
    for i in static(range(own.high)):
        row = rows[0] + (top + own.row(i))
        if rows[2] <= row < rows[1] and row < rows[3]:
            for j in static(range(own.wide)):
                column = columns[0] + (left + own.column(j))
                if columns[2] <= column < columns[1] and column < columns[3]:
                    self.own[i * own.wide + j] = (
                        x[before, column, row] if static(is_transposed) else x[before, row, column]
                    )


@func
def _store(self: Any, x: Any, before: Any, rows: Any, columns: Any) -> None:
    own = self.layout()
    top, left = own.first()
    for i in static(range(own.high)):
        row = rows[0] + (top + own.row(i))
        if rows[2] <= row < rows[1] and row < rows[3] and own.stores():
            for j in static(range(own.wide)):
                column = columns[0] + (left + own.column(j))
                if columns[2] <= column < columns[1] and column < columns[3]:
                    x[before, row, column] = self.own[i * own.wide + j]


@func
def _map(self: Any, f: Any, *others: Any, origin: Any = None) -> Any:
    own, made = self.layout(), self
    top, left = own.first()
    for i, j in static(ndrange(own.high, own.wide)):
        values = [_item(each, own, i, j) for each in others]
        if static(origin is not None):
            values = [*values, origin[0] + top + own.row(i), origin[1] + left + own.column(j)]
        made.own[i * own.wide + j] = f(self.own[i * own.wide + j], *values)
    return made


@func
def _item(value: Any, own: Any, i: Any, j: Any) -> Any:
    """The thread's element (i, j) of a tile that is like ``own``, or has one row or column; a number is every element."""
    return value.own[value.layout().place(own, i, j)] if static(hasattr(value, "own")) else value


@func
def _joined(self: Any, layouts: Any) -> Any:
    return static(joined(layouts))


@func
def _of(self: Any, layout: Any, dtype: Any) -> Any:
    return static(struct_of(layout, dtype))()


@func
def _reduce(self: Any, f: Any, axis: Any = None) -> Any:
    static_assert(
        axis in (None, 0, 1), "axis is 0 (a result for each column), 1 (one for each row) or None (one number)"
    )
    if static(axis is None):
        return _reduce(_reduce(self, f, 1), f, 0).own[0]
    own, lane = self.layout(), thread_idx()
    if static(own == own.reduced(axis)):
        return self
    made = static(struct_of(own.reduced(axis), self.own.dtype))()
    first = own.first()[1 - axis]
    mine = lane // own.across if static(axis == 0) else lane % own.across
    threads, lines = static((own.down, own.columns) if axis == 0 else (own.across, own.rows))
    parts = SharedArray((threads, lines), self.own.dtype)
    sync()  # in a loop, all have read the previous parts
    for k in static(range(made.own.n)):
        numbers = static(own.line(axis, k))
        value = self.own[numbers[0]]
        for number in static(numbers[1:]):
            value = f(value, self.own[number])
        parts[mine, first + own.step(1 - axis, k)] = value
    sync()
    for k in static(range(made.own.n)):
        value = parts[0, first + own.step(1 - axis, k)]
        for other in range(1, threads):
            value = f(value, parts[other, first + own.step(1 - axis, k)])
        made.own[k] = value
    return made


@func
def _add(a: Any, b: Any) -> Any:
    return a + b


@func
def _sum(self: Any, axis: Any = None) -> Any:
    return _reduce(self, _add, axis)


@func
def _max(self: Any, axis: Any = None) -> Any:
    return _reduce(self, larger, axis)


@func
def _min(self: Any, axis: Any = None) -> Any:
    return _reduce(self, smaller, axis)


@func
def _transpose(self: Any) -> Any:
    own = self.layout()
    made = static(struct_of(own.turned(), self.own.dtype))()
    parts = SharedArray((own.rows, own.columns + 1), self.own.dtype)
    sync()  # in a loop, all have read the previous parts
    parts[0 : own.rows, 0 : own.columns] = self
    sync()
    made[:] = parts[0 : own.rows, 0 : own.columns].transpose()
    return made


@func
def _product(self: Any, other: Any) -> Any:
    """``self @ other``."""
    own = self.layout()
    made = static(struct_of(layout_of(own.rows, other.layout().columns, block_dim(), own.nbytes), self.own.dtype))()
    made += self @ other
    return made


@func
def _eye(self: Any) -> None:
    own = self.layout()
    top, left = own.first()
    for i, j in static(ndrange(own.high, own.wide)):
        self.own[i * own.wide + j] = select(top + own.row(i) == left + own.column(j), 1, 0)


@func
def _fill(self: Any, value: Any) -> None:
    for k in static(range(self.own.n)):
        self.own[k] = value


@func
def _filled(
    self: Any, x: Any, before: Any, rows: Any, columns: Any, is_transposed: Any, height: Any, width: Any
) -> Any:
    """A tile of ``height`` x ``width`` elements with a part of an array: the other factor of a product with ``self``."""
    nbytes = static(self.layout().nbytes)
    made = static(struct_of(layout_of(height, width, block_dim(), nbytes), self.own.dtype))()
    _load(made, x, before, rows, columns, is_transposed)
    return made


_METHODS: Final = {
    "_load": _load, "_store": _store, "_add_product_of_tiles": add_product_of_tiles, "_filled": _filled,
    "add_product_of_arrays": add_product_of_arrays, "_product": _product, "_joined": _joined, "_of": _of, "eye_": _eye, "fill": _fill, "map": _map, "max": _max,
    "min": _min, "reduce": _reduce, "sum": _sum, "transpose": _transpose,
}  # fmt: skip


@functools.cache
def _layout_method(layout: Layout) -> Func:
    @func
    def of_tile(self: Any) -> Any:
        return layout

    return of_tile


@functools.cache
def struct_of(layout: Layout, dtype: Any, is_square: bool = False) -> StructType:
    """The elements of a tile that each thread has, and what can be done with the tile."""
    methods = {**_METHODS, **(OF_SQUARES if is_square else {}), "layout": _layout_method(layout)}
    return StructType({"own": VectorType(layout.high * layout.wide, dtype), "__struct_methods": methods})


class TileType:
    """A matrix in the registers of a block, of which each thread has an equal part.

    Any ``qp.loop_config(block_dim=…)`` that divides the number of elements will do; a thread has at most 256.  All threads
    of a block must reach each operation, like a barrier.

    - ``T.zeros()``, ``T.full(value)`` and ``T.eye()`` make a tile; types without a dtype take it here, ``T.zeros(dtype=)``.
    - ``t[:] = x[r0:r1, c0:c1]`` loads a part of an array, a field or a ``SharedArray``; ``x[r0:r1, c0:c1] = t`` stores it.
      Indices may precede the slices (``x[b, r0:r1, c0:c1]``).  Elements outside the slices or the array keep their values.
      ``t[:] = x[r0:r1, c0:c1].transpose()`` loads the transposed part.
    - ``t += a @ b`` and ``t -= a @ b`` add and subtract a product.  Each factor is a tile or a part of an array, of any
      length along k, perhaps transposed.  Each element gets one ``qp.fma`` for each k, in ascending order; integers wrap.
      Elements of other types are converted first.  Elements outside an array count as 0.
    - ``a @ b`` of two tiles is a tile, whose sums start at 0.
    - ``+ - * / // % **`` of tiles, or of a tile and a number, work element by element.
    - ``t.map(f, *others)`` is the tile of ``f(x, *y)`` for each element x, and y of the ``others``; with ``origin=(r, c)``, f
      also gets its row and column, counted from there.
    - ``t.sum(axis)``, ``t.max(axis)``, ``t.min(axis)`` and ``t.reduce(f, axis)`` combine rows (``axis=1``, into one column),
      columns (``axis=0``, into one row) or, without ``axis``, all elements, into a number that every thread gets.  A thread
      combines its elements in ascending order, then all threads' results are combined in ascending order: the bits depend
      on ``block_dim`` only.  An operator or ``map`` repeats the column or row for a tile like the one that it comes from.
    - ``t.transpose()`` is the transposed tile, ``t.fill(value)`` and ``t.eye_()`` assign all elements.

    ``qp.simt.Tile16x16`` and ``qp.simt.Tile32x32`` are squares of which iteration r of the block holds row r, ``t.row``, in
    loops with ``qp.loop_config(block_dim=SIZE)``; the default of their ``dtype`` is the default float type.  They also have:

    - ``v = x[r0:r1, c]`` gives iteration r the element ``x[r0 + r, c]``, and 0 beyond the slice and the array; so does
      ``v = x[r0:r1]`` of an array of one axis, of which ``x.subview(r0, r1 - r0)`` is a part.
    - ``t -= qp.outer(a, b)`` subtracts the products of the ``a`` of each row and the ``b`` of each column.
    - ``t.cholesky_(eps)`` replaces ``t``, of which it reads the lower triangle, by the lower triangular L with L L^T = t.
      Squares of the diagonal below ``eps`` become ``eps``.
    - ``t.solve_triangular_(B)`` replaces the tile ``B`` by X with X L^T = B, where L is the lower triangle of ``t``.
    """

    __slots__ = ("dtype", "is_square", "shape")

    def __init__(self, rows: int, columns: int, dtype: Any = None, *, is_square: bool = False) -> None:
        self.shape, self.dtype, self.is_square = (rows, columns), dtype, is_square

    @property
    def SIZE(self) -> int:  # noqa: N802 - Quadrants' name
        """How many rows it has."""
        return self.shape[0]

    def __repr__(self) -> str:
        (rows, columns), dtype = self.shape, "" if self.dtype is None else f", {self.dtype!r}"
        return f"qp.simt.Tile{rows}x{columns}" if self.is_square else f"qp.simt.Tile[{rows}, {columns}{dtype}]"

    def __quadpy_fingerprint__(self) -> str:
        return repr(self)

    @func
    def zeros(self, dtype: Any = None) -> Any:
        """A tile of zeros; the default of ``dtype`` is that of the type, or the default float type."""
        static_assert(
            not self.is_square or block_dim() == self.shape[0],
            "a tile has a row for each iteration of a block: qp.loop_config(block_dim=SIZE)",
        )
        number = Vector.zero(static(dtype or self.dtype or float), 1)
        return static(_made_of(self, block_dim(), number.dtype))()

    @func
    def full(self, value: Any, dtype: Any = None) -> Any:
        """A tile whose elements are all ``value``."""
        tile = self.zeros(dtype)
        tile.fill(value)
        return tile

    @func
    def eye(self, dtype: Any = None) -> Any:
        """The identity matrix."""
        tile = self.zeros(dtype)
        tile.eye_()
        return tile


def _made_of(tile: TileType, threads: int, dtype: Any) -> StructType:
    rows, columns = tile.shape
    each, rest = divmod(rows * columns, threads)
    if rest or each > _MOST:
        raise ArgumentError(
            f"{tile!r} has {rows * columns} elements, of which {threads} threads cannot have equal parts"
            if rest
            else f"{tile!r} has {each} elements for each of {threads} threads, which have registers for {_MOST}",
            hint="choose another qp.loop_config(block_dim=…), or another tile",
        )
    by_rows = Layout(rows, columns, rows, 1, dtype.nbytes) if tile.is_square else None
    return struct_of(by_rows or layout_of(rows, columns, threads, dtype.nbytes), dtype, tile.is_square)


@functools.cache
def _tile_type(rows: int, columns: int, dtype: Any = None) -> TileType:
    """One object for each type, so that kernels which take one as a parameter are compiled once."""
    return TileType(rows, columns, dtype)


class _Tiles:
    """``qp.simt.Tile[rows, columns, dtype]`` is a type of tiles; without ``dtype``, of the default float type.

    In kernels, ``rows`` and ``columns`` must be known at compile time, such as ``template()`` parameters.

    Raises:
        ArgumentError: the shape does not consist of two positive integers.
    """

    def __getitem__(self, key: Any) -> TileType:
        found = key if isinstance(key, tuple) else (key,)
        if len(found) not in (2, 3) or not all(isinstance(n, int) and n > 0 for n in found[:2]):
            raise ArgumentError(
                f"{shown(key)} is not a shape of tiles", hint="write qp.simt.Tile[rows, columns, dtype]"
            )
        return _tile_type(*found)

    def __repr__(self) -> str:
        return "qp.simt.Tile"

    def __quadpy_fingerprint__(self) -> str:
        return repr(self)


Tile: Final = _Tiles()
Tile16x16: Final = TileType(16, 16, is_square=True)
Tile32x32: Final = TileType(32, 32, is_square=True)
