"""sin, cos, sincos, tan.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.floats import BITS, horner
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Int, Word, bitcast, fma, select
from quadpy.mathlib.reduction import reduce

SIN = per_width(
    f32=(
        -0.16666655242443085,
        0.00833216030150652,
        -0.00019515203894115984,
    ),
    f64=(
        -0.1666666666666663,
        0.008333333333322106,
        -0.00019841269829578737,
        2.7557313617485877e-06,
        -2.5050747130150354e-08,
        1.5896192276165072e-10,
    ),
)
COS = per_width(
    f32=(
        0.04166664555668831,
        -0.0013887315290048718,
        2.443306948407553e-05,
    ),
    f64=(
        0.041666666666666595,
        -0.0013888888888873038,
        2.4801587288839686e-05,
        -2.7557314175719016e-07,
        2.0875700342156073e-09,
        -1.1358509975540429e-11,
    ),
)


@library()
def octant(r: Float, s: Float) -> tuple[Float, Float, Float, Float]:
    """Sine and cosine of ``r - s``, ``|r| <= pi/4``: each as its leading part and the part to subtract from it."""
    z = r * r
    leading = fma(z, -0.5, 1.0)
    sine_tail = fma(r * -z, horner(z, SIN), s)
    lost = fma(z, 0.5, leading - 1.0)
    cosine_tail = fma(z * -z, horner(z, COS), fma(r, -s, lost))
    return r, sine_tail, leading, cosine_tail


@library()
def sine_cosine(r: Float, s: Float) -> tuple[Float, Float]:
    """Sine and cosine of ``r - s``, ``|r| <= pi/4``."""
    z = fma(r, r, r * -2.0 * s)
    sine = r - fma(r * -z, horner(z, SIN), s)
    return sine, horner(z, (1.0, -0.5, *COS))


@library()
def turn(quadrant: Int, sine: Float, cosine: Float) -> Float:
    """The sine after ``quadrant`` quarter turns."""
    value = select((quadrant & 1) != 0, cosine, sine)
    sign = Word(quadrant & 2) << (BITS - 2)
    return bitcast(bitcast(value, Word) ^ sign, Float)


@library(ulp=1.0)
def sin(x: Float) -> Float:
    """The sine of ``x`` radians, accurate for all finite ``x``."""
    quadrant, r, s = reduce(x)
    up, across = sine_cosine(r, s)
    return turn(quadrant, up, across)


@library(ulp=1.0)
def cos(x: Float) -> Float:
    """The cosine of ``x`` radians, accurate for all finite ``x``."""
    quadrant, r, s = reduce(x)
    up, across = sine_cosine(r, s)
    return turn(quadrant + 1, up, across)


@library(ulp=1.0)
def sincos(x: Float) -> tuple[Float, Float]:
    """Sine and cosine of ``x`` radians, with one reduction."""
    quadrant, r, s = reduce(x)
    up, across = sine_cosine(r, s)
    return turn(quadrant, up, across), turn(quadrant + 1, up, across)


@library(ulp=1.0)
def tan(x: Float) -> Float:
    """The tangent of ``x`` radians: the quotient of sine and cosine, corrected by its exact remainder."""
    quadrant, r, s = reduce(x)
    sine, sine_tail, cosine, cosine_tail = octant(r, s)
    sine_tail = fma(s, cosine - 1.0, sine_tail)  # the bounds of sine and cosine do not need this
    cosine_tail = fma(fma(r, r, -(r * r)), 0.5, cosine_tail)
    up, across = sine - sine_tail, cosine - cosine_tail
    up_rest, across_rest = (sine - up) - sine_tail, (cosine - across) - cosine_tail
    odd = (quadrant & 1) != 0
    numerator, denominator = select(odd, -across, up), select(odd, up, across)
    numerator_rest, denominator_rest = select(odd, -across_rest, up_rest), select(odd, up_rest, across_rest)
    inverse = 1.0 / denominator
    quotient = numerator * inverse
    remainder = fma(-quotient, denominator, numerator)
    correction = fma(-quotient, denominator_rest, remainder + numerator_rest) * inverse
    return select(x == 0.0, x, quotient + correction)
