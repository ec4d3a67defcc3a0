"""The scalar types of the language as NumPy's scalars.  NumPy lacks bf16: it is an f32 with the digits of a bf16."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from quadpy.core.dtypes import Scalar, bf16, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64


def bits_of_bf16(x: np.float32) -> np.uint16:
    """The bits of an f32 rounded to bf16, ties to even."""
    bits = int(x.view(np.uint32))
    if x != x:
        return np.uint16(0x7FC0)
    return np.uint16(((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF)


def bf16_of_bits(bits: np.uint16) -> np.float32:
    """The bf16 of these bits."""
    return np.uint32(int(bits) << 16).view(np.float32)


def _rounded_to_bf16(x: Any) -> np.float32:
    return bf16_of_bits(bits_of_bf16(np.float32(x)))


TYPES: Final[dict[Scalar, Callable[..., Any]]] = {
    u1: np.bool_, i8: np.int8, i16: np.int16, i32: np.int32, i64: np.int64, u8: np.uint8, u16: np.uint16, u32: np.uint32,
    u64: np.uint64, f16: np.float16, bf16: _rounded_to_bf16, f32: np.float32, f64: np.float64,
}  # fmt: skip
"""The function that makes a value of the type."""

MEMORY_TYPES: Final[dict[Scalar, np.dtype[Any]]] = {
    t: np.dtype(np.uint16) if t == bf16 else np.dtype(type(make(0))) for t, make in TYPES.items()
}
"""The type of an array's elements in memory."""


def number(value: float, t: Scalar) -> Any:
    """The constant ``value`` as a ``t``; an integer keeps its low bits."""
    if t.is_float or t == u1:
        return TYPES[t](value)
    whole = int(value) & ((1 << t.bits) - 1)
    return TYPES[t](whole - (1 << t.bits) if whole > t.max_int else whole)


def odd_single(x: np.float64) -> np.float32:
    """``x`` as an f32 whose last bit is set if it is inexact: rounding the result again equals rounding ``x`` once."""
    single = np.float32(x)
    if np.isnan(x) or float(single) == float(x):
        return single
    bits = int(single.view(np.uint32))
    if bits & 1 == 0:
        bits += 1 if abs(float(single)) < abs(float(x)) else -1
    return np.uint32(bits).view(np.float32)


def odd_single_of_integer(x: Any) -> np.float32:
    """Like ``odd_single``."""
    whole = int(x)
    excess = abs(whole).bit_length() - 53
    if excess > 0:
        kept = abs(whole) >> excess
        kept = (kept | ((kept << excess) != abs(whole))) << excess
        whole = -kept if whole < 0 else kept
    return odd_single(np.float64(whole))


def identity(op: str, t: Scalar) -> Any:
    """The neutral operand of ``op``, to the bit: -0.0 for addition, NaN for min."""
    match op:
        case "mul":
            return number(1, t)
        case "and":
            return number(-1 if t.kind == "int" else t.max_int, t)
        case "min":
            return number(math.nan if t.is_float else t.max_int, t)
        case "max":
            return number(math.nan if t.is_float else t.min_int, t)
        case _:
            return number((-0.0 if op == "add" else 0.0) if t.is_float else 0, t)


def fused(a: float, b: float, c: float) -> float:
    """``a * b + c``, rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        return c if math.isfinite(a) and math.isfinite(b) else a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0 if a and b else a * b + c  # zeros have signs
    try:
        return float(exact)
    except OverflowError:
        return -math.inf if exact < 0 else math.inf


def fused_single(a: float, b: float, c: float) -> np.float32:
    """``a * b + c`` of f32, rounded once: by way of a float whose last bit is set where it is inexact."""
    near = fused(a, b, c)
    if not math.isfinite(near) or Fraction(near) == (exact := Fraction(a) * Fraction(b) + Fraction(c)):
        return np.float32(near)
    bits = int(np.float64(near).view(np.uint64))
    if bits & 1 == 0:
        bits += 1 if abs(Fraction(near)) < abs(exact) else -1
    return np.float32(np.uint64(bits).view(np.float64))
