"""log, log2, log10, log1p: of ``2**n * (1 + f)``.

With f in [sqrt(1/2) - 1, sqrt(2) - 1], ``log(x) = n*log(2) + log(1 + f)``.  The two leading terms are added
with their rounding error kept, so that the result is nearly correctly rounded in any base.
Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.core.dtypes import f32, f64
from quadpy.mathlib.floats import BIAS, FRACTION, FRACTION_BITS, LEAST_NORMAL, WHOLE, fast_sum, horner, product
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Int, Word, bitcast, fma, select

INF, NAN = float("inf"), float("nan")
ONE = per_width(f32=0x3F800000, f64=0x3FF0000000000000)  # the bits of 1, of infinity and of sqrt(1/2)
INFINITY = per_width(f32=0x7F800000, f64=0x7FF0000000000000)
SQRT_HALF = per_width(f32=0x3F3504F3, f64=0x3FE6A09E667F3BCD)
UNIT = per_width(f32=2.0**-23, f64=1.0)
"""The unit of the exponent of ``log_split``."""
# Constants as the nearest float and the rest.
LN2_HI = per_width(f32=0.6931471824645996, f64=0.6931471805599453)
LN2_LO = per_width(f32=-1.904654323148236e-09, f64=2.3190468138462996e-17)
LOG2_E_HI = per_width(f32=1.4426950216293335, f64=1.4426950408889634)
LOG2_E_LO = per_width(f32=1.925963033500011e-08, f64=2.0355273740931033e-17)
LOG10_2_HI = per_width(f32=0.3010300099849701, f64=0.3010299956639812)
LOG10_2_LO = per_width(f32=-1.432098846412731e-08, f64=-2.8037281277851704e-18)
LOG10_E_HI = per_width(f32=0.4342944920063019, f64=0.4342944819032518)
LOG10_E_LO = per_width(f32=-1.0103049952192578e-08, f64=1.098319650216765e-17)
LOG_F32 = (
    -0.49999988079071045,
    0.33333325386047363,
    -0.2500159740447998,
    0.20002087950706482,
    -0.16608789563179016,
    0.14179234206676483,
    -0.13242749869823456,
    0.12922097742557526,
    -0.07645104825496674,
)
LOG2_F32 = (
    -0.7213473320007324,
    0.4808982014656067,
    -0.36069682240486145,
    0.2885691523551941,
    -0.23961418867111206,
    0.20456311106681824,
    -0.19105249643325806,
    0.18642647564411163,
    -0.11029554903507233,
)
LOG10_F32 = (
    -0.21714718639850616,
    0.14476478099822998,
    -0.1085805669426918,
    0.08686796575784683,
    -0.07213106006383896,
    0.0615796335041523,
    -0.05751253291964531,
    0.05611995980143547,
    -0.033202268183231354,
)
LOG_F64 = (
    0.6666666666666734,
    0.3999999999941435,
    0.28571428742468674,
    0.22222198564141396,
    0.18183564831037338,
    0.1531403679881602,
    0.1479609519894781,
)


@library(width=f32)
def log_rest_f32(f: Float, low: Float) -> Float:
    """``log(1 + f) - f + low``, by a polynomial."""
    return fma(f * f, horner(f, LOG_F32), low)


@library(width=f32)
def log2_rest_f32(f: Float, low: Float) -> Float:
    """``log2(1 + f) - f*log2(e) + low``, by a polynomial."""
    return fma(f * f, horner(f, LOG2_F32), low)


@library(width=f32)
def log10_rest_f32(f: Float, low: Float) -> Float:
    """``log10(1 + f) - f*log10(e) + low``, by a polynomial."""
    return fma(f * f, horner(f, LOG10_F32), low)


@library(width=f64)
def log_tail(f: Float) -> Float:
    """``log(1 + f) - f``, through the odd series in ``s = f / (2 + f)``."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return fma(s, fma(z, horner(z, LOG_F64), half_square), -half_square)


@library(width=f64)
def log_rest_f64(f: Float, low: Float) -> Float:
    """``log(1 + f) - f + low``."""
    return log_tail(f) + low


@library(width=f64)
def log2_rest_f64(f: Float, low: Float) -> Float:
    """``log2(1 + f) - f*log2(e) + low``."""
    return fma(log_tail(f), LOG2_E_HI, low)


@library(width=f64)
def log10_rest_f64(f: Float, low: Float) -> Float:
    """``log10(1 + f) - f*log10(e) + low``."""
    return fma(log_tail(f), LOG10_E_HI, low)


log_rest = per_width(f32=log_rest_f32, f64=log_rest_f64)
log2_rest = per_width(f32=log2_rest_f32, f64=log2_rest_f64)
log10_rest = per_width(f32=log10_rest_f32, f64=log10_rest_f64)


