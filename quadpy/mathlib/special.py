"""erf, erfc.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.exponential import exp_split, scale
from quadpy.mathlib.floats import horner, upper
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, abs_, copysign, select

__all__ = ["erf", "erfc"]

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
        1.2329951524734497,
        -0.1396210491657257,
        0.015377345494925976,
        0.06809265166521072,
        -0.10099159926176071,
        0.0938282236456871,
        -0.06661766767501831,
        0.036404963582754135,
        -0.015971539542078972,
        0.00694753834977746,
        0.0008606422925367951,
    ),
    f64=(
        1.2329951186255526,
        -0.13962111684056253,
        0.015379652102619622,
        0.06809705425469532,
        -0.10103906603629773,
        0.09373283499825626,
        -0.06633036581236007,
        0.03716751553897758,
        -0.01619773405620831,
        0.005031969964883209,
        -0.0007577732992406069,
        -0.00019925662551481454,
        0.00015062172347138738,
        -2.4399442282273327e-05,
        -1.1222183022993608e-05,
        5.710196888510849e-06,
        2.941618538691996e-07,
        -8.25966618017179e-07,
        7.410525679883907e-08,
        1.1033300882628932e-07,
        -1.7469589950061973e-08,
        -1.4070576672737232e-08,
        1.6772478633805922e-09,
        1.1981269992547917e-09,
    ),
)


@library()
def erfc_positive(x: Float) -> Float:
    """``erfc(x)`` for ``x >= 0``: ``e**(-x*x) * p((x - 4)/(x + 4)) / (1 + 2*x)``."""
    clamped = select(x > ERFC_IS_0, ERFC_IS_0, x)
    t = (clamped - 4.0) / (clamped + 4.0)
    high = upper(clamped)
    low = clamped - high
    square = high * high
    rest = low * (clamped + high)
    mantissa, n = exp_split(-square, -rest)
    return scale(mantissa * horner(t, ERFC) / (clamped + clamped + 1.0), n)


@library()
def erf_near(x: Float) -> Float:
    """``erf(x)`` near 0."""
    z = x * x
    return x + x * horner(z, ERF)


@library(ulp=1.4)
def erf(x: Float) -> Float:
    """The error function of ``x``."""
    magnitude = abs_(x)
    return copysign(select(magnitude < 0.86, erf_near(magnitude), 1.0 - erfc_positive(magnitude)), x)


@library(ulp=5.0)
def erfc(x: Float) -> Float:
    """``1 - erf(x)`` without cancellation for large ``x``."""
    magnitude = abs_(x)
    value = erfc_positive(magnitude)
    far = select(x < 0.0, 2.0 - value, value)
    return select(magnitude < 0.5, 1.0 - erf_near(x), far)
