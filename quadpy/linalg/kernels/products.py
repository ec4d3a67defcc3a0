"""Products of matrices: each block makes one tile of one product."""

from __future__ import annotations

from typing import Any

import quadpy as qp

T = qp.template()
Matrices = qp.types.ndarray()  # of two axes, or of three, the first of which counts the matrices
block = qp.simt.block


@qp.func
def _factor(x: Any, number: Any, first: Any, size: Any, is_turned: Any, is_left: Any) -> Any:
    """The part of factor ``number`` that a tile needs, as ``Tile`` takes it: ``size`` rows or columns, and all k."""
    k_is_last = qp.static(is_left != is_turned)
    batched = qp.static(len(x.shape) - 2)
    edge, inner = (x.shape[batched], x.shape[batched + 1]) if k_is_last else (x.shape[batched + 1], x.shape[batched])
    before = [qp.min(number, x.shape[0] - 1)] if batched else []
    return x, tuple(before), (first, first + size, 0, edge), (0, inner, 0, inner), k_is_last


@qp.func
def _finished(tile: Any, epilogue: Any, index: Any, i: Any, j: Any, rows: Any, columns: Any) -> Any:
    """The tile with ``epilogue(value, *index of the result)`` for its elements inside the result."""
    own = tile.layout()
    top, left = own.first()
    for r, s in qp.static(qp.ndrange(own.high, own.wide)):
        row, column = i + (top + own.row(r)), j + (left + own.column(s))
        if row < rows and column < columns:
            tile.own[r * own.wide + s] = epilogue(tile.own[r * own.wide + s], *index, row, column)
    return tile


@qp.kernel
def products(
    a: Matrices, b: Matrices, c: Matrices, tile: T, threads: T, turned: T, adds: T, epilogue: T, count: qp.i32
):
    """``c = epilogue(a @ b)`` or ``epilogue(c + a @ b)`` for ``count`` matrices, where each of a and b may be ``turned``."""
    batched = qp.static(len(c.shape) - 2)
    height, width = qp.static(tile.shape)
    rows, columns = c.shape[batched], c.shape[batched + 1]
    down, across = (rows + (height - 1)) // height, (columns + (width - 1)) // width
    qp.loop_config(block_dim=threads)
    for _ in range(count * down * across * threads):
        at = block.block_idx()
        number, i, j = at // (down * across), at // across % down * height, at % across * width
        index = [number] if batched else []
        total = tile.zeros()
        if qp.static(adds and batched):
            total[:] = c[number, i : i + height, j : j + width]
        elif qp.static(adds):
            total[:] = c[i : i + height, j : j + width]
        left, right = _factor(a, number, i, height, turned[0], True), _factor(b, number, j, width, turned[1], False)
        total.add_product_of_arrays(left, right, 1)
        if qp.static(epilogue is not None):
            total = _finished(total, epilogue, index, i, j, rows, columns)
        if batched:
            c[number, i : i + height, j : j + width] = total
        else:
            c[i : i + height, j : j + width] = total