@library(width=f32)
def log_split_f32(x: Float) -> tuple[Float, Float]:
    """``n`` and ``f`` with ``x = 2**(n * UNIT) * (1 + f)``, both exact; for positive finite ``x``."""
    raised = bitcast(x * 2.0**FRACTION_BITS, Int) - (FRACTION_BITS << FRACTION_BITS)
    bits = select(x < LEAST_NORMAL, raised, bitcast(x, Int))  # as if there were smaller exponents
    exponent = (bits - SQRT_HALF) & -(1 << FRACTION_BITS)
    return Float(exponent), bitcast(bits - exponent, Float) - 1.0


@library(width=f64)
def log_split_f64(x: Float) -> tuple[Float, Float]:
    """Like ``log_split_f32``, without a conversion of integers, for which few processors have a vector instruction."""
    tiny = x < LEAST_NORMAL
    bits = bitcast(select(tiny, x * 2.0**FRACTION_BITS, x), Word)
    shifted = bits + (ONE - SQRT_HALF)
    biased = bitcast((shifted >> FRACTION_BITS) | WHOLE, Float)  # 2**FRACTION_BITS + the biased exponent
    n = biased - select(tiny, Float(2.0**FRACTION_BITS + BIAS + FRACTION_BITS), 2.0**FRACTION_BITS + BIAS)
    return n, bitcast((shifted & FRACTION) + SQRT_HALF, Float) - 1.0


log_split = per_width(f32=log_split_f32, f64=log_split_f64)


@library()
def log_parts(n: Float, f: Float) -> tuple[Float, Float]:
    """The logarithm of ``log_split``'s result, as a sum of two floats that is hardly more accurate than one float."""
    total, low = add_exponent(n, Float(LN2_HI * UNIT), Float(LN2_LO * UNIT), f)
    return total, log_rest(f, low)


@library()
def log_special(x: Float, result: Float) -> Float:
    """``result``, or the logarithm's special value if ``x`` is not positive and finite."""
    usual = select(bitcast(x, Word) < INFINITY, result, fma(x, INF, INF))  # infinity stays, the rest is NaN
    return select(x == 0.0, -INF, usual)


@library()
def add_exponent(n: Float, high: Float, low: Float, f: Float) -> tuple[Float, Float]:
    """``n*(high + low) + f`` as a sum of two floats, for ``f`` smaller than ``high``."""
    total = fma(n, high, f)
    return total, fma(n, low, fma(n, high, -total) + f)


@library(ulp=1.0)
def log(x: Float) -> Float:
    """The natural logarithm of ``x``."""
    n, f = log_split(x)
    total, rest = log_parts(n, f)
    return log_special(x, total + rest)


@library(ulp=1.0)
def log2(x: Float) -> Float:
    """The logarithm of ``x`` to base 2; exact for powers of two."""
    n, f = log_split(x)
    leading, lost = product(f, Float(LOG2_E_HI))
    total, low = fast_sum(n * UNIT, leading)
    return log_special(x, total + log2_rest(f, fma(f, LOG2_E_LO, low + lost)))


@library(ulp=1.0)
def log10(x: Float) -> Float:
    """The logarithm of ``x`` to base 10."""
    n, f = log_split(x)
    leading, lost = product(f, Float(LOG10_E_HI))
    total, low = add_exponent(n, Float(LOG10_2_HI * UNIT), Float(LOG10_2_LO * UNIT), leading)
    return log_special(x, total + log10_rest(f, fma(f, LOG10_E_LO, low + lost)))


@library()
def log_pair(x: Float, low: Float, more: Float) -> Float:
    """``log(x + low) + more*log(2)`` for a normal ``x`` and ``|low|`` below an ulp of it, or for ``x = 1`` and any small one."""
    shifted = bitcast(x, Word) + (ONE - SQRT_HALF)
    exponent = shifted >> FRACTION_BITS
    n = bitcast(exponent | WHOLE, Float) - (2.0**FRACTION_BITS + BIAS)
    f = bitcast((shifted & FRACTION) + SQRT_HALF, Float) - 1.0
    scaled = low * bitcast((2 * BIAS + 1 - exponent) << FRACTION_BITS, Float) * 0.5  # 2**(1 - n): in range for all n
    total, rest = add_exponent(n + more, Float(LN2_HI), Float(LN2_LO), f)
    slope = fma(f, f, 1.0) - f  # the derivative of log(1 + f), as far as it matters
    return total + log_rest(f, fma(scaled, slope, rest))


@library(ulp=1.0)
def log1p(x: Float) -> Float:
    """``log(1 + x)`` without cancellation near 0."""
    total = x + 1.0
    part = total - 1.0
    low = (1.0 - (total - part)) + (x - part)
    result = log_special(total, log_pair(total, low, Float(0.0)))
    return select(x == 0.0, x, result)
