"""Every scalar type cast to every other, against Python's exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.dtypes import SCALARS

FLOATS = [t for t in SCALARS if t.is_float]
A = qp.types.ndarray


@qp.kernel
def convert(x: A(), y: A()):
    for i in x:
        y[i] = x[i]


DIGITS = {qp.f16: (11, -24, 16), qp.bf16: (8, -133, 128), qp.f32: (24, -149, 128), qp.f64: (53, -1074, 1024)}
"""Binary digits, the exponent of the least subnormal number, and that of what is too large."""


def rounded(value, t):
    """The float of type ``t`` nearest to ``value``, of which all digits count, ties to even."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    digits, least, most = DIGITS[t]
    exact = Fraction(value)
    place = max((abs(exact.numerator).bit_length() - exact.denominator.bit_length()) - digits, least)
    while abs(exact) / Fraction(2) ** place >= 2**digits:
        place += 1
    kept = round(exact / Fraction(2) ** place) * Fraction(2) ** place
    if abs(kept) >= Fraction(2) ** most:
        return math.copysign(math.inf, value)
    return math.copysign(float(kept), value)


def expected(value, t):
    if t.is_float:
        return rounded(value, t)
    if t == qp.u1:
        return value != 0
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return (
            int(min(max(value, t.min_int), t.max_int))
            if math.isfinite(value)
            else (t.max_int if value > 0 else t.min_int)
        )
    return (value - t.min_int) % (1 << t.bits) + t.min_int


def samples(t):
    if t == qp.u1:
        return [False, True]
    if not t.is_float:
        edges = [t.min_int, t.min_int + 1, 0, 1, 2, 100, 127, t.max_int - 1, t.max_int]
        wide = [k + d for k in (1 << 7, 1 << 8, 1 << 11, 1 << 24, 1 << 31, 1 << 53) for d in (-1, 0, 1, 3)]
        wide += [k + d for k in (65504, 65519, 65520, 65536, 1 << 63) for d in (-1, 0, 1)]
        # Half a unit of the last digit, and a little to the side: what is rounded twice goes wrong here.
        halves = [
            (2 * k + 1) << n
            for p, _, _ in DIGITS.values()
            for k in (1 << (p - 1), 1 << p, (1 << p) + 1)
            for n in (1, 12, 20, 30, 40)
        ]
        wide += [h + d for h in halves for d in (-1, 0, 1, 2, -(h & -h) // 4)]
        return sorted({v for v in [*edges, *wide, *(-v for v in wide)] if t.min_int <= v <= t.max_int})
    plain = [0.0, -0.0, 0.5, -0.5, 0.999, 1.5, 2.5, -2.5, 127.5, 128.0, -129.0, 255.9, 256.0, 2047.0, 2049.0, 3e4, 7e4]
    wide = [2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, 1e-8, 6e-8, 1e-40, 1e300]
    return [rounded(v, t) for v in [*plain, *wide, math.inf, -math.inf, math.nan]]


@pytest.mark.parametrize("target", SCALARS, ids=str)
@pytest.mark.parametrize("source", SCALARS, ids=str)
def test_cast(source, target):
    values = samples(source)
    x, y = qp.ndarray(source, len(values)), qp.ndarray(target, len(values))
    for i, value in enumerate(values):
        x[i] = value
    convert(x, y)
    for i, value in enumerate(values):
        want, got = expected(value, target), y[i]
        assert got == want or (got != got and want != want), f"{source} {value!r} to {target}"
        if target.is_float and want == 0 and source.is_float:
            assert math.copysign(1, got) == math.copysign(1, value)


@qp.kernel
def every_cast(x: qp.f64, y: A(qp.f64, 1)):
    y[0] = qp.i8(x)
    y[1] = qp.u16(x)
    y[2] = int(x)
    y[3] = float(x)
    y[4] = bool(x)
    y[5] = qp.cast(x, qp.u8)
    y[6] = qp.f16(x)


def test_the_ways_to_write_a_cast():
    y = np.zeros(7)
    every_cast(300.7, y)
    assert y.tolist() == [127, 300, 300, float(np.float32(300.7)), 1, 255, float(np.float16(300.7))]


@qp.kernel
def same_bits(x: qp.f32) -> qp.u32:
    return qp.bit_cast(x, qp.u32)


@qp.kernel
def same_bits_of_half(x: qp.i16) -> qp.f16:
    return qp.bit_cast(x, qp.f16)


def test_bit_cast_keeps_the_bits():
    assert same_bits(-0.0) == 0x80000000
    assert same_bits(1.5) == 0x3FC00000
    assert same_bits_of_half(0x3C00) == 1.0
    assert same_bits_of_half(-0x8000) == 0.0


I32, I64, U32, F32, F64 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.i32, qp.i64, qp.u32, qp.f32, qp.f64))


@qp.kernel
def halves_of_integers_with_few_digits(x: I32, wide: I64, y: qp.types.ndarray(dtype=qp.f64, ndim=2)):
    """What is known of the lowest digits must not hide that the number is too large for an f16."""
    for i in x:
        y[0, i] = qp.f16(x[i] << 24)
        y[1, i] = qp.f16(qp.u32(x[i]) << 17)
        y[2, i] = qp.f16(wide[i] << 40)
        y[3, i] = qp.f16(qp.u64(wide[i]) << 56)
        y[4, i] = qp.f16(x[i] * 65536) * qp.f16(0.5)
        y[5, i] = qp.f16(qp.f32(x[i] << 24))
        y[6, i] = qp.f16(qp.f64(wide[i] << 40))
        y[7, i] = qp.f16(qp.i32(qp.f32(x[i]) * 65536.0) & -65536)
        y[8, i] = -qp.f16(qp.Vector([x[i] << 20, 0])[0])
        y[9, i] = qp.f16(x[i] << 24 if x[i] > 2 else x[i] << 25)
        y[10, i] = qp.i32(qp.f16(x[i] << 24))
        y[11, i] = qp.f16(x[i] << 24) > qp.f16(60000.0)
        y[12, i] = qp.f32(qp.bf16(x[i] << 24))


