"""Formulas of ``codegen.extent``, evaluated at a launch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from quadpy.artifact import Formula
from quadpy.jit.plan import ArgumentValue

__all__ = ["HELPERS", "Evaluator", "compile_formula", "formula_source"]

Evaluator: TypeAlias = Callable[[Sequence[ArgumentValue]], int]


def _divide(a: int, b: int) -> int:
    return a // b if b else 0


def _modulo(a: int, b: int) -> int:
    return a % b if b else 0


def _count(start: int, stop: int, step: int) -> int:
    return len(range(start, stop, step)) if step else 0


_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": _divide, "mod": _modulo,
    "min": min, "max": max, "and": operator.and_,
}  # fmt: skip


def compile_formula(formula: Formula) -> Evaluator:
    """A function from the values of the argument block to the formula's result."""
    if isinstance(formula, int):
        return lambda values: formula
    name, *rest = formula
    if name == "value":
        index = rest[0]
        return lambda values: int(values[index])
    if name == "product":
        factors = [compile_formula(f) for f in rest]
        return lambda values: math.prod(f(values) for f in factors)
    if name == "count":
        start, stop, step = map(compile_formula, rest)
        return lambda values: _count(start(values), stop(values), step(values))
    bits, signed, *operands = rest
    parts = [compile_formula(f) for f in operands]
    if name == "wrap":
        return lambda values: _wrapped(parts[0](values), bits, signed=signed)
    operation = _OPERATIONS[name]
    return lambda values: _wrapped(operation(parts[0](values), parts[1](values)), bits, signed=signed)


def formula_source(formula: Formula, values: Sequence[str]) -> str:
    """``formula`` as a Python expression over HELPERS and the sources of the ``values``."""
    if isinstance(formula, int):
        return str(formula)
    name, *rest = formula
    if name == "value":
        return values[rest[0]]
    if name == "product":
        return f"({' * '.join(formula_source(f, values) for f in rest)})"
    if name == "count":
        start, stop, step = (formula_source(f, values) for f in rest)
        return _from_zero(stop) if (start, step) == ("0", "1") else f"count({start}, {stop}, {step})"
    bits, signed, *operands = rest
    parts = [formula_source(f, values) for f in operands]
    inner = parts[0] if name == "wrap" else f"{name}_({', '.join(parts)})"
    return f"wrapped({inner}, {bits}, signed={signed})"


def _from_zero(stop: str) -> str:
    """``max(stop, 0)``, which Python evaluates quicker without a call."""
    return stop if stop.isdecimal() else f"(stop if (stop := {stop}) > 0 else 0)"


def _wrapped(number: int, bits: int, *, signed: bool) -> int:
    """``number`` as an integer of ``bits`` bits."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> (bits - 1) else number


HELPERS: Final[dict[str, Callable[..., int]]] = {
    "count": _count, "wrapped": _wrapped, **{f"{name}_": operation for name, operation in _OPERATIONS.items()},
}  # fmt: skip
"""What the sources of formulas call."""
