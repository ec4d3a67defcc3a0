"""pow: a logarithm to base 2 and a power of 2 in about one and a half times the type's precision.

``x**y = 2**(y * log2(x))``: an error of the product is an error of the result that is larger by a factor
of up to 128 (1024 for f64), so logarithm and product are carried as sums of two floats.
Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.exponential import clamp, exp2_near, round_split, scale
from quadpy.mathlib.floats import SIGN, fast_sum, horner, product
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.logarithm import log_split
from quadpy.mathlib.ops import Float, Word, abs_, bitcast, fma, reciprocal_seed, rint, select

__all__ = ["pow", "refined_inverse"]

INF, NAN = float("inf"), float("nan")
# 2/log(2) and a third of it, each as the nearest float and the rest.
SLOPE_HI = per_width(f32=2.885390043258667, f64=2.8853900817779268)
SLOPE_LO = per_width(f32=3.851926067000022e-08, f64=4.0710547481862066e-17)
CUBIC_HI = per_width(f32=0.9617967009544373, f64=0.9617966939259756)
CUBIC_LO = per_width(f32=-7.028461812552678e-09, f64=5.0577616648125907e-17)
DIVISOR = per_width(f32=0xFFFFFFE0, f64=0xFFFFFFFFFFFFFFFF)
"""Bits of a divisor whose inverse one step makes correctly rounded, whichever the seed within three ulp is."""
RANGE = per_width(f32=(-151.0, 129.0), f64=(-1076.0, 1025.0))
GREATEST = per_width(f32=0x7F7FFFFF, f64=0x7FEFFFFFFFFFFFFF)  # the bits of the greatest number
POW = per_width(
    f32=(
        0.5770801901817322,
        0.4118480980396271,
        0.3378589153289795,
    ),
    f64=(
        0.577078016355618,
        0.4121985830919598,
        0.32059890227068377,
        0.2623077013229758,
        0.22198399102932256,
        0.1912552657815836,
        0.19038490706375352,
    ),
)


@library()
def refined_inverse(x: Float, y: Float) -> Float:
    """``1 / x`` from a seed ``y``; of f32 correctly rounded, if ``x`` has the bits of ``DIVISOR`` only."""
    return fma(fma(-x, y, 1.0), y, y)


@library()
def log2_pair(x: Float) -> tuple[Float, Float]:
    """``log2(x)`` for positive finite ``x`` as a sum of two floats.

    With ``s = f / (2 + f)``, ``log2(1 + f) = s*(slope + cubic*s**2 + ...)``; the first two terms are in two floats each.
    """
    n, f = log_split(x)
    divisor = bitcast(bitcast(f + 2.0, Word) & DIVISOR, Float)
    inverse = refined_inverse(divisor, reciprocal_seed(divisor))
    s = f * inverse
    s_low = fma(2.0 - divisor + f, -s, fma(-s, divisor, f)) * inverse
    z, lost = product(s, s)
    z_low = fma(s + s, s_low, lost)
    cubic, lost = product(z, Float(CUBIC_HI))
    series, rounded = fast_sum(Float(SLOPE_HI), cubic)
    change = fma(z, 2.0 * POW[0], CUBIC_HI)  # of the series with z
    small = fma(z_low, change, fma(z, CUBIC_LO, (rounded + SLOPE_LO) + lost))
    series_low = fma(z * z, horner(z, POW), small)
    leading, lost = product(s, series)
    total, rounded = fast_sum(n, leading)
    return fast_sum(total, rounded + fma(s_low, series + series_low, fma(s, series_low, lost)))


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
    high, low = log2_pair(abs_(x))
    size, lost = product(y, high)
    inside = abs_(size) < RANGE[1] * 2.0
    clamped = clamp(size, RANGE)
    k, n = round_split(clamped)
    r, rest = fast_sum(clamped - k, select(inside, fma(y, low, lost), 0.0))
    result = scale(exp2_near(r, rest), n)
    # Where one is not finite, or x not positive.  A branch, as in ``reduce``.
    if (bitcast(x, Word) - 1 >= GREATEST) | (y - y != 0.0):
        result = pow_special(x, y, result)
    return result
