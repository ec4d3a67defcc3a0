"""Kernels of a module, which programs of several processes import."""

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.func
def squared(x):
    return x * x


@qp.kernel
def square(x: F32):
    for i in x:
        x[i] = squared(x[i])


@qp.graph.replay
def square_twice(x):
    square(x)
    square(x)
