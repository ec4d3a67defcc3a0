"""Kernels that move and set numbers."""

from __future__ import annotations

import quadpy as qp

Array = qp.types.ndarray
Flat = qp.types.ndarray(ndim=1)
Plane = qp.types.ndarray(ndim=2)
Cube = qp.types.ndarray(ndim=3)


@qp.func
def from_bits(bits, dtype: qp.template()):
    """The number of ``dtype`` with the low bits of ``bits``, a u64."""
    if qp.static(dtype == qp.u1):
        return bits != 0
    elif qp.static(dtype.bits == 8):
        return qp.bit_cast(qp.u8(bits), dtype)
    elif qp.static(dtype.bits == 16):
        return qp.bit_cast(qp.u16(bits), dtype)
    elif qp.static(dtype.bits == 32):
        return qp.bit_cast(qp.u32(bits), dtype)
    else:
        return qp.bit_cast(bits, dtype)


@qp.kernel
def gather(x: Array(), y: Array()):
    """Copies ``x``, which may have gaps, to ``y`` of the same shape."""
    for at in qp.grouped(y):
        y[at] = x[at]


@qp.kernel
def clear(x: Array()):
    """Sets all numbers of ``x``, which may have gaps, to 0."""
    for at in qp.grouped(x):
        x[at] = 0


@qp.kernel
def convert(x: Flat, y: Flat):
    """Copies ``x`` to ``y``, converted to its type."""
    for i in x:
        y[i] = qp.cast(x[i], y.dtype)


@qp.kernel
def fill(x: Flat, bits: qp.u64):
    """Sets all numbers to the one with these bits."""
    for i in x:
        x[i] = from_bits(bits, x.dtype)


@qp.kernel
def take(x: Flat, at: Flat, y: Flat):
    """``y[i] = x[at[i]]``."""
    for i in y:
        y[i] = x[at[i]]


@qp.kernel
def take_rows(x: Plane, at: Flat, y: Plane):
    """``y[i, j] = x[at[i], j]``."""
    for i, j in y:
        y[i, j] = x[at[i], j]


@qp.kernel
def count_up(x: Flat):
    """``x[i] = i``."""
    for i in x:
        x[i] = qp.cast(i, x.dtype)


@qp.kernel
def count_along(x: Cube):
    """``x[o, k, j] = k``."""
    for o, k, j in x:
        x[o, k, j] = qp.cast(k, x.dtype)


@qp.kernel
def transpose(x: Cube, y: Cube):
    """Exchanges the last two axes."""
    for o, i, j in y:
        y[o, i, j] = x[o, j, i]
