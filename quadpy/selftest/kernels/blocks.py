"""Iterations that work together: atomics, blocks, waves, tiles."""

from __future__ import annotations

from typing import Any, Final

import quadpy as qp

_A: Final = qp.types.ndarray(ndim=1)
_I32: Final = qp.types.ndarray(dtype=qp.i32, ndim=1)
_ROWS: Final = qp.types.ndarray(ndim=2)

block, subgroup = qp.simt.block, qp.simt.subgroup


@qp.kernel
def integer_atomics(x: _A, out: _A, old: _ROWS):
    for i in x:
        old[0, i] = qp.atomic_add(out[0], x[i])  # their results are used: no loop becomes a reduction
        old[1, i] = qp.atomic_sub(out[1], x[i])
        old[2, i] = qp.atomic_min(out[2], x[i])
        old[3, i] = qp.atomic_max(out[3], x[i])
        old[4, i] = qp.atomic_and(out[4], x[i])
        old[5, i] = qp.atomic_or(out[5], x[i])
        old[6, i] = qp.atomic_xor(out[6], x[i])
        old[7, i] = qp.atomic_mul(out[7], x[i])


@qp.kernel
def float_atomics(x: _A, out: _A, old: _ROWS):
    for i in x:
        old[0, i] = qp.atomic_add(out[0], x[i])
        old[1, i] = qp.atomic_sub(out[1], x[i])
        old[2, i] = qp.atomic_min(out[2], x[i])
        old[3, i] = qp.atomic_max(out[3], x[i])


@qp.kernel
def small_atomics(x: _A, out: _A, old: _ROWS):
    for i in x:
        old[0, i] = qp.atomic_add(out[0], x[i])
        old[1, i] = qp.atomic_max(out[1], x[i])
        old[2, i] = qp.atomic_min(out[2], x[i])


@qp.kernel
def exchanges(x: _A, last: _A, old: _A, owners: _A):
    for i in x:
        old[i] = qp.atomic_exchange(last[0], x[i])
        if qp.atomic_cas(owners[i & 3], 0, x[i]) == 0:
            last[1] += 1


@qp.kernel
def tickets(taken: _I32, last: _I32):
    for _ in range(taken.shape[0]):
        taken[qp.atomic_add(last[0], 1)] += 1


@qp.kernel
def reversed_blocks(x: _A, out: _A):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        tile = block.SharedArray(64, qp.f32)
        t = block.thread_idx()
        tile[t] = x[i]
        block.sync()
        out[i] = tile[63 - t] + block.reduce_add(tile[t]) - block.exclusive_add(x[i])


@qp.kernel
def shared_atomics(x: _I32, out: _I32):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        bins = block.SharedArray(8, qp.i32)
        t = block.thread_idx()
        if t < 8:
            bins[t] = 0
        block.sync()
        qp.atomic_add(bins[x[i] & 7], x[i])
        block.sync()
        if t < 8:
            qp.atomic_add(out[t], bins[t])


def _waves(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        v = x[i]
        out[0, i] = subgroup.reduce_add(v)
        out[1, i] = subgroup.inclusive_add(v)
        out[2, i] = subgroup.exclusive_max(v)
        out[3, i] = subgroup.shuffle(v, (i * 7) & 31)
        out[4, i] = subgroup.shuffle_down(v, 3)
        out[5, i] = subgroup.shuffle_xor(v, 5)
        out[6, i] = subgroup.broadcast(v, 9)
        out[7, i] = qp.i32(subgroup.ballot(v > 40) >> 3)
        out[8, i] = subgroup.group_size()
        out[9, i] = qp.i32(subgroup.match_any(v & 3))


_waves.__annotations__ |= {"x": _I32, "out": qp.types.ndarray(dtype=qp.i32, ndim=2)}


waves_of = {size: qp.kernel(wave_size=size)(_waves) for size in (32, 64)}


@qp.kernel
def last_block(x: _I32, parts: _I32, done: _I32, out: _I32):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        ticket = block.SharedArray(1, qp.i32)
        total = block.reduce_add(x[i])
        if block.thread_idx() == 0:
            parts[i // 64] = total
            qp.simt.grid.mem_fence()
            ticket[0] = qp.atomic_add(done[0], 1)
        block.sync()
        if block.thread_idx() == 0 and ticket[0] == parts.shape[0] - 1:
            for k in range(parts.shape[0]):
                out[0] += qp.volatile_load(parts[k])


def _factors(tile: Any) -> Any:
    size = tile.SIZE

    @qp.kernel
    def factors(x: qp.types.ndarray(ndim=3), v: _ROWS) -> None:
        qp.loop_config(block_dim=size)
        for i in range(x.shape[0] * size):
            low, right = tile.zeros(dtype=x.dtype), tile.eye(dtype=x.dtype)
            low[:] = x[i // size, 0:size, 0:size]
            low -= qp.outer(v[i // size, 0:size], v[i // size, 0:size])
            low.cholesky_(1e-6)
            low.solve_triangular_(right)
            x[i // size, 0:size, 0:size] = low
            x[i // size, 0:size, size : 2 * size] = right

    return factors


factors_of = {tile.SIZE: _factors(tile) for tile in (qp.simt.Tile16x16, qp.simt.Tile32x32)}
