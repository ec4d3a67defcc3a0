"""Examples of small matrices."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_solve() -> None:
    a = qp.Matrix([[2.0, 1.0], [1.0, 3.0]])
    print(qp.solve(a, qp.Vector([3.0, 5.0])))  # Vector([0.8, 1.4], dt=f32)


def example_cholesky() -> None:
    low = qp.cholesky(qp.Matrix([[4.0, 2.0], [2.0, 5.0]]))
    print(low)  # Matrix([[2., 0.], [1., 2.]], dt=f32)


def example_qr() -> None:
    a = qp.Matrix([[3.0, 1.0], [4.0, 2.0]])
    q, r = qp.qr(a)
    print(np.allclose((q @ r).to_numpy(), a.to_numpy()))  # True


def example_svd() -> None:
    _u, sigma, _v = qp.svd(qp.Matrix([[2.0, 0.0], [0.0, 3.0]]))
    print(sigma)  # Matrix([[3., 0.], [0., 2.]], dt=f32)


def example_polar_decompose() -> None:
    a = qp.Matrix([[0.0, -2.0], [2.0, 0.0]])
    rotation, stretch = qp.polar_decompose(a)
    print(np.allclose((rotation @ stretch).to_numpy(), a.to_numpy()))  # True


def example_sym_eig() -> None:
    values, _vectors = qp.sym_eig(qp.Matrix([[2.0, 1.0], [1.0, 2.0]]))
    print(np.allclose(sorted(values), [1.0, 3.0]))  # True


def example_eig() -> None:
    values, _vectors = qp.eig(qp.Matrix([[0.0, -1.0], [1.0, 0.0]]))
    # a complex number in each row:
    print(values.to_list())  # [[0.0, 1.0], [0.0, -1.0]]


def example_make_spd() -> None:
    print(qp.make_spd(qp.Matrix([[1.0, 0.0], [0.0, -2.0]])))  # Matrix([[1., 0.], [0., 0.]], dt=f32)


def example_outer() -> None:
    @qp.kernel
    def subtract(x: qp.Array2D[qp.f32], a: qp.Array2D[qp.f32]) -> None:
        qp.loop_config(block_dim=16)
        for _ in range(16):
            t = qp.simt.Tile16x16.zeros()
            t[:] = x[0:16, 0:16]
            t -= qp.outer(a[0:16, 0], a[0:16, 0])
            x[0:16, 0:16] = t

    x = np.ones((2, 2), np.float32)
    subtract(x, np.array([[1.0], [2.0]], np.float32))
    print(x.tolist())  # [[0.0, -1.0], [-1.0, -3.0]]
