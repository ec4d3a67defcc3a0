"""Functions of the math library, compiled and applied to arrays on the current backend."""

from __future__ import annotations

import numpy as np

import quadpy as qp


@qp.kernel
def _map_one(fn: qp.template(), x: qp.types.ndarray(ndim=1), out: qp.types.ndarray(ndim=1)):
    for i in range(x.shape[0]):
        out[i] = fn(x[i])


@qp.kernel
def _map_two(
    fn: qp.template(), x: qp.types.ndarray(ndim=1), y: qp.types.ndarray(ndim=1), out: qp.types.ndarray(ndim=1)
):
    for i in range(x.shape[0]):
        out[i] = fn(x[i], y[i])


def applied(function, *arguments):
    """``function`` of one or two arrays of its type."""
    result = np.empty_like(arguments[0])
    (_map_one if len(arguments) == 1 else _map_two)(function, *arguments, result)
    return result
