"""Kernels that the tests of the command line compile."""

import quadpy as qp

TWO = 2


@qp.kernel
def saxpy(a: qp.f32, x: qp.types.ndarray(dtype=qp.f32, ndim=1), y: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


@qp.kernel
def shift(source: qp.types.ndarray(), n: qp.template(), by: qp.f32):
    for i in range(source.shape[0]):
        source[i, 0] = source[i, n] + by


@qp.kernel
def histogram(
    keys: qp.types.ndarray(dtype=qp.i32, ndim=1), weights: qp.types.ndarray(dtype=qp.f32, ndim=1),
    counts: qp.types.ndarray(dtype=qp.i32, ndim=1), sums: qp.types.ndarray(dtype=qp.f32, ndim=1),
) -> qp.i32:  # fmt: skip
    seen = 0
    for i in keys:
        counts[keys[i]] += 1
        sums[keys[i]] += weights[i]
        seen += 1
    return seen


class Group:
    inner = saxpy
