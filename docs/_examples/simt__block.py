"""Examples of blocks."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_SharedArray() -> None:
    @qp.kernel
    def reverse(x: qp.Array1D[qp.i32]) -> None:
        qp.loop_config(block_dim=64)
        for i in range(64):
            shared = qp.simt.block.SharedArray(64, qp.i32)
            shared[i] = x[i]
            qp.simt.block.sync()
            x[i] = shared[63 - i]

    x = np.arange(64, dtype=np.int32)
    reverse(x)
    print(x[:4])  # [63 62 61 60]


def example_thread_idx() -> None:
    @qp.kernel
    def places(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(64):
            out[i, 0] = qp.simt.block.thread_idx()
            out[i, 1] = qp.simt.block.block_idx()
            out[i, 2] = qp.simt.block.block_dim()
            out[i, 3] = qp.simt.block.global_thread_idx()

    out = np.zeros((64, 4), np.int32)
    places(out)
    print(out[33])  # [ 1  1 32 33]


def example_mem_fence() -> None:
    @qp.kernel
    def ordered(x: qp.Array1D[qp.i32], ready: qp.Array1D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            x[i] = i
            qp.simt.block.mem_fence()  # or mem_sync, its other name
            qp.atomic_add(ready[0], 1)
            qp.simt.block.mem_sync()

    ready = np.zeros(1, np.int32)
    ordered(np.zeros(32, np.int32), ready)
    print(ready)  # [32]


def example_reduce_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.block.reduce_add(i)
            out[1, i] = qp.simt.block.reduce_mul(1 + i % 2)
            out[2, i] = qp.simt.block.reduce_min(i)
            out[3, i] = qp.simt.block.reduce_max(i)
            out[4, i] = qp.simt.block.reduce_and(i)
            out[5, i] = qp.simt.block.reduce_or(i)
            out[6, i] = qp.simt.block.reduce_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [  496 65536     0    31     0    31     0]


def example_reduce_all_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.block.reduce_all_add(i)
            out[1, i] = qp.simt.block.reduce_all_mul(1 + i % 2)
            out[2, i] = qp.simt.block.reduce_all_min(i)
            out[3, i] = qp.simt.block.reduce_all_max(i)
            out[4, i] = qp.simt.block.reduce_all_and(i)
            out[5, i] = qp.simt.block.reduce_all_or(i)
            out[6, i] = qp.simt.block.reduce_all_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [  496 65536     0    31     0    31     0]


def example_inclusive_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.block.inclusive_add(i)
            out[1, i] = qp.simt.block.inclusive_mul(1 + i % 2)
            out[2, i] = qp.simt.block.inclusive_min(i)
            out[3, i] = qp.simt.block.inclusive_max(i)
            out[4, i] = qp.simt.block.inclusive_and(i)
            out[5, i] = qp.simt.block.inclusive_or(i)
            out[6, i] = qp.simt.block.inclusive_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [6 4 0 3 0 3 0]


def example_exclusive_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.block.exclusive_add(i)
            out[1, i] = qp.simt.block.exclusive_mul(1 + i % 2)
            out[2, i] = qp.simt.block.exclusive_min(i)
            out[3, i] = qp.simt.block.exclusive_max(i)
            out[4, i] = qp.simt.block.exclusive_and(i)
            out[5, i] = qp.simt.block.exclusive_or(i)
            out[6, i] = qp.simt.block.exclusive_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [3 2 0 2 0 3 3]


def example_sync_count_nonzero() -> None:
    @qp.kernel
    def votes(x: qp.Array1D[qp.i32], out: qp.Array1D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0] = qp.simt.block.sync_count_nonzero(x[i] > 0)
            out[1] = qp.simt.block.sync_count(x[i] > 0)
            out[2] = qp.simt.block.sync_any_nonzero(x[i] > 0)
            out[3] = qp.simt.block.sync_all_nonzero(x[i] > 0)

    out = np.zeros(4, np.int32)
    votes(np.arange(32, dtype=np.int32), out)
    print(out)  # [31 31  1  0]


def example_reduce() -> None:
    @qp.func
    def after(f, g):
        """The map x -> g(f(x)) of two maps x -> a x + b."""
        return qp.Vector([g[0] * f[0], g[0] * f[1] + g[1]])

    @qp.kernel
    def composed(maps: qp.Array1D[qp.types.vector(2, qp.i32)], out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.block.reduce(maps[i], op=after)[1]
            out[1, i] = qp.simt.block.reduce_all(maps[i], op=after)[1]
            out[2, i] = qp.simt.block.inclusive_scan(maps[i], op=after)[1]
            out[3, i] = qp.simt.block.exclusive_scan(maps[i], op=after, identity=qp.Vector([1, 0]))[1]

    maps = np.array([[1 + i % 2, 1] for i in range(32)], np.int32)
    out = np.zeros((4, 32), np.int32)
    composed(maps, out)
    print(out[:, 3])  # [196605 196605      9      4]


def example_radix_rank_match_atomic_or() -> None:
    @qp.kernel
    def ranks(keys: qp.Array1D[qp.u32], out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=64)
        for i in keys:
            bins, before = qp.simt.block.SharedArray((64,), qp.i32), qp.simt.block.SharedArray((64,), qp.i32)
            out[0, i] = qp.simt.block.radix_rank_match_atomic_or(keys[i], 64, 6, 0, 6, bins, before)
            out[1, i], out[2, i] = bins[i], before[i]

    out = np.zeros((3, 64), np.int32)
    ranks(np.arange(64, dtype=np.uint32) % 4, out)
    print(out[:, :5].tolist())  # [[0, 16, 32, 48, 1], [16, 16, 16, 16, 0], [0, 16, 32, 48, 64]]
