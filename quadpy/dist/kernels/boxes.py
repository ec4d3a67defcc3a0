"""Boxes of an array to and from a buffer."""

# No "from __future__ import annotations": kernels read their annotations.

import quadpy as qp


@qp.func
def _place(table, boxes, n):
    """The index in the array of number ``n`` of a buffer, which has the boxes of ``table`` one after the other."""
    b = 0
    while b + 1 < boxes and table[b + 1, 0] <= n:
        b += 1
    at = n - table[b, 0]
    k = at % table[b, 6]
    j = at // table[b, 6] % table[b, 5]
    i = at // (table[b, 6] * table[b, 5])
    return table[b, 1] + i, table[b, 2] + j, table[b, 3] + k


@qp.kernel
def pack(values: qp.types.ndarray(ndim=3), buffer: qp.types.ndarray(ndim=1), table: qp.types.ndarray(qp.i32, ndim=2)):
    """Copies boxes of ``values`` into ``buffer``; a row of ``table`` is where a box begins there, its corner, its extents."""
    for n in buffer:
        i, j, k = _place(table, table.shape[0], n)
        buffer[n] = values[i, j, k]


@qp.kernel
def unpack(values: qp.types.ndarray(ndim=3), buffer: qp.types.ndarray(ndim=1), table: qp.types.ndarray(qp.i32, ndim=2)):
    """The reverse of ``pack``."""
    for n in buffer:
        i, j, k = _place(table, table.shape[0], n)
        values[i, j, k] = buffer[n]


@qp.kernel
def copy_block(
    target: qp.types.ndarray(ndim=3), source: qp.types.ndarray(ndim=3), low: qp.types.vector(3, qp.i64),
    high: qp.types.vector(3, qp.i64), by: qp.types.vector(3, qp.i64),
):  # fmt: skip
    """Copies the box from ``low`` to ``high`` of ``target`` from ``source``, where it is moved by ``by``."""
    for i, j, k in target:
        if low[0] <= i < high[0] and low[1] <= j < high[1] and low[2] <= k < high[2]:
            target[i, j, k] = source[i + by[0], j + by[1], k + by[2]]
