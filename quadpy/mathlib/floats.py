"""What all library functions are made of: the layout of f32 and f64, halves of a significand, polynomials."""

from quadpy.mathlib.library import expand, library, per_width
from quadpy.mathlib.ops import Float, Word, bitcast

__all__ = [
    "BIAS", "BITS", "FRACTION", "FRACTION_BITS", "LEAST_NORMAL", "LIFT", "SIGN", "WHOLE", "horner", "upper",
]  # fmt: skip

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
UPPER = per_width(f32=0xFFFFF000, f64=0xFFFFFFFFF8000000)


@library()
def upper(x: Float) -> Float:
    """``x`` cut to 12 bits (26 for f64).

    ``x`` is the exact sum of ``upper(x)`` and ``x - upper(x)``, and products of two such halves are exact: how
    the library multiplies without a rounding error where there is no fused multiply-add.
    """
    return bitcast(bitcast(x, Word) & UPPER, Float)


@expand
def horner(x: Float, coefficients: tuple[float, ...]) -> Float:
    """``coefficients[0] + coefficients[1]*x + ...``, innermost last coefficient first.

    Fewest operations of all schemes; its latency hides behind the other lanes and iterations.
    """
    total = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        total = total * x + c
    return total
