"""pow: ``x**y = e**(y * log(x))``, with a logarithm that is exact enough for the exponent.

An error of the product becomes an error of the result that is larger by a factor of up to 104 (746 for f64), so
logarithm and product are carried as sums of two floats.  If ``|y|`` is at most 1, an absolute error of the logarithm
does not grow, and ``log`` is exact enough. Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.core.dtypes import f32, f64
from quadpy.mathlib.exponential import EXP_RANGE, clamp, exp_sum, scale_sum
from quadpy.mathlib.floats import SIGN, fast_sum, horner, product
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.logarithm import LN2_HI, LN2_LO, UNIT, add_exponent, log_parts, log_split
from quadpy.mathlib.ops import Float, Word, abs_, bitcast, fma, rint, select

INF, NAN = float("inf"), float("nan")
THIRD_HI = per_width(f32=0.6666666865348816, f64=0.6666666666666666)  # two thirds as the nearest float and the rest
THIRD_LO = per_width(f32=-1.9868215517249155e-08, f64=3.700743415417188e-17)
FAR = per_width(f32=210.0, f64=1500.0)  # beyond which a product overflows or vanishes anyway
GREATEST = per_width(f32=0x7F7FFFFF, f64=0x7FEFFFFFFFFFFFFF)  # the bits of the largest number
QUOTIENT_F32 = (
    0.5000002384185791,
    -0.2499939352273941,
    0.12496382743120193,
    -0.06276210397481918,
    0.03228454664349556,
    -0.013656976632773876,
)
POW = per_width(
    f32=(
        0.40000152587890625,
        0.285471111536026,
        0.2341911792755127,
    ),
    f64=(
        0.4000000000000226,
        0.28571428570096474,
        0.22222222520493684,
        0.18181784315683389,
        0.15386759766822472,
        0.13256759559095707,
        0.13196881849129222,
    ),
)


@library(width=f32)
def inverse_f32(f: Float) -> Float:
    """``1 / (2 + f)`` within 2**-20."""
    return horner(f, QUOTIENT_F32)


@library(width=f64)
def inverse_f64(f: Float) -> Float:
    """``1 / (2 + f)`` within an ulp."""
    return 1.0 / (f + 2.0)


near_half = per_width(f32=inverse_f32, f64=inverse_f64)


@library()
def log_accurate(n: Float, f: Float) -> tuple[Float, Float]:
    """The logarithm of what ``log_split`` gave, as a sum of two floats with the bits of both.

    With ``s = f / (2 + f)``, ``log(1 + f) = 2*s + s*(2/3*s**2 + ...)``; the first two terms are in two floats each.
    """
    inverse = near_half(f)
    s = f * inverse
    s_low = fma(-s, f, fma(s, -2.0, f)) * inverse
    z, z_low = product(s, s)
    rest = horner(z, POW)
    series = fma(z, rest, THIRD_HI)
    series_low = fma(z, rest, THIRD_HI - series) + THIRD_LO
    change, lost = product(z, series)
    change_low = fma(z_low, series, fma(z, series_low, lost))
    slope = fma(z, fma(z, 2.0, 2.0), 2.0)  # of the logarithm with s
    leading, lost = product(s, change)
    total, rounded = fast_sum(s + s, leading)
    low = rounded + fma(s_low, slope, fma(s, change_low, lost))
    high, more = add_exponent(n, Float(LN2_HI * UNIT), Float(LN2_LO * UNIT), total)
    return high, more + low


@library()
def within_range(size: Float, rest: Float) -> tuple[Float, Float]:
    """``size + rest`` if it is the exponent of a finite result, else an end of ``EXP_RANGE``."""
    return clamp(size, EXP_RANGE), select(abs_(size) < FAR, rest, 0.0)


@library()
def pow_special(x: Float, y: Float, result: Float) -> Float:
    """``result``, which is ``|x|**y`` for finite ``x`` other than 0, completed to all of IEEE 754's cases."""
    magnitude = abs_(x)
    vanishes = (magnitude < 1.0) == (y > 0.0)
    extreme = (x == 0.0) | (magnitude == INF)
    positive = select(extreme, select(vanishes, Float(0.0), INF), result)
    half = y * 0.5
    fraction = rint(y) != y
    odd = (rint(half) != half) & (rint(y) == y)
    sign = select(odd, bitcast(x, Word) & SIGN, 0)
    signed = bitcast(bitcast(positive, Word) | sign, Float)
    real = select((x < 0.0) & (magnitude < INF) & fraction, NAN, signed)
    known = select((x != x) | (y != y), x + y, real)
    one = (x == 1.0) | (y == 0.0) | ((magnitude == 1.0) & (abs_(y) == INF))
    return select(one, 1.0, known)


@library(ulp=1.0)
def pow(x: Float, y: Float) -> Float:
    """``x`` to the power of ``y``, with the special cases of IEEE 754's pow."""
    n, f = log_split(abs_(x))
    high, low = log_parts(n, f)
    # A branch, as in ``reduce``; for a constant exponent nothing of it is left.
    if abs_(y) > 1.0:
        high, low = log_accurate(n, f)
    size, lost = product(y, high)
    rest = fma(y, low, lost)
    if abs_(y) > 1.0:
        size, rest = within_range(size, rest)
    result = scale_sum(*exp_sum(size, rest))
    # If one is not finite, or x is not positive.
    if (bitcast(x, Word) - 1 >= GREATEST) | (y - y != 0.0):
        result = pow_special(x, y, result)
    return result
