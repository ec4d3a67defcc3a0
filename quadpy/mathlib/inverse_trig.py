"""asin, acos, atan, atan2.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.library import library
from quadpy.mathlib.ops import abs_, bitcast, copysign, f32, f64, i32, i64, select, sqrt
from quadpy.mathlib.polynomials import horner

__all__ = ["acos_f32", "acos_f64", "asin_f32", "asin_f64", "atan2_f32", "atan2_f64", "atan_f32", "atan_f64"]

INF = float("inf")
PI_F32, PI_REST_F32 = 3.1415927410125732, -8.742277657347586e-08
PI_2_F32, PI_2_REST_F32 = 1.5707963705062866, -4.371138828673793e-08
PI_F64, PI_REST_F64 = 3.141592653589793, 1.2246467991473532e-16
PI_2_F64, PI_2_REST_F64 = 1.5707963267948966, 6.123233995736766e-17
ASIN_F32 = (
    0.16666752099990845,
    0.07495297491550446,
    0.04547039046883583,
    0.02417944371700287,
    0.042166419327259064,
)
ASIN_F64 = (
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
)
ATAN_F32 = (
    -0.33333298563957214,
    0.19998548924922943,
    -0.14264242351055145,
    0.10952185839414597,
    -0.0840345099568367,
    0.05795760825276375,
    -0.031177854165434837,
    0.010914606973528862,
    -0.001793621457181871,
)
ATAN_F64 = (
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
)


@library()
def asin_parts_f32(x: f32) -> tuple[f32, f32]:
    """A number and a small rest whose sum is asin(|x|) up to 1/2, and asin(sqrt((1 - |x|) / 2)) above."""
    magnitude = abs_(x)
    upper_half = magnitude > 0.5
    z = select(upper_half, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    s = select(upper_half, sqrt(z), magnitude)
    return s, s * z * horner(z, ASIN_F32)


@library()
def add_three_f32(base: f32, value: f32, rest: f32) -> f32:
    """``base + value + rest`` in nearly one rounding; ``base`` is 0 or the largest."""
    total = base + value
    return total + (((base - total) + value) + rest)


@library(ulp=1.4)
def asin_f32(x: f32) -> f32:
    """The arc sine of ``x`` in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    s, rest = asin_parts_f32(x)
    above = add_three_f32(f32(PI_2_F32), s * -2.0, PI_2_REST_F32 - rest * 2.0)
    return copysign(select(abs_(x) > 0.5, above, s + rest), x)


@library(ulp=1.4)
def acos_f32(x: f32) -> f32:
    """The arc cosine of ``x`` in [0, pi]; NaN outside [-1, 1]."""
    s, rest = asin_parts_f32(x)
    upper_half, positive = abs_(x) > 0.5, x > 0.0
    base = select(upper_half, select(positive, f32(0.0), PI_F32), PI_2_F32)
    base_rest = select(upper_half, select(positive, f32(0.0), PI_REST_F32), PI_2_REST_F32)
    factor = select(upper_half, f32(2.0), 1.0)
    signed = select(upper_half == positive, factor, -factor)
    return add_three_f32(base, s * signed, rest * signed + base_rest)


@library(ulp=1.4)
def atan_f32(x: f32) -> f32:
    """The arc tangent of ``x`` in [-pi/2, pi/2]."""
    magnitude = abs_(x)
    inverted = magnitude > 1.0
    t = select(inverted, 1.0 / magnitude, magnitude)
    z = t * t
    rest = t * z * horner(z, ATAN_F32)
    above = add_three_f32(f32(PI_2_F32), -t, PI_2_REST_F32 - rest)
    return copysign(select(inverted, above, t + rest), x)


