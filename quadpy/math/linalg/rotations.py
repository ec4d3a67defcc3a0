"""Rotations in a plane."""

from __future__ import annotations

from typing import Any

from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

copysign, one, select, sqrt = (BUILTINS[name] for name in ("copysign", "one", "select", "sqrt"))

IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@func
def rotation(alpha: Any, beta: Any, gamma: Any) -> Any:
    """Cosine and sine that diagonalise ``[[alpha, gamma], [gamma, beta]]`` (Golub and Van Loan, 8.5)."""
    zeta = (beta - alpha) / (2.0 * gamma)
    t = copysign(one(zeta), zeta) / (abs(zeta) + sqrt(1.0 + zeta * zeta))
    tangent = select(gamma == 0.0, 0.0, t)
    c = 1.0 / sqrt(1.0 + tangent * tangent)
    return c, c * tangent
