"""Reduces arguments of trigonometric functions to a quadrant.

Up to a limit the multiple of pi/2 is subtracted in parts whose products are exact (Cody and Waite).  Above
it (Payne and Hanek), the integer significand is multiplied by the bits of 2/pi that matter for its exponent,
in integers: bits that are left out are multiples of 4 quadrants above, and below any cancellation.
Both give the rest as an unevaluated sum of two floats.  Derivation and bounds: docs/explanation/math.md.
"""

from quadpy.core.dtypes import f32, f64
from quadpy.mathlib.exponential import round_multiple
from quadpy.mathlib.floats import BITS, fast_sum, product
from quadpy.mathlib.library import expand, library, per_width
from quadpy.mathlib.ops import Float, Int, Word, abs_, bitcast, fma, i32, select, u1, u32, u64

TWO_OVER_PI = 0.6366197723675814
LIMIT = per_width(f32=32768.0, f64=1048576.0)
# pi/2, and in parts; the first two are less than the numbers that they approximate.
PI_2 = per_width(f32=1.5707963705062866, f64=1.5707963267948966)
PI_2_REST = per_width(f32=-4.371138828673793e-08, f64=6.123233995736766e-17)
PI_2_PARTS = per_width(
    f32=(1.570796251296997, 7.549789415861596e-08, 5.390302953474238e-15),
    f64=(1.5707963267948966, 6.123233995736765e-17, 1.082856673921914e-32),
)
# The bits of 2/pi after as many zeros as the smallest exponent above the limit needs.
TWO_OVER_PI_WORDS = per_width(
    f32=(0x000517CC, 0x1B727220, 0xA94FE13A, 0xBE8FA9A6, 0xEE06DB14, 0xACC9E21C, 0x820FF28B),
    f64=(
        0x0000000028BE60DB, 0x9391054A7F09D5F4, 0x7D4D377036D8A566, 0x4F10E4107F9458EA,
        0xF7AEF1586DC91B8E, 0x909374B801924BBA, 0x827464873F877AC7, 0x2C4A69CFBA208D7D,
        0x4BAED1213A671C09, 0xAD17DF904E64758E, 0x60D4CE7D272117E2, 0xEF7E4A0EC7FE25FF,
        0xF7816603FBCBC462, 0xD6829B47DB4D9FB3, 0xC9F2C26DD3D18FD9, 0xA797FA8B5D49EEB1,
        0xFAF97C5ECF41CE7D, 0xE294A4BA9AFED7EC, 0x47E357421580CC11,
    ),
)  # fmt: skip
WORD_SHIFT = per_width(f32=5, f64=6)
STEPS = per_width(f32=(2, 1), f64=(8, 4, 2, 1))


@library()
def aligned(start: Int, w0: Word, w1: Word, w2: Word, w3: Word) -> tuple[Word, Word, Word]:
    """Three of the four words, from bit ``start`` of the first one, counted modulo its length."""
    shift = Word(start & (BITS - 1))
    back = BITS - 1 - shift
    return (
        (w0 << shift) | (w1 >> 1 >> back),
        (w1 << shift) | (w2 >> 1 >> back),
        (w2 << shift) | (w3 >> 1 >> back),
    )


@expand
def chosen(take: u1, later: list[Word], words: list[Word]) -> list[Word]:
    """``later`` if ``take`` holds, else as many of ``words``."""
    found = words[:0]
    for k, word in enumerate(later):
        picked = select(take, word, words[k])  # by name, so that it is computed once
        found = [*found, picked]
    return found


@library()
def window(start: Int) -> tuple[Word, Word, Word]:
    """Three words of 2/pi from bit ``start`` on: four words by a tree of selects, then shifts."""
    word = start >> WORD_SHIFT
    words = [Word(w) for w in TWO_OVER_PI_WORDS]
    for step in STEPS:
        words = chosen((word & step) != 0, words[step:], words)
    return aligned(start, words[0], words[1], words[2], words[3])


