"""Examples of tiles."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_Tile() -> None:
    @qp.kernel
    def product(a: qp.Array2D[qp.f32], b: qp.Array2D[qp.f32], c: qp.Array2D[qp.f32]) -> None:
        """One block makes 8 x 16 elements of c."""
        qp.loop_config(block_dim=32)
        for _ in range(32):
            t = qp.simt.Tile[8, 16, qp.f32].zeros()
            t += a[0:8, :] @ b[:, 0:16]
            c[0:8, 0:16] = 2.0 * t

    a, c = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.zeros((2, 2), np.float32)
    product(a, a, c)
    print(c.tolist())  # [[14.0, 20.0], [30.0, 44.0]]


def example_Tile16x16() -> None:
    Tile = qp.simt.Tile16x16

    @qp.kernel
    def factor(x: qp.Array3D[qp.f32]) -> None:
        """The Cholesky factors of many matrices of up to 16 rows, in place."""
        qp.loop_config(block_dim=Tile.SIZE)
        for i in range(x.shape[0] * Tile.SIZE):
            t = Tile.eye()  # rows and columns that x lacks stay those of the identity
            t[:] = x[i // 16, 0:16, 0:16]
            t.cholesky_(1e-12)
            x[i // 16, 0:16, 0:16] = t

    x = np.tile(np.array([[4.0, 2.0], [2.0, 5.0]], np.float32), (3, 1, 1))
    factor(x)
    print(x[0].tolist())  # [[2.0, 0.0], [1.0, 2.0]]


def example_Tile32x32() -> None:
    Tile = qp.simt.Tile32x32

    @qp.kernel
    def solve(low: qp.Array2D[qp.f64], right: qp.Array2D[qp.f64]) -> None:
        qp.loop_config(block_dim=Tile.SIZE)
        for _ in range(Tile.SIZE):
            t = Tile.eye(dtype=qp.f64)
            t[:] = low[0:32, 0:32]
            b = Tile.zeros(dtype=qp.f64)
            b[:] = right[0:32, 0:32]
            t.solve_triangular_(b)
            right[0:32, 0:32] = b

    low, right = np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([[4.0, 6.0]])
    solve(low, right)
    print(right)  # [[2. 2.]]
