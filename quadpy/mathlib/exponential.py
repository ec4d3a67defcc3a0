"""exp, exp2, exp10, expm1: ``2**n`` times a polynomial.

``x = n*log(2) + r`` with an integer n and ``|r| <= log(2)/2``; then ``e**x = 2**n * e**r``.  Adding and
subtracting 1.5 * 2**23 (2**52 for f64) rounds to an integer, which then stands in the low bits of the
sum: no conversion is needed.  Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.floats import BIAS, FRACTION_BITS, horner
from quadpy.mathlib.library import expand, library, per_width
from quadpy.mathlib.ops import Float, Int, abs_, bitcast, select

__all__ = [
    "exp", "exp2", "exp10", "exp_split", "expm1", "power_of_two", "round_split", "scale",
]  # fmt: skip

LOG2_E = 1.4426950408889634
LOG2_10 = 3.321928094887362
LN2, LN10 = 0.6931471805599453, 2.302585092994046
# The high parts have few enough bits that their product with n is exact.
LN2_HI = per_width(f32=0.693145751953125, f64=0.6931471805601177)
LN2_LO = per_width(f32=1.428606765330187e-06, f64=-1.7239444525614835e-13)
LOG10_2_HI = per_width(f32=0.301025390625, f64=0.3010299956640665)
LOG10_2_LO = per_width(f32=4.605039066518657e-06, f64=-8.532344317057107e-14)
MAGIC = per_width(f32=1.5 * 2.0**23, f64=1.5 * 2.0**52)
MAGIC_BITS = per_width(f32=0x4B400000, f64=0x4338000000000000)
# Where the results are 0 (-1) below and infinite above.
EXP_RANGE = per_width(f32=(-104.0, 90.0), f64=(-746.0, 711.0))
EXP2_RANGE = per_width(f32=(-151.0, 129.0), f64=(-1076.0, 1025.0))
EXP10_RANGE = per_width(f32=(-46.0, 39.0), f64=(-324.0, 309.0))
EXPM1_RANGE = per_width(f32=(-18.0, 89.0), f64=(-38.0, 710.0))
EXP = per_width(
    f32=(
        0.4999999403953552,
        0.1666652113199234,
        0.04166838899254799,
        0.008368712849915028,
        0.0013814587146043777,
    ),
    f64=(
        0.5000000000000011,
        0.16666666666666413,
        0.04166666666653022,
        0.008333333333494394,
        0.0013888888943611943,
        0.0001984126950668589,
        2.4801493119603533e-05,
        2.755758631710518e-06,
        2.7630240399616526e-07,
        2.5000066913428697e-08,
    ),
)


@expand
def clamp(x: Float, ends: tuple[float, float]) -> Float:
    """``x`` or the end that it is beyond; a NaN stays."""
    low = select(x < ends[0], ends[0], x)
    return select(low > ends[1], ends[1], low)


@library()
def round_split(x: Float) -> tuple[Float, Int]:
    """The integer nearest to ``x``, as a float and as an integer; ``|x|`` below 2**21 (2**50 for f64)."""
    shifted = x + MAGIC
    return shifted - MAGIC, bitcast(shifted, Int) - MAGIC_BITS


@library()
def power_of_two(n: Int) -> Float:
    """``2**n`` for a normal result."""
    return bitcast((n + BIAS) << FRACTION_BITS, Float)


@library()
def scale(x: Float, n: Int) -> Float:
    """``x * 2**n``, rounded once; halving n keeps both factors normal over twice the exponent range."""
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


@library()
def exp_split(x: Float, rest: Float) -> tuple[Float, Int]:
    """``e**(x + rest)``, for a small ``rest``, as a number near 1 and the exponent of 2 to multiply it by."""
    clamped = clamp(x, EXP_RANGE)
    k, n = round_split(clamped * LOG2_E)
    r = clamped - k * LN2_HI - k * LN2_LO + rest
    return r * r * horner(r, EXP) + r + 1.0, n


@library(ulp=1.0)
def exp(x: Float) -> Float:
    """The exponential of ``x``."""
    mantissa, n = exp_split(x, Float(0.0))
    return scale(mantissa, n)


@library(ulp=1.1)
def exp2(x: Float) -> Float:
    """2 to the power of ``x``; exact for integers."""
    clamped = clamp(x, EXP2_RANGE)
    k, n = round_split(clamped)
    r = (clamped - k) * LN2
    return scale(r * r * horner(r, EXP) + r + 1.0, n)


@library(ulp=1.1)
def exp10(x: Float) -> Float:
    """10 to the power of ``x``."""
    clamped = clamp(x, EXP10_RANGE)
    k, n = round_split(clamped * LOG2_10)
    r = (clamped - k * LOG10_2_HI - k * LOG10_2_LO) * LN10
    total = r + 1.0
    return scale(total + (((1.0 - total) + r) + r * r * horner(r, EXP)), n)


@library(ulp=1.2)
def expm1(x: Float) -> Float:
    """``e**x - 1`` without cancellation near 0."""
    clamped = clamp(x, EXPM1_RANGE)
    k, n = round_split(clamped * LOG2_E)
    high, rest = clamped - k * LN2_HI, k * LN2_LO
    r = high - rest
    lost = (high - r) - rest
    tail = r * r * horner(r, EXP) + (lost + lost * r)
    half = power_of_two(n - 1)  # half of the result: it does not overflow before the result does
    base, step = half - 0.5, half * r
    total = base + step
    result = total + (((base - total) + step) + half * tail)
    return select(abs_(x) < 2.0 ** -(FRACTION_BITS + 2), x, result + result)
