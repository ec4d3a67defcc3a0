"""The parts of all library functions: the layout of f32 and f64, sums and products without error, polynomials."""

from quadpy.mathlib.library import expand, library, per_width
from quadpy.mathlib.ops import Float, Word, bitcast, fma

BITS = per_width(f32=32, f64=64)
FRACTION_BITS = per_width(f32=23, f64=52)
BIAS = per_width(f32=127, f64=1023)  # of the exponent
SIGN = per_width(f32=0x80000000, f64=0x8000000000000000)
FRACTION = per_width(f32=0x7FFFFF, f64=0xFFFFFFFFFFFFF)
WHOLE = per_width(f32=0x4B000000, f64=0x4330000000000000)
"""The bits of 2**FRACTION_BITS: with an integer below that in the fraction, those of the sum."""
LEAST_NORMAL = per_width(f32=2.0**-126, f64=2.0**-1022)
LIFT = per_width(f32=24, f64=54)
"""An exponent of 2 that makes every subnormal number normal; a multiple of 3, for the cube root's sake."""
INVERSE_GUESS = per_width(f32=0x7EF31000, f64=0x7FDE620000000000)
"""Minus the bits of a number, this is about the bits of its inverse."""
UPPER = per_width(f32=0xFFFFF000, f64=0xFFFFFFFFF8000000)


@library()
def upper(x: Float) -> Float:
    """The leading 12 bits (26 for f64) of ``x``: differences from it and products of two such numbers are exact."""
    return bitcast(bitcast(x, Word) & UPPER, Float)


@library()
def product(x: Float, y: Float) -> tuple[Float, Float]:
    """``x * y`` and its rounding error: the sum of both is exact."""
    result = x * y
    return result, fma(x, y, -result)


@library()
def fast_sum(x: Float, y: Float) -> tuple[Float, Float]:
    """``x + y`` and its rounding error, for ``x`` that is 0 or not smaller than ``y`` in magnitude."""
    total = x + y
    return total, y - (total - x)


@library()
def rough_inverse(x: Float) -> Float:
    """``1 / x`` within 2% for a positive normal ``x`` with a normal inverse: what a rounding error is divided with."""
    guess = bitcast(INVERSE_GUESS - bitcast(x, Word), Float)
    return fma(fma(-x, guess, 1.0), guess, guess)


@expand
def horner(x: Float, coefficients: tuple[float, ...]) -> Float:
    """``coefficients[0] + coefficients[1]*x + ...``, innermost last coefficient first, in fused multiply-adds.

    This takes the fewest operations of all schemes; other lanes and iterations hide its latency.
    """
    total = fma(x, coefficients[-1], coefficients[-2])
    for c in coefficients[-3::-1]:
        total = fma(total, x, c)
    return total
