"""pow.  Owns: the logarithm to base 2 and the power of 2 in about one and a half times the type's precision.

``x**y = 2**(y * log2(x))``: an error of the product is an error of the result that is larger by a factor
of up to 128 (1024 for f64), so logarithm and product are carried as sums of two floats, whose leading
parts have half a significand each and multiply exactly.  Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.exponential import EXP_F32, EXP_F64, round_split_f32, round_split_f64, scale_f32, scale_f64
from quadpy.mathlib.halves import upper_f32, upper_f64
from quadpy.mathlib.library import library
from quadpy.mathlib.logarithm import log_split_f32, log_split_f64
from quadpy.mathlib.ops import abs_, bitcast, f32, f64, rint, select, u32, u64
from quadpy.mathlib.polynomials import horner

__all__ = ["pow_f32", "pow_f64"]

INF, NAN = float("inf"), float("nan")
LN2, LOG_SCALE = 0.6931471805599453, 0.9617966939259756  # log(2), 2/(3*log(2)), and their halves:
LN2_HI_F32, LN2_LO_F32 = 0.693115234375, 3.194618329871446e-05
LOG_SCALE_HI_F32, LOG_SCALE_LO_F32 = 0.9619140625, -0.00011736857413779944
LN2_HI_F64, LN2_LO_F64 = 0.6931471824645996, -1.904654299957768e-09
LOG_SCALE_HI_F64, LOG_SCALE_LO_F64 = 0.9617967009544373, -7.028461650952758e-09
POW_F32 = (
    0.6000022888183594,
    0.4282066822052002,
    0.35128676891326904,
)
POW_F64 = (
    0.600000000000034,
    0.42857142855144714,
    0.33333333780740526,
    0.2727267647352508,
    0.23080139650233708,
    0.1988513933864356,
    0.19795322773693833,
)


@library()
def log2_halves_f32(x: f32) -> tuple[f32, f32]:
    """``log2(x)`` for positive finite ``x`` as a half and what to add to it."""
    n, f = log_split_f32(x)
    inverse = 1.0 / (f + 2.0)
    s = f * inverse
    sum_high = upper_f32(f + 2.0)
    sum_low = f - (sum_high - 2.0)
    s_high = upper_f32(s)
    s_low = ((f - s_high * sum_high) - s_high * sum_low) * inverse
    z = s * s
    square = s_high * s_high
    more = z * z * horner(z, POW_F32) + s_low * (s_high + s)
    series = upper_f32(square + more + 3.0)  # 3*atanh(s)/s and, next line, its rest
    series_low = more - ((series - 3.0) - square)
    exact = s_high * series
    rest = s_low * series + series_low * s
    high = upper_f32(exact + rest)
    low = rest - (high - exact)
    scaled = high * LOG_SCALE_HI_F32
    scaled_low = high * LOG_SCALE_LO_F32 + low * LOG_SCALE
    total = upper_f32(scaled + scaled_low + n)
    return total, scaled_low - ((total - n) - scaled)


@library()
def exp2_sum_f32(high: f32, low: f32) -> f32:
    """``2**(high + low)``, where the sum is not far out of range."""
    k, n = round_split_f32(high + low)
    whole = high - k
    r = upper_f32(whole + low)
    exact = r * LN2_HI_F32
    rest = (low - (r - whole)) * LN2 + r * LN2_LO_F32
    x = exact + rest
    lost = rest - (x - exact)
    leading = x + 1.0
    tail = ((1.0 - leading) + x) + (x * x * horner(x, EXP_F32) + (lost + x * lost))
    return scale_f32(leading + tail, n)


@library()
def pow_special_f32(x: f32, y: f32, result: f32) -> f32:
    """``result``, which is ``|x|**y`` for finite ``x`` other than 0, completed to all of IEEE 754's cases."""
    magnitude = abs_(x)
    vanishes = (magnitude < 1.0) == (y > 0.0)
    extreme = (x == 0.0) | (magnitude == INF)
    positive = select(extreme, select(vanishes, f32(0.0), INF), result)
    half = y * 0.5
    fraction = rint(y) != y
    odd = (rint(half) != half) & (rint(y) == y)
    sign = select(odd, bitcast(x, u32) & 0x80000000, 0)
    signed = bitcast(bitcast(positive, u32) | sign, f32)
    real = select((x < 0.0) & (magnitude < INF) & fraction, NAN, signed)
    known = select((x != x) | (y != y), x + y, real)
    return select((x == 1.0) | (y == 0.0), 1.0, known)


