"""Radix sort, one digit of some bits after the other, as a CPU runs it.

Each iteration has a chunk of the keys: it counts their digits, and then moves them, in their order, to their places
after those of smaller digits and of earlier chunks.  The digits of a strip of keys are computed first, in vectors.
"""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.orders import ordered, segment_of

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
Plane = qp.types.ndarray(ndim=2)
block = qp.simt.block

STRIP = 512
"""Keys whose digits are computed at a time."""


@qp.func
def digit_of(keys: T, places: T, offsets: T, i, shift, extent, size: T, what: T, kind: T, infinity: T, descending: T):
    """The digit, one of ``size``, of the i-th key, or of the number of the row or segment that it came from."""
    if qp.static(what == "keys"):
        return qp.u32((ordered(keys[i], keys.dtype, kind, infinity, descending) >> shift) & (size - 1))
    elif qp.static(what == "rows"):
        return qp.u32(((qp.i64(places[i]) // extent) >> shift) & (size - 1))
    else:
        return qp.u32((segment_of(places[i], offsets) >> shift) & (size - 1))


@qp.func
def digits_of(strip: T, first, stop, keys: T, places: T, offsets: T, shift, extent, size: T, what: T, kind: T,
              infinity: T, descending: T):  # fmt: skip
    """Puts the digits of the keys from ``first`` to ``stop`` into ``strip``, and returns how many fit."""
    count = qp.min(stop - first, STRIP)
    for k in range(count):
        strip[k] = digit_of(keys, places, offsets, first + k, shift, extent, size, what, kind, infinity, descending)
    return count


@qp.kernel
def radix_counts(keys: Flat, places: Flat, offsets: Flat, counts: Plane, shift: qp.i32, extent: qp.i64, chunk: T,
                 size: T, what: T, kind: T, infinity: T, descending: T):  # fmt: skip
    """Counts how often each chunk has each digit, in all rows of ``counts`` but the last."""
    qp.loop_config(block_dim=1)
    for c in range(counts.shape[0] - 1):
        own, strip = block.SharedArray(size, qp.u32), block.SharedArray(STRIP, qp.u32)
        for d in range(size):
            own[d] = 0
        begin = qp.i64(c) * chunk
        stop = qp.min(qp.i64(keys.shape[0]), begin + chunk)
        for first in range(begin, stop, STRIP):
            n = digits_of(
                strip, first, stop, keys, places, offsets, shift, extent, size, what, kind, infinity, descending
            )
            for k in range(n):
                own[strip[k]] = own[strip[k]] + 1
        for e in range(size):
            counts[c, e] = qp.cast(own[e], counts.dtype)


@qp.kernel
def radix_offsets(counts: Plane, size: T):
    """Replaces each count by the place of the chunk's first key with the digit; the last row has where digits end."""
    qp.loop_config(block_dim=1)
    for _ in range(1):
        starts = block.SharedArray(size, counts.dtype)
        chunks = counts.shape[0] - 1
        for d in range(size):
            starts[d] = 0
        for c in range(chunks):
            for d in range(size):
                starts[d] = starts[d] + counts[c, d]
        before = qp.cast(0, counts.dtype)
        for d in range(size):
            count = starts[d]
            starts[d] = before
            before += count
        for c in range(chunks):
            for d in range(size):
                count = counts[c, d]
                counts[c, d] = starts[d]
                starts[d] = starts[d] + count
        for d in range(size):
            counts[chunks, d] = starts[d]


@qp.func
def put_in_order(own: T, strip: T, to_keys: T, to_values: T, begin, stop, keys: T, values: T, places: T, offsets: T,
                 shift, extent, size: T, what: T, kind: T, infinity: T, descending: T, pairs: T):  # fmt: skip
    """Puts each key from ``begin`` to ``stop``, and its value, where ``own`` says for its digit; counts on there."""
    for first in range(begin, stop, STRIP):
        n = digits_of(strip, first, stop, keys, places, offsets, shift, extent, size, what, kind, infinity, descending)
        for k in range(n):
            to = own[strip[k]]
            own[strip[k]] = to + 1
            to_keys[to] = keys[first + k]
            if qp.static(pairs):
                to_values[to] = values[first + k]


@qp.kernel
def radix_move(keys: Flat, places: Flat, offsets: Flat, counts: Plane, sorted_keys: Flat, values: Flat,
               sorted_values: Flat, shift: qp.i32, extent: qp.i64, chunk: T, size: T, what: T, kind: T, infinity: T,
               descending: T, pairs: T):  # fmt: skip
    """Moves the keys, fewer than 2**32, and their values if there are ``pairs``."""
    qp.loop_config(block_dim=1)
    for c in range(counts.shape[0] - 1):
        own, strip = block.SharedArray(size, qp.u32), block.SharedArray(STRIP, qp.u32)
        for d in range(size):
            own[d] = qp.u32(counts[c, d])
        begin = qp.i64(c) * chunk
        stop = qp.min(qp.i64(keys.shape[0]), begin + chunk)
        put_in_order(
            own, strip, sorted_keys, sorted_values, begin, stop, keys, values, places, offsets, shift, extent, size,
            what, kind, infinity, descending, pairs,
        )  # fmt: skip


@qp.kernel
def radix_move_near(keys: Flat, places: Flat, offsets: Flat, counts: Plane, sorted_keys: Flat, values: Flat,
                    sorted_values: Flat, shift: qp.i32, extent: qp.i64, chunk: T, size: T, what: T, kind: T,
                    infinity: T, descending: T, pairs: T):  # fmt: skip
    """As ``radix_move``, of any number of keys.

    Orders each chunk by the digit in memory that stays in the caches, and then copies runs of keys from there: single
    writes to thousands of distant places would wait for memory.
    """
    qp.loop_config(block_dim=1)
    for c in range(counts.shape[0] - 1):
        own, strip = block.SharedArray(size, qp.u32), block.SharedArray(STRIP, qp.u32)
        near_keys = block.SharedArray(chunk, keys.dtype)
        near_values = block.SharedArray(chunk if pairs else 1, values.dtype)
        before = qp.u32(0)
        for d in range(size):
            own[d] = before
            before += qp.u32(counts[c + 1, d] - counts[c, d])
        begin = qp.i64(c) * chunk
        stop = qp.min(qp.i64(keys.shape[0]), begin + chunk)
        put_in_order(
            own, strip, near_keys, near_values, begin, stop, keys, values, places, offsets, shift, extent, size,
            what, kind, infinity, descending, pairs,
        )  # fmt: skip
        run = qp.i64(0)
        for d in range(size):
            end = qp.i64(own[d])
            skip = qp.i64(counts[c, d]) - run
            for k in range(run, end):
                sorted_keys[skip + k] = near_keys[k]
            if qp.static(pairs):
                for k in range(run, end):
                    sorted_values[skip + k] = near_values[k]
            run = end
