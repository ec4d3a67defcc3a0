"""Formulas, evaluated at a launch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from quadpy.core.formula import BlockValue, Formula, Operation
from quadpy.jit.plan import ArgumentValue

Evaluator: TypeAlias = Callable[[Sequence[ArgumentValue]], int]


def compile_formula(formula: Formula) -> Evaluator:
    """A function from the values of the argument block to the formula's result."""
    match formula:
        case BlockValue(index=index):
            return lambda values: int(values[index])
        case Operation(name=name, operands=operands, bits=bits, signed=signed):
            function, parts = OPERATIONS[name], [compile_formula(operand) for operand in operands]
            if not bits:
                return lambda values: function(*[part(values) for part in parts])
            return lambda values: _wrapped(function(*[part(values) for part in parts]), bits, signed=signed)
        case int():
            return lambda _: formula


def formula_source(formula: Formula, values: Sequence[str]) -> str:
    """``formula`` as a Python expression over HELPERS and the sources of the ``values``."""
    match formula:
        case BlockValue(index=index):
            return values[index]
        case Operation(name="count", operands=(0, stop, 1)):
            return _from_zero(formula_source(stop, values))
        case Operation(name=name, operands=operands, bits=bits, signed=signed):
            parts = [formula_source(operand, values) for operand in operands]
            inner = f"({' * '.join(parts)})" if name == "product" else f"{name}_({', '.join(parts)})"
            return f"wrapped({inner}, {bits}, signed={signed})" if bits else inner
        case int():
            return str(formula)


def _from_zero(stop: str) -> str:
    """``max(stop, 0)``, which Python evaluates faster without a call."""
    return stop if stop.isdecimal() else f"(stop if (stop := {stop}) > 0 else 0)"


def _wrapped(number: int, bits: int, *, signed: bool) -> int:
    """``number`` as an integer of ``bits`` bits."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> (bits - 1) else number


OPERATIONS: Final[dict[str, Callable[..., int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "and": operator.and_,
    "wrap": operator.pos,
    "count": lambda start, stop, step: len(range(start, stop, step)) if step else 0,
    "product": lambda *factors: math.prod(factors),
}

HELPERS: Final = {"wrapped": _wrapped, **{f"{name}_": operation for name, operation in OPERATIONS.items()}}
"""The functions that the sources of formulas call."""
