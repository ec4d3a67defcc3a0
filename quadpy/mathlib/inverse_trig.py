"""asin, acos, atan, atan2.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.floats import fast_sum, horner, rough_inverse
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.logarithm import add_exponent
from quadpy.mathlib.ops import Float, Int, abs_, bitcast, copysign, fma, select, sqrt, u1

INF = float("inf")
PI = per_width(f32=3.1415927410125732, f64=3.141592653589793)
PI_REST = per_width(f32=-8.742277657347586e-08, f64=1.2246467991473532e-16)
PI_2 = per_width(f32=1.5707963705062866, f64=1.5707963267948966)
PI_2_REST = per_width(f32=-4.371138828673793e-08, f64=6.123233995736766e-17)
PI_4 = per_width(f32=0.7853981852531433, f64=0.7853981633974483)
PI_4_REST = per_width(f32=-2.1855694143368964e-08, f64=3.061616997868383e-17)
SCALED = per_width(f32=64, f64=512)
"""Exponents of 2 beyond which atan2 scales its arguments, and the exponent of the scale."""
ASIN = per_width(
    f32=(
        0.16666752099990845,
        0.07495297491550446,
        0.04547039046883583,
        0.02417944371700287,
        0.042166419327259064,
    ),
    f64=(
        0.1666666666666676,
        0.07499999999970798,
        0.04464285717461318,
        0.030381942707732933,
        0.022372214988744234,
        0.01735161199923434,
        0.013980820667337163,
        0.011398911571998795,
        0.01078025515834752,
        0.0037064031357799125,
        0.021707454865844408,
        -0.020999067267054083,
        0.032628623671978926,
    ),
)
ATAN = per_width(
    f32=(
        -0.333333283662796,
        0.19999489188194275,
        -0.14272060990333557,
        0.10940821468830109,
        -0.07983417063951492,
        0.038713667541742325,
    ),
    f64=(
        -0.33333333333333315,
        0.1999999999999324,
        -0.14285714284958118,
        0.11111111068419141,
        -0.09090907665458677,
        0.07692276999316197,
        -0.0666621799814425,
        0.058777628436452616,
        -0.05229770576642786,
        0.045885567607629414,
        -0.03709763186591362,
        0.02362594949494805,
        -0.008347980587197571,
    ),
)


@library()
def asin_parts(x: Float) -> tuple[Float, Float]:
    """A number and a small rest whose sum is asin(|x|) up to 1/2, and asin(sqrt((1 - |x|) / 2)) above."""
    magnitude = abs_(x)
    upper_half = magnitude > 0.5
    z = select(upper_half, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    root = sqrt(z)
    s = select(upper_half, root, magnitude)
    lost = select(upper_half, fma(-root, root, z) * (rough_inverse(root) * 0.5), 0.0)
    return s, fma(s * z, horner(z, ASIN), lost)


@library()
def add_three(base: Float, value: Float, rest: Float) -> Float:
    """``base + value + rest`` in nearly one rounding; ``base`` is 0 or the largest."""
    total, lost = fast_sum(base, value)
    return total + (lost + rest)


@library(ulp=1.0)
def asin(x: Float) -> Float:
    """The arc sine of ``x`` in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    s, rest = asin_parts(x)
    above = add_three(Float(PI_2), s * -2.0, fma(rest, -2.0, PI_2_REST))
    return copysign(select(abs_(x) > 0.5, above, s + rest), x)


@library(ulp=1.0)
def acos(x: Float) -> Float:
    """The arc cosine of ``x`` in [0, pi]; NaN outside [-1, 1]."""
    s, rest = asin_parts(x)
    upper_half, positive = abs_(x) > 0.5, x > 0.0
    base = select(upper_half, select(positive, Float(0.0), PI), PI_2)
    base_rest = select(upper_half, select(positive, Float(0.0), PI_REST), PI_2_REST)
    factor = select(upper_half, Float(2.0), 1.0)
    signed = select(upper_half == positive, factor, -factor)
    return add_three(base, s * signed, fma(rest, signed, base_rest))


@library()
def add_angle(eighths: Float, small: Float, large: Float, falls: u1) -> Float:
    """``eighths*pi/4`` plus or, if it falls, minus the angle of the point (``large``, ``small``), ``small <= large``.

    Above a slope of 1/2 the angle is measured from the diagonal, whose own eighth ``eighths`` has already.
    """
    diagonal = small > large * 0.5
    above = select(diagonal, small - large, small)
    below = select(diagonal, small + large, large)
    t = above / below
    below_low = select(diagonal, small - (below - large), 0.0)
    low = fma(-below_low, t, fma(-t, below, above)) * rough_inverse(below)
    z = t * t
    rest = fma(t * z, horner(z, ATAN), low)
    total, lost = add_exponent(eighths, Float(PI_4), Float(PI_4_REST), select(falls, -t, t))
    return total + (lost + select(falls, -rest, rest))


@library(ulp=1.0)
def atan(x: Float) -> Float:
    """The arc tangent of ``x`` in [-pi/2, pi/2]."""
    magnitude = abs_(x)
    inverted = magnitude > 1.0
    small = select(inverted, 1.0, magnitude)
    large = select(inverted, select(magnitude > 2.0**SCALED, 2.0**SCALED, magnitude), 1.0)
    eighths = select(small > large * 0.5, Float(1.0), select(inverted, Float(2.0), 0.0))
    return copysign(add_angle(eighths, small, large, inverted), x)


@library(ulp=1.0)
def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (``x``, ``y``) in [-pi, pi], with the special cases of IEEE 754's atan2."""
    width, height = abs_(x), abs_(y)
    steep = height > width
    longer, shorter = select(steep, height, width), select(steep, width, height)
    factor = select(longer > 2.0**SCALED, Float(2.0**-SCALED), select(longer < 2.0**-SCALED, Float(2.0**SCALED), 1.0))
    known = (longer > 0.0) & (longer < INF)
    large = select(known, longer * factor, 1.0)
    small = select(known, shorter * factor, select(shorter == INF, Float(1.0), 0.0))
    behind = bitcast(x, Int) < 0
    eighths = select(small > large * 0.5, Float(1.0), select(steep, Float(2.0), 0.0))
    angle = add_angle(select(behind, 4.0 - eighths, eighths), small, large, steep != behind)
    return select((x != x) | (y != y), x + y, copysign(angle, y))
