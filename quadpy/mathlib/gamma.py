"""tgamma, lgamma.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.exponential import clamp, exp_sum, round_split, scale
from quadpy.mathlib.floats import fast_sum, horner, product
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.logarithm import log, log_split
from quadpy.mathlib.ops import Float, abs_, floor, fma, rint, select
from quadpy.mathlib.power import log_accurate
from quadpy.mathlib.trig import sine_cosine, turn

INF, NAN = float("inf"), float("nan")
PI = per_width(f32=3.1415927410125732, f64=3.141592653589793)
PI_REST = per_width(f32=-8.742277657347586e-08, f64=1.2246467991473532e-16)
LOG_ROOT = per_width(f32=0.9189385175704956, f64=0.9189385332046728)  # of 2*pi
LOG_ROOT_REST = per_width(f32=1.563417661998301e-08, f64=-3.8782941580672414e-17)
TINY = per_width(f32=2.0**-30, f64=2.0**-60)
"""Below this, gamma is the inverse of its argument."""
FAR = 6.0
"""From here on, Stirling's series is used."""
BEYOND = per_width(f32=45.5, f64=190.5)
"""Here the gamma function is infinite, and at minus this number 0; not a whole number, where it would have a pole."""
RANGE = per_width(f32=(-125.0, 90.0), f64=(-784.0, 711.0))
GAMMA = per_width(
    f32=(
        1.3293403387069702,
        0.9347345232963562,
        0.654558539390564,
        0.25387123227119446,
        0.10967423021793365,
        0.028360845521092415,
        0.010382084175944328,
        0.0016073220176622272,
        0.0007977217901498079,
    ),
    f64=(
        1.329340388179137,
        0.9347345216260855,
        0.6545585779813362,
        0.25387124684114654,
        0.10967323400222137,
        0.028360780594619397,
        0.010392403423356865,
        0.00160740049088139,
        0.0007544741818384449,
        3.941697407088002e-06,
        6.132935828601243e-05,
        -1.2800897772322922e-05,
        7.258077757576592e-06,
        -2.5641264966508602e-06,
        1.0657074656007504e-06,
        -4.136980956129585e-07,
        2.0569265308791837e-07,
        -8.697146104923205e-08,
    ),
)
LOG_GAMMA = per_width(
    f32=(
        0.42278432846069336,
        0.32246702909469604,
        -0.06735222041606903,
        0.020581603050231934,
        -0.007387429475784302,
        0.0028790473006665707,
        -0.00117782992310822,
        0.0005698470631614327,
        -0.0002698707685340196,
    ),
    f64=(
        0.42278433509846713,
        0.3224670334241132,
        -0.06735230105319814,
        0.020580808427784925,
        -0.007385551028668378,
        0.0028905103307135895,
        -0.0011927539119918737,
        0.0005096695256900277,
        -0.00022315475093173063,
        9.94574951508837e-05,
        -4.4926348967714565e-05,
        2.0507409423454265e-05,
        -9.438473085584196e-06,
        4.373501100298239e-06,
        -2.0448638143079663e-06,
        9.610616665783228e-07,
        -4.304749612130232e-07,
        1.9665818620376055e-07,
        -1.34023309972082e-07,
        6.91706914525333e-08,
    ),
)
STIRLING = per_width(
    f32=(
        0.0833333358168602,
        -0.0027775350026786327,
        0.0007699477719143033,
    ),
    f64=(
        0.08333333333333333,
        -0.002777777777777567,
        0.0007936507934437178,
        -0.0005952380166195488,
        0.0008417357996624235,
        -0.001915892585672832,
        0.006303803216452664,
        -0.025335404659014803,
        0.07976352894781187,
    ),
)


