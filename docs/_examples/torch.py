"""An example of an operator of torch."""

from __future__ import annotations

import quadpy as qp


def example_custom_op() -> None:
    import torch

    @qp.kernel
    def square(x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]) -> None:
        for i in x:
            y[i] = x[i] * x[i]

    squared = qp.torch.custom_op(square, name="mine::squared", outputs={"y": "x"})
    print(squared(torch.tensor([1.0, 2.0, 3.0])))  # tensor([1., 4., 9.])
