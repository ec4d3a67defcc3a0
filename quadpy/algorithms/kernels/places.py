"""The place of the least or the greatest number along an axis."""

from __future__ import annotations

import quadpy as qp

__all__ = ["best_of_chunks", "best_places"]

T = qp.template()
Cube = qp.types.ndarray(ndim=3)


@qp.func
def is_better(a, b, least: T):
    """Whether ``a`` goes before ``b``; a NaN goes before nothing, and every number before it."""
    if qp.static(least):
        return (a < b) or (b != b and a == a)
    else:
        return (a > b) or (b != b and a == a)


@qp.kernel
def best_places(x: Cube, places: Cube, least: T, chunk: T):
    """``places[o, c, j]`` is the first place of the best number in the c-th chunk of ``x[o, :, j]``."""
    for o, c, j in qp.ndrange(places.shape[0], places.shape[1], places.shape[2]):
        at = qp.i64(c) * chunk
        best, best_at = x[o, at, j], at
        for k in range(at + 1, qp.min(qp.i64(x.shape[1]), at + chunk)):
            value = x[o, k, j]
            if is_better(value, best, least):
                best, best_at = value, k
        places[o, c, j] = best_at


@qp.kernel
def best_of_chunks(x: Cube, places: Cube, best: Cube, least: T, chunk: T):
    """The best of the places of chunks of chunks."""
    for o, c, j in qp.ndrange(best.shape[0], best.shape[1], best.shape[2]):
        first = c * chunk
        found = places[o, first, j]
        value = x[o, found, j]
        for k in range(first + 1, qp.min(places.shape[1], first + chunk)):
            other_at = places[o, k, j]
            other = x[o, other_at, j]
            if is_better(other, value, least):
                value, found = other, other_at
        best[o, c, j] = found
