"""``x ** n`` for an ``n`` that is known only at run time, in the kernel language itself."""

from __future__ import annotations

from typing import Any

from quadpy.dtypes import u64
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import Func

__all__ = ["power_of_float", "power_of_integer"]

clz, one, raw_div, select = BUILTINS["clz"], BUILTINS["one"], BUILTINS["raw_div"], BUILTINS["select"]
INF = float("inf")


def _magnitude(exponent: Any) -> Any:
    """The absolute value in u64, which holds that of the least i64, too."""
    return select(exponent < 0, u64(0) - u64(exponent), u64(exponent))


magnitude = Func(_magnitude)


def _by_squaring(base: Any, exponent: Any) -> Any:
    """From the second binary digit of ``exponent`` on; the products of an exponent known when compiling are the same."""
    power = base
    digits = 63 - clz(exponent)
    while digits > 0:
        digits -= 1
        power *= power
        if (exponent >> digits) & 1 == 1:
            power *= base
    return select(exponent == 0, one(base), power)


by_squaring = Func(_by_squaring)


def _power_of_float(base: Any, exponent: Any) -> Any:
    """A negative power is 1 over the positive one; where that overflows, the positive power of 1 over the base."""
    size = magnitude(exponent)
    power = by_squaring(base, size)
    if exponent < 0:
        infinite = abs(power) == INF
        power = 1 / power
        if infinite and size > 1:
            power = by_squaring(1 / base, size)
    return power


def _power_of_integer(base: Any, exponent: Any) -> Any:
    """A negative power is one of what C's division makes of 1 over the base: 0, but for bases 1 and -1."""
    factor = base
    if exponent < 0:
        factor = raw_div(one(base), base)
    return by_squaring(factor, magnitude(exponent))


power_of_float = Func(_power_of_float)
power_of_integer = Func(_power_of_integer)
