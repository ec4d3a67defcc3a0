"""Index arithmetic wraps like all other: what wraps back into an array is inside it."""

import numpy as np
import pytest

import quadpy as qp

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
LEAST, GREATEST = -(2**31), 2**31 - 1


@qp.kernel
def twice(x: I32, y: I32, h: qp.i32):
    for i in y:
        y[i] = x[i + h + h]


@qp.kernel
def from_below(x: I32, y: I32, first: qp.i32, h: qp.i32):
    for i in range(first, first + y.shape[0]):
        y[i - first] = x[i + h]


@qp.kernel
def beyond_and_back(x: I32, y: I32, h: qp.i32):
    for i in y:
        far = i + 2147483647
        y[i] = x[far + h]


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(100, dtype=np.int32)


def test_two_terms_that_wrap_to_nothing(x: np.ndarray) -> None:
    y = np.zeros_like(x)
    twice(x, y, LEAST)
    assert (y == x).all()


def test_a_loop_below_zero(x: np.ndarray) -> None:
    y = np.zeros_like(x)
    from_below(x, y, LEAST, LEAST)
    assert (y == x).all()


def test_a_constant_that_wraps(x: np.ndarray) -> None:
    y = np.zeros_like(x)
    beyond_and_back(x, y, LEAST + 1)
    assert (y == x).all()
