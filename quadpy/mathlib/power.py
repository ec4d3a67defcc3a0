"""pow: a logarithm to base 2 and a power of 2 in about one and a half times the type's precision.

``x**y = 2**(y * log2(x))``: an error of the product is an error of the result that is larger by a factor
of up to 128 (1024 for f64), so logarithm and product are carried as sums of two floats, whose leading
parts have half a significand each and multiply exactly.  Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.exponential import EXP, round_split, scale
from quadpy.mathlib.floats import SIGN, horner, upper
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.logarithm import log_split
from quadpy.mathlib.ops import Float, Word, abs_, bitcast, rint, select

__all__ = ["pow"]

INF, NAN = float("inf"), float("nan")
LN2, LOG_SCALE = 0.6931471805599453, 0.9617966939259756  # log(2), 2/(3*log(2)), and their halves:
LN2_HI = per_width(f32=0.693115234375, f64=0.6931471824645996)
LN2_LO = per_width(f32=3.194618329871446e-05, f64=-1.904654299957768e-09)
LOG_SCALE_HI = per_width(f32=0.9619140625, f64=0.9617967009544373)
LOG_SCALE_LO = per_width(f32=-0.00011736857413779944, f64=-7.028461650952758e-09)
EXTREME = per_width(f32=2.0**34, f64=2.0**66)
OVERFLOW = per_width(f32=128.5, f64=1024.5)
UNDERFLOW = per_width(f32=-151.0, f64=-1076.0)
POW = per_width(
    f32=(
        0.6000022888183594,
        0.4282066822052002,
        0.35128676891326904,
    ),
    f64=(
        0.600000000000034,
        0.42857142855144714,
        0.33333333780740526,
        0.2727267647352508,
        0.23080139650233708,
        0.1988513933864356,
        0.19795322773693833,
    ),
)


@library()
def log2_halves(x: Float) -> tuple[Float, Float]:
    """``log2(x)`` for positive finite ``x`` as a half and what to add to it."""
    n, f = log_split(x)
    inverse = 1.0 / (f + 2.0)
    s = f * inverse
    sum_high = upper(f + 2.0)
    sum_low = f - (sum_high - 2.0)
    s_high = upper(s)
    s_low = ((f - s_high * sum_high) - s_high * sum_low) * inverse
    z = s * s
    square = s_high * s_high
    more = z * z * horner(z, POW) + s_low * (s_high + s)
    series = upper(square + more + 3.0)  # 3*atanh(s)/s and, next line, its rest
    series_low = more - ((series - 3.0) - square)
    exact = s_high * series
    rest = s_low * series + series_low * s
    high = upper(exact + rest)
    low = rest - (high - exact)
    scaled = high * LOG_SCALE_HI
    scaled_low = high * LOG_SCALE_LO + low * LOG_SCALE
    total = upper(scaled + scaled_low + n)
    return total, scaled_low - ((total - n) - scaled)


@library()
def exp2_sum(high: Float, low: Float) -> Float:
    """``2**(high + low)``, where the sum is not far out of range."""
    k, n = round_split(high + low)
    whole = high - k
    r = upper(whole + low)
    exact = r * LN2_HI
    rest = (low - (r - whole)) * LN2 + r * LN2_LO
    x = exact + rest
    lost = rest - (x - exact)
    leading = x + 1.0
    tail = ((1.0 - leading) + x) + (x * x * horner(x, EXP) + (lost + x * lost))
    return scale(leading + tail, n)


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
    return select((x == 1.0) | (y == 0.0), 1.0, known)


@library(ulp=1.0)
def pow(x: Float, y: Float) -> Float:
    """``x`` to the power of ``y``, with the special cases of IEEE 754's pow."""
    high, low = log2_halves(abs_(x))
    below = select(y > EXTREME, EXTREME, y)  # larger ones differ from it only at x = 1
    exponent = select(below < -EXTREME, -EXTREME, below)
    y_high = upper(exponent)
    product = y_high * high
    product_low = (exponent - y_high) * high + exponent * low
    size = product + product_low
    power = exp2_sum(product, product_low)
    finite = select(size > OVERFLOW, INF, power)
    return pow_special(x, y, select(size < UNDERFLOW, 0.0, finite))
