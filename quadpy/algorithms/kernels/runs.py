"""Scans that begin again where a run of equal keys begins."""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.copies import from_bits

T = qp.template()
Flat = qp.types.ndarray(ndim=1)


@qp.kernel
def fold_runs(x: Flat, heads: Flat, totals: Flat, begun: Flat, op: T, start: qp.u64, neutral: T, chunk: T):
    """The total of each chunk's last run so far, and whether the run begins in the chunk."""
    for c in range(totals.shape[0]):
        first = qp.i64(c) * chunk
        total, begins = qp.cast(neutral, totals.dtype), qp.cast(0, begun.dtype)
        for k in range(first, qp.min(qp.i64(x.shape[0]), first + chunk)):
            if heads[k] != 0:
                total, begins = from_bits(start, totals.dtype), qp.cast(1, begun.dtype)
            total = op(total, qp.cast(x[k], totals.dtype))
        totals[c], begun[c] = total, begins


@qp.kernel
def sweep_runs(x: Flat, heads: Flat, before: Flat, y: Flat, op: T, start: qp.u64, exclusive: T, chunk: T):
    """Scans each chunk; ``before[c - 1]`` is the total so far of the run at its beginning."""
    for c in range(before.shape[0]):
        first = qp.i64(c) * chunk
        total = from_bits(start, before.dtype)
        if c > 0:
            total = before[c - 1]
        for k in range(first, qp.min(qp.i64(x.shape[0]), first + chunk)):
            if heads[k] != 0:
                total = from_bits(start, before.dtype)
            following = op(total, qp.cast(x[k], before.dtype))
            if qp.static(exclusive):
                y[k] = qp.cast(total, y.dtype)
            else:
                y[k] = qp.cast(following, y.dtype)
            total = following
