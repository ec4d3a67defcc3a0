"""sinh, cosh, tanh: from the exponential, and by polynomials where that would cancel."""

from quadpy.mathlib.exponential import exp_pair, power_of_two
from quadpy.mathlib.floats import fast_sum, horner
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, abs_, copysign, fma, select

TANH_IS_1 = per_width(f32=10.0, f64=20.0)
HIGHEST = per_width(f32=89.7, f64=710.6)
"""Here sinh and cosh are infinite, but a quarter of the exponential is not."""
TANH = per_width(
    f32=(
        -0.33333298563957214,
        0.13332220911979675,
        -0.05385233089327812,
        0.02130298875272274,
        -0.007409553974866867,
        0.001584754791110754,
    ),
    f64=(
        -0.33333333333333043,
        0.1333333333329759,
        -0.05396825395269335,
        0.02186948819397156,
        -0.008863231075776046,
        0.0035920906124004156,
        -0.0014556206912316834,
        0.0005891723537967689,
        -0.00023669214512558862,
        9.194474812836355e-05,
        -3.205926575573548e-05,
        8.550332524151387e-06,
        -1.2338585403142762e-06,
    ),
)
SINH = per_width(
    f32=(
        0.1666666716337204,
        0.008333349600434303,
        0.0001983615948120132,
        2.8169506549602374e-06,
    ),
    f64=(
        0.16666666666666669,
        0.008333333333333148,
        0.00019841269841431867,
        2.7557319157073784e-06,
        2.5052123136443784e-08,
        1.6057259789070693e-10,
        7.758748214962067e-13,
    ),
)


@library()
def quarter_exp(x: Float) -> tuple[Float, Float]:
    """``e**x / 4`` as a sum of two floats, for ``x`` from 0 on; above ``HIGHEST``, the value at it."""
    high, low, n = exp_pair(select(x > HIGHEST, HIGHEST, x), Float(0.0))
    factor = power_of_two(n - 2)
    return high * factor, low * factor


@library(ulp=1.0)
def sinh(x: Float) -> Float:
    """The hyperbolic sine of ``x``."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    high, low = quarter_exp(magnitude)
    half = high + (low - 0.0625 / (high + low))
    near = fma(magnitude * z, horner(z, SINH), magnitude)
    return copysign(select(magnitude < 1.0, near, half + half), x)


@library(ulp=1.0)
def cosh(x: Float) -> Float:
    """The hyperbolic cosine of ``x``."""
    high, low = quarter_exp(abs_(x))
    half = high + (low + 0.0625 / (high + low))
    return half + half


@library(ulp=1.0)
def tanh(x: Float) -> Float:
    """The hyperbolic tangent of ``x``."""
    magnitude = abs_(x)
    z = magnitude * magnitude
    near = fma(magnitude * z, horner(z, TANH), magnitude)
    clamped = select(magnitude > TANH_IS_1, TANH_IS_1, magnitude)
    high, low = quarter_exp(clamped + clamped)
    total, rest = fast_sum(high, Float(0.25))
    inverse = 0.5 / total  # 1 - 2 / (e**2x + 1), the quotient corrected by its remainder
    correction = fma(-inverse, total, 0.5) - inverse * (rest + low)
    leading, lost = fast_sum(Float(1.0), -inverse)
    far = leading + fma(correction, -(inverse + inverse), lost)
    return copysign(select(magnitude < 0.8, near, far), x)
