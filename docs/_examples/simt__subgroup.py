"""Examples of waves."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_invocation_id() -> None:
    @qp.kernel
    def places(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=64)
        for i in range(64):
            out[i, 0] = qp.simt.subgroup.invocation_id()
            out[i, 1] = qp.simt.subgroup.subgroup_id()
            out[i, 2] = qp.simt.subgroup.group_size()
            out[i, 3] = qp.simt.subgroup.log2_group_size()
            out[i, 4] = qp.simt.subgroup.num_subgroups()
            if qp.simt.subgroup.elect():
                out[i, 5] = 1

    out = np.zeros((64, 6), np.int32)
    places(out)
    print(out[33], out[:, 5].sum())  # [ 1  1 32  5  2  0] 2


def example_lanemask_lt() -> None:
    @qp.kernel
    def masks(out: qp.Array2D[qp.u64]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[i, 0] = qp.simt.subgroup.lanemask_eq()
            out[i, 1] = qp.simt.subgroup.lanemask_lt()
            out[i, 2] = qp.simt.subgroup.lanemask_le()
            out[i, 3] = qp.simt.subgroup.lanemask_gt()
            out[i, 4] = qp.simt.subgroup.lanemask_ge()

    out = np.zeros((32, 5), np.uint64)
    masks(out)
    print([hex(mask) for mask in out[3]])  # ['0x8', '0x7', '0xf', '0xfffffff0', '0xfffffff8']


def example_shuffle() -> None:
    @qp.kernel
    def exchange(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[i, 0] = qp.simt.subgroup.shuffle(i, 31 - i)
            out[i, 1] = qp.simt.subgroup.shuffle_up(i, 1)
            out[i, 2] = qp.simt.subgroup.shuffle_down(i, 1)
            out[i, 3] = qp.simt.subgroup.shuffle_xor(i, 1)
            out[i, 4] = qp.simt.subgroup.broadcast(i, 7)
            out[i, 5] = qp.simt.subgroup.broadcast_first(i)

    out = np.zeros((32, 6), np.int32)
    exchange(out)
    print(out[4])  # [27  3  5  5  7  0]


def example_sync() -> None:
    @qp.kernel
    def neighbours(x: qp.Array1D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            shared = qp.simt.block.SharedArray(32, qp.i32)
            shared[i] = x[i]
            qp.simt.subgroup.sync()  # or barrier, its other name
            x[i] = shared[(i + 1) % 32]
            qp.simt.subgroup.barrier()
            qp.simt.subgroup.mem_fence()  # or memory_barrier, its other name
            qp.simt.subgroup.memory_barrier()

    x = np.arange(32, dtype=np.int32)
    neighbours(x)
    print(x[[0, 31]])  # [1 0]


def example_ballot() -> None:
    @qp.kernel
    def votes(x: qp.Array1D[qp.i32], out: qp.Array2D[qp.u64]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[i, 0] = qp.simt.subgroup.ballot(x[i] > 28)
            out[i, 1] = qp.simt.subgroup.ballot_first_n(x[i] < 2, 8)
            out[i, 2] = qp.simt.subgroup.all_true(x[i] >= 0)
            out[i, 3] = qp.simt.subgroup.any_true(x[i] > 30)
            out[i, 4] = qp.simt.subgroup.all_equal(x[i])
            out[i, 5] = qp.simt.subgroup.match_any(x[i] // 2)
            out[i, 6] = qp.simt.subgroup.match_all(x[i])

    out = np.zeros((32, 7), np.uint64)
    votes(np.arange(32, dtype=np.int32), out)
    print([hex(mask) for mask in out[2]])  # ['0xe0000000', '0x3', '0x1', '0x1', '0x0', '0xc', '0x0']


def example_reduce_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.reduce_add(i)
            out[1, i] = qp.simt.subgroup.reduce_mul(1 + i % 2)
            out[2, i] = qp.simt.subgroup.reduce_min(i)
            out[3, i] = qp.simt.subgroup.reduce_max(i)
            out[4, i] = qp.simt.subgroup.reduce_and(i)
            out[5, i] = qp.simt.subgroup.reduce_or(i)
            out[6, i] = qp.simt.subgroup.reduce_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [  496 65536     0    31     0    31     0]


def example_reduce_all_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.reduce_all_add(i)
            out[1, i] = qp.simt.subgroup.reduce_all_mul(1 + i % 2)
            out[2, i] = qp.simt.subgroup.reduce_all_min(i)
            out[3, i] = qp.simt.subgroup.reduce_all_max(i)
            out[4, i] = qp.simt.subgroup.reduce_all_and(i)
            out[5, i] = qp.simt.subgroup.reduce_all_or(i)
            out[6, i] = qp.simt.subgroup.reduce_all_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [  496 65536     0    31     0    31     0]


def example_inclusive_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.inclusive_add(i)
            out[1, i] = qp.simt.subgroup.inclusive_mul(1 + i % 2)
            out[2, i] = qp.simt.subgroup.inclusive_min(i)
            out[3, i] = qp.simt.subgroup.inclusive_max(i)
            out[4, i] = qp.simt.subgroup.inclusive_and(i)
            out[5, i] = qp.simt.subgroup.inclusive_or(i)
            out[6, i] = qp.simt.subgroup.inclusive_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [6 4 0 3 0 3 0]


def example_exclusive_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.exclusive_add(i)
            out[1, i] = qp.simt.subgroup.exclusive_mul(1 + i % 2)
            out[2, i] = qp.simt.subgroup.exclusive_min(i)
            out[3, i] = qp.simt.subgroup.exclusive_max(i)
            out[4, i] = qp.simt.subgroup.exclusive_and(i)
            out[5, i] = qp.simt.subgroup.exclusive_or(i)
            out[6, i] = qp.simt.subgroup.exclusive_xor(i)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 3])  # [3 2 0 2 0 3 3]


def example_reduce_add_tiled() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.reduce_add_tiled(i, 3)
            out[1, i] = qp.simt.subgroup.reduce_mul_tiled(1 + i % 2, 3)
            out[2, i] = qp.simt.subgroup.reduce_min_tiled(i, 3)
            out[3, i] = qp.simt.subgroup.reduce_max_tiled(i, 3)
            out[4, i] = qp.simt.subgroup.reduce_and_tiled(i, 3)
            out[5, i] = qp.simt.subgroup.reduce_or_tiled(i, 3)
            out[6, i] = qp.simt.subgroup.reduce_xor_tiled(i, 3)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 11])  # [92 16  8 15  8 15  0]


def example_reduce_all_add_tiled() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.reduce_all_add_tiled(i, 3)
            out[1, i] = qp.simt.subgroup.reduce_all_mul_tiled(1 + i % 2, 3)
            out[2, i] = qp.simt.subgroup.reduce_all_min_tiled(i, 3)
            out[3, i] = qp.simt.subgroup.reduce_all_max_tiled(i, 3)
            out[4, i] = qp.simt.subgroup.reduce_all_and_tiled(i, 3)
            out[5, i] = qp.simt.subgroup.reduce_all_or_tiled(i, 3)
            out[6, i] = qp.simt.subgroup.reduce_all_xor_tiled(i, 3)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 11])  # [92 16  8 15  8 15  0]


def example_inclusive_add_tiled() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.inclusive_add_tiled(i, 3)
            out[1, i] = qp.simt.subgroup.inclusive_mul_tiled(1 + i % 2, 3)
            out[2, i] = qp.simt.subgroup.inclusive_min_tiled(i, 3)
            out[3, i] = qp.simt.subgroup.inclusive_max_tiled(i, 3)
            out[4, i] = qp.simt.subgroup.inclusive_and_tiled(i, 3)
            out[5, i] = qp.simt.subgroup.inclusive_or_tiled(i, 3)
            out[6, i] = qp.simt.subgroup.inclusive_xor_tiled(i, 3)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 11])  # [38  4  8 11  8 11  0]


def example_exclusive_add_tiled() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.exclusive_add_tiled(i, 3)
            out[1, i] = qp.simt.subgroup.exclusive_mul_tiled(1 + i % 2, 3)
            out[2, i] = qp.simt.subgroup.exclusive_min_tiled(i, 3)
            out[3, i] = qp.simt.subgroup.exclusive_max_tiled(i, 3)
            out[4, i] = qp.simt.subgroup.exclusive_and_tiled(i, 3)
            out[5, i] = qp.simt.subgroup.exclusive_or_tiled(i, 3)
            out[6, i] = qp.simt.subgroup.exclusive_xor_tiled(i, 3)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 11])  # [27  2  8 10  8 11 11]


def example_segmented_reduce_add() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.segmented_reduce_add(i, i % 5 == 0)
            out[1, i] = qp.simt.subgroup.segmented_reduce_mul(1 + i % 2, i % 5 == 0)
            out[2, i] = qp.simt.subgroup.segmented_reduce_min(i, i % 5 == 0)
            out[3, i] = qp.simt.subgroup.segmented_reduce_max(i, i % 5 == 0)
            out[4, i] = qp.simt.subgroup.segmented_reduce_and(i, i % 5 == 0)
            out[5, i] = qp.simt.subgroup.segmented_reduce_or(i, i % 5 == 0)
            out[6, i] = qp.simt.subgroup.segmented_reduce_xor(i, i % 5 == 0)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 11])  # [21  2 10 11 10 11  1]


def example_segmented_reduce_add_tiled() -> None:
    @qp.kernel
    def combined(out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            out[0, i] = qp.simt.subgroup.segmented_reduce_add_tiled(i, i % 5 == 0, 3)
            out[1, i] = qp.simt.subgroup.segmented_reduce_mul_tiled(1 + i % 2, i % 5 == 0, 3)
            out[2, i] = qp.simt.subgroup.segmented_reduce_min_tiled(i, i % 5 == 0, 3)
            out[3, i] = qp.simt.subgroup.segmented_reduce_max_tiled(i, i % 5 == 0, 3)
            out[4, i] = qp.simt.subgroup.segmented_reduce_and_tiled(i, i % 5 == 0, 3)
            out[5, i] = qp.simt.subgroup.segmented_reduce_or_tiled(i, i % 5 == 0, 3)
            out[6, i] = qp.simt.subgroup.segmented_reduce_xor_tiled(i, i % 5 == 0, 3)

    out = np.zeros((7, 32), np.int32)
    combined(out)
    print(out[:, 11])  # [21  2 10 11 10 11  1]


def example_bitonic_sort_kv() -> None:
    @qp.kernel
    def arrange(keys: qp.Array1D[qp.i32], out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in keys:
            out[0, i], out[1, i] = qp.simt.subgroup.bitonic_sort_kv(keys[i], i)
            out[2, i], out[3, i] = qp.simt.subgroup.bitonic_sort_kv_tiled(keys[i], i, 2)

    out = np.zeros((4, 32), np.int32)
    arrange(np.arange(32, dtype=np.int32)[::-1] // 2, out)
    print(out[:2, :4].tolist())  # [[0, 0, 1, 1], [30, 31, 28, 29]]
    print(out[2:, :4].tolist())  # [[14, 14, 15, 15], [2, 3, 0, 1]]


def example_all_true_tiled() -> None:
    @qp.kernel
    def votes(x: qp.Array1D[qp.i32], out: qp.Array2D[qp.i32]) -> None:
        qp.loop_config(block_dim=32)
        for i in x:
            out[0, i] = qp.simt.subgroup.all_true_tiled(x[i] > 0, 2)
            out[1, i] = qp.simt.subgroup.any_true_tiled(x[i] > 0, 2)
            out[2, i] = qp.simt.subgroup.all_equal_tiled(x[i], 2)
            out[3, i] = qp.simt.subgroup.ballot_full_subgroup(x[i] > 0) == qp.simt.subgroup.ballot(x[i] > 0)

    out = np.zeros((4, 32), np.int32)
    votes(np.repeat([0, 1, 2, 2], 8).astype(np.int32) + (np.arange(32, dtype=np.int32) == 5), out)
    print(out[:, :12:4].tolist())  # [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]]
