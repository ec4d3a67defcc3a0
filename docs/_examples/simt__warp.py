"""Examples of warps by the names of Taichi."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_shfl_down_f32() -> None:
    @qp.kernel
    def exchange(x: qp.Array1D[qp.f32], out: qp.Array2D[qp.f32]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            mask = qp.simt.warp.active_mask()
            out[i, 0] = qp.simt.warp.shfl_sync_f32(mask, x[i], 5)
            out[i, 1] = qp.simt.warp.shfl_up_f32(mask, x[i], 1)
            out[i, 2] = qp.simt.warp.shfl_down_f32(mask, x[i], 1)
            out[i, 3] = qp.simt.warp.shfl_xor_f32(mask, x[i], 1)
            out[i, 4] = qp.simt.warp.shfl_sync_i32(mask, i, 5)
            out[i, 5] = qp.simt.warp.shfl_up_i32(mask, i, 1)
            out[i, 6] = qp.simt.warp.shfl_down_i32(mask, i, 1)
            out[i, 7] = qp.simt.warp.shfl_xor_i32(mask, i, 1)

    out = np.zeros((32, 8), np.float32)
    exchange(np.arange(32, dtype=np.float32), out)
    print(out[4])  # [5. 3. 5. 5. 5. 3. 5. 5.]


def example_ballot() -> None:
    @qp.kernel
    def votes(x: qp.Array1D[qp.i32], out: qp.Array2D[qp.u64]) -> None:
        qp.loop_config(block_dim=32)
        for i in range(32):
            mask = qp.simt.warp.active_mask()
            qp.simt.warp.sync(mask)
            out[i, 0] = qp.simt.warp.ballot(x[i] > 28)
            out[i, 1] = qp.simt.warp.all_nonzero(mask, x[i])
            out[i, 2] = qp.simt.warp.any_nonzero(mask, x[i])
            out[i, 3] = qp.simt.warp.unique(mask, x[i])
            out[i, 4] = qp.simt.warp.match_any(mask, x[i])
            out[i, 5] = qp.simt.warp.match_all(mask, x[i])

    out = np.zeros((32, 6), np.uint64)
    votes(np.arange(32, dtype=np.int32), out)
    print([hex(mask) for mask in out[2]])  # ['0xe0000000', '0x0', '0x1', '0x0', '0x4', '0x0']
