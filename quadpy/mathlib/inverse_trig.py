"""asin, acos, atan, atan2.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.floats import horner
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Int, abs_, bitcast, copysign, select, sqrt

__all__ = ["acos", "asin", "atan", "atan2"]

INF = float("inf")
PI = per_width(f32=3.1415927410125732, f64=3.141592653589793)
PI_REST = per_width(f32=-8.742277657347586e-08, f64=1.2246467991473532e-16)
PI_2 = per_width(f32=1.5707963705062866, f64=1.5707963267948966)
PI_2_REST = per_width(f32=-4.371138828673793e-08, f64=6.123233995736766e-17)
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
        -0.33333298563957214,
        0.19998548924922943,
        -0.14264242351055145,
        0.10952185839414597,
        -0.0840345099568367,
        0.05795760825276375,
        -0.031177854165434837,
        0.010914606973528862,
        -0.001793621457181871,
    ),
    f64=(
        -0.3333333333333307,
        0.1999999999995146,
        -0.14285714282575135,
        0.11111111007027144,
        -0.09090907003012527,
        0.07692279839574413,
        -0.06666404060118487,
        0.05880527831032835,
        -0.0525351863139603,
        0.04722322500610726,
        -0.042191797412341185,
        0.03664192769482041,
        -0.029903886232689938,
        0.021984888759680247,
        -0.013900594664063806,
        0.007196528517627662,
        -0.0028849319243005158,
        0.0008313267513417873,
        -0.00015216195816587032,
        1.3225187926214322e-05,
    ),
)


@library()
def asin_parts(x: Float) -> tuple[Float, Float]:
    """A number and a small rest whose sum is asin(|x|) up to 1/2, and asin(sqrt((1 - |x|) / 2)) above."""
    magnitude = abs_(x)
    upper_half = magnitude > 0.5
    z = select(upper_half, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    s = select(upper_half, sqrt(z), magnitude)
    return s, s * z * horner(z, ASIN)


@library()
def add_three(base: Float, value: Float, rest: Float) -> Float:
    """``base + value + rest`` in nearly one rounding; ``base`` is 0 or the largest."""
    total = base + value
    return total + (((base - total) + value) + rest)


@library(ulp=1.4)
def asin(x: Float) -> Float:
    """The arc sine of ``x`` in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    s, rest = asin_parts(x)
    above = add_three(Float(PI_2), s * -2.0, PI_2_REST - rest * 2.0)
    return copysign(select(abs_(x) > 0.5, above, s + rest), x)


@library(ulp=1.4)
def acos(x: Float) -> Float:
    """The arc cosine of ``x`` in [0, pi]; NaN outside [-1, 1]."""
    s, rest = asin_parts(x)
    upper_half, positive = abs_(x) > 0.5, x > 0.0
    base = select(upper_half, select(positive, Float(0.0), PI), PI_2)
    base_rest = select(upper_half, select(positive, Float(0.0), PI_REST), PI_2_REST)
    factor = select(upper_half, Float(2.0), 1.0)
    signed = select(upper_half == positive, factor, -factor)
    return add_three(base, s * signed, rest * signed + base_rest)


@library(ulp=1.4)
def atan(x: Float) -> Float:
    """The arc tangent of ``x`` in [-pi/2, pi/2]."""
    magnitude = abs_(x)
    inverted = magnitude > 1.0
    t = select(inverted, 1.0 / magnitude, magnitude)
    z = t * t
    rest = t * z * horner(z, ATAN)
    above = add_three(Float(PI_2), -t, PI_2_REST - rest)
    return copysign(select(inverted, above, t + rest), x)


@library(ulp=1.6)
def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (``x``, ``y``) in [-pi, pi], with the special cases of IEEE 754's atan2."""
    width, height = abs_(x), abs_(y)
    steep = height > width
    small, large = select(steep, width, height), select(steep, height, width)
    quotient = select(small == INF, 1.0, small / large)
    t = select(large == 0.0, 0.0, quotient)
    z = t * t
    rest = t * z * horner(z, ATAN)
    behind = bitcast(x, Int) < 0
    base = select(steep, Float(PI_2), select(behind, Float(PI), 0.0))
    base_rest = select(steep, Float(PI_2_REST), select(behind, Float(PI_REST), 0.0))
    backwards = steep != behind
    angle = add_three(base, select(backwards, -t, t), select(backwards, -rest, rest) + base_rest)
    return select((x != x) | (y != y), x + y, copysign(angle, y))
