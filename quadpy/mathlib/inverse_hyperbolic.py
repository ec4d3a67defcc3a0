"""asinh, acosh, atanh: logarithms of arguments that are carried as sums of two floats.

The rounding error of the argument alone would be several ulp of a small logarithm.
"""

from quadpy.mathlib.halves import upper_f32, upper_f64
from quadpy.mathlib.library import library
from quadpy.mathlib.logarithm import log_pair_f32, log_pair_f64
from quadpy.mathlib.ops import abs_, copysign, f32, f64, select, sqrt
from quadpy.mathlib.polynomials import horner

__all__ = ["acosh_f32", "acosh_f64", "asinh_f32", "asinh_f64", "atanh_f32", "atanh_f64"]

INF, NAN = float("inf"), float("nan")
LN2 = 0.6931471805599453
ASINH_F32 = (
    -0.1666664332151413,
    0.0749865248799324,
    -0.04438452422618866,
    0.02816915512084961,
    -0.01323758065700531,
)
ASINH_F64 = (
    -0.1666666666666661,
    0.07499999999984419,
    -0.04464285712783272,
    0.030381943716430642,
    -0.022372138358975977,
    0.01735238696532817,
    -0.013960232358975427,
    0.011512984756397676,
    -0.009534145280645489,
    0.0074656060949219024,
    -0.004747519739916968,
    0.0017180869310955858,
)
ATANH_F32 = (
    0.33333301544189453,
    0.20002518594264984,
    0.1422276347875595,
    0.11823715269565582,
    0.051358770579099655,
    0.1766904592514038,
)
ATANH_F64 = (
    0.3333333333333399,
    0.19999999999795126,
    0.14285714308033703,
    0.11111109888663388,
    0.09090948484179494,
    0.07691494776991106,
    0.06677944090071422,
    0.05774398031621217,
    0.059823961395018034,
    0.01456503264386352,
    0.14492736389118221,
    -0.1528938981818694,
    0.22477585517977006,
)


@library()
def hypotenuse_f32(x: f32, side: f32) -> tuple[f32, f32]:
    """``sqrt(x*x + side)`` as a sum of two floats, for ``side`` 1 or -1 and ``x*x >= 1`` or ``side = 1``."""
    high = upper_f32(x)
    low = x - high
    square = x * x
    square_rest = ((high * high - square) + high * low * 2.0) + low * low
    total = square + side
    part = total - square
    total_rest = ((square - (total - part)) + (side - part)) + square_rest
    root = sqrt(total)
    root_high = upper_f32(root)
    root_low = root - root_high
    remainder = ((total - root_high * root_high) - root_high * root_low * 2.0) - root_low * root_low
    return root, select(root > 0.0, (remainder + total_rest) * 0.5 / root, 0.0)


@library()
def log_sum_f32(x: f32, side: f32) -> f32:
    """``log(x + sqrt(x*x + side))``; from 1048576.0 on, where the root is x, without squaring."""
    large = x > 1048576.0
    root, rest = hypotenuse_f32(select(large, 1.0, x), side)
    total = x + root
    total_rest = select(root > x, (root - total) + x, (x - total) + root) + rest
    result = log_pair_f32(select(large, x, total), select(large, 0.0, total_rest))
    return result + select(large, f32(LN2), 0.0)


@library(ulp=1.2)
def asinh_f32(x: f32) -> f32:
    """The inverse hyperbolic sine of ``x``."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = magnitude + magnitude * z * horner(z, ASINH_F32)
    far = log_sum_f32(magnitude, f32(1.0))
    finite = select(magnitude < 0.5, near, far)
    return copysign(select(magnitude < INF, finite, magnitude), x)


@library(ulp=1.2)
def acosh_f32(x: f32) -> f32:
    """The inverse hyperbolic cosine of ``x``; NaN below 1."""
    result = log_sum_f32(x, f32(-1.0))
    finite = select(x < INF, result, x)
    return select(x >= 1.0, finite, NAN)


@library(ulp=1.0)
def atanh_f32(x: f32) -> f32:
    """The inverse hyperbolic tangent of ``x``; infinite at 1, NaN beyond."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = magnitude + magnitude * z * horner(z, ATANH_F32)
    above, below = magnitude + 1.0, 1.0 - magnitude  # the second is exact from 1/2 on
    inverse = 1.0 / below
    quotient = above * inverse
    q, d = upper_f32(quotient), upper_f32(below)
    q_rest, d_rest = quotient - q, below - d
    remainder = (above - q * d - q * d_rest - q_rest * d - q_rest * d_rest) + (magnitude - (above - 1.0))
    far = log_pair_f32(quotient, remainder * inverse) * 0.5
    inside = select(magnitude < 0.5, near, select(magnitude == 1.0, INF, far))
    return copysign(select(magnitude <= 1.0, inside, NAN), x)


@library()
def hypotenuse_f64(x: f64, side: f64) -> tuple[f64, f64]:
    """``sqrt(x*x + side)`` as a sum of two floats, for ``side`` 1 or -1 and ``x*x >= 1`` or ``side = 1``."""
    high = upper_f64(x)
    low = x - high
    square = x * x
    square_rest = ((high * high - square) + high * low * 2.0) + low * low
    total = square + side
    part = total - square
    total_rest = ((square - (total - part)) + (side - part)) + square_rest
    root = sqrt(total)
    root_high = upper_f64(root)
    root_low = root - root_high
    remainder = ((total - root_high * root_high) - root_high * root_low * 2.0) - root_low * root_low
    return root, select(root > 0.0, (remainder + total_rest) * 0.5 / root, 0.0)


@library()
def log_sum_f64(x: f64, side: f64) -> f64:
    """``log(x + sqrt(x*x + side))``; from 1099511627776.0 on, where the root is x, without squaring."""
    large = x > 1099511627776.0
    root, rest = hypotenuse_f64(select(large, 1.0, x), side)
    total = x + root
    total_rest = select(root > x, (root - total) + x, (x - total) + root) + rest
    result = log_pair_f64(select(large, x, total), select(large, 0.0, total_rest))
    return result + select(large, f64(LN2), 0.0)


@library(ulp=1.2)
def asinh_f64(x: f64) -> f64:
    """The inverse hyperbolic sine of ``x``."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = magnitude + magnitude * z * horner(z, ASINH_F64)
    far = log_sum_f64(magnitude, f64(1.0))
    finite = select(magnitude < 0.5, near, far)
    return copysign(select(magnitude < INF, finite, magnitude), x)


@library(ulp=1.2)
def acosh_f64(x: f64) -> f64:
    """The inverse hyperbolic cosine of ``x``; NaN below 1."""
    result = log_sum_f64(x, f64(-1.0))
    finite = select(x < INF, result, x)
    return select(x >= 1.0, finite, NAN)


@library(ulp=1.0)
def atanh_f64(x: f64) -> f64:
    """The inverse hyperbolic tangent of ``x``; infinite at 1, NaN beyond."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = magnitude + magnitude * z * horner(z, ATANH_F64)
    above, below = magnitude + 1.0, 1.0 - magnitude  # the second is exact from 1/2 on
    inverse = 1.0 / below
    quotient = above * inverse
    q, d = upper_f64(quotient), upper_f64(below)
    q_rest, d_rest = quotient - q, below - d
    remainder = (above - q * d - q * d_rest - q_rest * d - q_rest * d_rest) + (magnitude - (above - 1.0))
    far = log_pair_f64(quotient, remainder * inverse) * 0.5
    inside = select(magnitude < 0.5, near, select(magnitude == 1.0, INF, far))
    return copysign(select(magnitude <= 1.0, inside, NAN), x)
