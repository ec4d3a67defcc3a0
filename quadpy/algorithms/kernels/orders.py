"""The order of keys: bits of numbers as unsigned integers that compare like the numbers."""

from __future__ import annotations

import quadpy as qp

T = qp.template()


@qp.func
def ordered(bits, dtype: T, kind: T, infinity: T, descending: T):
    """An unsigned integer of ``dtype`` that compares like the number of this kind with these ``bits``.

    NaNs are the largest floats and equal to each other; both zeros are equal, too.  ``infinity`` has the bits of that
    number.
    """
    top = qp.cast(qp.static(1 << (dtype.bits - 1)), dtype)
    key = bits
    if qp.static(kind == "int"):
        key = bits ^ top
    elif qp.static(kind == "float"):
        size = bits & ~top  # selected, since a CPU guesses the branches of mixed signs wrongly half of the time
        key = qp.select(bits != size, ~bits, bits | top)
        key = qp.select(size == 0, top, key)
        key = qp.select(size > qp.cast(infinity, dtype), ~qp.cast(0, dtype), key)
    if qp.static(descending):
        key = ~key
    return key


@qp.func
def segment_of(place, offsets: T):
    """The number of offsets that are at most ``place``."""
    low, high = qp.i64(0), qp.i64(offsets.shape[0])
    while low < high:
        middle = (low + high) // 2
        if qp.i64(offsets[middle]) <= qp.i64(place):
            low = middle + 1
        else:
            high = middle
    return low
