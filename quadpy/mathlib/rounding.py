"""fmod, and Python's ``%`` and ``//`` on floats: exact remainders, however large the quotient.

If the quotient has fewer bits than the significand, one division and one exact product are enough.  A loop, which
almost never runs, first takes the dividend modulo the divisor times a power of two.
"""

from quadpy.mathlib.exponential import power_of_two
from quadpy.mathlib.floats import BIAS, FRACTION_BITS, LEAST_NORMAL, LIFT
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Int, abs_, bitcast, copysign, floor, fma, select, trunc

INF = float("inf")
STEP = per_width(
    f32=22, f64=51
)  # bits of the quotient that an iteration of fmod removes; with fewer, ``scale_far`` overflows


@library()
def exponent(x: Float) -> Int:
    """The exponent of the leading bit of a positive finite ``x``."""
    tiny = x < LEAST_NORMAL
    bits = bitcast(select(tiny, x * 2.0**LIFT, x), Int)
    return (bits >> FRACTION_BITS) - select(tiny, Int(BIAS + LIFT), BIAS)


@library()
def scale_far(x: Float, n: Int) -> Float:
    """``x * 2**n``; halving n keeps both factors normal over twice the exponent range."""
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


@library()
def short_mod(x: Float, y: Float) -> Float:
    """``x`` modulo ``y``, both positive, for a quotient below 2**23 (2**52 for f64).

    The rounded quotient may be one too large; its product with ``y`` is formed exactly, in two floats.
    """
    quotient = trunc(x / y)
    rest = fma(-quotient, y, x)
    return select(x < y, x, select(rest < 0.0, rest + y, rest))


@library(ulp=0.0)
def fmod(x: Float, y: Float) -> Float:
    """The exact remainder of ``x / y`` with the sign of ``x``; NaN for ``y = 0`` or infinite ``x``."""
    divisor = abs_(y)
    rest = abs_(x)
    while (rest >= divisor * 2.0 ** (STEP + 1)) & (rest < INF) & (divisor > 0.0):
        rest = short_mod(rest, scale_far(divisor, exponent(rest) - exponent(divisor) - STEP))
    result = short_mod(rest, divisor)
    return copysign(select((rest < INF) & (divisor > 0.0), result, (x * y) / (x * y)), x)


@library(ulp=0.5)
def py_mod(x: Float, y: Float) -> Float:
    """Python's ``x % y``: the remainder with the sign of ``y``, rounded once if that takes an addition."""
    rest = fmod(x, y)
    differs = (rest < 0.0) != (y < 0.0)
    return select(rest == 0.0, copysign(rest, y), select(differs, rest + y, rest))


@library(ulp=1.0)
def py_floordiv(x: Float, y: Float) -> Float:
    """Python's ``x // y``: the integral quotient that belongs to ``x % y``; for ``y = 0``, ``x / y``."""
    rest = fmod(x, y)
    differs = ((rest < 0.0) != (y < 0.0)) & (rest != 0.0)
    exact = (x - rest) / y - select(differs, Float(1.0), 0.0)
    whole = floor(exact)
    nearest = select(exact - whole > 0.5, whole + 1.0, whole)
    whole_quotient = select(exact == 0.0, copysign(exact, x / y), nearest)
    return select(y == 0.0, x / y, whole_quotient)
