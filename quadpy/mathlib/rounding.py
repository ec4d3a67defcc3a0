"""fmod, and Python's ``%`` and ``//`` on floats: exact remainders, however large the quotient.

Where the quotient has fewer bits than the significand, one division and one exact product do.  A loop, which
almost never runs, first takes the dividend modulo the divisor times a power of two.
"""

from quadpy.mathlib.exponential import scale_f32, scale_f64
from quadpy.mathlib.halves import upper_f32, upper_f64
from quadpy.mathlib.library import library
from quadpy.mathlib.ops import abs_, bitcast, copysign, f32, f64, floor, i32, i64, select, trunc

__all__ = ["fmod_f32", "fmod_f64", "py_floordiv_f32", "py_floordiv_f64", "py_mod_f32", "py_mod_f64"]

INF = float("inf")


@library()
def exponent_f32(x: f32) -> i32:
    """The exponent of the leading bit of a positive finite ``x``."""
    tiny = x < 1.1754943508222875e-38
    bits = bitcast(select(tiny, x * 16777216.0, x), i32)
    return (bits >> 23) - select(tiny, i32(151), 127)


@library()
def short_mod_f32(x: f32, y: f32) -> f32:
    """``x`` modulo ``y``, both positive, for a quotient below 2**23.

    The rounded quotient may be one too large; its product with ``y`` is formed exactly, in two floats.
    """
    quotient = trunc(x / y)
    q, d = upper_f32(quotient), upper_f32(y)
    q_rest, d_rest = quotient - q, y - d
    product = quotient * y
    product_rest = ((q * d - product) + q * d_rest + q_rest * d) + q_rest * d_rest
    rest = (x - product) - product_rest
    return select(x < y, x, select(rest < 0.0, rest + y, rest))


@library(ulp=0.0)
def fmod_f32(x: f32, y: f32) -> f32:
    """The exact remainder of ``x / y`` with the sign of ``x``; NaN for ``y = 0`` or infinite ``x``."""
    divisor = abs_(y)
    rest = abs_(x)
    while (rest >= divisor * 4194304.0) & (rest < INF) & (divisor > 0.0):
        rest = short_mod_f32(rest, scale_f32(divisor, exponent_f32(rest) - exponent_f32(divisor) - 21))
    result = short_mod_f32(rest, divisor)
    return copysign(select((rest < INF) & (divisor > 0.0), result, (x * y) / (x * y)), x)


@library(ulp=0.5)
def py_mod_f32(x: f32, y: f32) -> f32:
    """Python's ``x % y``: the remainder with the sign of ``y``, rounded once where that takes an addition."""
    rest = fmod_f32(x, y)
    differs = (rest < 0.0) != (y < 0.0)
    return select(rest == 0.0, copysign(rest, y), select(differs, rest + y, rest))


@library(ulp=1.0)
def py_floordiv_f32(x: f32, y: f32) -> f32:
    """Python's ``x // y``: the whole quotient that belongs to ``x % y``."""
    rest = fmod_f32(x, y)
    differs = ((rest < 0.0) != (y < 0.0)) & (rest != 0.0)
    exact = (x - rest) / y - select(differs, f32(1.0), 0.0)
    whole = floor(exact)
    nearest = select(exact - whole > 0.5, whole + 1.0, whole)
    return select(exact == 0.0, copysign(exact, x / y), nearest)


@library()
def exponent_f64(x: f64) -> i64:
    """The exponent of the leading bit of a positive finite ``x``."""
    tiny = x < 2.2250738585072014e-308
    bits = bitcast(select(tiny, x * 1.8014398509481984e16, x), i64)
    return (bits >> 52) - select(tiny, i64(1077), 1023)


@library()
def short_mod_f64(x: f64, y: f64) -> f64:
    """``x`` modulo ``y``, both positive, for a quotient below 2**52.

    The rounded quotient may be one too large; its product with ``y`` is formed exactly, in two floats.
    """
    quotient = trunc(x / y)
    q, d = upper_f64(quotient), upper_f64(y)
    q_rest, d_rest = quotient - q, y - d
    product = quotient * y
    product_rest = ((q * d - product) + q * d_rest + q_rest * d) + q_rest * d_rest
    rest = (x - product) - product_rest
    return select(x < y, x, select(rest < 0.0, rest + y, rest))


@library(ulp=0.0)
def fmod_f64(x: f64, y: f64) -> f64:
    """The exact remainder of ``x / y`` with the sign of ``x``; NaN for ``y = 0`` or infinite ``x``."""
    divisor = abs_(y)
    rest = abs_(x)
    while (rest >= divisor * 2251799813685248.0) & (rest < INF) & (divisor > 0.0):
        rest = short_mod_f64(rest, scale_f64(divisor, exponent_f64(rest) - exponent_f64(divisor) - 50))
    result = short_mod_f64(rest, divisor)
    return copysign(select((rest < INF) & (divisor > 0.0), result, (x * y) / (x * y)), x)


@library(ulp=0.5)
def py_mod_f64(x: f64, y: f64) -> f64:
    """Python's ``x % y``: the remainder with the sign of ``y``, rounded once where that takes an addition."""
    rest = fmod_f64(x, y)
    differs = (rest < 0.0) != (y < 0.0)
    return select(rest == 0.0, copysign(rest, y), select(differs, rest + y, rest))


@library(ulp=1.0)
def py_floordiv_f64(x: f64, y: f64) -> f64:
    """Python's ``x // y``: the whole quotient that belongs to ``x % y``."""
    rest = fmod_f64(x, y)
    differs = ((rest < 0.0) != (y < 0.0)) & (rest != 0.0)
    exact = (x - rest) / y - select(differs, f64(1.0), 0.0)
    whole = floor(exact)
    nearest = select(exact - whole > 0.5, whole + 1.0, whole)
    return select(exact == 0.0, copysign(exact, x / y), nearest)
