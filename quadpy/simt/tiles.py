"""Square matrices in the registers of a block: lane r holds row r.

The lanes exchange columns through shared memory, in two buffers that take turns: a lane that writes one of them has passed
the barrier after which the others have read it.  Therefore one barrier for each column is enough, for blocks of any size.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.hostmath import Struct, StructType, VectorType
from quadpy.intrinsics import BUILTINS, namespace
from quadpy.lang.decorators import Template, func

if TYPE_CHECKING:
    Changed: TypeAlias = Any
else:
    Changed = Template

cast, select, sqrt, static, static_assert = (
    BUILTINS[name] for name in ("cast", "select", "sqrt", "static", "static_assert")
)
SharedArray, block_dim, sync, thread_idx = (
    namespace("block")[name] for name in ("SharedArray", "block_dim", "sync", "thread_idx")
)


@func
def outer(a: Any, b: Any) -> Any:
    """The outer product of two vectors, for ``t -= qp.outer(a, b)`` of a tile: iteration r of the block holds element r of both.

    The outer product of two vectors of one iteration is ``a.outer_product(b)``.
    """
    return Struct(left=a, right=b)


@func
def _load(self: Any, x: Any, before: Any, rows: Any, columns: Any) -> None:
    row = rows[0] + thread_idx()
    if rows[2] <= row < rows[1] and row < rows[3]:
        for k in static(range(self.row.n)):
            at = columns[0] + k
            if columns[2] <= at < columns[1] and at < columns[3]:
                self.row[k] = x[before, row, at]


@func
def _store(self: Any, x: Any, before: Any, rows: Any, columns: Any) -> None:
    row = rows[0] + thread_idx()
    if rows[2] <= row < rows[1] and row < rows[3]:
        for k in static(range(self.row.n)):
            at = columns[0] + k
            if columns[2] <= at < columns[1] and at < columns[3]:
                x[before, row, at] = self.row[k]


@func
def _subtract_outer(self: Any, left: Any, right: Any) -> None:
    others = SharedArray(self.row.n, self.row.dtype)
    sync()  # in a loop, all have read the previous vector
    others[thread_idx()] = cast(right, self.row.dtype)
    sync()
    own = cast(left, self.row.dtype)
    for k in static(range(self.row.n)):
        self.row[k] -= own * others[k]


@func
def eye_(self: Any) -> None:
    for k in static(range(self.row.n)):
        self.row[k] = select(thread_idx() == k, 1, 0)


@func
def cholesky_(self: Any, eps: Any) -> None:
    lane, least = thread_idx(), cast(eps, self.row.dtype)
    columns = SharedArray((2, self.row.n), self.row.dtype)
    for k in static(range(self.row.n)):
        columns[k % 2, lane] = self.row[k]
        sync()
        square = columns[k % 2, k]
        pivot = sqrt(select(square < least, least, square))
        below = self.row[k] / pivot
        factor = select(lane > k, below / pivot, 0)
        self.row[k] = select(lane > k, below, select(lane == k, pivot, 0))
        for j in static(range(k + 1, self.row.n)):
            self.row[j] -= factor * columns[k % 2, j]


@func
def solve_triangular_(self: Any, B: Changed, lower: Any = True) -> None:  # noqa: N803 - Quadrants' name
    static_assert(lower, "solve_triangular_ solves with the lower triangle: lower=True")
    static_assert(self.row.n == B.row.n, "solve_triangular_ takes a tile of the same size")
    columns = SharedArray((3, self.row.n), self.row.dtype)
    for k in static(range(self.row.n)):
        columns[k % 2, thread_idx()] = self.row[k]
        sync()
        B.row[k] /= columns[k % 2, k]
        # Nobody reads this store: without it, LLVM would put off the work, and keep all columns in registers until then.
        columns[2, thread_idx()] = B.row[k]
        for j in static(range(k + 1, self.row.n)):
            B.row[j] -= B.row[k] * columns[k % 2, j]


_METHODS: Final = {
    "_load": _load, "_store": _store, "_subtract_outer": _subtract_outer, "eye_": eye_, "cholesky_": cholesky_,
    "solve_triangular_": solve_triangular_,
}  # fmt: skip


@functools.cache
def _struct_of(size: int, dtype: Any) -> StructType:
    return StructType({"row": VectorType(size, dtype), "__struct_methods": _METHODS})


class TileType:
    """A square matrix of ``SIZE`` rows in the registers of a block: iteration r of the block holds row r, ``t.row``.

    Use it in a loop with ``qp.loop_config(block_dim=SIZE)``.  All iterations of a block must reach each operation, like a barrier.

    - ``T.zeros(dtype=)`` and ``T.eye(dtype=)`` make a tile; the default of ``dtype`` is the default float type.
    - ``t[:] = x[r0:r1, c0:c1]`` loads a part of an array, a field or a ``SharedArray``; ``x[r0:r1, c0:c1] = t`` stores it.
      Indices may precede the slices (``x[b, r0:r1, c0:c1]``).  Elements outside the slices or the array keep their values.
    - ``v = x[r0:r1, c]`` gives iteration r the element ``x[r0 + r, c]``, and 0 beyond the slice and the array; so does
      ``v = x[r0:r1]`` of an array of one axis, of which ``x.subview(r0, r1 - r0)`` is a part.
    - ``t -= qp.outer(a, b)`` subtracts the products of the ``a`` of each row and the ``b`` of each column.
    - ``t.eye_()`` makes ``t`` the identity.
    - ``t.cholesky_(eps)`` replaces ``t``, of which it reads the lower triangle, by the lower triangular L with L L^T = t.
      Squares of the diagonal below ``eps`` become ``eps``.
    - ``t.solve_triangular_(B)`` replaces the tile ``B`` by X with X L^T = B, where L is the lower triangle of ``t``.
    """

    __slots__ = ("SIZE",)

    SIZE: int

    def __init__(self, size: int) -> None:
        self.SIZE = size

    def __repr__(self) -> str:
        return f"qp.simt.Tile{self.SIZE}x{self.SIZE}"

    def __quadpy_fingerprint__(self) -> str:
        return repr(self)

    @func
    def zeros(self, dtype: Any = None) -> Any:
        """A tile of zeros; the default of ``dtype`` is the default float type."""
        static_assert(
            block_dim() == self.SIZE, "a tile has a row for each iteration of a block: qp.loop_config(block_dim=SIZE)"
        )
        return _struct_of(self.SIZE, float if static(dtype is None) else dtype)()

    @func
    def eye(self, dtype: Any = None) -> Any:
        """The identity matrix; the default of ``dtype`` is the default float type."""
        tile = self.zeros(dtype)
        tile.eye_()
        return tile


Tile16x16: Final = TileType(16)
Tile32x32: Final = TileType(32)
