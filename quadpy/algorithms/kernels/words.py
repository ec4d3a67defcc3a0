"""Values that one block passes to another, in words that are complete as soon as they are visible.

A word has 32 bits of the value below the number 1, so that no order of stores matters.  Values of 64 bits take two words.
"""

from __future__ import annotations

import quadpy as qp

T = qp.template()


@qp.func
def bits_of_value(value, dtype: T):
    """The bits of a number as the low bits of a u64."""
    if qp.static(dtype.bits == 8):
        return qp.u64(qp.bit_cast(value, qp.u8))
    elif qp.static(dtype.bits == 16):
        return qp.u64(qp.bit_cast(value, qp.u16))
    elif qp.static(dtype.bits == 32):
        return qp.u64(qp.bit_cast(value, qp.u32))
    else:
        return qp.bit_cast(value, qp.u64)


@qp.func
def bits_from(words, dtype: T):
    """The number of ``dtype`` with these bits."""
    if qp.static(dtype.bits == 8):
        return qp.bit_cast(qp.u8(words), dtype)
    elif qp.static(dtype.bits == 16):
        return qp.bit_cast(qp.u16(words), dtype)
    elif qp.static(dtype.bits == 32):
        return qp.bit_cast(qp.u32(words), dtype)
    else:
        return qp.bit_cast(words, dtype)


@qp.func
def publish(words: T, place, value, dtype: T):
    """Publish ``value`` under the number ``place``."""
    bits = bits_of_value(value, dtype)
    there = qp.u64(1) << 32
    if qp.static(dtype.bits == 64):
        qp.atomic_exchange(words[2 * place], there | (bits & qp.u64(0xFFFFFFFF)))
        qp.atomic_exchange(words[2 * place + 1], there | (bits >> 32))
    else:
        qp.atomic_exchange(words[place], there | bits)


@qp.func
def awaited_word(words: T, place):
    word = qp.atomic_or(words[place], qp.u64(0))
    while word < (qp.u64(1) << 32):
        word = qp.atomic_or(words[place], qp.u64(0))
    return word & qp.u64(0xFFFFFFFF)


@qp.func
def awaited(words: T, place, dtype: T):
    """The value with the number ``place``, once it has been published, by a block that must already be running."""
    if qp.static(dtype.bits == 64):
        low = awaited_word(words, 2 * place)
        return bits_from(low | (awaited_word(words, 2 * place + 1) << 32), dtype)
    else:
        return bits_from(awaited_word(words, place), dtype)
