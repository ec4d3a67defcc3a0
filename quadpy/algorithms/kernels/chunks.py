"""Folds and scans in which one iteration goes through a chunk of numbers, one after the other.

Three-dimensional arrays are folded along their middle axis.
"""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.copies import from_bits

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
Cube = qp.types.ndarray(ndim=3)


@qp.kernel
def fold(x: Cube, totals: Cube, op: T, neutral: T, chunk: T):
    """``totals[o, c, j]`` is the c-th chunk of ``x[o, :, j]``, folded."""
    for o, c, j in qp.ndrange(totals.shape[0], totals.shape[1], totals.shape[2]):
        last = qp.min(x.shape[1], (c + 1) * chunk)
        total = qp.cast(neutral, totals.dtype)
        for k in range(c * chunk, last):
            total = op(total, qp.cast(x[o, k, j], totals.dtype))
        totals[o, c, j] = total


@qp.kernel
def sweep(x: Cube, before: Cube, y: Cube, op: T, exclusive: T, chunk: T):
    """Scans each chunk of ``x`` into ``y``, beginning with the total ``before`` it."""
    for o, c, j in qp.ndrange(before.shape[0], before.shape[1], before.shape[2]):
        last = qp.min(x.shape[1], (c + 1) * chunk)
        total = before[o, c, j]
        for k in range(c * chunk, last):
            following = op(total, qp.cast(x[o, k, j], before.dtype))
            if qp.static(exclusive):
                y[o, k, j] = qp.cast(total, y.dtype)
            else:
                y[o, k, j] = qp.cast(following, y.dtype)
            total = following


@qp.kernel
def sweep_whole(x: Cube, y: Cube, op: T, exclusive: T, dtype: T, start: qp.u64):
    """Scans ``x`` into ``y``, each line by one iteration, beginning with ``start``."""
    for o, j in qp.ndrange(x.shape[0], x.shape[2]):
        total = from_bits(start, dtype)
        for k in range(x.shape[1]):
            following = op(total, qp.cast(x[o, k, j], dtype))
            if qp.static(exclusive):
                y[o, k, j] = qp.cast(total, y.dtype)
            else:
                y[o, k, j] = qp.cast(following, y.dtype)
            total = following


@qp.kernel
def fold_flat(x: Flat, totals: Flat, op: T, neutral: T, chunk: T):
    """Like ``fold``, for one axis."""
    for c in range(totals.shape[0]):
        first = qp.i64(c) * chunk
        total = qp.cast(neutral, totals.dtype)
        for k in range(first, qp.min(qp.i64(x.shape[0]), first + chunk)):
            total = op(total, qp.cast(x[k], totals.dtype))
        totals[c] = total


@qp.kernel
def sweep_flat(x: Flat, before: Flat, y: Flat, op: T, exclusive: T, chunk: T):
    """Like ``sweep``, for one axis."""
    for c in range(before.shape[0]):
        first = qp.i64(c) * chunk
        total = before[c]
        for k in range(first, qp.min(qp.i64(x.shape[0]), first + chunk)):
            following = op(total, qp.cast(x[k], before.dtype))
            if qp.static(exclusive):
                y[k] = qp.cast(total, y.dtype)
            else:
                y[k] = qp.cast(following, y.dtype)
            total = following


@qp.kernel
def finish(totals: Flat, y: Flat, op: T, start: qp.u64):
    """``y`` becomes the combination of ``start`` and the totals, in the type of ``y``."""
    for i in y:
        y[i] = qp.cast(op(from_bits(start, totals.dtype), totals[i]), y.dtype)
