"""log, log2, log10, log1p.  Owns: the splitting of a number into ``2**n * (1 + f)``.

With f in [sqrt(1/2) - 1, sqrt(2) - 1], ``log(x) = n*log(2) + log(1 + f)``.  The two leading terms are added
with their rounding error kept, so that the result is nearly correctly rounded in any base.
Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.mathlib.library import library
from quadpy.mathlib.ops import bitcast, f32, f64, select, u32, u64
from quadpy.mathlib.polynomials import horner

__all__ = [
    "log1p_f32", "log1p_f64", "log2_f32", "log2_f64", "log10_f32", "log10_f64", "log_f32", "log_f64", "log_pair_f32",
    "log_pair_f64",
]  # fmt: skip

INF, NAN = float("inf"), float("nan")
# The high parts have few enough bits that their product with an exponent is exact.
LN2_HI_F32, LN2_LO_F32 = 0.693145751953125, 1.428606765330187e-06
LN2_HI_F64, LN2_LO_F64 = 0.6931471805601177, -1.7239444525614835e-13
LOG10_2_HI_F32, LOG10_2_LO_F32 = 0.301025390625, 4.605039066518657e-06
LOG10_2_HI_F64, LOG10_2_LO_F64 = 0.3010299956640665, -8.532344317057107e-14
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


@library()
def log_split_f32(x: f32) -> tuple[f32, f32]:
    """``n`` and ``f`` with ``x = 2**n * (1 + f)``, both exact; for positive finite ``x``."""
    tiny = x < 1.1754943508222875e-38
    bits = bitcast(select(tiny, x * 8388608.0, x), u32)
    shifted = bits + (0x3F800000 - 0x3F3504F3)
    biased = bitcast((shifted >> 23) | 0x4B000000, f32)  # 2**23 + the biased exponent
    n = biased - select(tiny, f32(8388758.0), 8388735.0)
    return n, bitcast((shifted & 0x7FFFFF) + 0x3F3504F3, f32) - 1.0


@library()
def log_special_f32(x: f32, result: f32) -> f32:
    """``result``, or what the logarithm is where ``x`` is not positive and finite."""
    finite = select(x < INF, result, x)
    return select(x > 0.0, finite, select(x == 0.0, f32(-INF), NAN))


@library(ulp=1.0)
def log_f32(x: f32) -> f32:
    """The natural logarithm of ``x``."""
    n, f = log_split_f32(x)
    high = n * LN2_HI_F32
    total = high + f
    lost = (high - total) + f
    return log_special_f32(x, total + (lost + (n * LN2_LO_F32 + f * f * horner(f, LOG_F32))))


@library(ulp=1.4)
def log2_f32(x: f32) -> f32:
    """The logarithm of ``x`` to base 2; exact for powers of two."""
    n, f = log_split_f32(x)
    total = n + f
    lost = (n - total) + f
    return log_special_f32(x, total + (lost + f * horner(f, LOG2_F32)))


@library(ulp=1.4)
def log10_f32(x: f32) -> f32:
    """The logarithm of ``x`` to base 10."""
    n, f = log_split_f32(x)
    high, half = n * LOG10_2_HI_F32, f * 0.5
    total = high + half
    lost = (high - total) + half
    return log_special_f32(x, total + (lost + (n * LOG10_2_LO_F32 + f * horner(f, LOG10_F32))))


@library()
def log_pair_f32(x: f32, low: f32) -> f32:
    """``log(x + low)`` for a normal ``x`` and ``|low|`` below an ulp of it, or for ``x = 1`` and any small one."""
    shifted = bitcast(x, u32) + (0x3F800000 - 0x3F3504F3)
    exponent = shifted >> 23
    n = bitcast(exponent | 0x4B000000, f32) - 8388735.0
    f = bitcast((shifted & 0x7FFFFF) + 0x3F3504F3, f32) - 1.0
    scaled = low * bitcast((255 - exponent) << 23, f32) * 0.5  # 2**(1 - n): in range for all n
    correction = scaled * (1.0 - f + f * f)  # the derivative of log(1 + f), as far as it matters
    high = n * LN2_HI_F32
    total = high + f
    lost = (high - total) + f
    return total + (lost + (n * LN2_LO_F32 + (f * f * horner(f, LOG_F32) + correction)))


@library(ulp=1.2)
def log1p_f32(x: f32) -> f32:
    """``log(1 + x)`` without cancellation near 0."""
    total = x + 1.0
    part = total - 1.0
    low = (1.0 - (total - part)) + (x - part)
    result = log_special_f32(total, log_pair_f32(total, low))
    return select(x == 0.0, x, result)


@library()
def log_split_f64(x: f64) -> tuple[f64, f64]:
    """``n`` and ``f`` with ``x = 2**n * (1 + f)``, both exact; for positive finite ``x``."""
    tiny = x < 2.2250738585072014e-308
    bits = bitcast(select(tiny, x * 4503599627370496.0, x), u64)
    shifted = bits + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    biased = bitcast((shifted >> 52) | 0x4330000000000000, f64)  # 2**52 + the biased exponent
    n = biased - select(tiny, f64(4503599627371571.0), 4503599627371519.0)
    return n, bitcast((shifted & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD, f64) - 1.0


@library()
def log_special_f64(x: f64, result: f64) -> f64:
    """``result``, or what the logarithm is where ``x`` is not positive and finite."""
    finite = select(x < INF, result, x)
    return select(x > 0.0, finite, select(x == 0.0, f64(-INF), NAN))


@library()
def log1p_tail_f64(f: f64) -> f64:
    """``log(1 + f) - f``, through the odd series in ``s = f / (2 + f)``."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return s * (half_square + z * horner(z, LOG_F64)) - half_square


