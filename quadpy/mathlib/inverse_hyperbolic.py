"""asinh, acosh, atanh: logarithms of arguments that are carried as sums of two floats.

The rounding error of the argument alone would be several ulp of a small logarithm.
"""

from quadpy.mathlib.floats import horner, product
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.logarithm import log_pair
from quadpy.mathlib.ops import Float, abs_, copysign, fma, select, sqrt

INF, NAN = float("inf"), float("nan")
LARGE = per_width(f32=2.0**20, f64=2.0**40)
ASINH = per_width(
    f32=(
        -0.1666664332151413,
        0.0749865248799324,
        -0.04438452422618866,
        0.02816915512084961,
        -0.01323758065700531,
    ),
    f64=(
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
    ),
)
ATANH = per_width(
    f32=(
        0.33333301544189453,
        0.20002518594264984,
        0.1422276347875595,
        0.11823715269565582,
        0.051358770579099655,
        0.1766904592514038,
    ),
    f64=(
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
    ),
)


@library()
def hypotenuse(x: Float, side: Float) -> tuple[Float, Float]:
    """``sqrt(x*x + side)`` as a sum of two floats, for ``side`` 1 or -1 and ``x*x >= 1`` or ``side = 1``."""
    square, square_rest = product(x, x)
    total = square + side
    part = total - square
    total_rest = ((square - (total - part)) + (side - part)) + square_rest
    root = sqrt(total)
    remainder = fma(-root, root, total)
    return root, select(root > 0.0, (remainder + total_rest) * 0.5 / root, 0.0)


@library()
def log_sum(x: Float, side: Float) -> Float:
    """``log(x + sqrt(x*x + side))``; from ``LARGE`` on, where the root is x, without squaring."""
    large = x > LARGE
    root, rest = hypotenuse(select(large, 1.0, x), side)
    total = x + root
    total_rest = select(root > x, (root - total) + x, (x - total) + root) + rest
    return log_pair(select(large, x, total), select(large, 0.0, total_rest), select(large, Float(1.0), 0.0))


@library(ulp=1.0)
def asinh(x: Float) -> Float:
    """The inverse hyperbolic sine of ``x``."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = fma(magnitude * z, horner(z, ASINH), magnitude)
    far = log_sum(magnitude, Float(1.0))
    finite = select(magnitude < 0.5, near, far)
    return copysign(select(magnitude < INF, finite, magnitude), x)


@library(ulp=1.0)
def acosh(x: Float) -> Float:
    """The inverse hyperbolic cosine of ``x``; NaN below 1."""
    result = log_sum(x, Float(-1.0))
    finite = select(x < INF, result, x)
    return select(x >= 1.0, finite, NAN)


@library(ulp=1.0)
def atanh(x: Float) -> Float:
    """The inverse hyperbolic tangent of ``x``; infinite at 1, NaN beyond."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = fma(magnitude * z, horner(z, ATANH), magnitude)
    above, below = magnitude + 1.0, 1.0 - magnitude  # the second is exact from 1/2 on
    inverse = 1.0 / below
    quotient = above * inverse
    remainder = fma(-quotient, below, above) + (magnitude - (above - 1.0))
    far = log_pair(quotient, remainder * inverse, Float(0.0)) * 0.5
    inside = select(magnitude < 0.5, near, select(magnitude == 1.0, INF, far))
    return copysign(select(magnitude <= 1.0, inside, NAN), x)
