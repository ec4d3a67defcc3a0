"""``qp.math``: constants, types and functions in the manner of GLSL, written in the kernel language itself.

It also has the functions of numbers that ``qp`` has.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.intrinsics import numbers as _numbers
from quadpy.intrinsics.numbers import *  # noqa: F403  (the stub lists them)
from quadpy.math import complex_numbers, functions, transforms, types
from quadpy.math.complex_numbers import *  # noqa: F403  (narrowed by __all__)
from quadpy.math.functions import *  # noqa: F403  (narrowed by __all__)
from quadpy.math.transforms import *  # noqa: F403  (narrowed by __all__)
from quadpy.math.types import *  # noqa: F403  (narrowed by __all__)

__all__ = ["e", "inf", "nan", "pi"]
__all__ += _numbers.__all__
__all__ += complex_numbers.__all__
__all__ += functions.__all__
__all__ += transforms.__all__
__all__ += types.__all__

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
