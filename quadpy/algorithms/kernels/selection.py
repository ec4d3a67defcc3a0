"""Flags and runs: which numbers are selected, and where they go."""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.orders import ordered

T = qp.template()
Flat = qp.types.ndarray(ndim=1)


@qp.kernel
def flag_taken(flags: Flat, ones: Flat):
    """1 for every flag that is not 0."""
    for i in flags:
        ones[i] = qp.cast(qp.u1(flags[i]), ones.dtype)


@qp.kernel
def flag_heads(keys: Flat, ones: Flat, kind: T, infinity: T):
    """1 for every key that differs from the one before it, given the bits of the keys."""
    for i in keys:
        here = ordered(keys[i], keys.dtype, kind, infinity, False)
        before = ordered(keys[qp.max(i, 1) - 1], keys.dtype, kind, infinity, False)
        ones[i] = qp.cast(qp.u1(i == 0 or here != before), ones.dtype)


@qp.kernel
def move_taken(x: Flat, through: Flat, y: Flat, count: Flat, keep_rest: T):
    """Moves the selected numbers to the front of ``y``, then the rest; ``through[i]`` are selected up to ``x[i]``."""
    n = x.shape[0]
    for i in x:
        last = through[i]
        before = through[qp.max(i, 1) - 1]
        if i == 0:
            before = qp.cast(0, through.dtype)
        if last != before:
            if before < y.shape[0]:
                y[before] = x[i]
        elif qp.static(keep_rest):
            y[through[n - 1] + (i - last)] = x[i]
        if i == n - 1:
            count[0] = qp.cast(last, count.dtype)


@qp.kernel
def run_starts(through: Flat, starts: Flat, count: Flat):
    """Where each run begins; ``through[i]`` runs begin up to number i."""
    n = through.shape[0]
    for i in through:
        last = through[i]
        before = through[qp.max(i, 1) - 1]
        if i == 0:
            before = qp.cast(0, through.dtype)
        if last != before:
            starts[before] = qp.cast(i, starts.dtype)
        if i == n - 1:
            count[0] = qp.cast(last, count.dtype)


@qp.kernel
def run_lengths(starts: Flat, count: Flat, lengths: Flat):
    """How long each run is; 0 after the last one."""
    n = qp.i64(starts.shape[0])
    for i in starts:
        length = qp.i64(0)
        if i < count[0]:
            end = n
            if i + 1 < count[0]:
                end = qp.i64(starts[qp.min(qp.i64(i) + 1, n - 1)])
            length = end - qp.i64(starts[i])
        lengths[i] = qp.cast(length, lengths.dtype)


@qp.kernel
def write_run_ends(x: Flat, through: Flat, y: Flat):
    """``y[r]`` is the last of the r-th run's numbers."""
    n = x.shape[0]
    for i in x:
        following = through[qp.min(i + 1, n - 1)]
        if i == n - 1 or following != through[i]:
            y[through[i] - 1] = qp.cast(x[i], y.dtype)
