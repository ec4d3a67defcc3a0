"""Arithmetic of literals: as in Python; where Python has no result, or a different one, as at run time.

A literal is a Python number: an integer of any size, a 64-bit float, or a bool.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Final


def divide(a: float, b: float) -> float:
    """``a / b``; by zero as in IEEE 754."""
    if b:
        return a / b
    if not a or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def floor_divide(a: float, b: float) -> float:
    """``a // b``; by zero 0 for integers, for floats the quotient."""
    if b:
        return a // b
    return 0 if isinstance(a, int) and isinstance(b, int) else divide(a, b)


def modulo(a: float, b: float) -> float:
    if b:
        return a % b
    return 0 if isinstance(a, int) and isinstance(b, int) else math.nan


def power(a: float, b: float) -> Any:
    """``a ** b``: by repeated squaring for an integer ``b``, as at run time."""
    if not isinstance(b, int):
        return _float_power(float(a), b)
    if isinstance(a, int) and b >= 0:
        return a**b
    base = float(a)
    result = _squared(base, abs(b))
    if b >= 0:
        return result
    return _squared(1.0 / base, -b) if math.isinf(result) and base else divide(1.0, result)


def _float_power(base: float, exponent: float) -> float:
    """IEEE 754's pow: NaN where there is no real result, infinite where Python raises an error."""
    sign = math.copysign(1.0, base) if exponent % 2 == 1 else 1.0
    try:
        return math.pow(base, exponent)
    except ValueError:
        return math.nan if base else math.copysign(math.inf, sign)
    except OverflowError:
        return math.copysign(math.inf, sign)


def _squared(base: float, exponent: int) -> float:
    """A product for each binary digit of ``exponent`` from the second one on, and one more for each 1."""
    if not exponent:
        return 1.0
    result = base
    for digit in bin(exponent)[3:]:
        result *= result
        if digit == "1":
            result *= base
    return result


def shift_left(a: int, b: int) -> int:
    return a << b if b >= 0 else 0


def shift_right(a: int, b: int) -> int:
    """A negative count shifts everything out."""
    return a >> b if b >= 0 else -1 if a < 0 else 0


def least(a: float, b: float) -> float:
    """IEEE 754-2019 minimumNumber, in the type where both meet."""
    a, b = _met(a, b)
    if a != a or b != b:
        return b if a != a else a
    return a if a < b or (a == b and math.copysign(1.0, a) < 0) else b


def greatest(a: float, b: float) -> float:
    """IEEE 754-2019 maximumNumber."""
    a, b = _met(a, b)
    if a != a or b != b:
        return b if a != a else a
    return a if a > b or (a == b and math.copysign(1.0, a) > 0) else b


def _met(a: Any, b: Any) -> tuple[float, float]:
    if isinstance(a, float) or isinstance(b, float):
        return float(a), float(b)
    return (a, b) if isinstance(a, bool) and isinstance(b, bool) else (int(a), int(b))


LITERAL: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {
    ast.Div: divide, ast.FloorDiv: floor_divide, ast.Mod: modulo, ast.Pow: power, ast.LShift: shift_left,
    ast.RShift: shift_right,
}  # fmt: skip
"""The operators that are not Python's for all numbers."""
LITERAL_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg, ast.UAdd: lambda x: x,
    ast.Invert: lambda x: not x if isinstance(x, bool) else ~x,
}  # fmt: skip