@library(ulp=1.0)
def log_f64(x: f64) -> f64:
    """The natural logarithm of ``x``."""
    n, f = log_split_f64(x)
    high = n * LN2_HI_F64
    total = high + f
    lost = (high - total) + f
    return log_special_f64(x, total + (lost + (n * LN2_LO_F64 + log1p_tail_f64(f))))


@library(ulp=1.4)
def log2_f64(x: f64) -> f64:
    """The logarithm of ``x`` to base 2; exact for powers of two."""
    n, f = log_split_f64(x)
    total = n + f
    lost = (n - total) + f
    return log_special_f64(x, total + (lost + (f * LOG2_E_MINUS_1 + log1p_tail_f64(f) * LOG2_E)))


@library(ulp=1.4)
def log10_f64(x: f64) -> f64:
    """The logarithm of ``x`` to base 10."""
    n, f = log_split_f64(x)
    high, half = n * LOG10_2_HI_F64, f * 0.5
    total = high + half
    lost = (high - total) + half
    return log_special_f64(
        x, total + (lost + (n * LOG10_2_LO_F64 + (f * LOG10_E_MINUS_HALF + log1p_tail_f64(f) * LOG10_E)))
    )


@library()
def log_pair_f64(x: f64, low: f64) -> f64:
    """``log(x + low)`` for a normal ``x`` and ``|low|`` below an ulp of it, or for ``x = 1`` and any small one."""
    shifted = bitcast(x, u64) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    exponent = shifted >> 52
    n = bitcast(exponent | 0x4330000000000000, f64) - 4503599627371519.0
    f = bitcast((shifted & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD, f64) - 1.0
    scaled = low * bitcast((2047 - exponent) << 52, f64) * 0.5  # 2**(1 - n): in range for all n
    correction = scaled * (1.0 - f + f * f)  # the derivative of log(1 + f), as far as it matters
    high = n * LN2_HI_F64
    total = high + f
    lost = (high - total) + f
    return total + (lost + (n * LN2_LO_F64 + (log1p_tail_f64(f) + correction)))


@library(ulp=1.2)
def log1p_f64(x: f64) -> f64:
    """``log(1 + x)`` without cancellation near 0."""
    total = x + 1.0
    part = total - 1.0
    low = (1.0 - (total - part)) + (x - part)
    result = log_special_f64(total, log_pair_f64(total, low))
    return select(x == 0.0, x, result)