@library()
def sine_of_turns(x: Float) -> Float:
    """``sin(pi*x)``."""
    odd = x - rint(x * 0.5) * 2.0
    quarters = rint(odd * 2.0)
    rest = fma(quarters, -0.5, odd)
    r, lost = product(rest, Float(PI))
    up, across = sine_cosine(r, fma(rest, -PI_REST, -lost))
    _, quadrant = round_split(quarters)
    return turn(quadrant, up, across)


@library()
def log_stirling(y: Float) -> tuple[Float, Float]:
    """``log(gamma(y))`` as a sum of two floats, for ``y`` from FAR to BEYOND."""
    n, f = log_split(y)
    high, low = log_accurate(n, f)
    before = y - 0.5
    first, first_low = product(before, high)
    z = 1.0 / y
    total, lost = fast_sum(first, -y)
    result, rounded = fast_sum(total, Float(LOG_ROOT))
    return result, rounded + (lost + fma(z, horner(z * z, STIRLING), fma(before, low, first_low) + LOG_ROOT_REST))


@library(ulp=7.0)
def tgamma(x: Float) -> Float:
    """The gamma function of ``x``; infinite at 0 with its sign, NaN at negative integers and minus infinity."""
    magnitude = abs_(x)
    y = select(magnitude > BEYOND, BEYOND, magnitude)
    negative = x < 0.0
    # gamma(x) * gamma(-x) = -pi / (x * sin(pi*x))
    mirrored = select(negative, PI / (y * sine_of_turns(y)), Float(1.0))
    # Near: from gamma between 2 and 3, by up to three factors or two divisors.
    base = horner((y - floor(y)) - 0.5, GAMMA)
    factor = (
        select(y < 3.0, Float(1.0), y - 1.0)
        * select(y < 4.0, Float(1.0), y - 2.0)
        * select(y < 5.0, Float(1.0), y - 3.0)
    )
    divisor = select(y < 2.0, y, Float(1.0)) * select(y < 1.0, y + 1.0, 1.0)
    near = select(negative, -(mirrored * divisor) / (base * factor), base * factor / divisor)
    # Far: a power of e.
    high, low = log_stirling(select(y < FAR, FAR, y))
    power, n = exp_sum(clamp(select(negative, -high, high), RANGE), select(negative, -low, low))
    far = scale((power + 1.0) * select(negative, -mirrored, mirrored), n)
    result = select(y < FAR, near, far)
    whole = negative & (floor(x) == x)
    return select(y < TINY, 1.0 / x, select(whole, NAN, select(x == x, result, x)))


@library(ulp=6.0)
def lgamma(x: Float) -> Float:
    """The logarithm of the absolute value of the gamma function; infinite where that is, and at negative integers.

    Below -2, where it has zeros, the bound holds for the absolute error, as if the result were ``lgamma(-x)``, or 1.
    """
    y = abs_(x)
    nearest = rint(y)
    is_small = y <= 0.5  # with 1/2, whose nearest even number is 0
    t = select(is_small, y, y - select(nearest > 6.0, 6.0, nearest))
    below = select(y < 1.5, select(is_small, y * (y + 1.0), y), Float(1.0))
    above = select(nearest < 3.0, Float(1.0), y - 1.0) * select(nearest < 4.0, Float(1.0), y - 2.0)
    above = above * select(nearest < 5.0, Float(1.0), y - 3.0) * select(nearest < 6.0, Float(1.0), y - 4.0)
    # One logarithm: of y itself from 6 on.
    is_far = y >= FAR
    found = log(select(is_far, y, select(y < 1.5, below, above)))
    near = fma(t, horner(t, LOG_GAMMA), select(y < 1.5, -found, found))
    z = 1.0 / y
    far = fma(y - 0.5, found - 1.0, fma(z, horner(z * z, STIRLING), LOG_ROOT - 0.5))
    positive = select(is_far, far, near)
    mirrored = log(PI / abs_(y * sine_of_turns(y))) - positive
    whole = (x <= 0.0) & (floor(x) == x)
    result = select(x < -TINY, mirrored, positive)
    return select(whole | (y == INF), INF, result)
