"""Radix sort, one digit of some bits after the other, as a CPU runs it.

Each iteration has a chunk of the keys: it counts their digits, and then moves them, in their order, to their places
after those of smaller digits and of earlier chunks.
"""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.orders import ordered, segment_of

__all__ = ["radix_counts", "radix_move", "radix_offsets"]

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
Plane = qp.types.ndarray(ndim=2)
block = qp.simt.block


@qp.func
def digit_of(keys: T, places: T, offsets: T, i, shift, extent, size: T, what: T, kind: T, infinity: T, descending: T):
    """The digit, one of ``size``, of the i-th key, or of the number of the row or segment that it came from."""
    if qp.static(what == "keys"):
        return qp.i32((ordered(keys[i], keys.dtype, kind, infinity, descending) >> shift) & (size - 1))
    elif qp.static(what == "rows"):
        return qp.i32(((qp.i64(places[i]) // extent) >> shift) & (size - 1))
    else:
        return qp.i32((segment_of(places[i], offsets) >> shift) & (size - 1))


@qp.kernel
def radix_counts(keys: Flat, places: Flat, offsets: Flat, counts: Plane, shift: qp.i32, extent: qp.i64, chunk: qp.i64,
                 size: T, what: T, kind: T, infinity: T, descending: T):  # fmt: skip
    """Counts how often each chunk has each digit."""
    qp.loop_config(block_dim=1)
    for c in range(counts.shape[0]):
        own = block.SharedArray(size, counts.dtype)
        for d in range(size):
            own[d] = 0
        for i in range(c * chunk, qp.min(qp.i64(keys.shape[0]), (c + 1) * chunk)):
            digit = digit_of(keys, places, offsets, i, shift, extent, size, what, kind, infinity, descending)
            own[digit] = own[digit] + 1
        for e in range(size):
            counts[c, e] = own[e]


@qp.kernel
def radix_offsets(counts: Plane, size: T):
    """Replaces each count by the place of the chunk's first key with the digit; rows are read in their order."""
    qp.loop_config(block_dim=1)
    for _ in range(1):
        starts = block.SharedArray(size, counts.dtype)
        for d in range(size):
            starts[d] = 0
        for c in range(counts.shape[0]):
            for d in range(size):
                starts[d] = starts[d] + counts[c, d]
        before = qp.cast(0, counts.dtype)
        for d in range(size):
            count = starts[d]
            starts[d] = before
            before += count
        for c in range(counts.shape[0]):
            for d in range(size):
                count = counts[c, d]
                counts[c, d] = starts[d]
                starts[d] = starts[d] + count


@qp.kernel
def radix_move(keys: Flat, places: Flat, offsets: Flat, counts: Plane, sorted_keys: Flat, values: Flat,
               sorted_values: Flat, shift: qp.i32, extent: qp.i64, chunk: qp.i64, size: T, what: T, kind: T,
               infinity: T, descending: T, pairs: T):  # fmt: skip
    """Moves the keys, and their values if there are ``pairs``."""
    qp.loop_config(block_dim=1)
    for c in range(counts.shape[0]):
        own = block.SharedArray(size, counts.dtype)
        for d in range(size):
            own[d] = counts[c, d]
        for i in range(c * chunk, qp.min(qp.i64(keys.shape[0]), (c + 1) * chunk)):
            digit = digit_of(keys, places, offsets, i, shift, extent, size, what, kind, infinity, descending)
            to = own[digit]
            own[digit] = to + 1
            sorted_keys[to] = keys[i]
            if qp.static(pairs):
                sorted_values[to] = values[i]
