"""cbrt, hypot, rsqrt."""

from quadpy.mathlib.floats import LEAST_NORMAL, LIFT, product, rough_inverse, upper
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Word, abs_, bitcast, copysign, fma, least, rsqrt_seed, select, sqrt

INF = float("inf")
THIRD = 0.3333333333333333
TWO_NINTHS = 0.2222222222222222
SECOND = 0.38
"""Slightly more than 3/8, so that the rounding errors of f32 fall on the right side in all cases."""
# Exponents of 2: the limits beyond which hypot scales, and the scale.
EXTREME = per_width(f32=60, f64=500)
DOWN = per_width(f32=80, f64=700)
UP = per_width(f32=90, f64=600)
CBRT_GUESS = per_width(f32=0x54A22000, f64=0x553EDC0000000000)
CBRT_STEPS = per_width(f32=range(2), f64=range(3))


@library()
def refined_root(x: Float, y: Float) -> Float:
    """``1 / sqrt(x)`` from a seed ``y``; correctly rounded for f32, for any seed within 2**-22.9.

    The residual ``1 - x*y*y`` is formed without the rounding error of ``x*y``, and the correction is of second order.
    ``least`` keeps the seeds 0 and infinity.
    """
    xy, lost = product(x, y)
    residual = least(fma(-lost, y, fma(-xy, y, 1.0)), 1.0)
    return fma(fma(residual, SECOND, 0.5), y * residual, y)


@library(ulp=0.6)
def inverse_root(x: Float) -> Float:
    """``1 / sqrt(x)`` for a normal ``x``; infinite at 0 with its sign, 0 at infinity, NaN below 0."""
    return refined_root(x, rsqrt_seed(x))


@library(ulp=0.6)
def rsqrt(x: Float) -> Float:
    """``1 / sqrt(x)``; infinite at 0 with its sign, NaN below."""
    tiny = x < LEAST_NORMAL
    root = inverse_root(select(tiny, x * 2.0**LIFT, x))
    return select(tiny, root * 2.0 ** (LIFT // 2), root)


@library(ulp=1.0)
def hypot(x: Float, y: Float) -> Float:
    """``sqrt(x*x + y*y)`` without intermediate overflow or underflow; infinite if either is, even if the other is a NaN."""
    width, height = abs_(x), abs_(y)
    wider = width > height
    large = select(wider, width, height)
    huge, tiny = large > 2.0**EXTREME, large < 2.0**-EXTREME
    scale = select(huge, Float(2.0**-DOWN), select(tiny, Float(2.0**UP), 1.0))
    back = select(huge, Float(2.0**DOWN), select(tiny, Float(2.0**-UP), 1.0))
    a, b = large * scale, select(wider, height, width) * scale
    square, lost = product(a, a)
    total = fma(b, b, square)
    rest = fma(b, b, square - total) + lost
    root = sqrt(total)
    correction = (fma(-root, root, total) + rest) * (rough_inverse(root) * 0.5)
    result = select(total > 0.0, root + correction, total) * back
    return select((width == INF) | (height == INF), INF, result)


@library(ulp=1.0)
def cbrt(x: Float) -> Float:
    """The cube root of ``x``: Newton's iteration for its inverse, then one step with an exact remainder."""
    magnitude = abs_(x)
    tiny = magnitude < LEAST_NORMAL
    m = select(tiny, magnitude * 2.0**LIFT, magnitude)
    bits = bitcast(m, Word)
    quarter = (bits >> 2) + (bits >> 4)  # 1/3 is 1/4 + 1/16 + 1/64 + ...
    sixteenth = quarter + (quarter >> 4)
    y = bitcast(CBRT_GUESS - (sixteenth + (sixteenth >> 8)), Float)
    for _ in CBRT_STEPS:
        y = y * (4.0 - m * y * y * y) * THIRD
    root = upper(m * y * y)
    remainder = fma(-(root * root), root, m)  # the square is exact
    u = remainder * y * y * y
    result = root + root * u * (THIRD + u * TWO_NINTHS)
    finite = copysign(select(tiny, result * 2.0 ** -(LIFT // 3), result), x)
    return select((x == 0.0) | (magnitude == INF), x, finite)
