"""Integers that the host computes from the values of an argument block at each launch, as data.

``codegen.extent`` makes them; ``jit.formula`` evaluates them.  Operations wrap as the kernel's own arithmetic does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from quadpy.core.light import dataclass


@dataclass(frozen=True, slots=True)
class BlockValue:
    """The value of the argument block with this index."""

    index: int


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation ``name`` of ``operands``, one of ``jit.formula.OPERATIONS``.

    The result is an integer of ``bits`` bits, ``signed`` or not; 0 bits stand for an integer of any size.
    """

    name: str
    operands: tuple[Formula, ...]
    bits: int = 0
    signed: bool = True


Formula: TypeAlias = "int | BlockValue | Operation"


def values_in(formula: Formula) -> Iterator[int]:
    """The indices of the values on which ``formula`` depends."""
    match formula:
        case BlockValue(index=index):
            yield index
        case Operation(operands=operands):
            for operand in operands:
                yield from values_in(operand)
        case _:
            pass


def formula_to_json(formula: Formula | None) -> Any:
    """A number, ``["value", index]`` or ``[name, bits, signed, operand, …]``; None as null."""
    match formula:
        case BlockValue(index=index):
            return ["value", index]
        case Operation(name=name, operands=operands, bits=bits, signed=signed):
            return [name, bits, signed, *map(formula_to_json, operands)]
        case _:
            return formula


def formula_from_json(data: Any) -> Formula | None:
    """What ``formula_to_json`` gave."""
    if data is None or isinstance(data, int):
        return data
    name, *rest = data
    if name == "value":
        return BlockValue(*rest)
    bits, signed, *operands = rest
    return Operation(name, tuple(map(operand_from_json, operands)), bits, signed)


def operand_from_json(data: Any) -> Formula:
    """What ``formula_to_json`` gave for a formula."""
    found = formula_from_json(data)
    if found is None:
        raise ValueError("a formula lacks an operand")
    return found
