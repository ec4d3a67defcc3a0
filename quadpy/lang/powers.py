"""``x ** n`` for an ``n`` known at run time only, in the kernel language itself.  Imports: ``lang`` and leaves only."""

from __future__ import annotations

from typing import Any

from quadpy.dtypes import i64
from quadpy.lang.builtins import BUILTINS
from quadpy.lang.decorators import Func

__all__ = ["power_of_float", "power_of_integer"]

one, raw_div, select = BUILTINS["one"], BUILTINS["raw_div"], BUILTINS["select"]


def _wide_abs(x: Any) -> Any:
    return abs(i64(x))


wide_abs = Func(_wide_abs)


def _by_squaring(base: Any, exponent: Any) -> Any:
    left = wide_abs(exponent)
    factor = base
    power = one(base)
    while left > 0:
        if left & 1:
            power *= factor
        factor *= factor
        left = left >> 1
    return power


by_squaring = Func(_by_squaring)


def _power_of_float(base: Any, exponent: Any) -> Any:
    power = by_squaring(base, exponent)
    return select(exponent < 0, 1 / power, power)


def _power_of_integer(base: Any, exponent: Any) -> Any:
    """A negative power is what C's division makes of 1 over the positive one: 0, but for bases 1 and -1."""
    power = by_squaring(base, exponent)
    return select(exponent < 0, raw_div(1, power), power)


power_of_float = Func(_power_of_float)
power_of_integer = Func(_power_of_integer)
