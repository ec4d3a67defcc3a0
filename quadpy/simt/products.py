"""Products of matrices that are added to a tile: of two tiles, and of parts of two arrays.

Each element of the tile gets one ``fma`` for each k, in ascending order.  What lies outside an array counts as -0 in the
left factor and as 0 in the right one: their product is -0, which changes no number that it is added to.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.core.light import dataclass
from quadpy.hostmath import Vector
from quadpy.intrinsics import BUILTINS, namespace
from quadpy.lang.decorators import Template, func
from quadpy.simt.layouts import Layout

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
def _added(a: Any, b: Any, total: Any, dtype: Any) -> Any:
    return fma(a, b, total) if static(dtype.is_float) else a * b + total


@func
def _add_slab(tile: Changed, left: Any, right: Any, turn: Any, depth: Any) -> None:
    """Adds the products of ``left[turn, k, row]`` and ``right[turn, k, column]``."""
    own = tile.layout()
    row, column = own.first()
    for k in static(range(depth)):
        a = Vector([left[turn, k, row + own.row(i)] for i in range(own.high)])
        b = Vector([right[turn, k, column + own.column(j)] for j in range(own.wide)])
        for i, j in static(ndrange(own.high, own.wide)):
            tile.own[i * own.wide + j] = _added(a[i], b[j], tile.own[i * own.wide + j], tile.own.dtype)


@func
def add_product_of_tiles(self: Any, a: Any, b: Any, sign: Any) -> None:
    """``self += sign * (a @ b)``, through shared memory."""
    own, ours, theirs, dtype = self.layout(), a.layout(), b.layout(), self.own.dtype
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


@dataclass(frozen=True, slots=True)
class _Slab:
    """``DEPTH`` columns of the left factor, for axis 0 of a tile, or rows of the right one: ``size`` elements each.

    A thread loads ``count`` elements; ``fits`` if all threads have as many.
    """

    own: Layout
    axis: int

    @property
    def size(self) -> int:
        return self.own.rows if self.axis == 0 else self.own.columns

    @property
    def count(self) -> int:
        return -(-self.size * DEPTH // (self.own.down * self.own.across))

    @property
    def fits(self) -> bool:
        return self.count * self.own.down * self.own.across == self.size * DEPTH

    def __quadpy_fingerprint__(self) -> str:
        return repr(self)


@func
def _place(slab: Any, item: Any, is_along: Any) -> Any:
    """The k, and the row or column, of element ``item`` of a thread; neighbouring threads load neighbours of the array."""
    at = thread_idx() + item * block_dim()
    return (at % DEPTH, at // DEPTH) if static(is_along) else (at // slab.size, at % slab.size)


@func
def _is_inside(bounds: Any, first: Any, count: Any) -> Any:
    """Whether elements ``first`` up to ``first + count`` of a part of an axis exist."""
    return bounds[2] <= bounds[0] + first and bounds[0] + first + count <= at_most(bounds[1], bounds[3])


@func
def _fetched(slab: Any, factor: Any, k0: Any, sign: Any, dtype: Any) -> Any:
    """This thread's elements of the slab that begins at ``k0``, times ``sign``, which only the left factor has."""
    values = Vector.zero(dtype, slab.count)
    if static(slab.fits) and _is_inside(factor[2], 0, slab.size) and _is_inside(factor[3], k0, DEPTH):
        for item in static(range(slab.count)):
            values[item] = _element(slab, factor, item, k0, dtype) * (sign or 1)
    else:
        for item in static(range(slab.count)):
            values[item] = _element_if_any(slab, factor, item, k0, sign, dtype)
    return values


@func
def _read(factor: Any, edge: Any, inner: Any, dtype: Any) -> Any:
    x, before = factor[:2]
    return cast(x[before, edge, inner] if static(factor[4]) else x[before, inner, edge], dtype)


@func
def _element(slab: Any, factor: Any, item: Any, k0: Any, dtype: Any) -> Any:
    edge, inner = factor[2:4]
    k, e = _place(slab, item, factor[4])
    return _read(factor, edge[0] + e, inner[0] + k0 + k, dtype)


@func
def _element_if_any(slab: Any, factor: Any, item: Any, k0: Any, sign: Any, dtype: Any) -> Any:
    edge, inner = factor[2:4]
    k, e = _place(slab, item, factor[4])
    row, column = edge[0] + e, inner[0] + k0 + k
    exists = edge[2] <= row < edge[1] and row < edge[3] and inner[2] <= column < inner[1] and column < inner[3]
    i, j = at_most(at_least(row, edge[2]), edge[3] - 1), at_most(at_least(column, inner[2]), inner[3] - 1)
    found = _read(factor, i, j, dtype)
    return select(exists, found * (sign or 1), cast(-0.0 if static(sign is not None) else 0.0, dtype))


@func
def _put(slab: Any, values: Any, buffer: Any, turn: Any, is_along: Any) -> None:
    for item in static(range(slab.count)):
        _put_one(slab, values[item], item, buffer, turn, is_along)


@func
def _put_one(slab: Any, value: Any, item: Any, buffer: Any, turn: Any, is_along: Any) -> None:
    k, e = _place(slab, item, is_along)
    if static(slab.fits) or (k < DEPTH and e < slab.size):
        buffer[turn, k, e] = value


@func
def add_product_of_arrays(self: Any, a: Any, b: Any, sign: Any) -> None:
    """``self += sign * (x[rows, inner] @ y[inner, columns])``: a loop over slabs in two buffers that take turns.

    While the threads add one slab, their loads of the next one are under way.  A factor is the array, the indices before
    the slices, the bounds of the tile's axis and of k, and whether k is the array's last axis.
    """
    own, dtype = self.layout(), self.own.dtype
    rows, columns = static((_Slab(own, 0), _Slab(own, 1)))
    left = SharedArray((2, DEPTH, own.rows + own.vector), dtype)
    right = SharedArray((2, DEPTH, own.columns + own.vector), dtype)
    count = at_most(_length(a), _length(b))
    if count > 0 and a[2][2] < a[2][3] and b[2][2] < b[2][3]:
        u, v = _fetched(rows, a, 0, sign, dtype), _fetched(columns, b, 0, None, dtype)
        _put(rows, u, left, 0, a[4])
        _put(columns, v, right, 0, b[4])
        sync()
        for step in range((count + (DEPTH - 1)) // DEPTH):
            k0 = (step + 1) * DEPTH
            u, v = _fetched(rows, a, k0, sign, dtype), _fetched(columns, b, k0, None, dtype)
            _add_slab(self, left, right, step % 2, DEPTH)
            _put(rows, u, left, (step + 1) % 2, a[4])
            _put(columns, v, right, (step + 1) % 2, b[4])
            sync()


@func
def _length(factor: Any) -> Any:
    """How many k a factor has; 0 if the array has none."""
    inner = factor[3]
    return select(inner[2] < inner[3], at_most(inner[1], inner[3]) - inner[0], 0)
