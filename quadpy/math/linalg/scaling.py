"""What the decompositions share: the type to compute in, matrices scaled so that no square overflows or underflows, and rotations."""

from __future__ import annotations

from typing import Any

from quadpy.core.dtypes import f32, f64, u32, u64
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

bit_cast, cast, copysign, minimum, maximum, one, select, sqrt, static, stop = (
    BUILTINS[name]
    for name in ("bit_cast", "cast", "copysign", "min", "max", "one", "select", "sqrt", "static", "ad.stop")
)


@func
def floats(a: Any, dt: Any) -> Any:
    """``a`` in the type to compute in: ``dt``, or its own; the default float type for integers, f32 for f16 and bf16."""
    return (a if static(dt is None) else cast(a, dt)) * 1.0


@func
def by_type(x: Any, single: Any, double: Any) -> Any:
    """One of two constants, by the type of the vector or matrix ``x``."""
    return single if static(x.dtype == f32) else double


@func
def negligible_length(x: Any) -> Any:
    """A number that disappears when it is added to 1, and whose square is a normal number."""
    return by_type(x, 2.0**-50, 2.0**-400)


@func
def scaled(a: Any) -> Any:
    """``a`` divided by a power of two so that its largest entry is 1 to 2 in size; that power; 0, or NaN unless all are finite.

    Only a matrix of subnormal numbers keeps smaller entries.  Only entries that are negligible relative to the largest one
    are rounded.
    """
    size = stop(maximum(abs(a)))  # the power of two is constant almost everywhere
    if static(a.dtype == f32):
        exponent = minimum(maximum(bit_cast(size, u32) >> 23, u32(1)), u32(253))
        scale, inverse = bit_cast(exponent << 23, f32), bit_cast((u32(254) - exponent) << 23, f32)
    else:
        exponent = minimum(maximum(bit_cast(size, u64) >> 52, u64(1)), u64(2045))
        scale, inverse = bit_cast(exponent << 52, f64), bit_cast((u64(2046) - exponent) << 52, f64)
    x = a * inverse
    return x, scale, 0.0 * x.sum()


IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@func
def rotation(alpha: Any, beta: Any, gamma: Any) -> Any:
    """Cosine and sine that diagonalise ``[[alpha, gamma], [gamma, beta]]`` (Golub and Van Loan, 8.5)."""
    zeta = (beta - alpha) / (2.0 * gamma)
    t = copysign(one(zeta), zeta) / (abs(zeta) + sqrt(1.0 + zeta * zeta))
    tangent = select(gamma == 0.0, 0.0, t)
    c = 1.0 / sqrt(1.0 + tangent * tangent)
    return c, c * tangent
