"""Products of matrices that are added to a tile: of two tiles, and of parts of two arrays.

Each element of the tile gets one ``fma`` for each k, in ascending order.  What lies outside an array counts as -0 in the
left factor and as 0 in the right one: their product is -0, which changes no number that it is added to.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.hostmath import Vector
from quadpy.intrinsics import BUILTINS, namespace
from quadpy.lang.decorators import Template, func

if TYPE_CHECKING:
    Changed: TypeAlias = Any
else:
    Changed = Template

cast, fma, ndrange, select, static, at_least, at_most = (
    BUILTINS[name] for name in ("cast", "fma", "ndrange", "select", "static", "max", "min")
)
SharedArray, block_dim, sync, thread_idx = (
    namespace("block")[name] for name in ("SharedArray", "block_dim", "sync", "thread_idx")
)

DEPTH: Final = 8
"""How many columns of the left factor, and rows of the right one, are in shared memory at a time."""


@func
def _add_slab(tile: Changed, left: Any, right: Any, turn: Any, depth: Any) -> None:
    """Adds the products of ``left[turn, k, row]`` and ``right[turn, k, column]``."""
    own = tile._layout()
    row, column = own.first()
    for k in static(range(depth)):
        a = Vector([left[turn, k, row + own.row(i)] for i in range(own.high)])
        b = Vector([right[turn, k, column + own.column(j)] for j in range(own.wide)])
        for i, j in static(ndrange(own.high, own.wide)):
            tile.own[i * own.wide + j] = fma(a[i], b[j], tile.own[i * own.wide + j])


@func
def add_product_of_tiles(self: Any, a: Any, b: Any, sign: Any) -> None:
    """``self += sign * (a @ b)``, through shared memory."""
    own, ours, theirs, dtype = self._layout(), a._layout(), b._layout(), self.own.dtype
    depth = static(gcd(ours.columns, DEPTH))
    left = SharedArray((ours.columns // depth, depth, own.rows + own.vector), dtype)
    right = SharedArray((ours.columns // depth, depth, own.columns + own.vector), dtype)
    sync()  # in a loop, all have read the previous factors
    row, k = ours.first()
    for i, j in static(ndrange(ours.high, ours.wide)):
        at = k + ours.column(j)
        left[at // depth, at % depth, row + ours.row(i)] = sign * cast(a.own[i * ours.wide + j], dtype)
    k, column = theirs.first()
    for i, j in static(ndrange(theirs.high, theirs.wide)):
        at = k + theirs.row(i)
        right[at // depth, at % depth, column + theirs.column(j)] = cast(b.own[i * theirs.wide + j], dtype)
    sync()
    for slab in range(ours.columns // depth):
        _add_slab(self, left, right, slab, depth)


@func
def _fetched(factor: Any, k0: Any, size: Any, sign: Any, dtype: Any) -> Any:
    """This thread's elements of the slab of a factor that begins at ``k0`` and has ``size`` rows or columns.

    ``edge`` and ``inner`` are where the part of the array begins and ends, and where the axis does.
    """
    edge, inner = factor[2], factor[3]
    outside = cast(-0.0 if static(sign is not None) else 0.0, dtype)
    values = Vector.zero(dtype, static(-(-size * DEPTH // block_dim())))
    for item in static(range(values.n)):
        k, e = _place(item, size, factor[4])
        row, column = edge[0] + e, inner[0] + k0 + k
        is_inside = edge[2] <= row < edge[1] and row < edge[3] and inner[2] <= column < inner[1] and column < inner[3]
        row, column = at_most(at_least(row, edge[2]), edge[3] - 1), at_most(at_least(column, inner[2]), inner[3] - 1)
        x, before = factor[0], factor[1]
        found = x[before, row, column] if static(factor[4]) else x[before, column, row]
        values[item] = select(is_inside, cast(found, dtype) * (sign or 1), outside)
    return values


@func
def _place(item: Any, size: Any, is_along: Any) -> Any:
    """The k, and the row or column, of element ``item`` of a thread in a slab; neighbours are neighbours in the array."""
    at = thread_idx() + item * block_dim()
    return (at % DEPTH, at // DEPTH) if static(is_along) else (at // size, at % size)


@func
def _put(slab: Any, turn: Any, values: Any, size: Any, along: Any) -> None:
    for item in static(range(values.n)):
        if static((item + 1) * block_dim() <= size * DEPTH) or thread_idx() + item * block_dim() < size * DEPTH:
            k, e = _place(item, size, along)
            slab[turn, k, e] = values[item]


@func
def add_product_of_arrays(self: Any, a: Any, b: Any, sign: Any) -> None:
    """``self += sign * (x[rows, inner] @ y[inner, columns])``: a loop over slabs in two buffers that take turns.

    While the threads add one slab, their loads of the next one are under way.  A factor is the array, the indices before
    the slices, the bounds of the tile's axis and of k, and which of the two is the array's last axis.
    """
    own, dtype = self._layout(), self.own.dtype
    left = SharedArray((2, DEPTH, own.rows + own.vector), dtype)
    right = SharedArray((2, DEPTH, own.columns + own.vector), dtype)
    count = at_most(_length(a), _length(b))
    if count > 0 and a[2][2] < a[2][3] and b[2][2] < b[2][3]:
        u = _fetched(a, 0, own.rows, sign, dtype)
        v = _fetched(b, 0, own.columns, None, dtype)
        _put(left, 0, u, own.rows, a[4])
        _put(right, 0, v, own.columns, b[4])
        sync()
        for step in range((count + (DEPTH - 1)) // DEPTH):
            u = _fetched(a, (step + 1) * DEPTH, own.rows, sign, dtype)
            v = _fetched(b, (step + 1) * DEPTH, own.columns, None, dtype)
            _add_slab(self, left, right, step % 2, DEPTH)
            _put(left, (step + 1) % 2, u, own.rows, a[4])
            _put(right, (step + 1) % 2, v, own.columns, b[4])
            sync()


@func
def _length(factor: Any) -> Any:
    """How many k a factor has; 0 if the array has none."""
    inner = factor[3]
    return select(inner[2] < inner[3], at_most(inner[1], inner[3]) - inner[0], 0)
