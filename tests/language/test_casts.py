"""Every scalar type cast to every other, against Python's exact numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quadpy as qp
from quadpy.dtypes import SCALARS

FLOATS = [t for t in SCALARS if t.is_float]
NUMPY_FLOAT = {qp.f16: np.float16, qp.f32: np.float32, qp.f64: np.float64}
A = qp.types.ndarray


@qp.kernel
def convert(x: A(), y: A()):
    for i in x:
        y[i] = x[i]


def rounded(value, t):
    """The float of type ``t`` nearest to ``value``; a bf16 is rounded from its f32."""
    with np.errstate(over="ignore"):
        if t != qp.bf16:
            return float(NUMPY_FLOAT[t](value))
        single = np.float32(value)
        if not np.isfinite(single):
            return float(single)
        bits = int(single.view(np.uint32))
        return float(np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32))


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
