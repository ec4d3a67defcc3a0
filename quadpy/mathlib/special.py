"""erf, erfc.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.exponential import exp_pair, scale
from quadpy.mathlib.floats import fast_sum, horner, product, rough_inverse
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, abs_, copysign, fma, select

ERFC_IS_0 = per_width(f32=10.2, f64=27.5)
ERF = per_width(
    f32=(
        0.12837915122509003,
        -0.3761255741119385,
        0.11282555013895035,
        -0.026795603334903717,
        0.00503911916166544,
        -0.0006243539392016828,
    ),
    f64=(
        0.1283791670955126,
        -0.3761263890318374,
        0.11283791670954453,
        -0.026866170644965326,
        0.005223977623322088,
        -0.0008548326863253338,
        0.00012055325289039899,
        -1.4925406437330284e-05,
        1.6456932820038423e-06,
        -1.6292642681539939e-07,
        1.4142792005368885e-08,
        -8.71698747185621e-10,
    ),
)
ERFC = per_width(
    f32=(
        0.35800230503082275,
        0.5889296531677246,
        0.7869709730148315,
        0.827911376953125,
        0.6374971866607666,
        0.2862173020839691,
        -0.02636573277413845,
        -0.13037525117397308,
        -0.039882842451334,
        0.050193171948194504,
    ),
    f64=(
        0.3580023023627799,
        0.5889296354465892,
        0.7869711428054692,
        0.827912698401495,
        0.6374813935322006,
        0.2861571693307726,
        -0.025864888044892405,
        -0.12945331227012338,
        -0.04678909390686383,
        0.04723676104328944,
        0.03671433203147167,
        -0.02075201174227778,
        -0.023853492435920793,
        0.012971360012586483,
        0.01510904529208591,
        -0.010934520264587286,
        -0.008982185768927795,
        0.01031447329765018,
        0.004488329146611845,
        -0.009015904038258553,
        -0.0020573056510969885,
        0.005232435172697817,
        0.0015462482815789345,
    ),
)
ERFC_LOW = per_width(
    f32=(-2.310033053731786e-09, -1.0874257938553455e-08), f64=(-1.104449010971191e-17, -4.441307585710472e-17)
)
"""The rounding errors of the first two."""


@library()
def erfc_positive(x: Float) -> Float:
    """``erfc(x)`` for ``x >= 1/2``: ``e**(-x*x) * u * p(u - 1/2)`` with ``u = 3 / (x + 3)``, all in two floats each."""
    clamped = select(x > ERFC_IS_0, ERFC_IS_0, x)
    square, square_low = product(clamped, clamped)
    e, e_low, n = exp_pair(-square, -square_low)
    above = clamped + 3.0
    u = 3.0 / above
    u_low = (fma(-u, above, 3.0) - u * (clamped - (above - 3.0))) * rough_inverse(above)
    w, w_low = fast_sum(Float(-0.5), u)
    w_low = w_low + u_low
    more = horner(w, ERFC[2:])
    slope = fma(w, more, ERFC[1])
    slope_low = fma(w, more, ERFC[1] - slope) + ERFC_LOW[1]
    p = fma(w, slope, ERFC[0])
    derivative = fma(w, more, slope)  # about
    p_low = fma(w, slope_low, fma(w_low, derivative, fma(w, slope, ERFC[0] - p))) + ERFC_LOW[0]
    first, lost = product(e, u)
    first_low = fma(e_low, u, fma(e, u_low, lost))
    result, lost = product(first, p)
    return scale(result + fma(first_low, p, fma(first, p_low, lost)), n)


@library()
def erf_near(x: Float) -> Float:
    """``erf(x)`` near 0."""
    return fma(x, horner(x * x, ERF), x)


@library(ulp=1.0)
def erf(x: Float) -> Float:
    """The error function of ``x``."""
    magnitude = abs_(x)
    return copysign(select(magnitude < 0.86, erf_near(magnitude), 1.0 - erfc_positive(magnitude)), x)


@library(ulp=1.0)
def erfc(x: Float) -> Float:
    """``1 - erf(x)`` without cancellation for large ``x``."""
    value = erfc_positive(abs_(x))
    far = select(x < 0.0, 2.0 - value, value)
    series = horner(x * x, ERF)
    part = fma(x, series, x)
    leading, lost = fast_sum(Float(1.0), -part)
    near = leading + (lost - fma(x, series, x - part))
    return select((x < 0.5) & (x > -0.86), near, far)
