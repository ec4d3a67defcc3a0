"""Rows of keys that a CPU sorts one by one, each in its caches: short ones by insertion, others by their digits."""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.orders import ordered
from quadpy.algorithms.kernels.radix import STRIP, digits_of

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
block = qp.simt.block

BY_INSERTION = 24
"""Keys of the longest row for which counting digits would take longer."""


@qp.func
def insert(keys: T, values: T, to: T, values_to: T, first, stop, kind: T, infinity: T, descending: T, pairs: T):
    """Sorts by insertion; ``to`` may be ``keys``."""
    for i in range(first, stop):
        key = keys[i]
        rank = ordered(key, keys.dtype, kind, infinity, descending)
        value = values[i]
        at = i
        while at > first and ordered(to[at - 1], keys.dtype, kind, infinity, descending) > rank:
            to[at] = to[at - 1]
            if qp.static(pairs):
                values_to[at] = values_to[at - 1]
            at -= 1
        to[at] = key
        if qp.static(pairs):
            values_to[at] = value


@qp.func
def copy(keys: T, values: T, to: T, values_to: T, first, stop, pairs: T):
    """Copies the numbers from ``first`` to ``stop``."""
    for i in range(first, stop):
        to[i] = keys[i]
    if qp.static(pairs):
        for i in range(first, stop):
            values_to[i] = values[i]


@qp.func
def move_by_digit(keys: T, values: T, to: T, values_to: T, own: T, strip: T, first, stop, shift, size: T, kind: T,
                  infinity: T, descending: T, pairs: T):  # fmt: skip
    """Moves the keys to where their digits belong; returns False, and moves none, if all have the same digit."""
    for d in range(size):
        own[d] = 0
    for begin in range(first, stop, STRIP):
        n = digits_of(strip, begin, stop, keys, keys, keys, shift, 1, size, "keys", kind, infinity, descending)
        for k in range(n):
            own[strip[k]] = own[strip[k]] + 1
    moves = own[strip[0]] != qp.u32(stop - first)
    if moves:
        before = qp.u32(0)
        for d in range(size):
            count = own[d]
            own[d] = before
            before += count
        for begin in range(first, stop, STRIP):
            n = digits_of(strip, begin, stop, keys, keys, keys, shift, 1, size, "keys", kind, infinity, descending)
            for k in range(n):
                place = own[strip[k]]
                own[strip[k]] = place + 1
                to[first + place] = keys[begin + k]
                if qp.static(pairs):
                    values_to[first + place] = values[begin + k]
    return moves


@qp.kernel
def sort_rows(keys: Flat, values: Flat, other: Flat, other_values: Flat, to: Flat, values_to: Flat, extent: qp.i64,
              width: T, kind: T, infinity: T, descending: T, pairs: T):  # fmt: skip
    """Sorts each row of ``extent`` keys, and their values if there are ``pairs``, by digits of ``width`` bits."""
    qp.loop_config(block_dim=1)
    for row in range(keys.shape[0] // extent):
        own, strip = block.SharedArray(1 << width, qp.u32), block.SharedArray(STRIP, qp.u32)
        first = qp.i64(row) * extent
        stop = first + extent
        if extent <= BY_INSERTION:
            insert(keys, values, to, values_to, first, stop, kind, infinity, descending, pairs)
        else:
            copy(keys, values, other, other_values, first, stop, pairs)
            is_in_other = True
            for shift in range(0, keys.dtype.bits, width):
                if is_in_other:
                    if move_by_digit(other, other_values, to, values_to, own, strip, first, stop, shift, 1 << width,
                                     kind, infinity, descending, pairs):  # fmt: skip
                        is_in_other = False
                elif move_by_digit(to, values_to, other, other_values, own, strip, first, stop, shift, 1 << width,
                                   kind, infinity, descending, pairs):  # fmt: skip
                    is_in_other = True
            if is_in_other:
                copy(other, other_values, to, values_to, first, stop, pairs)
