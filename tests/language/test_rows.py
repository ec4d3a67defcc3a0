"""Arrays whose rows begin at multiples of 16 bytes have wider loads on a GPU, and all others the same results."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8}


@pytest.fixture
def kernels(load):
    return load("""
        any2, any1 = qp.types.ndarray(ndim=2), qp.types.ndarray(ndim=1)

        @qp.kernel
        def fold(x: any2, y: any1):
            for i in range(x.shape[0]):
                for k in range(x.shape[1]):
                    y[i] = 2 * y[i] + x[i, k]

        @qp.kernel
        def fours(x: any2, y: any2):
            for i, j in qp.ndrange(x.shape[0], x.shape[1] // 4):
                for k in qp.static(range(4)):
                    y[i, 4 * j + k] = x[i, 4 * j + k] + 1

        @qp.kernel
        def pairs(x: qp.types.ndarray(dtype=qp.types.vector(2, qp.f32), ndim=2), y: any1):
            for i in range(x.shape[0]):
                for k in range(x.shape[1]):
                    y[i] = 2.0 * y[i] + x[i, k][0] - x[i, k][1]
    """)


def given(name, shape):
    return np.random.default_rng(1).integers(0, 3, shape).astype(TYPES[name])


def on_device(values, element=None):
    made = qp.ndarray(element or getattr(qp, values.dtype.name.replace("float", "f").replace("int", "i")),
                      values.shape[: 1 if values.ndim == 1 else 2])  # fmt: skip
    made.from_numpy(values)
    return made


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("width", [0, 1, 3, 4, 7, 8, 16, 20, 33])
def test_loops_along_rows(kernels, name, width):
    x = given(name, (5, width))
    y = on_device(np.zeros(5, TYPES[name]))
    kernels.fold(on_device(x), y)
    want = np.zeros(5, TYPES[name])
    with np.errstate(over="ignore"):
        for k in range(width):
            want = (2 * want + x[:, k]).astype(TYPES[name])
    np.testing.assert_array_equal(y.to_numpy(), want)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("width", [4, 7, 16, 18])
def test_neighbours_in_a_row(kernels, name, width):
    x = given(name, (3, width))
    y = on_device(np.zeros_like(x))
    kernels.fours(on_device(x), y)
    whole = width // 4 * 4
    want = np.zeros_like(x)
    want[:, :whole] = x[:, :whole] + 1
    np.testing.assert_array_equal(y.to_numpy(), want)


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_vectors_in_a_row(kernels, width):
    x = given("f32", (4, width, 2))
    y = on_device(np.zeros(4, np.float32))
    kernels.pairs(on_device(x, qp.types.vector(2, qp.f32)), y)
    want = np.zeros(4, np.float32)
    for k in range(width):
        want = 2 * want + x[:, k, 0] - x[:, k, 1]
    np.testing.assert_array_equal(y.to_numpy(), want)