@library(ulp=1.0)
def pow_f32(x: f32, y: f32) -> f32:
    """``x`` to the power of ``y``, with the special cases of IEEE 754's pow."""
    high, low = log2_halves_f32(abs_(x))
    below = select(y > 17179869184.0, 17179869184.0, y)  # larger ones differ from it only at x = 1
    exponent = select(below < -17179869184.0, -17179869184.0, below)
    y_high = upper_f32(exponent)
    product = y_high * high
    product_low = (exponent - y_high) * high + exponent * low
    size = product + product_low
    power = exp2_sum_f32(product, product_low)
    finite = select(size > 128.5, INF, power)
    return pow_special_f32(x, y, select(size < -151.0, 0.0, finite))


@library()
def log2_halves_f64(x: f64) -> tuple[f64, f64]:
    """``log2(x)`` for positive finite ``x`` as a half and what to add to it."""
    n, f = log_split_f64(x)
    inverse = 1.0 / (f + 2.0)
    s = f * inverse
    sum_high = upper_f64(f + 2.0)
    sum_low = f - (sum_high - 2.0)
    s_high = upper_f64(s)
    s_low = ((f - s_high * sum_high) - s_high * sum_low) * inverse
    z = s * s
    square = s_high * s_high
    more = z * z * horner(z, POW_F64) + s_low * (s_high + s)
    series = upper_f64(square + more + 3.0)  # 3*atanh(s)/s and, next line, its rest
    series_low = more - ((series - 3.0) - square)
    exact = s_high * series
    rest = s_low * series + series_low * s
    high = upper_f64(exact + rest)
    low = rest - (high - exact)
    scaled = high * LOG_SCALE_HI_F64
    scaled_low = high * LOG_SCALE_LO_F64 + low * LOG_SCALE
    total = upper_f64(scaled + scaled_low + n)
    return total, scaled_low - ((total - n) - scaled)


@library()
def exp2_sum_f64(high: f64, low: f64) -> f64:
    """``2**(high + low)``, where the sum is not far out of range."""
    k, n = round_split_f64(high + low)
    whole = high - k
    r = upper_f64(whole + low)
    exact = r * LN2_HI_F64
    rest = (low - (r - whole)) * LN2 + r * LN2_LO_F64
    x = exact + rest
    lost = rest - (x - exact)
    leading = x + 1.0
    tail = ((1.0 - leading) + x) + (x * x * horner(x, EXP_F64) + (lost + x * lost))
    return scale_f64(leading + tail, n)


@library()
def pow_special_f64(x: f64, y: f64, result: f64) -> f64:
    """``result``, which is ``|x|**y`` for finite ``x`` other than 0, completed to all of IEEE 754's cases."""
    magnitude = abs_(x)
    vanishes = (magnitude < 1.0) == (y > 0.0)
    extreme = (x == 0.0) | (magnitude == INF)
    positive = select(extreme, select(vanishes, f64(0.0), INF), result)
    half = y * 0.5
    fraction = rint(y) != y
    odd = (rint(half) != half) & (rint(y) == y)
    sign = select(odd, bitcast(x, u64) & 0x8000000000000000, 0)
    signed = bitcast(bitcast(positive, u64) | sign, f64)
    real = select((x < 0.0) & (magnitude < INF) & fraction, NAN, signed)
    known = select((x != x) | (y != y), x + y, real)
    return select((x == 1.0) | (y == 0.0), 1.0, known)


@library(ulp=1.0)
def pow_f64(x: f64, y: f64) -> f64:
    """``x`` to the power of ``y``, with the special cases of IEEE 754's pow."""
    high, low = log2_halves_f64(abs_(x))
    below = select(y > 7.378697629483821e19, 7.378697629483821e19, y)  # larger ones differ from it only at x = 1
    exponent = select(below < -7.378697629483821e19, -7.378697629483821e19, below)
    y_high = upper_f64(exponent)
    product = y_high * high
    product_low = (exponent - y_high) * high + exponent * low
    size = product + product_low
    power = exp2_sum_f64(product, product_low)
    finite = select(size > 1024.5, INF, power)
    return pow_special_f64(x, y, select(size < -1076.0, 0.0, finite))
