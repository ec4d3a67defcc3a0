"""Methods of square tiles of which lane r has row r: factors and triangular systems.

The lanes exchange columns through shared memory, in two buffers that take turns: a lane that writes one of them has passed
the barrier after which the others have read it.  Therefore one barrier for each column is enough, for blocks of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.hostmath import Struct
from quadpy.intrinsics import BUILTINS, namespace
from quadpy.lang.decorators import Template, func

if TYPE_CHECKING:
    Changed: TypeAlias = Any
else:
    Changed = Template

cast, select, sqrt, static, static_assert = (
    BUILTINS[name] for name in ("cast", "select", "sqrt", "static", "static_assert")
)
SharedArray, sync, thread_idx = (namespace("block")[name] for name in ("SharedArray", "sync", "thread_idx"))


@func
def outer(a: Any, b: Any) -> Any:
    """The outer product of two vectors, for ``t -= qp.outer(a, b)`` of a tile: iteration r of the block holds element r of both.

    The outer product of two vectors of one iteration is ``a.outer_product(b)``.
    """
    return Struct(left=a, right=b)


@func
def subtract_outer(self: Any, left: Any, right: Any) -> None:
    others = SharedArray(self.own.n, self.own.dtype)
    sync()  # in a loop, all have read the previous vector
    others[thread_idx()] = cast(right, self.own.dtype)
    sync()
    own = cast(left, self.own.dtype)
    for k in static(range(self.own.n)):
        self.own[k] -= own * others[k]


@func
def cholesky_(self: Any, eps: Any) -> None:
    lane, least = thread_idx(), cast(eps, self.own.dtype)
    columns = SharedArray((2, self.own.n), self.own.dtype)
    for k in static(range(self.own.n)):
        columns[k % 2, lane] = self.own[k]
        sync()
        square = columns[k % 2, k]
        pivot = sqrt(select(square < least, least, square))
        below = self.own[k] / pivot
        factor = select(lane > k, below / pivot, 0)
        self.own[k] = select(lane > k, below, select(lane == k, pivot, 0))
        for j in static(range(k + 1, self.own.n)):
            self.own[j] -= factor * columns[k % 2, j]


@func
def solve_triangular_(self: Any, B: Changed, lower: Any = True) -> None:  # noqa: N803 - Quadrants' name
    static_assert(lower, "solve_triangular_ solves with the lower triangle: lower=True")
    static_assert(self.own.n == B.own.n, "solve_triangular_ takes a tile of the same size")
    columns = SharedArray((3, self.own.n), self.own.dtype)
    for k in static(range(self.own.n)):
        columns[k % 2, thread_idx()] = self.own[k]
        sync()
        B.own[k] /= columns[k % 2, k]
        # Nobody reads this store: without it, LLVM would put off the work, and keep all columns in registers until then.
        columns[2, thread_idx()] = B.own[k]
        for j in static(range(k + 1, self.own.n)):
            B.own[j] -= B.own[k] * columns[k % 2, j]


@func
def row(self: Any) -> Any:
    """The lane's row, as a vector."""
    return self.own


METHODS: Final = {
    "_subtract_outer": subtract_outer, "cholesky_": cholesky_, "row": property(row.source.fn),
    "solve_triangular_": solve_triangular_,
}  # fmt: skip
