"""Counting numbers by bins."""

from __future__ import annotations

import quadpy as qp

Flat = qp.types.ndarray(ndim=1)


@qp.kernel
def even_edges(low: Flat, high: Flat, edges: Flat):
    """Edges of bins of the same width between two numbers; around them, if they are equal."""
    for k in edges:
        first, last = qp.f64(low[0]), qp.f64(high[0])
        if first == last:
            first, last = first - 0.5, last + 0.5
        bins = edges.shape[0] - 1
        edge = qp.f64(k) * ((last - first) / bins) + first
        if k == bins:
            edge = last
        edges[k] = edge


@qp.kernel
def count_even(x: Flat, edges: Flat, counts: Flat):
    """Counts the numbers in each of the bins, which have the same width."""
    for i in x:
        bins = counts.shape[0]
        value, low, high = qp.f64(x[i]), edges[0], edges[bins]
        if low <= value <= high:
            at = qp.min(qp.i32((value - low) * (bins / (high - low))), bins - 1)
            if value < edges[at]:
                at -= 1
            elif at < bins - 1 and value >= edges[at + 1]:
                at += 1
            counts[at] += 1


@qp.kernel
def count_between(x: Flat, edges: Flat, counts: Flat):
    """Counts the numbers between each two neighbouring edges, which do not decrease."""
    for i in x:
        value = x[i]
        low, high = 0, edges.shape[0]
        while low < high:
            middle = (low + high) // 2
            if edges[middle] <= value:
                low = middle + 1
            else:
                high = middle
        bins = counts.shape[0]
        if low == bins + 1 and value == edges[bins]:
            low = bins
        if 0 < low <= bins:
            counts[low - 1] += 1


@qp.kernel
def count_numbers(x: Flat, counts: Flat):
    """Counts each of the integers from 0 on."""
    for i in x:
        value = qp.i64(x[i])
        if 0 <= value < counts.shape[0]:
            counts[value] += 1
