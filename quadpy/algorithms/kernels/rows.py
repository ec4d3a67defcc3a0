"""Folds and scans of a fixed shape, as a CPU runs them.

A row is 128 numbers, in 32 lanes of four.  A lane folds its numbers from left to right, and lanes are combined in the
order of a wave: with the lane 1, 2, 4, 8 and 16 to the left.  Four rows make a strip and eight strips a tile, each from
left to right.  128 tiles are scanned as a row of their totals, and such groups one after the other. ``kernels.tiles``
gives the same bits on a GPU.
"""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.copies import from_bits

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
block = qp.simt.block

ROW = 128
TILE = 4096


@qp.func
def scan_lanes(a, b, op: T):
    """32 lanes from number 16 of ``a`` on, scanned into ``b``; before them, both have the neutral number."""
    for lane in range(32):
        b[16 + lane] = op(a[15 + lane], a[16 + lane])
    for lane in range(32):
        a[16 + lane] = op(b[14 + lane], b[16 + lane])
    for lane in range(32):
        b[16 + lane] = op(a[12 + lane], a[16 + lane])
    for lane in range(32):
        a[16 + lane] = op(b[8 + lane], b[16 + lane])
    for lane in range(32):
        b[16 + lane] = op(a[lane], a[16 + lane])


@qp.func
def lanes_of_row(x: T, at, a, op: T, neutral, dtype: T):
    """The totals of the lanes of the row that begins at ``at``."""
    n = qp.i64(x.shape[0])
    if at + 128 <= n:
        for lane in range(32):
            k = at + 4 * lane
            left = op(qp.cast(x[k], dtype), qp.cast(x[k + 1], dtype))
            a[16 + lane] = op(op(left, qp.cast(x[k + 2], dtype)), qp.cast(x[k + 3], dtype))
    else:
        for lane in range(32):
            k = at + 4 * lane
            total = neutral
            for j in range(k, qp.min(n, k + 4)):
                total = op(total, qp.cast(x[j], dtype))
            a[16 + lane] = total


@qp.kernel
def row_totals(x: Flat, totals: Flat, op: T, neutral: T):
    """The total of each tile."""
    qp.loop_config(block_dim=1)
    for t in range(totals.shape[0]):
        a, b = block.SharedArray(48, totals.dtype), block.SharedArray(48, totals.dtype)
        nothing = qp.cast(neutral, totals.dtype)
        for i in range(16):
            a[i] = nothing
            b[i] = nothing
        tile = nothing
        for strip in range(8):
            total = nothing
            for row in range(4):
                at = qp.i64(t) * 4096 + strip * 512 + row * 128
                lanes_of_row(x, at, a, op, nothing, totals.dtype)
                scan_lanes(a, b, op)
                total = op(total, b[47])
            tile = op(tile, total)
        totals[t] = tile


@qp.kernel
def row_offsets(totals: Flat, op: T, neutral: T, start: qp.u64):
    """Replaces the total of each tile by the total before it, beginning with ``start``."""
    qp.loop_config(block_dim=1)
    for _ in range(1):
        a, b = block.SharedArray(48, totals.dtype), block.SharedArray(48, totals.dtype)
        nothing = qp.cast(neutral, totals.dtype)
        for i in range(16):
            a[i] = nothing
            b[i] = nothing
        n = qp.i64(totals.shape[0])
        before = from_bits(start, totals.dtype)
        for group in range((n + 127) // 128):
            at = qp.i64(group) * 128
            lanes_of_row(totals, at, a, op, nothing, totals.dtype)
            scan_lanes(a, b, op)
            for lane in range(32):
                offset = op(before, b[15 + lane])
                k = at + 4 * lane
                within = nothing
                for j in range(k, qp.min(n, k + 4)):
                    total = totals[j]
                    totals[j] = op(offset, within)
                    within = op(within, total)
            before = op(before, b[47])


@qp.kernel
def row_sweep(x: Flat, before: Flat, y: Flat, op: T, neutral: T, exclusive: T):
    """Scans each tile of ``x`` into ``y``, beginning with the total ``before`` it."""
    qp.loop_config(block_dim=1)
    for t in range(before.shape[0]):
        a, b = block.SharedArray(48, before.dtype), block.SharedArray(48, before.dtype)
        nothing = qp.cast(neutral, before.dtype)
        for i in range(16):
            a[i] = nothing
            b[i] = nothing
        n = qp.i64(x.shape[0])
        tile = nothing
        for strip in range(8):
            total = nothing
            for row in range(4):
                at = qp.i64(t) * 4096 + strip * 512 + row * 128
                lanes_of_row(x, at, a, op, nothing, before.dtype)
                scan_lanes(a, b, op)
                first = op(op(before[t], tile), total)
                if at + 128 <= n:
                    for lane in range(32):
                        sum = op(first, b[15 + lane])
                        for j in qp.static(range(4)):
                            k = at + 4 * lane + j
                            following = op(sum, qp.cast(x[k], before.dtype))
                            if qp.static(exclusive):
                                y[k] = qp.cast(sum, y.dtype)
                            else:
                                y[k] = qp.cast(following, y.dtype)
                            sum = following
                else:
                    for lane in range(32):
                        sum = op(first, b[15 + lane])
                        k = at + 4 * lane
                        for j in range(k, qp.min(n, k + 4)):
                            following = op(sum, qp.cast(x[j], before.dtype))
                            if qp.static(exclusive):
                                y[j] = qp.cast(sum, y.dtype)
                            else:
                                y[j] = qp.cast(following, y.dtype)
                            sum = following
                total = op(total, b[47])
            tile = op(tile, total)
