"""The layout of f32 and f64: sign, biased exponent, fraction."""

from quadpy.mathlib.library import per_width

__all__ = ["BIAS", "BITS", "FRACTION", "FRACTION_BITS", "LEAST_NORMAL", "LIFT", "SIGN", "WHOLE"]

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
