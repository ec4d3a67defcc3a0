"""Reductions of the language's own shape, at the speed of memory."""

from __future__ import annotations

import quadpy as qp

T = qp.template()
Flat = qp.types.ndarray(ndim=1)


@qp.kernel
def add_all(x: Flat, total: Flat, result: Flat):
    """``result[0]`` is the sum, computed in the type of ``total``."""
    total[0] = qp.cast(0, total.dtype)
    for i in x:
        total[0] += qp.cast(x[i], total.dtype)
    result[0] = qp.cast(total[0], result.dtype)


@qp.kernel
def extreme(x: Flat, total: Flat, numbers: Flat, result: Flat, start: T, update: T):
    """``result[0]`` is the smallest or largest number, as ``update`` (``qp.atomic_min``, ``qp.atomic_max``) says, or a
    NaN if there is no number; ``numbers[0]`` says whether there is one.
    """
    total[0] = qp.cast(start, total.dtype)
    numbers[0] = 0
    for i in x:
        value = qp.cast(x[i], total.dtype)
        update(total[0], value)
        qp.atomic_or(numbers[0], qp.i32(value == value))
    if numbers[0] != 0:
        result[0] = qp.cast(total[0], result.dtype)
    else:
        result[0] = qp.cast(x[0], result.dtype)


@qp.kernel
def first_place(x: Flat, value: Flat, place: Flat, result: Flat):
    """``result[0]`` is the first index at which ``x`` has ``value[0]``; 0 if there is none."""
    place[0] = qp.i64(0x7FFFFFFFFFFFFFFF)
    for i in x:
        here = qp.select(x[i] == value[0], qp.i64(i), qp.i64(0x7FFFFFFFFFFFFFFF))
        qp.atomic_min(place[0], here)
    result[0] = qp.select(place[0] == qp.i64(0x7FFFFFFFFFFFFFFF), qp.i64(0), place[0])
