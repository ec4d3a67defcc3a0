"""What ``qp.init`` decides: default types, fast_math, the number of threads; and that kernels follow it."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.kernel
def tenth() -> float:
    return 0.1


@qp.kernel
def big(n: int) -> int:
    return n * 1_000_000


@qp.kernel
def quotient(a: qp.i64, b: qp.i64) -> qp.f64:
    return a / b


@qp.kernel
def untyped(y: A(qp.f64, 1)):
    v = qp.Vector([0.1, 0.2])
    y[0] = v.x
    y[1] = qp.sin(1)
    y[2] = qp.random() < 1.0


def test_32_bits_are_the_default():
    assert tenth() == float(np.float32(0.1))
    assert big(5000) == 5000 * 1_000_000 - 2**32
    with pytest.raises(qp.ArgumentError, match="does not fit i32"):
        big(2**31)
    assert quotient(1, 3) == float(np.float32(1) / np.float32(3))


def test_64_bits(init):
    init(default_fp=qp.f64, default_ip=qp.i64)
    assert tenth() == 0.1
    assert big(5000) == 5_000_000_000
    assert quotient(1, 3) == 1 / 3
    y = np.zeros(3)
    untyped(y)
    np.testing.assert_allclose(y, [0.1, np.sin(1.0), 1], rtol=1e-15)
    init()
    assert tenth() == float(np.float32(0.1))


@qp.kernel
def literal() -> qp.i64:
    n = 3_000_000_000
    return n + 0


def test_a_literal_fits_or_not_by_the_default(init):
    with pytest.raises(qp.KernelValueError, match="3000000000 does not fit i32") as caught:
        literal()
    assert "qp.u32(3000000000)" in caught.value.hint
    init(default_ip=qp.i64)
    assert literal() == 3_000_000_000


@qp.kernel
def polynomial(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in x:
        y[i] = x[i] * x[i] * 0.3 + x[i] / 7.0 + qp.sqrt(x[i]) + qp.exp(-x[i])


def test_fast_math_is_close(init):
    x = np.linspace(0.01, 4, 1000, dtype=np.float32)
    strict, fast = np.zeros_like(x), np.zeros_like(x)
    polynomial(x, strict)
    init(fast_math=True)
    polynomial(x, fast)
    np.testing.assert_allclose(fast, strict, rtol=1e-5)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(fast, wide * wide * 0.3 + wide / 7 + np.sqrt(wide) + np.exp(-wide), rtol=1e-5)


@qp.kernel
def ordered(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in range(1):
        y[i] = (x[0] + x[1]) + x[2]


def test_strict_sums_keep_their_order(init):
    x, y = np.array([1e8, -1e8, 1.0], np.float32), np.zeros(1, np.float32)
    ordered(x, y)
    assert y[0] == 1.0
    x[:] = 1.0, 1e8, -1e8
    ordered(x, y)
    assert y[0] == 0.0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(init, threads):
    init(cpu_max_num_threads=threads)
    x, y = np.arange(100_000, dtype=np.float32), np.zeros(100_000, np.float32)
    polynomial(x[:1000], y[:1000])
    polynomial(x, y)
    init(cpu_max_num_threads=1)
    alone = np.zeros_like(y)
    polynomial(x, alone)
    np.testing.assert_array_equal(y, alone)


def test_arrays_and_fields_survive_init(init):
    field, array = qp.field(qp.f32, shape=3), qp.ndarray(qp.f32, 3)
    field.fill(1.5)
    array.fill(2.5)
    init(default_fp=qp.f64)
    assert field.to_numpy().tolist() == [1.5] * 3
    assert array.to_numpy().tolist() == [2.5] * 3