@library(width=f32)
def turns_f32(x: Float) -> tuple[Int, Float, Float]:
    """``|x|`` in quarter turns, from the limit on: the nearest integer, and the fraction in two floats."""
    bits = bitcast(x, Word)
    w0, w1, w2 = window(Int((bits >> 23) & 0xFF) - 139)
    m = u64((bits & 0x7FFFFF) | 0x800000)
    product = ((m * u64(w0)) << 32) + m * u64(w1) + ((m * u64(w2)) >> 32)  # 2 bits of quadrant, 62 of fraction
    quadrant = Int((product + 0x2000000000000000) >> 62)
    high, low = bitcast(u32(product >> 30), i32), u32(product << 2)
    # The signed fraction in two exact floats: 24 bits, 31 bits.
    a = Float(high & -256) * 2.3283064365386963e-10
    b = Float(i32(((bitcast(high, u32) & 0xFF) << 23) | (low >> 9))) * 2.7755575615628914e-17
    total = a + b
    return quadrant, total, (a - total) + b


@library(width=f64)
def multiply_high(a: Word, b: Word) -> Word:
    """The high half of the 128-bit product of ``a`` below 2**53 and ``b``."""
    a_high, a_low, b_high, b_low = a >> 32, a & 0xFFFFFFFF, b >> 32, b & 0xFFFFFFFF
    middle = a_high * b_low + ((a_low * b_low) >> 32)
    return a_high * b_high + (middle >> 32) + (((middle & 0xFFFFFFFF) + a_low * b_high) >> 32)


@library(width=f64)
def turns_f64(x: Float) -> tuple[Int, Float, Float]:
    """``|x|`` in quarter turns, from the limit on: the nearest integer, and the fraction in two floats."""
    bits = bitcast(x, Word)
    w0, w1, w2 = window(Int((bits >> 52) & 0x7FF) - 1043)
    m = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    low = m * w1
    sum_low = low + multiply_high(m, w2)
    high = m * w0 + multiply_high(m, w1) + Word(sum_low < low)
    quadrant = Int((high + 0x2000000000000000) >> 62)
    fraction, more = (high << 2) | (sum_low >> 62), sum_low << 2
    # The signed fraction in three exact floats of 32, 52 and 44 bits.
    a = Float(i32(bitcast(fraction, Int) >> 32)) * 2.3283064365386963e-10
    middle = ((fraction & 0xFFFFFFFF) << 20) | (more >> 44)
    b = (bitcast(middle | 0x4330000000000000, Float) - 4503599627370496.0) * 5.169878828456423e-26
    c = (bitcast((more & 0xFFFFFFFFFFF) | 0x4330000000000000, Float) - 4503599627370496.0) * 2.938735877055719e-39
    total = a + b
    return quadrant, total, ((a - total) + b) + c


turns = per_width(f32=turns_f32, f64=turns_f64)


@library()
def small(x: Float) -> tuple[Int, Float, Float]:
    """The reduction below the limit: ``s`` is what has to be *subtracted* from r.  0 keeps its sign."""
    k, n = round_multiple(x, Float(TWO_OVER_PI))
    exact = fma(k, -PI_2_PARTS[0], x)
    r = exact - k * PI_2_PARTS[1]
    return n, r, fma(k, PI_2_PARTS[2], fma(k, PI_2_PARTS[1], r - exact))


@library()
def large(x: Float) -> tuple[Int, Float, Float]:
    """The reduction from the limit on."""
    quadrant, total, lost = turns(x)
    high, low = product(total, Float(PI_2))
    r, rest = fast_sum(high, fma(lost, PI_2, fma(total, PI_2_REST, low)))
    s = -rest
    negative = x < 0.0
    return select(negative, -quadrant, quadrant), select(negative, -r, r) + (x - x), select(negative, -s, s)


@library()
def reduce(x: Float) -> tuple[Int, Float, Float]:
    """``q, r, s`` with ``x = q*pi/2 + r - s``; of q, only the last two bits count; r is NaN if ``x`` is not finite.

    A branch: GPUs skip it, and if LLVM vectorises the loop, it turns the branch into selects.
    """
    n, r, s = small(x)
    if abs_(x) >= LIMIT:
        n, r, s = large(x)
    return n, r, s
