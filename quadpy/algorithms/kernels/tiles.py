"""Scans in one pass over the numbers, as a GPU runs them; ``kernels.rows`` describes their shape and gives the same bits.

A block takes the next tile by a ticket, so that the tiles before its own have been taken by running blocks.  It
publishes the total of its tile, and waits for those of the tiles before it in its group of 128.  The last block of a
group publishes the total before the next group.
"""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.copies import from_bits
from quadpy.algorithms.kernels.words import awaited, publish
from quadpy.core.dtypes import Scalar

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
block, wave = qp.simt.block, qp.simt.subgroup


def words_of_scan(tiles: int, dtype: Scalar) -> int:
    """How many words ``tile_scan`` needs."""
    return (2 + -(-tiles // 128) + tiles) * (2 if dtype.bits == 64 else 1)


@qp.func
def scan_of_lanes(value, lane, op: T):
    """The total of a lane and those before it, within each 32 lanes."""
    for step in qp.static((1, 2, 4, 8, 16)):
        other = wave.shuffle_up(value, step)
        value = qp.select(lane >= step, op(other, value), value)
    return value


@qp.func
def before_lane(scanned, lane, neutral):
    """The total of the lanes before a lane, within each 32 lanes."""
    return qp.select(lane > 0, wave.shuffle_up(scanned, 1), neutral)


@qp.func
def of_last_lane(scanned):
    """The total of all of the 32 lanes."""
    return wave.shuffle(scanned, wave.invocation_id() | 31)


@qp.func
def numbers_of_thread(x, first, n, is_whole, nothing, dtype: T):
    """Four in each of the strip's four rows, the first of them at ``first``; ``nothing`` after the end of ``x``."""
    v = qp.Vector([nothing for _ in range(16)])
    if is_whole:
        for k in qp.static(range(16)):
            v[k] = qp.cast(x[first + k // 4 * 128 + k % 4], dtype)
    else:
        for k in qp.static(range(16)):
            if first + k // 4 * 128 + k % 4 < n:
                v[k] = qp.cast(x[first + k // 4 * 128 + k % 4], dtype)
    return v


@qp.func
def within_strip(v, lane, op: T, nothing):
    """For each row, the totals before the thread's numbers in it and before the row; and the total of the strip."""
    before = qp.Vector([nothing for _ in range(4)])
    rows = qp.Vector([nothing for _ in range(4)])
    total = nothing
    for row in qp.static(range(4)):
        lanes = scan_of_lanes(op(op(op(v[4 * row], v[4 * row + 1]), v[4 * row + 2]), v[4 * row + 3]), lane, op)
        before[row] = before_lane(lanes, lane, nothing)
        rows[row] = total
        total = op(total, of_last_lane(lanes))
    return before, rows, total


@qp.func
def within_tile(strips: T, strip, op: T, nothing):
    """The total before a strip in its tile, and the total of the tile."""
    before, total = nothing, nothing
    for k in qp.static(range(8)):
        if k == strip:
            before = total
        total = op(total, strips[k])
    return before, total


@qp.func
def before_tile(words: T, offset: T, tile, tiles, total, start, op: T, nothing, dtype: T):
    """Publish the total of ``tile``, and put the total of all tiles before it into ``offset``.

    Value 0 of the words is the ticket; then there is one for each group and the one after the last, and one for each tile.
    """
    thread = block.thread_idx()
    lane = thread % 32
    groups = (qp.i64(tiles) + 127) // 128
    group, place = tile // 128, qp.i32(tile % 128)
    if thread == 0:
        publish(words, 2 + groups + tile, total, dtype)
    within, all = nothing, nothing
    if thread < 32:
        for j in qp.static(range(4)):
            if 4 * lane + j < place:
                within = op(within, awaited(words, 2 + groups + (tile - place + 4 * lane + j), dtype))
            elif 4 * lane + j == place:
                all = total
        all = op(within, all)
    lanes = scan_of_lanes(all, lane, op)
    group_before = before_lane(lanes, lane, nothing)
    group_total = of_last_lane(lanes)
    if thread == place // 4:
        began = from_bits(start, dtype)
        if group > 0:
            began = awaited(words, 1 + group, dtype)
        if place == 127:
            publish(words, 2 + group, op(began, group_total), dtype)
        offset[0] = op(op(began, group_before), within)
    block.sync()


@qp.func
def put_numbers(y, v, first, n, is_whole):
    """Write the numbers of a thread to where ``numbers_of_thread`` read them."""
    if is_whole:
        for k in qp.static(range(16)):
            y[first + k // 4 * 128 + k % 4] = qp.cast(v[k], y.dtype)
    else:
        for k in qp.static(range(16)):
            if first + k // 4 * 128 + k % 4 < n:
                y[first + k // 4 * 128 + k % 4] = qp.cast(v[k], y.dtype)


@qp.kernel
def tile_scan(x: Flat, y: Flat, words: Flat, op: T, neutral: T, dtype: T, start: qp.u64, tiles: qp.i32, exclusive: T):
    """Scans ``x`` into ``y``; ``words`` has the values that blocks publish: the ticket, the groups, the tiles."""
    for i in words:
        words[i] = qp.u64(0)
    qp.loop_config(block_dim=256)
    for _ in range(tiles * 256):
        shared_tile = block.SharedArray(1, qp.i64)
        strips = block.SharedArray(8, dtype)
        offset = block.SharedArray(1, dtype)
        thread = block.thread_idx()
        lane, strip = thread % 32, thread // 32
        if thread == 0:
            shared_tile[0] = qp.i64(qp.atomic_add(words[0], qp.u64(1)))
        block.sync()
        tile = shared_tile[0]
        n, nothing = qp.i64(x.shape[0]), qp.cast(neutral, dtype)
        first, is_whole = tile * 4096 + strip * 512 + lane * 4, (tile + 1) * 4096 <= n
        v = numbers_of_thread(x, first, n, is_whole, nothing, dtype)
        before, rows, total = within_strip(v, lane, op, nothing)
        if lane == 0:
            strips[strip] = total
        block.sync()
        tile_before, tile_total = within_tile(strips, strip, op, nothing)
        before_tile(words, offset, tile, tiles, tile_total, start, op, nothing, dtype)
        base = op(offset[0], tile_before)
        for row in qp.static(range(4)):
            sum = op(op(base, rows[row]), before[row])
            for j in qp.static(range(4)):
                following = op(sum, v[4 * row + j])
                v[4 * row + j] = sum if qp.static(exclusive) else following
                sum = following
        put_numbers(y, v, first, n, is_whole)
