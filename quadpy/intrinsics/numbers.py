"""The builtins that ``qp`` and ``qp.math`` share; the stub next to this file lists them for type checkers."""

from quadpy.intrinsics import BUILTINS
from quadpy.intrinsics.math import NUMBERS

__all__ = [row.name for rows in NUMBERS.values() for row in rows]
globals().update((name, BUILTINS[name]) for name in __all__)