@library(ulp=1.6)
def atan2_f32(y: f32, x: f32) -> f32:
    """The angle of the point (``x``, ``y``) in [-pi, pi], with the special cases of IEEE 754's atan2."""
    width, height = abs_(x), abs_(y)
    steep = height > width
    small, large = select(steep, width, height), select(steep, height, width)
    quotient = select(small == INF, 1.0, small / large)
    t = select(large == 0.0, 0.0, quotient)
    z = t * t
    rest = t * z * horner(z, ATAN_F32)
    behind = bitcast(x, i32) < 0
    base = select(steep, f32(PI_2_F32), select(behind, f32(PI_F32), 0.0))
    base_rest = select(steep, f32(PI_2_REST_F32), select(behind, f32(PI_REST_F32), 0.0))
    backwards = steep != behind
    angle = add_three_f32(base, select(backwards, -t, t), select(backwards, -rest, rest) + base_rest)
    return select((x != x) | (y != y), x + y, copysign(angle, y))


@library()
def asin_parts_f64(x: f64) -> tuple[f64, f64]:
    """A number and a small rest whose sum is asin(|x|) up to 1/2, and asin(sqrt((1 - |x|) / 2)) above."""
    magnitude = abs_(x)
    upper_half = magnitude > 0.5
    z = select(upper_half, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    s = select(upper_half, sqrt(z), magnitude)
    return s, s * z * horner(z, ASIN_F64)


@library()
def add_three_f64(base: f64, value: f64, rest: f64) -> f64:
    """``base + value + rest`` in nearly one rounding; ``base`` is 0 or the largest."""
    total = base + value
    return total + (((base - total) + value) + rest)


@library(ulp=1.4)
def asin_f64(x: f64) -> f64:
    """The arc sine of ``x`` in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    s, rest = asin_parts_f64(x)
    above = add_three_f64(f64(PI_2_F64), s * -2.0, PI_2_REST_F64 - rest * 2.0)
    return copysign(select(abs_(x) > 0.5, above, s + rest), x)


@library(ulp=1.4)
def acos_f64(x: f64) -> f64:
    """The arc cosine of ``x`` in [0, pi]; NaN outside [-1, 1]."""
    s, rest = asin_parts_f64(x)
    upper_half, positive = abs_(x) > 0.5, x > 0.0
    base = select(upper_half, select(positive, f64(0.0), PI_F64), PI_2_F64)
    base_rest = select(upper_half, select(positive, f64(0.0), PI_REST_F64), PI_2_REST_F64)
    factor = select(upper_half, f64(2.0), 1.0)
    signed = select(upper_half == positive, factor, -factor)
    return add_three_f64(base, s * signed, rest * signed + base_rest)


@library(ulp=1.4)
def atan_f64(x: f64) -> f64:
    """The arc tangent of ``x`` in [-pi/2, pi/2]."""
    magnitude = abs_(x)
    inverted = magnitude > 1.0
    t = select(inverted, 1.0 / magnitude, magnitude)
    z = t * t
    rest = t * z * horner(z, ATAN_F64)
    above = add_three_f64(f64(PI_2_F64), -t, PI_2_REST_F64 - rest)
    return copysign(select(inverted, above, t + rest), x)


@library(ulp=1.6)
def atan2_f64(y: f64, x: f64) -> f64:
    """The angle of the point (``x``, ``y``) in [-pi, pi], with the special cases of IEEE 754's atan2."""
    width, height = abs_(x), abs_(y)
    steep = height > width
    small, large = select(steep, width, height), select(steep, height, width)
    quotient = select(small == INF, 1.0, small / large)
    t = select(large == 0.0, 0.0, quotient)
    z = t * t
    rest = t * z * horner(z, ATAN_F64)
    behind = bitcast(x, i64) < 0
    base = select(steep, f64(PI_2_F64), select(behind, f64(PI_F64), 0.0))
    base_rest = select(steep, f64(PI_2_REST_F64), select(behind, f64(PI_REST_F64), 0.0))
    backwards = steep != behind
    angle = add_three_f64(base, select(backwards, -t, t), select(backwards, -rest, rest) + base_rest)
    return select((x != x) | (y != y), x + y, copysign(angle, y))
