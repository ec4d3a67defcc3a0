"""Floating-point operators: IEEE in strict mode, Python's signs, minimumNumber and maximumNumber."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e-45, -1e-40, 1e30, math.inf, -math.inf, math.nan]


@qp.kernel
def operate(a: A(), b: A(), y: A()):
    for i in a:
        y[i, 0] = a[i] + b[i]
        y[i, 1] = a[i] - b[i]
        y[i, 2] = a[i] * b[i]
        y[i, 3] = a[i] / b[i]
        y[i, 4] = min(a[i], b[i])
        y[i, 5] = max(a[i], b[i])
        y[i, 6] = -a[i]
        y[i, 7] = abs(a[i])
        y[i, 8] = qp.sqrt(a[i])


@qp.kernel
def compare(a: A(), b: A(), y: A(qp.u1, 2)):
    for i in a:
        y[i, 0] = a[i] == b[i]
        y[i, 1] = a[i] != b[i]
        y[i, 2] = a[i] < b[i]
        y[i, 3] = a[i] <= b[i]
        y[i, 4] = a[i] > b[i]
        y[i, 5] = a[i] >= b[i]


def extreme(pick, a, b):
    """A number beats a NaN; -0 is below +0."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return pick((a, b), key=lambda v: (v, math.copysign(1, v)))


