"""Complex numbers as vectors of two components, real part first."""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

__all__ = ["cconj", "cdiv", "cexp", "cinv", "clog", "cmul", "cpow", "csqrt"]

atan2, copysign, cos, exp, hypot, log, select, sin, sqrt, power = (
    BUILTINS[name] for name in ("atan2", "copysign", "cos", "exp", "hypot", "log", "select", "sin", "sqrt", "pow")
)


@func
def cmul(a: Any, b: Any) -> Any:
    """The product of two complex numbers."""
    return Vector([a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x])


@func
def cconj(z: Any) -> Any:
    """The complex conjugate."""
    return Vector([z.x, -z.y])


@func
def cdiv(a: Any, b: Any) -> Any:
    """The quotient of two complex numbers, by Smith's method, which avoids intermediate overflow."""
    wide = abs(b.x) >= abs(b.y)
    r = select(wide, b.y / b.x, b.x / b.y)
    d = select(wide, b.x + b.y * r, b.x * r + b.y)
    x = select(wide, a.x + a.y * r, a.x * r + a.y)
    y = select(wide, a.y - a.x * r, a.y * r - a.x)
    return Vector([x / d, y / d])


@func
def cinv(z: Any) -> Any:
    """1 / z."""
    return cdiv(Vector([z.x * 0.0 + 1.0, z.y * 0.0]), z)


@func
def csqrt(z: Any) -> Any:
    """The square root whose real part is not negative."""
    half = sqrt((hypot(z.x, z.y) + abs(z.x)) * 0.5)
    other = select(half == 0.0, 0.0, abs(z.y) / (2.0 * half))
    right = z.x >= 0.0
    return Vector([select(right, half, other), copysign(select(right, other, half), z.y)])


@func
def cexp(z: Any) -> Any:
    """e to the power z."""
    size = exp(z.x)
    return Vector([size * cos(z.y), size * sin(z.y)])


@func
def clog(z: Any) -> Any:
    """The natural logarithm, with the imaginary part in [-pi, pi]."""
    return Vector([log(hypot(z.x, z.y)), atan2(z.y, z.x)])


@func
def cpow(z: Any, n: Any) -> Any:
    """z to the real power n; 0 to any power is 0."""
    r = hypot(z.x, z.y)
    size = select(r == 0.0, 0.0, power(r, n))
    angle = atan2(z.y, z.x) * n
    return Vector([size * cos(angle), size * sin(angle)])
