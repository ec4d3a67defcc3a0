"""log, log2, log10, log1p: of ``2**n * (1 + f)``.

With f in [sqrt(1/2) - 1, sqrt(2) - 1], ``log(x) = n*log(2) + log(1 + f)``.  The two leading terms are added
with their rounding error kept, so that the result is nearly correctly rounded in any base.
Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.dtypes import f32, f64
from quadpy.mathlib.floats import BIAS, FRACTION, FRACTION_BITS, LEAST_NORMAL, WHOLE, horner
from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Word, bitcast, select

__all__ = ["log", "log1p", "log2", "log10", "log_pair", "log_split"]

INF, NAN = float("inf"), float("nan")
ONE = per_width(f32=0x3F800000, f64=0x3FF0000000000000)  # the bits of 1 and of sqrt(1/2)
SQRT_HALF = per_width(f32=0x3F3504F3, f64=0x3FE6A09E667F3BCD)
# The high parts have few enough bits that their product with an exponent is exact.
LN2_HI = per_width(f32=0.693145751953125, f64=0.6931471805601177)
LN2_LO = per_width(f32=1.428606765330187e-06, f64=-1.7239444525614835e-13)
LOG10_2_HI = per_width(f32=0.301025390625, f64=0.3010299956640665)
LOG10_2_LO = per_width(f32=4.605039066518657e-06, f64=-8.532344317057107e-14)
LOG2_E, LOG10_E = 1.4426950408889634, 0.4342944819032518
LOG2_E_MINUS_1, LOG10_E_MINUS_HALF = 0.4426950408889634, -0.06570551809674817
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
    0.4426950514316559,
    -0.7213473320007324,
    0.4808982312679291,
    -0.3606966435909271,
    0.2885674238204956,
    -0.23961731791496277,
    0.2046004980802536,
    -0.19106334447860718,
    0.18617616593837738,
    -0.10994967073202133,
)
LOG10_F32 = (
    -0.06570551544427872,
    -0.21714718639850616,
    0.14476479589939117,
    -0.10858051478862762,
    0.08686744421720505,
    -0.07213199883699417,
    0.06159088388085365,
    -0.05751579627394676,
    0.05604460835456848,
    -0.03309815004467964,
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
def log_rest_f32(f: Float) -> Float:
    """``log(1 + f) - f``, by a polynomial."""
    return f * f * horner(f, LOG_F32)


@library(width=f32)
def log2_rest_f32(f: Float) -> Float:
    """``log2(1 + f) - f``, by a polynomial."""
    return f * horner(f, LOG2_F32)


@library(width=f32)
def log10_rest_f32(f: Float) -> Float:
    """``log10(1 + f) - f/2``, by a polynomial."""
    return f * horner(f, LOG10_F32)


@library(width=f64)
def log_rest_f64(f: Float) -> Float:
    """``log(1 + f) - f``, through the odd series in ``s = f / (2 + f)``."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return s * (half_square + z * horner(z, LOG_F64)) - half_square


@library(width=f64)
def log2_rest_f64(f: Float) -> Float:
    """``log2(1 + f) - f``."""
    return f * LOG2_E_MINUS_1 + log_rest_f64(f) * LOG2_E


@library(width=f64)
def log10_rest_f64(f: Float) -> Float:
    """``log10(1 + f) - f/2``."""
    return f * LOG10_E_MINUS_HALF + log_rest_f64(f) * LOG10_E


log_rest = per_width(f32=log_rest_f32, f64=log_rest_f64)
log2_rest = per_width(f32=log2_rest_f32, f64=log2_rest_f64)
log10_rest = per_width(f32=log10_rest_f32, f64=log10_rest_f64)


@library()
def log_split(x: Float) -> tuple[Float, Float]:
    """``n`` and ``f`` with ``x = 2**n * (1 + f)``, both exact; for positive finite ``x``."""
    tiny = x < LEAST_NORMAL
    bits = bitcast(select(tiny, x * 2.0**FRACTION_BITS, x), Word)
    shifted = bits + (ONE - SQRT_HALF)
    biased = bitcast((shifted >> FRACTION_BITS) | WHOLE, Float)  # 2**FRACTION_BITS + the biased exponent
    n = biased - select(tiny, Float(2.0**FRACTION_BITS + BIAS + FRACTION_BITS), 2.0**FRACTION_BITS + BIAS)
    return n, bitcast((shifted & FRACTION) + SQRT_HALF, Float) - 1.0


@library()
def log_special(x: Float, result: Float) -> Float:
    """``result``, or what the logarithm is where ``x`` is not positive and finite."""
    finite = select(x < INF, result, x)
    return select(x > 0.0, finite, select(x == 0.0, Float(-INF), NAN))


@library(ulp=1.0)
def log(x: Float) -> Float:
    """The natural logarithm of ``x``."""
    n, f = log_split(x)
    high = n * LN2_HI
    total = high + f
    lost = (high - total) + f
    return log_special(x, total + (lost + (n * LN2_LO + log_rest(f))))


@library(ulp=1.4)
def log2(x: Float) -> Float:
    """The logarithm of ``x`` to base 2; exact for powers of two."""
    n, f = log_split(x)
    total = n + f
    lost = (n - total) + f
    return log_special(x, total + (lost + log2_rest(f)))


@library(ulp=1.4)
def log10(x: Float) -> Float:
    """The logarithm of ``x`` to base 10."""
    n, f = log_split(x)
    high, half = n * LOG10_2_HI, f * 0.5
    total = high + half
    lost = (high - total) + half
    return log_special(x, total + (lost + (n * LOG10_2_LO + log10_rest(f))))


@library()
def log_pair(x: Float, low: Float) -> Float:
    """``log(x + low)`` for a normal ``x`` and ``|low|`` below an ulp of it, or for ``x = 1`` and any small one."""
    shifted = bitcast(x, Word) + (ONE - SQRT_HALF)
    exponent = shifted >> FRACTION_BITS
    n = bitcast(exponent | WHOLE, Float) - (2.0**FRACTION_BITS + BIAS)
    f = bitcast((shifted & FRACTION) + SQRT_HALF, Float) - 1.0
    scaled = low * bitcast((2 * BIAS + 1 - exponent) << FRACTION_BITS, Float) * 0.5  # 2**(1 - n): in range for all n
    correction = scaled * (1.0 - f + f * f)  # the derivative of log(1 + f), as far as it matters
    high = n * LN2_HI
    total = high + f
    lost = (high - total) + f
    return total + (lost + (n * LN2_LO + (log_rest(f) + correction)))


@library(ulp=1.2)
def log1p(x: Float) -> Float:
    """``log(1 + x)`` without cancellation near 0."""
    total = x + 1.0
    part = total - 1.0
    low = (1.0 - (total - part)) + (x - part)
    result = log_special(total, log_pair(total, low))
    return select(x == 0.0, x, result)
