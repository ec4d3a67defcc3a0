"""Random numbers."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Library, Row, Traced

__all__ = ["GROUPS", "INTERNAL"]

_LIBRARY: Final = Library("random")

GROUPS: Final = {
    "Random numbers": (
        Row("random", "dtype=float", "Uniform in [0, 1) for floats, over the whole range for integers.", Traced(),
            effects=Effect.DRAWS),
        Row("randn", "dtype=float", "Normally distributed, mean 0, variance 1.", Traced(), effects=Effect.DRAWS),
    )
}  # fmt: skip

INTERNAL: Final = (
    Row("philox", "c0, c1, c2, c3, k0, k1", "Four random words for a counter and a key.", _LIBRARY),
    Row("uniform_f32", "word", "Uniform in [0, 1).", _LIBRARY),
    Row("uniform_f64", "high, low", "Uniform in [0, 1).", _LIBRARY),
    Row("normal_f32", "radius, angle", "Normally distributed.", _LIBRARY),
    Row("normal_f64", "radius, radius_low, angle, angle_low", "Normally distributed.", _LIBRARY),
)
