"""Numbers of half the significand.  Owns: ``upper_f32``, ``upper_f64``.

``x`` is the exact sum of ``upper(x)`` and ``x - upper(x)``, and products of two such halves are exact: how
the library multiplies without a rounding error where there is no fused multiply-add.
"""

from quadpy.mathlib.library import library
from quadpy.mathlib.ops import bitcast, f32, f64, u32, u64

__all__ = ["upper_f32", "upper_f64"]


@library()
def upper_f32(x: f32) -> f32:
    """``x`` cut to 12 bits."""
    return bitcast(bitcast(x, u32) & 0xFFFFF000, f32)


@library()
def upper_f64(x: f64) -> f64:
    """``x`` cut to 26 bits."""
    return bitcast(bitcast(x, u64) & 0xFFFFFFFFF8000000, f64)
