"""``qp.math``: constants, types and functions in the manner of GLSL, written in the kernel language itself.

The functions of numbers that ``qp`` has are here, too.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from quadpy.intrinsics.top import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    exp10,
    expm1,
    ffs,
    floor,
    fma,
    fmod,
    hypot,
    log,
    log1p,
    log2,
    log10,
    max,
    min,
    popcnt,
    pow,
    round,
    rsqrt,
    select,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from quadpy.math import complex_numbers, functions, transforms, types
from quadpy.math.complex_numbers import *  # noqa: F403  (narrowed by __all__)
from quadpy.math.functions import *  # noqa: F403
from quadpy.math.transforms import *  # noqa: F403
from quadpy.math.types import *  # noqa: F403

__all__ = [
    "e",
    "inf",
    "nan",
    "pi",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "ffs",
    "floor",
    "fma",
    "fmod",
    "hypot",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "min",
    "popcnt",
    "pow",
    "round",
    "rsqrt",
    "select",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
__all__ += complex_numbers.__all__
__all__ += functions.__all__
__all__ += transforms.__all__
__all__ += types.__all__
