"""The place of the smallest or the largest number: along an axis, or of all numbers as a CPU finds it."""

from __future__ import annotations

import quadpy as qp

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
block = qp.simt.block

LANES = 128
"""Numbers that a chunk compares side by side: enough to fill vectors, few enough for registers and the nearest cache."""
Cube = qp.types.ndarray(ndim=3)


@qp.func
def is_better(a, b, least: T):
    """Whether ``a`` goes before ``b``; every number goes before a NaN, and a NaN before nothing."""
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


@qp.func
def better(a, b, least: T):
    """``a`` if it goes before ``b``, else ``b``; a NaN goes before nothing."""
    return qp.select(a < b if qp.static(least) else a > b, a, b)


@qp.kernel
def best_numbers(x: Flat, best: Flat, worst: T, least: T, chunk: T):
    """``best[c]`` is the best number of the c-th chunk, or ``worst``, before which every number but it goes."""
    qp.loop_config(block_dim=1)
    for c in range(best.shape[0]):
        lanes = block.SharedArray(LANES, x.dtype)
        for lane in range(LANES):
            lanes[lane] = qp.cast(worst, x.dtype)
        first = qp.i64(c) * chunk
        stop = qp.min(qp.i64(x.shape[0]), first + chunk)
        rows = (stop - first) // LANES
        for row in range(rows):
            for lane in range(LANES):
                lanes[lane] = better(x[first + row * LANES + lane], lanes[lane], least)
        found = lanes[0]
        for lane in range(1, LANES):
            found = better(lanes[lane], found, least)
        for i in range(first + rows * LANES, stop):
            found = better(x[i], found, least)
        best[c] = found


@qp.kernel
def place_of_best(x: Flat, best: Flat, result: Flat, worst: T, least: T, chunk: T):
    """``result[0]`` is the first place of the best number of all chunks; 0 if there are only NaNs."""
    qp.loop_config(serialize=True)
    for _ in range(1):
        found = best[0]
        for c in range(1, best.shape[0]):
            found = better(best[c], found, least)
        at = best.shape[0]
        for c in range(best.shape[0]):
            at = qp.min(at, qp.select(best[c] == found, c, at))
        n = qp.i64(x.shape[0])
        first = qp.i64(at) * chunk
        # The worst number may be in no chunk, or in a later one than the first that says it.
        stop = n if found == qp.cast(worst, x.dtype) else qp.min(n, first + chunk)
        place = n
        for i in range(first, stop):
            place = qp.min(place, qp.select(x[i] == found, i, n))
        result[0] = qp.select(place == n, qp.i64(0), place)
