"""Householder reflections: ``I - beta * u * u.transpose()`` (Golub and Van Loan, 5.1)."""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func
from quadpy.math.linalg.scaling import negligible_length

copysign, select, sqrt, static = (BUILTINS[name] for name in ("copysign", "select", "sqrt", "static"))


@func
def reflection(x: Any) -> Any:
    """``u``, ``beta`` and the first entry of the image of ``x``, whose other entries are 0.

    The identity if all entries but the first are negligible relative to 1.
    """
    tail = x.norm_sqr() * 0.0
    for k in static(range(1, x.n)):
        tail += x[k] * x[k]
    turns = tail > negligible_length(x) ** 2
    r = sqrt(x[0] * x[0] + tail)
    u = Vector([x[0] + copysign(r, x[0]), *[x[k] for k in range(1, x.n)]])
    return u, select(turns, 1.0 / (r * (r + abs(x[0]))), 0.0), select(turns, -copysign(r, x[0]), x[0])


@func
def reflected(v: Any, u: Any, beta: Any) -> Any:
    """``v`` times the reflection, which changes the last columns."""
    for i in static(range(v.n)):
        dot = beta * sum([v[i, v.m - u.n + j] * u[j] for j in range(u.n)])
        for j in static(range(u.n)):
            v[i, v.m - u.n + j] -= dot * u[j]
    return v
