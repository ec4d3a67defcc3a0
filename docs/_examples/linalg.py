"""Examples of linear algebra on arrays."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_matmul() -> None:
    @qp.func
    def shifted(value: float, i: int, j: int) -> float:
        return value + 100 * i + 10 * j

    a = np.array([[1, 2], [3, 4]], np.float32)
    print(qp.linalg.matmul(a, a).to_numpy().tolist())  # [[7.0, 10.0], [15.0, 22.0]]
    print(qp.linalg.matmul(a, a.T, epilogue=shifted).to_numpy().tolist())  # [[5.0, 21.0], [111.0, 135.0]]
