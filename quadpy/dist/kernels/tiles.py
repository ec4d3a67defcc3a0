"""Reductions of tiles, of their results, and of what ranks pass to a collective call; the count of calls that draw random numbers."""

# No "from __future__ import annotations": kernels read their annotations.

import quadpy as qp


@qp.func
def _combined(op: qp.template(), a, b):
    result = a + b
    if qp.static(op == "mul"):
        result = a * b
    if qp.static(op == "min"):
        result = qp.min(a, b)
    if qp.static(op == "max"):
        result = qp.max(a, b)
    if qp.static(op == "and"):
        result = a & b
    if qp.static(op == "or"):
        result = a | b
    if qp.static(op == "xor"):
        result = a ^ b
    return result


@qp.kernel
def reduce_tiles(
    values: qp.types.ndarray(ndim=3), lanes: qp.types.ndarray(ndim=2), tiles: qp.types.ndarray(ndim=1),
    height: qp.i32, depth: qp.i32, width: qp.i32, rows: qp.i32, columns: qp.i32, op: qp.template(),
):  # fmt: skip
    """Combines the values of each tile of these extents in a fixed order; ``rows`` and ``columns`` count tiles."""
    for t, lane in lanes:
        i0 = t // (rows * columns) * height
        j0 = t // columns % rows * depth
        k0 = t % columns * width
        ni = qp.min(height, values.shape[0] - i0)
        nj = qp.min(depth, values.shape[1] - j0)
        nk = qp.min(width, values.shape[2] - k0)
        found = values[i0, j0, k0]
        n = lane
        if lane < ni * nj * nk:
            found = values[i0 + lane // (nj * nk), j0 + lane // nk % nj, k0 + lane % nk]
            n += 64
        while n < ni * nj * nk:
            found = _combined(op, found, values[i0 + n // (nj * nk), j0 + n // nk % nj, k0 + n % nk])
            n += 64
        lanes[t, lane] = found
    for t in range(lanes.shape[0]):
        count = qp.min(height, values.shape[0] - t // (rows * columns) * height)
        count *= qp.min(depth, values.shape[1] - t // columns % rows * depth)
        count *= qp.min(width, values.shape[2] - t % columns * width)
        half = 32
        while half > 0:
            for lane in range(half):
                if lane + half < count:
                    lanes[t, lane] = _combined(op, lanes[t, lane], lanes[t, lane + half])
            half //= 2
        tiles[t] = lanes[t, 0]


@qp.kernel
def combine_tiles(
    gathered: qp.types.ndarray(ndim=1), order: qp.types.ndarray(qp.i32, ndim=1), total: qp.types.ndarray(ndim=1),
    op: qp.template(),
):  # fmt: skip
    """Combines the tiles of the grid in the order of their numbers: ``order`` says where each is."""
    total[0] = gathered[order[0]]
    for t in range(1, order.shape[0]):
        value = gathered[order[t]]
        if qp.static(op == "add"):
            total[0] += value
        if qp.static(op == "mul"):
            qp.atomic_mul(total[0], value)
        if qp.static(op == "min"):
            qp.atomic_min(total[0], value)
        if qp.static(op == "max"):
            qp.atomic_max(total[0], value)
        if qp.static(op == "and"):
            total[0] &= value
        if qp.static(op == "or"):
            total[0] |= value
        if qp.static(op == "xor"):
            total[0] ^= value


@qp.kernel
def fold(parts: qp.types.ndarray(ndim=2), to: qp.types.ndarray(ndim=1), count: qp.i32, op: qp.template()):
    """The first ``count`` columns of ``parts``, each combined from the first row to the last."""
    for i in range(count):
        found = parts[0, i]
        for rank in range(1, parts.shape[0]):
            found = _combined(op, found, parts[rank, i])
        to[i] = found


@qp.kernel
def count_launch(launches: qp.types.ndarray(qp.u64, ndim=1)):
    """Adds one; the number is in memory, so that launches of captured steps count, too."""
    launches[0] += 1
