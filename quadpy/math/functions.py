"""Functions in the manner of GLSL: they take numbers, or vectors component by component, unless they say otherwise."""

from __future__ import annotations

from math import inf, pi
from typing import Any

from quadpy.core.dtypes import i32
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

__all__ = [
    "clamp",
    "cross",
    "degrees",
    "determinant",
    "distance",
    "dot",
    "fns",
    "fract",
    "inverse",
    "isinf",
    "isnan",
    "length",
    "mix",
    "mod",
    "normalize",
    "radians",
    "reflect",
    "refract",
    "sign",
    "smoothstep",
    "step",
]

clz, floor, maximum, minimum, select, sqrt = (
    BUILTINS[name] for name in ("clz", "floor", "max", "min", "select", "sqrt")
)


@func
def fns(mask: Any, base: Any, offset: Any) -> Any:
    """The position, as i32, of the ``offset``-th set bit of ``mask``, counted from bit ``base`` upwards.

    A negative ``offset`` counts downwards.  For 0, the result is ``base`` if that bit is set.  If there is no such bit,
    the result is -1.
    """
    width = clz(mask ^ mask)
    at, found = i32(base), -1
    step, wanted = select(offset < 0, -1, 1), maximum(i32(abs(offset)), 1)
    while found < 0 and 0 <= at < width:  # a for loop would be parallel at the top level of a kernel
        if ((mask >> at) & 1) != 0:
            wanted -= 1
            if wanted == 0:
                found = at
        at = select(offset == 0, -1, at + step)
    return found


@func
def mix(x: Any, y: Any, a: Any) -> Any:
    """``x * (1 - a) + y * a``."""
    return x * (1.0 - a) + y * a


@func
def clamp(x: Any, low: Any, high: Any) -> Any:
    """``x`` limited to [low, high]."""
    return minimum(maximum(x, low), high)


@func
def step(edge: Any, x: Any) -> Any:
    """0 where ``x`` is below ``edge``, else 1."""
    return select(x < edge, 0.0, 1.0)


@func
def fract(x: Any) -> Any:
    """``x - floor(x)``."""
    return x - floor(x)


@func
def smoothstep(low: Any, high: Any, x: Any) -> Any:
    """0 below ``low``, 1 above ``high``, and a smooth cubic between them."""
    t = clamp((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@func
def sign(x: Any) -> Any:
    """The sign of ``x``: -1, 0 or 1."""
    return select(x > 0, 1.0, select(x < 0, -1.0, 0.0))


@func
def mod(x: Any, y: Any) -> Any:
    """``x - y * floor(x / y)``."""
    return x - y * floor(x / y)


@func
def radians(x: Any) -> Any:
    """``x`` degrees in radians."""
    return x * (pi / 180.0)


@func
def degrees(x: Any) -> Any:
    """``x`` radians in degrees."""
    return x * (180.0 / pi)


@func
def isnan(x: Any) -> Any:
    """True where ``x`` is NaN."""
    return x != x


@func
def isinf(x: Any) -> Any:
    """True where ``x`` is infinite, with either sign."""
    return abs(x) == inf


@func
def dot(x: Any, y: Any) -> Any:
    """The dot product of two vectors."""
    return x.dot(y)


@func
def cross(x: Any, y: Any) -> Any:
    """The cross product: a vector for three components, a number for two."""
    return x.cross(y)


@func
def length(x: Any) -> Any:
    """The Euclidean norm of a vector."""
    return x.norm()


@func
def distance(x: Any, y: Any) -> Any:
    """The Euclidean norm of ``x - y``."""
    return (x - y).norm()


@func
def normalize(v: Any) -> Any:
    """``v`` divided by its norm."""
    return v.normalized()


@func
def reflect(x: Any, n: Any) -> Any:
    """``x`` reflected at the plane with the unit normal ``n``."""
    return x - 2.0 * x.dot(n) * n


@func
def refract(x: Any, n: Any, eta: Any) -> Any:
    """The unit vector ``x`` refracted at a surface with the unit normal ``n``; 0 if it is totally reflected."""
    cosine = x.dot(n)
    k = 1.0 - eta * eta * (1.0 - cosine * cosine)
    return select(k < 0.0, 0.0, eta * x - (eta * cosine + sqrt(maximum(k, 0.0))) * n)


@func
def determinant(m: Any) -> Any:
    """The determinant of a square matrix, up to 6 x 6."""
    return m.determinant()


@func
def inverse(m: Any) -> Any:
    """The inverse of a square matrix, up to 12 x 12."""
    return m.inverse()
