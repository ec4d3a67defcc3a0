"""Numbers of half the significand.

``x`` is the exact sum of ``upper(x)`` and ``x - upper(x)``, and products of two such halves are exact: how
the library multiplies without a rounding error where there is no fused multiply-add.
"""

from quadpy.mathlib.library import library, per_width
from quadpy.mathlib.ops import Float, Word, bitcast

__all__ = ["upper"]

UPPER = per_width(f32=0xFFFFF000, f64=0xFFFFFFFFF8000000)


@library()
def upper(x: Float) -> Float:
    """``x`` cut to 12 bits (26 for f64)."""
    return bitcast(bitcast(x, Word) & UPPER, Float)