def test_an_integer_too_large_for_a_half_is_infinite_whatever_is_known_of_its_digits():
    x = np.array([1, 31, 3, 0], np.int32)
    y = np.zeros((13, 4))
    halves_of_integers_with_few_digits(x, x.astype(np.int64), y)
    assert y[:8].tolist() == [[math.inf] * 3 + [0]] * 8
    assert y[8].tolist() == [-math.inf] * 3 + [0]
    assert y[9].tolist() == y[0].tolist()
    assert y[10:12].tolist() == [[2**31 - 1] * 3 + [0], [1, 1, 1, 0]]
    assert y[12].tolist() == (x * 2.0**24).tolist()


@qp.kernel
def low_bits_of_floats(
    x: F64, y: qp.types.ndarray(dtype=qp.u32, ndim=2), y16: A(dtype=qp.u16, ndim=2), y8: A(dtype=qp.u8, ndim=2)
):
    for i in x:
        y[0, i] = qp.bit_cast(x[i] + 1.0, qp.u64)
        y[1, i] = qp.bit_cast(max(x[i], qp.f64(-3.0)), qp.u64)
        y[2, i] = qp.bit_cast(-x[i], qp.i64)
        y[3, i] = qp.bit_cast(qp.f64(qp.i32(x[i])), qp.u64) | 1
        y16[0, i] = qp.bit_cast(x[i] * 3.0, qp.u64)
        y16[1, i] = qp.bit_cast(qp.f32(x[i]) * qp.f32(3.0), qp.u32)
        y16[2, i] = qp.bit_cast(x[i] / 3.0 if x[i] > 0.0 else x[i] * 5.0, qp.u64)
        y16[3, i] = qp.bit_cast(qp.sqrt(qp.f32(x[i])), qp.i32)
        y8[0, i] = qp.bit_cast(x[i] / 7.0, qp.u64)
        y8[1, i] = qp.bit_cast(qp.f32(x[i]) / qp.f32(7.0), qp.u32)
        y8[2, i] = qp.bit_cast(qp.f16(x[i]) * qp.f16(1.1), qp.u16)
        y8[3, i] = qp.bit_cast(qp.f16(x[i]) + qp.f16(0.3), qp.i16)


def test_the_low_bits_of_a_float_are_stored_as_they_are():
    x = np.array([0.1, 1 / 3, 1e4, 700.7, 2.5])
    f, h = x.astype(np.float32), x.astype(np.float16)
    y, y16, y8 = (np.zeros((4, 5), t) for t in (np.uint32, np.uint16, np.uint8))
    low_bits_of_floats(x, y, y16, y8)
    halves = (h * np.float16(1.1), h + np.float16(0.3))
    whole = x.astype(np.int32).astype(np.float64)
    expected = [
        (y, [x + 1.0, np.maximum(x, -3.0), -x, whole]),
        (y16, [x * 3.0, f * np.float32(3), x / 3.0, np.sqrt(f)]),
        (y8, [x / 7.0, f / np.float32(7), *halves]),
    ]
    for found, floats in expected:
        for row, values in zip(found, floats, strict=True):
            bits = values.view(f"u{values.itemsize}").astype(found.dtype)
            assert row.tolist() == (bits | (found is y and values is whole)).tolist()


@qp.kernel
def comparisons_as_bits_of_halves(x: F64, y: qp.types.ndarray(dtype=qp.f64, ndim=2)):
    for i in x:
        no = qp.u1(x[i])
        y[0, i] = qp.bit_cast(qp.i16(x[i] != 0.0), qp.f16)
        y[1, i] = qp.bit_cast(qp.u16(not no), qp.f16)
        y[2, i] = qp.bit_cast(qp.u16(qp.f16(x[i]) == qp.f16(0.5)), qp.f16)
        y[3, i] = qp.bit_cast(qp.i16(qp.i32(x[i] > 0.25) & 1), qp.f16)
        y[4, i] = qp.bit_cast(qp.i16(0) - qp.i16(x[i] > 0.25), qp.f16)


def test_the_bits_of_a_half_may_be_a_comparison():
    x = np.array([0.0, 0.5, -2.0])
    y = np.ones((5, 3))
    comparisons_as_bits_of_halves(x, y)
    least = 2.0**-24
    assert y[:4].tolist() == [[0, least, least], [least, 0, 0], [0, least, 0], [0, least, 0]]
    assert np.isnan(y[4]).tolist() == [False, True, False]


@qp.kernel
def chosen_twice(x: qp.types.ndarray(dtype=qp.f16, ndim=1), y: qp.types.ndarray(dtype=qp.bf16, ndim=1)):
    for i in x:
        v, w = x[i], y[i]
        for _ in range(2):
            v = qp.f16(qp.select(qp.u1(v), qp.f64(0.0), qp.f64(-0.5)))
            w = qp.bf16(qp.select(qp.u1(w), qp.f64(0.0), qp.f64(-0.5)))
        x[i], y[i] = v, w


def test_choices_of_two_doubles_are_converted_one_by_one():
    """ptxas 13.0 would take the first conversion for the second."""
    x, y = qp.ndarray(qp.f16, 4), qp.ndarray(qp.bf16, 4)
    x.fill(3.0)
    y.fill(3.0)
    chosen_twice(x, y)
    assert [float(v) for v in x.to_numpy()] == [-0.5] * 4
    assert [float(y[i]) for i in range(4)] == [-0.5] * 4