def pairs(dtype):
    values = np.array(SPECIAL, dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arithmetic_is_ieee(dtype):
    with np.errstate(all="ignore"):
        a, b = pairs(dtype)
        y = np.zeros((len(a), 9), dtype)
        operate(a, b, y)
        least = [extreme(min, p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
        greatest = [extreme(max, p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
        want = np.stack([a + b, a - b, a * b, a / b, least, greatest, -a, abs(a), np.sqrt(a)], 1).astype(dtype)
    np.testing.assert_array_equal(y, want)
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(y)[signed], np.signbit(want)[signed])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_comparisons_with_nan_and_signed_zeros(dtype):
    with np.errstate(all="ignore"):
        a, b = pairs(dtype)
    y = np.zeros((len(a), 6), np.bool_)
    compare(a, b, y)
    np.testing.assert_array_equal(y, np.stack([a == b, a != b, a < b, a <= b, a > b, a >= b], 1))


@qp.kernel
def divide(a: A(), b: A(), y: A()):
    for i in a:
        y[i, 0] = a[i] // b[i]
        y[i, 1] = a[i] % b[i]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floor_division_and_remainder_follow_python(dtype):
    numbers = [0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 7.25, -7.25, 1e10, 0.1]
    a, b = (np.array(c, dtype) for c in zip(*[(p, q) for p in numbers for q in numbers], strict=True))
    y = np.zeros((len(a), 2), dtype)
    divide(a, b, y)
    np.testing.assert_array_equal(y, np.stack([a // b, a % b], 1))


@qp.kernel
def divide_integers(a: qp.i32, b: qp.i32) -> float:
    return a / b


def test_division_of_integers_is_true_division():
    assert divide_integers(7, 2) == 3.5
    assert divide_integers(-1, 3) == np.float32(-1) / np.float32(3)
    assert divide_integers(1, 0) == math.inf


@qp.kernel
def zero_literals(y: A(qp.f32, 1)):
    y[0] = 1.0 / 0.0
    y[1] = -1.0 / 0
    y[2] = 0.0 / 0.0
    y[3] = 1.0 % 0.0
    y[4] = 0.0**-1
    y[5] = 1.0 // 0.0
    y[6] = 0**-1


def test_literals_divided_by_zero_are_what_they_are_at_run_time():
    y = np.zeros(7, np.float32)
    zero_literals(y)
    np.testing.assert_array_equal(y, [math.inf, -math.inf, math.nan, math.nan, math.inf, math.inf, math.inf])


@qp.kernel
def float_powers(x: qp.f64, n: qp.i32, y: A(qp.f64, 1)):
    y[0] = x**2
    y[1] = x**-1
    y[2] = x**n
    y[3] = x**0.5
    y[4] = 2.0 ** qp.cast(n, qp.f64)


@pytest.mark.parametrize("n", [0, 1, 3, -2])
def test_float_powers(n):
    y = np.zeros(5)
    float_powers(1.5, n, y)
    np.testing.assert_allclose(y, [2.25, 1 / 1.5, 1.5**n, 1.5**0.5, 2.0**n], rtol=1e-15)


@qp.kernel
def not_fused(a: qp.f32, b: qp.f32, c: qp.f32, y: A(qp.f32, 1)):
    y[0] = a * b + c
    y[1] = qp.fma(a, b, c)


def test_only_fma_fuses():
    a = np.float32(1 + 2**-12)
    y = np.zeros(2, np.float32)
    not_fused(a, a, -a * a, y)
    exact = float(a) * float(a) - float(a * a)
    assert y.tolist() == [0.0, exact]
    assert exact != 0.0


@qp.kernel
def denormal(x: qp.f32) -> qp.f32:
    return x * qp.f32(0.5)


def test_products_rounded_to_half_keep_the_sign_of_zero():
    x = np.array([-0.0, 0.0, -1e-30, 1e-30, -1e-5], np.float32)
    y = np.array([1.0, -1.0, 1e-30, 1e-30, 1e-5], np.float32)
    z = np.ones(5, np.float16)

    @qp.kernel
    def multiply(x: qp.types.ndarray(ndim=1), y: qp.types.ndarray(ndim=1), z: qp.types.ndarray(ndim=1)):
        for i in x:
            z[i] = x[i] * y[i]

    multiply(x, y, z)
    assert np.signbit(z).tolist() == [True, True, True, False, True]
    assert (z == 0).all()


def test_denormals_are_kept():
    assert denormal(2.0**-148) == 2.0**-149


@qp.kernel
def beside_whole_numbers(x: A(), n: A(dtype=qp.i32, ndim=1), y: A()):
    for i in x:
        y[i, 0] = min(x[i], n[i])
        y[i, 1] = max(x[i], n[i])
        y[i, 2] = max(n[i], x[i])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 18])
def test_a_whole_number_beats_a_nan(n, dtype):
    """That an operand comes from an integer, and is no NaN, leads no compiler astray."""
    x, y = np.full(n, np.nan, dtype), np.zeros((n, 3), dtype)
    beside_whole_numbers(x, np.arange(n, dtype=np.int32) - 1, y)
    assert y.tolist() == [[i - 1] * 3 for i in range(n)]


@qp.kernel
def extremes_one_by_one(bits_a: A(), bits_b: A(), y: A(), real: qp.template(), n: qp.i32):
    for i in bits_a:
        k = 0
        while k < n:
            a, b = qp.bit_cast(bits_a[i], real), qp.bit_cast(bits_b[i], real)
            size = abs(a) if a == a else real(1.0)  # never a NaN
            y[i, 0] = min(a, b)
            y[i, 1] = max(a, b)
            y[i, 2] = min(size, b)
            y[i, 3] = max(b, size)
            k += 1


@pytest.mark.parametrize(
    ("dtype", "real", "bits", "signalling"),
    [(np.float32, qp.f32, np.int32, 0x7F800001), (np.float64, qp.f64, np.int64, 0x7FF0000000000001)],
)
def test_extremes_one_by_one(dtype, real, bits, signalling):
    """The code of single numbers differs from that of vectors; a number beats a signalling NaN too."""
    values = np.append(np.array(SPECIAL, dtype).view(bits), bits(signalling))
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    y = np.zeros((len(a), 4), dtype)
    extremes_one_by_one(a, b, y, real, 1)
    wanted = []
    for p, q in zip(a.view(dtype).tolist(), b.view(dtype).tolist(), strict=True):
        size = 1.0 if math.isnan(p) else abs(p)
        wanted.append([extreme(min, p, q), extreme(max, p, q), extreme(min, size, q), extreme(max, q, size)])
    np.testing.assert_array_equal(y, wanted)
    numbers = ~np.isnan(y)
    np.testing.assert_array_equal(np.signbit(y)[numbers], np.signbit(wanted)[numbers])


@qp.kernel
def extremes_of_the_index(low: A(), high: A(), n: qp.i32):
    for i in range(n):
        qp.atomic_min(low[0], -i)
        qp.atomic_max(high[0], i)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 19, 66])
def test_extremes_of_the_index(n, dtype):
    low, high = np.full(1, 50, dtype), np.full(1, -50, dtype)
    extremes_of_the_index(low, high, n)
    assert (low[0], high[0]) == (min(50, 1 - n), max(-50, n - 1))


@qp.kernel
def whole_powers(x: qp.types.ndarray(qp.f32, 1), y: qp.types.ndarray(qp.f32, 2)):
    for i in x:
        y[0, i] = x[i] ** 2.0
        y[1, i] = x[i] ** -1.0
        y[2, i] = x[i] ** 0.0
        y[3, i] = x[i] ** 1.0
        y[4, i] = x[i] ** math.inf
        y[5, i] = x[i] ** 3.0


@qp.kernel
def whole_powers_in_a_loop(x: qp.types.ndarray(qp.f32, 1), y: qp.types.ndarray(qp.f32, 2)):
    for i in x:
        k = 0
        while k < 1:
            y[0, i] = x[i] ** 2.0
            y[1, i] = x[i] ** -1.0
            y[2, i] = x[i] ** 0.0
            y[3, i] = x[i] ** 1.0
            y[4, i] = x[i] ** math.inf
            y[5, i] = x[i] ** 3.0
            k += 1


@qp.kernel
def eighth_powers(x: qp.types.ndarray(qp.f32, 1), y: qp.types.ndarray(qp.f32, 1)):
    for i in x:
        y[i] = 0.0
        while y[i] == 0.0:
            y[i] = x[i] ** 8.0


def test_whole_powers_in_a_loop_are_products_under_fast_math(init):
    init(fast_math=True)
    x = np.random.default_rng(0).uniform(0.5, 2, 500).astype(np.float32)
    y = np.zeros_like(x)
    eighth_powers(x, y)
    np.testing.assert_array_equal(y, ((x * x) * (x * x)) * ((x * x) * (x * x)))


@pytest.mark.parametrize("kernel", [whole_powers, whole_powers_in_a_loop])
def test_powers_with_a_whole_exponent_in_the_text(kernel):
    """Correctly rounded where a product or a quotient is."""
    values = [0.0, -0.0, 1.0, -1.0, 0.1, -3.7, 1e-30, 1e-42, 3e30, np.inf, -np.inf, np.nan]
    x = np.concatenate([values, np.random.default_rng(0).normal(size=500)]).astype(np.float32)
    y = np.zeros((6, x.size), np.float32)
    kernel(x, y)
    with np.errstate(all="ignore"):
        want = [x * x, 1 / x, np.ones_like(x), x, np.power(x, np.float32(np.inf)), x.astype(np.float64) ** 3]
    for row, exact in zip(y[:4], want[:4], strict=True):
        np.testing.assert_array_equal(row, exact)
        np.testing.assert_array_equal(np.signbit(row)[~np.isnan(row)], np.signbit(exact)[~np.isnan(row)])
    np.testing.assert_array_equal(y[4], want[4])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y[5], want[5].astype(np.float32), rtol=3e-7, atol=1e-44)
