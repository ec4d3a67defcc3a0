"""What the language's reference says of numbers, in Python: casts, and the operators that leave nothing open.

A value of an integer type is an ``int``, of ``u1`` 0 or 1, of a float type NumPy's scalar; of bf16 an ``np.float32``
that bf16 holds.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np

from quadpy.core.dtypes import bf16, f16, f32, f64, i32, i64, promote, u1, u8, u16, u32, u64

from quadpy.core.dtypes import i8, i16  # isort: skip

NUMPY = {
    u1: np.bool_, i8: np.int8, i16: np.int16, i32: np.int32, i64: np.int64, u8: np.uint8, u16: np.uint16,
    u32: np.uint32, u64: np.uint64, f16: np.float16, f32: np.float32, f64: np.float64,
}  # fmt: skip
WHOLE = (i8, i16, i32, i64, u8, u16, u32, u64)
FLOATS = (f16, bf16, f32, f64)
ALL = (u1, *WHOLE, *FLOATS)


def wrapped(x, t):
    return (x - t.min_int) % (1 << t.bits) + t.min_int


def to_bfloat(x):
    """``x``, an integer or of f32 or f64, rounded once to the eight digits of bf16."""
    if x == 0 or not (isinstance(x, int) or math.isfinite(x)):
        return np.float32(x)
    x = x if isinstance(x, int) else float(x)
    exponent = abs(x).bit_length() if isinstance(x, int) else math.frexp(x)[1]
    unit = max(exponent - 8, -133)
    rounded = math.copysign(math.ldexp(round(Fraction(x) / Fraction(2) ** unit), unit), x)
    return np.float32(rounded if abs(rounded) < 2.0**128 else math.copysign(math.inf, x))


def subnormal(t, fraction):
    """A number of the float type ``t`` below its normal ones: ``fraction`` of the least normal one, but not zero."""
    least, digits = {f16: (-14, 10), bf16: (-126, 7), f32: (-126, 23), f64: (-1022, 52)}[t]
    return math.ldexp(max(1, int(fraction * 2**digits)), least - digits)


def cast(x, source, target):
    """``x``, of the type ``source``, as a ``target``."""
    if source == target:
        return x
    if target == u1:
        return int(x != 0)
    if not target.is_float:
        if not source.is_float:
            return wrapped(x, target)
        return 0 if math.isnan(x) else int(min(max(float(x), target.min_int), target.max_int))
    if target == bf16:
        return to_bfloat(x if source.is_float else int(x))
    if not source.is_float:  # f32 holds all that is finite as f16
        kept = f64 if target == f64 else f32
        x = np.array([x], NUMPY[u8 if source == u1 else source]).astype(NUMPY[kept])[0]
    return x.astype(NUMPY[target])


def meet(a, b):
    """The types in which ``+ - *`` are done: two truths make the default integer."""
    t = promote(a, b)
    return i32 if t == u1 else t


def finished(x, t):
    """The exact result of an integer operation, or a float's of f32, as a ``t``."""
    if not t.is_float:
        return wrapped(x, t)
    return to_bfloat(x) if t == bf16 else x


def floor_divide(x, y):
    return x // y if y else 0


def remainder(x, y):
    return x % y if y else 0


def cut_divide(x, y):
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def cut_remainder(x, y):
    return 0 if y == 0 else x - y * cut_divide(x, y)


def _extreme(sign):
    def pick(x, y):
        if x != x or y != y:
            return y if x != x else x
        if x == y == 0 and not isinstance(x, int):
            return x if math.copysign(1, x) == sign else y
        return max(x, y) if sign > 0 else min(x, y)

    return pick


minimum, maximum = _extreme(-1), _extreme(1)

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
DIVISIONS = {"//": floor_divide, "%": remainder}
BITS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
COMPARISONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
CUT = {"qp.raw_div": cut_divide, "qp.raw_mod": cut_remainder}
EXTREMES = {"min": minimum, "max": maximum}
ROUNDINGS = {"qp.floor": np.floor, "qp.ceil": np.ceil, "qp.trunc": np.trunc, "qp.round": np.rint}


def shift(op, x, count, t):
    inside = 0 <= count < t.bits
    if op == "<<":
        return wrapped(x << count, t) if inside else 0
    if op == "qp.bit_shr":
        return wrapped(x % (1 << t.bits) >> count, t) if inside else 0
    return x >> count if inside else -1 if x < 0 else 0


def power(x, n, t):
    """A product for each digit of ``n``, a whole number, from the second one on."""
    if n == 0:
        return finished(1, t) if not t.is_float else cast(1, i32, t)
    result = x
    for digit in bin(n)[3:]:
        result = finished(result * result, t)
        if digit == "1":
            result = finished(result * x, t)
    return result


def count_bits(name, x, t):
    raw = x % (1 << t.bits)
    if name == "qp.popcnt":
        return raw.bit_count()
    return t.bits - raw.bit_length() if name == "qp.clz" else (raw & -raw).bit_length()


def reinterpreted(x, target):
    """The bits of an integer as a float of the same width (not bf16), and the other way round."""
    if target.is_float:
        return np.array([x % (1 << target.bits)], f"u{target.bits // 8}").view(NUMPY[target])[0]
    return int(np.array([x]).view(NUMPY[target])[0])
