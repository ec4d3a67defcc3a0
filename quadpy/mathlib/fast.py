"""log, log2, log10, pow, sin, cos and tan of f32 under ``fast_math``: without error terms, with fewer dependent steps.

A GPU has instructions for them instead.  Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.core.dtypes import f32
from quadpy.mathlib.exponential import EXP2, EXP2_RANGE, LN2_HI, clamp, round_multiple, round_split, scale_sum
from quadpy.mathlib.floats import FRACTION_BITS, LEAST_NORMAL, horner
from quadpy.mathlib.library import expand, library
from quadpy.mathlib.logarithm import (
    INF,
    INFINITY,
    LOG2_E_HI,
    LOG2_F32,
    LOG10_2_HI,
    LOG10_E_HI,
    LOG10_F32,
    LOG_F32,
    SQRT_HALF,
    UNIT,
)
from quadpy.mathlib.ops import Float, Int, Word, abs_, bitcast, fma, select
from quadpy.mathlib.power import GREATEST, pow_special
from quadpy.mathlib.reduction import LIMIT, PI_2_PARTS, TWO_OVER_PI, large
from quadpy.mathlib.trig import COS, SIN, turn

LEAST_BITS = 0x00800000  # of the smallest normal number


@expand
def tree(x: Float, c: tuple[float, ...]) -> Float:
    """``c[0] + c[1]*x + ... + c[8]*x**8``, in four dependent steps instead of eight."""
    z = x * x
    w = z * z
    low = fma(fma(x, c[3], c[2]), z, fma(x, c[1], c[0]))
    high = fma(fma(x, c[7], c[6]), z, fma(w, c[8], fma(x, c[5], c[4])))
    return fma(high, w, low)


@expand
def short_tree(x: Float, c: tuple[float, ...]) -> Float:
    """The same up to ``c[4]``."""
    z = x * x
    return fma(fma(z, c[4], fma(x, c[3], c[2])), z, fma(x, c[1], c[0]))


@library(width=f32)
def fast_split(x: Float) -> tuple[Float, Float]:
    """``n`` and ``f`` with ``x = 2**n * (1 + f)``; if ``x`` is not positive and finite, ``n`` is its logarithm."""
    scaled, more = x, Float(0.0)
    if bitcast(x, Word) - LEAST_BITS >= INFINITY - LEAST_BITS:  # a branch, as in ``reduce``
        scaled = x * 2.0**FRACTION_BITS
        limit = select(x == 0.0, -INF, fma(x, INF, INF))  # infinity stays, the rest is NaN
        more = select((x > 0.0) & (x < LEAST_NORMAL), Float(-FRACTION_BITS), limit)
    bits = bitcast(scaled, Int)
    exponent = (bits - SQRT_HALF) & -(1 << FRACTION_BITS)
    return fma(Float(exponent), UNIT, more), bitcast(bits - exponent, Float) - 1.0


@library(2.5, width=f32)
def fast_log(x: Float) -> Float:
    """The natural logarithm of ``x``."""
    n, f = fast_split(x)
    return fma(n, LN2_HI, fma(f * f, tree(f, LOG_F32), f))


@library(2.5, width=f32)
def fast_log2(x: Float) -> Float:
    """The logarithm of ``x`` to base 2; exact for powers of two."""
    n, f = fast_split(x)
    return fma(f * f, tree(f, LOG2_F32), fma(f, LOG2_E_HI, n))


@library(2.5, width=f32)
def fast_log10(x: Float) -> Float:
    """The logarithm of ``x`` to base 10."""
    n, f = fast_split(x)
    return fma(n, LOG10_2_HI, fma(f * f, tree(f, LOG10_F32), f * LOG10_E_HI))


@library(width=f32)
def fast_pow(x: Float, y: Float) -> Float:
    """``x`` to the power of ``y``, with the special cases of IEEE 754's pow; within ``2 + |y|`` ulp.

    ``y*n`` is exact, so that only the error of ``log2(1 + f)`` grows with ``y``.
    """
    n, f = fast_split(abs_(x))
    part = fma(f * f, tree(f, LOG2_F32), f * LOG2_E_HI)
    whole = y * n
    lost = fma(y, n, -whole)
    total = fma(y, part, whole)
    clamped = clamp(total, EXP2_RANGE)
    k, exponent = round_split(clamped)
    t = select(total == clamped, (whole - k) + fma(y, part, lost), 0.0)
    result = scale_sum(fma(t * t, short_tree(t, EXP2), t * LN2_HI), exponent)
    # If one is not finite, or x is not positive.
    if (bitcast(x, Word) - 1 >= GREATEST) | (y - y != 0.0):
        endless = select((abs_(x) < 1.0) == (y > 0.0), Float(0.0), INF)
        result = pow_special(x, y, select(abs_(y) == INF, endless, result))
    return result


@library(width=f32)
def fast_turn(x: Float) -> tuple[Int, Float, Float]:
    """``q``, and sine and cosine of ``x - q*pi/2``; the error of the difference is not kept."""
    k, quadrant = round_multiple(x, Float(TWO_OVER_PI))
    r = fma(k, -PI_2_PARTS[2], fma(k, -PI_2_PARTS[1], fma(k, -PI_2_PARTS[0], x)))
    if abs_(x) >= LIMIT:
        quadrant, r, _ = large(x)
    z = r * r
    return quadrant, fma(r * z, horner(z, SIN), r), horner(z, (1.0, -0.5, *COS))


@library(2.0, width=f32)
def fast_sin(x: Float) -> Float:
    """The sine of ``x`` radians."""
    quadrant, up, across = fast_turn(x)
    return turn(quadrant, up, across)


@library(2.0, width=f32)
def fast_cos(x: Float) -> Float:
    """The cosine of ``x`` radians."""
    quadrant, up, across = fast_turn(x)
    return turn(quadrant + 1, up, across)


@library(2.0, width=f32)
def fast_sincos(x: Float) -> tuple[Float, Float]:
    """Sine and cosine of ``x`` radians."""
    quadrant, up, across = fast_turn(x)
    return turn(quadrant, up, across), turn(quadrant + 1, up, across)


@library(4.0, width=f32)
def fast_tan(x: Float) -> Float:
    """The tangent of ``x`` radians."""
    quadrant, up, across = fast_turn(x)
    odd = (quadrant & 1) != 0
    return select(odd, -across, up) / select(odd, up, across)
