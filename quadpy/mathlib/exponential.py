"""exp, exp2, exp10, expm1: ``2**n`` times a polynomial.

``x = n*log(2) + r`` with an integer n and ``|r| <= log(2)/2``; then ``e**x = 2**n * e**r``.  Adding and subtracting 1.5
* 2**23 (2**52 for f64) rounds to an integer, which is then in the low bits of the sum: no conversion is needed.
Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.floats import BIAS, FRACTION_BITS, fast_sum, horner, product
from quadpy.mathlib.library import expand, library, per_width
from quadpy.mathlib.ops import Float, Int, abs_, bitcast, fma, select

LOG2_E = 1.4426950408889634
LOG2_10 = 3.321928094887362
# Constants as the nearest float and the rest.
LN2_HI = per_width(f32=0.6931471824645996, f64=0.6931471805599453)
LN2_LO = per_width(f32=-1.904654323148236e-09, f64=2.3190468138462996e-17)
LN10_HI = per_width(f32=2.3025851249694824, f64=2.302585092994046)
LN10_LO = per_width(f32=-3.197543655983958e-08, f64=-2.1707562233822494e-16)
LOG10_2_HI = per_width(f32=0.3010300099849701, f64=0.3010299956639812)
LOG10_2_LO = per_width(f32=-1.432098846412731e-08, f64=-2.8037281277851704e-18)
MAGIC = per_width(f32=1.5 * 2.0**23, f64=1.5 * 2.0**52)
# The results are 0 (-1) below these ranges and infinite above them.
EXP_RANGE = per_width(f32=(-104.0, 89.0), f64=(-746.0, 710.0))
EXP2_RANGE = per_width(f32=(-151.0, 129.0), f64=(-1076.0, 1025.0))
EXP10_RANGE = per_width(f32=(-46.0, 38.8), f64=(-324.0, 308.4))
EXPM1_RANGE = per_width(f32=(-18.0, 89.0), f64=(-38.0, 710.0))
EXP2 = per_width(
    f32=(
        0.24022647738456726,
        0.05550362169742584,
        0.009618526324629784,
        0.0013390162494033575,
        0.00015321129467338324,
    ),
    f64=(
        0.24022650695910072,
        0.05550410866482164,
        0.009618129107628345,
        0.0013333558146402386,
        0.00015403530393632886,
        1.5252733846401814e-05,
        1.321548659045294e-06,
        1.0178054863615784e-07,
        7.0549788374081166e-09,
        4.45617048017198e-10,
        2.5616772274679942e-11,
    ),
)
EXP = per_width(
    f32=(
        0.4999999403953552,
        0.1666652113199234,
        0.04166838899254799,
        0.008368712849915028,
        0.0013814587146043777,
    ),
    f64=(
        0.5000000000000011,
        0.16666666666666413,
        0.04166666666653022,
        0.008333333333494394,
        0.0013888888943611943,
        0.0001984126950668589,
        2.4801493119603533e-05,
        2.755758631710518e-06,
        2.7630240399616526e-07,
        2.5000066913428697e-08,
    ),
)


@expand
def clamp(x: Float, ends: tuple[float, float]) -> Float:
    """``x``, or the end of the range that it exceeds; a NaN stays."""
    low = select(x < ends[0], ends[0], x)
    return select(low > ends[1], ends[1], low)


@library()
def round_split(x: Float) -> tuple[Float, Int]:
    """The integer nearest to ``x``, as a float and as an integer; ``|x|`` below 2**21 (2**50 for f64).

    Only the bits of the integer below ``FRACTION_BITS - 1`` are valid: those above are MAGIC's.
    """
    shifted = x + MAGIC
    return shifted - MAGIC, bitcast(shifted, Int)


@library()
def round_multiple(x: Float, factor: Float) -> tuple[Float, Int]:
    """The integer nearest to ``x * factor``, as ``round_split``."""
    shifted = fma(x, factor, MAGIC)
    return shifted - MAGIC, bitcast(shifted, Int)


@library()
def power_of_two(n: Int) -> Float:
    """``2**n`` for a normal result."""
    return bitcast((n + BIAS) << FRACTION_BITS, Float)


@library()
def scale(x: Float, n: Int) -> Float:
    """``x * 2**n``, rounded once, for ``x`` near 1 and results from below the smallest float to above the largest.

    By two factors that are normal, of half the exponent each.
    """
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


@library()
def scale_sum(x: Float, n: Int) -> Float:
    """``(1 + x) * 2**n``, as ``scale``."""
    half = n >> 1
    factor = power_of_two(half)
    return fma(x, factor, factor) * power_of_two(n - half)


@library()
def exp_pair(x: Float, rest: Float) -> tuple[Float, Float, Int]:
    """``e**(x + rest)``, for a small ``rest``, as a sum of two floats near 1 and the exponent of 2 to multiply it by."""
    k, n = round_multiple(x, Float(LOG2_E))
    exact = fma(k, -LN2_HI, x)
    rounded = fma(k, -LN2_LO, exact)
    r, lost = fast_sum(rounded, fma(k, -LN2_LO, exact - rounded) + rest)
    high, low = fast_sum(Float(1.0), r)
    leading, tail = fast_sum(high, low + fma(r * r, horner(r, EXP), fma(lost, r, lost)))
    return leading, tail, n


@library()
def exp_sum(x: Float, rest: Float) -> tuple[Float, Int]:
    """``e**(x + rest)``, for ``|rest|`` below ``|x|`` or 1/8, as a float to add to 1 and the exponent of 2 to multiply the sum by."""
    k, n = round_multiple(x + rest, Float(LOG2_E))
    r, lost = fast_sum(fma(k, -LN2_HI, x), fma(k, -LN2_LO, rest))
    return r + fma(r * r, horner(r, EXP), lost), n


@library(ulp=1.0)
def exp(x: Float) -> Float:
    """The exponential of ``x``."""
    clamped = clamp(x, EXP_RANGE)
    k, n = round_multiple(clamped, Float(LOG2_E))
    r = fma(k, -LN2_LO, fma(k, -LN2_HI, clamped))
    return scale(fma(fma(horner(r, EXP), r, 1.0), r, 1.0), n)


@library(ulp=1.0)
def exp2(x: Float) -> Float:
    """2 to the power of ``x``; exact for integers."""
    clamped = clamp(x, EXP2_RANGE)
    k, n = round_split(clamped)
    r = clamped - k
    high, low = product(r, Float(LN2_HI))
    return scale_sum(high + fma(r * r, horner(r, EXP2), fma(r, LN2_LO, low)), n)


@library(ulp=1.0)
def exp10(x: Float) -> Float:
    """10 to the power of ``x``."""
    clamped = clamp(x, EXP10_RANGE)
    k, n = round_multiple(clamped, Float(LOG2_10))
    exact = fma(k, -LOG10_2_HI, clamped)
    r = fma(k, -LOG10_2_LO, exact)
    lost = fma(k, -LOG10_2_LO, exact - r)
    high, low = product(r, Float(LN10_HI))
    low = low + fma(lost, LN10_HI, r * LN10_LO)
    return scale_sum(high + fma(high * high, horner(high, EXP), low), n)


@library(ulp=1.0)
def expm1(x: Float) -> Float:
    """``e**x - 1`` without cancellation near 0."""
    clamped = clamp(x, EXPM1_RANGE)
    k, n = round_multiple(clamped, Float(LOG2_E))
    exact = fma(k, -LN2_HI, clamped)
    r = fma(k, -LN2_LO, exact)
    r_rest = fma(k, -LN2_LO, exact - r)
    tail = fma(r * r, horner(r, EXP), fma(r_rest, r, r_rest))
    half = power_of_two(n - 1)  # half of the result: it does not overflow before the result does
    base = half - 0.5
    total = fma(half, r, base)
    lost = fma(half, r, base - total) + ((half - base) - 0.5)
    result = total + fma(half, tail, lost)
    return select(abs_(x) < 2.0 ** -(FRACTION_BITS + 2), x, result + result)
