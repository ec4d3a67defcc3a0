"""Weights come to the device on a stream of their own."""

import numpy as np

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def multiply(weights: F32, x: F32):
    for i in x:
        x[i] = weights[i] * x[i]


weights, x = qp.ndarray(qp.f32, 4096), qp.ndarray(qp.f32, 4096)
pretrained = np.full(4096, 0.5, np.float32)
with qp.create_stream() as transfer, qp.create_event() as there:
    weights.from_numpy(pretrained, stream=transfer)
    # fixed by: there.record(transfer); there.wait()
    multiply(weights, x)
