"""exp, exp2, exp10, expm1.  Owns: the splitting of an exponential into ``2**n`` and a polynomial.

``x = n*log(2) + r`` with an integer n and ``|r| <= log(2)/2``; then ``e**x = 2**n * e**r``.  Adding and
subtracting 1.5 * 2**23 (2**52 for f64) rounds to an integer, which then stands in the low bits of the
sum: no conversion is needed.  Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.library import library
from quadpy.mathlib.ops import abs_, bitcast, f32, f64, i32, i64, select
from quadpy.mathlib.polynomials import horner

__all__ = [
    "exp2_f32", "exp2_f64", "exp10_f32", "exp10_f64", "exp_f32", "exp_f64", "exp_split_f32", "exp_split_f64",
    "expm1_f32", "expm1_f64", "power_of_two_f32", "power_of_two_f64", "round_split_f32", "round_split_f64",
    "scale_f32", "scale_f64",
]  # fmt: skip

LOG2_E = 1.4426950408889634
LOG2_10 = 3.321928094887362
LN2, LN10 = 0.6931471805599453, 2.302585092994046
# The high parts have few enough bits that their product with n is exact.
LN2_HI_F32, LN2_LO_F32 = 0.693145751953125, 1.428606765330187e-06
LN2_HI_F64, LN2_LO_F64 = 0.6931471805601177, -1.7239444525614835e-13
LOG10_2_HI_F32, LOG10_2_LO_F32 = 0.301025390625, 4.605039066518657e-06
LOG10_2_HI_F64, LOG10_2_LO_F64 = 0.3010299956640665, -8.532344317057107e-14
MAGIC_F32, MAGIC_BITS_F32 = 12582912.0, 0x4B400000  # 1.5 * 2**23
MAGIC_F64, MAGIC_BITS_F64 = 6755399441055744.0, 0x4338000000000000  # 1.5 * 2**52
EXP_F32 = (
    0.4999999403953552,
    0.1666652113199234,
    0.04166838899254799,
    0.008368712849915028,
    0.0013814587146043777,
)
EXP_F64 = (
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
)


@library()
def round_split_f32(x: f32) -> tuple[f32, i32]:
    """The integer nearest to ``x``, as a float and as an integer; ``|x|`` below 2**21."""
    shifted = x + MAGIC_F32
    return shifted - MAGIC_F32, bitcast(shifted, i32) - MAGIC_BITS_F32


@library()
def power_of_two_f32(n: i32) -> f32:
    """``2**n`` for a normal result."""
    return bitcast((n + 127) << 23, f32)


@library()
def scale_f32(x: f32, n: i32) -> f32:
    """``x * 2**n``, rounded once; halving n keeps both factors normal over twice the exponent range."""
    half = n >> 1
    return x * power_of_two_f32(half) * power_of_two_f32(n - half)


@library()
def exp_split_f32(x: f32, rest: f32) -> tuple[f32, i32]:
    """``e**(x + rest)``, for a small ``rest``, as a number near 1 and the exponent of 2 to multiply it by."""
    low = select(x < -104.0, -104.0, x)
    clamped = select(low > 90.0, 90.0, low)
    k, n = round_split_f32(clamped * LOG2_E)
    r = clamped - k * LN2_HI_F32 - k * LN2_LO_F32 + rest
    return r * r * horner(r, EXP_F32) + r + 1.0, n


@library(ulp=1.0)
def exp_f32(x: f32) -> f32:
    """The exponential of ``x``."""
    mantissa, n = exp_split_f32(x, f32(0.0))
    return scale_f32(mantissa, n)


@library(ulp=1.1)
def exp2_f32(x: f32) -> f32:
    """2 to the power of ``x``; exact for integers."""
    low = select(x < -151.0, -151.0, x)
    clamped = select(low > 129.0, 129.0, low)
    k, n = round_split_f32(clamped)
    r = (clamped - k) * LN2
    return scale_f32(r * r * horner(r, EXP_F32) + r + 1.0, n)


@library(ulp=1.1)
def exp10_f32(x: f32) -> f32:
    """10 to the power of ``x``."""
    low = select(x < -46.0, -46.0, x)
    clamped = select(low > 39.0, 39.0, low)
    k, n = round_split_f32(clamped * LOG2_10)
    r = (clamped - k * LOG10_2_HI_F32 - k * LOG10_2_LO_F32) * LN10
    total = r + 1.0
    return scale_f32(total + (((1.0 - total) + r) + r * r * horner(r, EXP_F32)), n)


@library(ulp=1.2)
def expm1_f32(x: f32) -> f32:
    """``e**x - 1`` without cancellation near 0."""
    low = select(x < -18.0, -18.0, x)
    clamped = select(low > 89.0, 89.0, low)
    k, n = round_split_f32(clamped * LOG2_E)
    high, rest = clamped - k * LN2_HI_F32, k * LN2_LO_F32
    r = high - rest
    lost = (high - r) - rest
    tail = r * r * horner(r, EXP_F32) + (lost + lost * r)
    half = power_of_two_f32(n - 1)  # half of the result: it does not overflow before the result does
    base, step = half - 0.5, half * r
    total = base + step
    result = total + (((base - total) + step) + half * tail)
    return select(abs_(x) < 2.9802322387695312e-08, x, result + result)


@library()
def round_split_f64(x: f64) -> tuple[f64, i64]:
    """The integer nearest to ``x``, as a float and as an integer; ``|x|`` below 2**50."""
    shifted = x + MAGIC_F64
    return shifted - MAGIC_F64, bitcast(shifted, i64) - MAGIC_BITS_F64


@library()
def power_of_two_f64(n: i64) -> f64:
    """``2**n`` for a normal result."""
    return bitcast((n + 1023) << 52, f64)


@library()
def scale_f64(x: f64, n: i64) -> f64:
    """``x * 2**n``, rounded once; halving n keeps both factors normal over twice the exponent range."""
    half = n >> 1
    return x * power_of_two_f64(half) * power_of_two_f64(n - half)


@library()
def exp_split_f64(x: f64, rest: f64) -> tuple[f64, i64]:
    """``e**(x + rest)``, for a small ``rest``, as a number near 1 and the exponent of 2 to multiply it by."""
    low = select(x < -746.0, -746.0, x)
    clamped = select(low > 711.0, 711.0, low)
    k, n = round_split_f64(clamped * LOG2_E)
    r = clamped - k * LN2_HI_F64 - k * LN2_LO_F64 + rest
    return r * r * horner(r, EXP_F64) + r + 1.0, n


@library(ulp=1.0)
def exp_f64(x: f64) -> f64:
    """The exponential of ``x``."""
    mantissa, n = exp_split_f64(x, f64(0.0))
    return scale_f64(mantissa, n)


@library(ulp=1.1)
def exp2_f64(x: f64) -> f64:
    """2 to the power of ``x``; exact for integers."""
    low = select(x < -1076.0, -1076.0, x)
    clamped = select(low > 1025.0, 1025.0, low)
    k, n = round_split_f64(clamped)
    r = (clamped - k) * LN2
    return scale_f64(r * r * horner(r, EXP_F64) + r + 1.0, n)


@library(ulp=1.1)
def exp10_f64(x: f64) -> f64:
    """10 to the power of ``x``."""
    low = select(x < -324.0, -324.0, x)
    clamped = select(low > 309.0, 309.0, low)
    k, n = round_split_f64(clamped * LOG2_10)
    r = (clamped - k * LOG10_2_HI_F64 - k * LOG10_2_LO_F64) * LN10
    total = r + 1.0
    return scale_f64(total + (((1.0 - total) + r) + r * r * horner(r, EXP_F64)), n)


@library(ulp=1.2)
def expm1_f64(x: f64) -> f64:
    """``e**x - 1`` without cancellation near 0."""
    low = select(x < -38.0, -38.0, x)
    clamped = select(low > 710.0, 710.0, low)
    k, n = round_split_f64(clamped * LOG2_E)
    high, rest = clamped - k * LN2_HI_F64, k * LN2_LO_F64
    r = high - rest
    lost = (high - r) - rest
    tail = r * r * horner(r, EXP_F64) + (lost + lost * r)
    half = power_of_two_f64(n - 1)  # half of the result: it does not overflow before the result does
    base, step = half - 0.5, half * r
    total = base + step
    result = total + (((base - total) + step) + half * tail)
    return select(abs_(x) < 5.551115123125783e-17, x, result + result)
