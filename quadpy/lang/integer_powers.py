"""``x ** n`` for an ``n`` that is known only at run time, in the kernel language itself."""

from __future__ import annotations

from typing import Any

from quadpy.core.dtypes import u64
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

clz, one, raw_div, select = BUILTINS["clz"], BUILTINS["one"], BUILTINS["raw_div"], BUILTINS["select"]
INF = float("inf")


@func
def magnitude(exponent: Any) -> Any:
    """The absolute value in u64, which also holds that of the least i64."""
    return select(exponent < 0, u64(0) - u64(exponent), u64(exponent))


@func
def by_squaring(base: Any, exponent: Any) -> Any:
    """From the second binary digit of ``exponent`` on; an exponent known when compiling gives the same products."""
    power = base
    digits = 63 - clz(exponent)
    while digits > 0:
        digits -= 1
        power *= power
        if (exponent >> digits) & 1 == 1:
            power *= base
    return select(exponent == 0, one(base), power)


@func
def power_of_float(base: Any, exponent: Any) -> Any:
    """For a negative exponent, 1 over the positive power; where that overflows, the positive power of 1 / base."""
    size = magnitude(exponent)
    power = by_squaring(base, size)
    if exponent < 0:
        infinite = abs(power) == INF
        power = 1 / power
        if infinite and size > 1:
            power = by_squaring(1 / base, size)
    return power


@func
def power_of_integer(base: Any, exponent: Any) -> Any:
    """For a negative exponent, a power of 1 / base in C's division: 0, except for bases 1 and -1."""
    factor = base
    if exponent < 0:
        factor = raw_div(one(base), base)
    return by_squaring(factor, magnitude(exponent))


@func
def product_fits(a: Any, b: Any) -> Any:
    return (a == 0) | (raw_div(a * b, a) == b)


@func
def power_fits(base: Any, exponent: Any) -> Any:
    """Whether the type of a signed ``base`` holds the power: no product of ``by_squaring`` is larger than the last."""
    power, fits = base, exponent == exponent
    digits = 63 - clz(magnitude(exponent))
    while (digits > 0) & (exponent > 0):
        digits -= 1
        fits &= product_fits(power, power)
        power *= power
        if (magnitude(exponent) >> digits) & 1 == 1:
            fits &= product_fits(power, base)
            power *= base
    return fits
