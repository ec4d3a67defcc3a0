"""sin, cos, sincos, tan.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.halves import upper_f32, upper_f64
from quadpy.mathlib.library import library
from quadpy.mathlib.ops import bitcast, f32, f64, i32, i64, select, u32, u64
from quadpy.mathlib.polynomials import horner
from quadpy.mathlib.reduction import reduce_f32, reduce_f64

__all__ = [
    "cos_f32", "cos_f64", "octant_f32", "octant_f64", "sin_f32", "sin_f64", "sincos_f32", "sincos_f64", "tan_f32",
    "tan_f64",
]  # fmt: skip

SIN_F32 = (
    -0.16666655242443085,
    0.00833216030150652,
    -0.00019515203894115984,
)
SIN_F64 = (
    -0.1666666666666663,
    0.008333333333322106,
    -0.00019841269829578737,
    2.7557313617485877e-06,
    -2.5050747130150354e-08,
    1.5896192276165072e-10,
)
COS_F32 = (
    0.04166664555668831,
    -0.0013887315290048718,
    2.443306948407553e-05,
)
COS_F64 = (
    0.041666666666666595,
    -0.0013888888888873038,
    2.4801587288839686e-05,
    -2.7557314175719016e-07,
    2.0875700342156073e-09,
    -1.1358509975540429e-11,
)


@library()
def octant_f32(r: f32, s: f32) -> tuple[f32, f32, f32, f32]:
    """Sine and cosine of ``r + s``, ``|r| <= pi/4``: each as its leading part and what to add to it."""
    z = r * r
    half = z * 0.5
    leading = 1.0 - half
    sine_tail = r * z * horner(z, SIN_F32) + s
    cosine_tail = ((1.0 - leading) - half) + (z * z * horner(z, COS_F32) - r * s)
    return r, sine_tail, leading, cosine_tail


@library()
def turn_f32(quadrant: i32, sine: f32, cosine: f32) -> f32:
    """The sine after ``quadrant`` quarter turns."""
    value = select((quadrant & 1) != 0, cosine, sine)
    sign = u32(quadrant & 2) << 30
    return bitcast(bitcast(value, u32) ^ sign, f32)


@library(ulp=1.0)
def sin_f32(x: f32) -> f32:
    """The sine of ``x`` radians, accurate for all finite ``x``."""
    quadrant, r, s = reduce_f32(x)
    sine, sine_tail, cosine, cosine_tail = octant_f32(r, s)
    return select(x == 0.0, x, turn_f32(quadrant, sine + sine_tail, cosine + cosine_tail))


@library(ulp=1.0)
def cos_f32(x: f32) -> f32:
    """The cosine of ``x`` radians, accurate for all finite ``x``."""
    quadrant, r, s = reduce_f32(x)
    sine, sine_tail, cosine, cosine_tail = octant_f32(r, s)
    return turn_f32(quadrant + 1, sine + sine_tail, cosine + cosine_tail)


@library(ulp=1.0)
def sincos_f32(x: f32) -> tuple[f32, f32]:
    """Sine and cosine of ``x`` radians, with one reduction."""
    quadrant, r, s = reduce_f32(x)
    sine, sine_tail, cosine, cosine_tail = octant_f32(r, s)
    up, across = sine + sine_tail, cosine + cosine_tail
    return select(x == 0.0, x, turn_f32(quadrant, up, across)), turn_f32(quadrant + 1, up, across)


@library(ulp=1.4)
def tan_f32(x: f32) -> f32:
    """The tangent of ``x`` radians: the quotient of sine and cosine, corrected by its exact remainder."""
    quadrant, r, s = reduce_f32(x)
    sine, sine_tail, cosine, cosine_tail = octant_f32(r, s)
    up, across = sine + sine_tail, cosine + cosine_tail
    up_rest, across_rest = (sine - up) + sine_tail, (cosine - across) + cosine_tail
    odd = (quadrant & 1) != 0
    numerator, denominator = select(odd, -across, up), select(odd, up, across)
    numerator_rest, denominator_rest = select(odd, -across_rest, up_rest), select(odd, up_rest, across_rest)
    inverse = 1.0 / denominator
    quotient = numerator * inverse
    q, d = upper_f32(quotient), upper_f32(denominator)
    q_rest, d_rest = quotient - q, denominator - d
    remainder = numerator - q * d - q * d_rest - q_rest * d - q_rest * d_rest
    correction = (remainder + (numerator_rest - quotient * denominator_rest)) * inverse
    return select(x == 0.0, x, quotient + correction)


@library()
def octant_f64(r: f64, s: f64) -> tuple[f64, f64, f64, f64]:
    """Sine and cosine of ``r + s``, ``|r| <= pi/4``: each as its leading part and what to add to it."""
    z = r * r
    half = z * 0.5
    leading = 1.0 - half
    sine_tail = r * z * horner(z, SIN_F64) + s
    cosine_tail = ((1.0 - leading) - half) + (z * z * horner(z, COS_F64) - r * s)
    return r, sine_tail, leading, cosine_tail


@library()
def turn_f64(quadrant: i64, sine: f64, cosine: f64) -> f64:
    """The sine after ``quadrant`` quarter turns."""
    value = select((quadrant & 1) != 0, cosine, sine)
    sign = u64(quadrant & 2) << 62
    return bitcast(bitcast(value, u64) ^ sign, f64)


@library(ulp=1.0)
def sin_f64(x: f64) -> f64:
    """The sine of ``x`` radians, accurate for all finite ``x``."""
    quadrant, r, s = reduce_f64(x)
    sine, sine_tail, cosine, cosine_tail = octant_f64(r, s)
    return select(x == 0.0, x, turn_f64(quadrant, sine + sine_tail, cosine + cosine_tail))


@library(ulp=1.0)
def cos_f64(x: f64) -> f64:
    """The cosine of ``x`` radians, accurate for all finite ``x``."""
    quadrant, r, s = reduce_f64(x)
    sine, sine_tail, cosine, cosine_tail = octant_f64(r, s)
    return turn_f64(quadrant + 1, sine + sine_tail, cosine + cosine_tail)


@library(ulp=1.0)
def sincos_f64(x: f64) -> tuple[f64, f64]:
    """Sine and cosine of ``x`` radians, with one reduction."""
    quadrant, r, s = reduce_f64(x)
    sine, sine_tail, cosine, cosine_tail = octant_f64(r, s)
    up, across = sine + sine_tail, cosine + cosine_tail
    return select(x == 0.0, x, turn_f64(quadrant, up, across)), turn_f64(quadrant + 1, up, across)


@library(ulp=1.4)
def tan_f64(x: f64) -> f64:
    """The tangent of ``x`` radians: the quotient of sine and cosine, corrected by its exact remainder."""
    quadrant, r, s = reduce_f64(x)
    sine, sine_tail, cosine, cosine_tail = octant_f64(r, s)
    up, across = sine + sine_tail, cosine + cosine_tail
    up_rest, across_rest = (sine - up) + sine_tail, (cosine - across) + cosine_tail
    odd = (quadrant & 1) != 0
    numerator, denominator = select(odd, -across, up), select(odd, up, across)
    numerator_rest, denominator_rest = select(odd, -across_rest, up_rest), select(odd, up_rest, across_rest)
    inverse = 1.0 / denominator
    quotient = numerator * inverse
    q, d = upper_f64(quotient), upper_f64(denominator)
    q_rest, d_rest = quotient - q, denominator - d
    remainder = numerator - q * d - q * d_rest - q_rest * d - q_rest * d_rest
    correction = (remainder + (numerator_rest - quotient * denominator_rest)) * inverse
    return select(x == 0.0, x, quotient + correction)
