"""Where a call's arguments stand in its argument block.  Owns: slots_of.  Imports: ``artifact``, parameters, grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from quadpy.artifact import CodeObject
from quadpy.jit.grids import places_in
from quadpy.jit.parameters import ArrayParameter, Parameter, ScalarParameter

__all__ = ["Slot", "slots_of"]

Slot: TypeAlias = "tuple[str, int]"
"""The letter in ``struct``'s language, and the offset in bytes."""


def slots_of(code: CodeObject, parameters: Sequence[Parameter]) -> tuple[Slot | None, ...]:
    """For each parameter where its address or its number stands, which is all that another argument changes.

    None for what is more than one value, is not copied there as it is, or decides how many blocks are launched.  Another
    array must have the same type and extents.
    """
    formulas = [formula for task in code.tasks for formula in (task.extent, task.tiled) if formula is not None]
    decisive = {place for formula in formulas for place in places_in(formula)}
    found: list[Slot | None] = []
    for parameter in parameters:
        slots = [(place, slot) for place, slot in enumerate(code.layout.slots) if slot.param == parameter.name]
        if isinstance(parameter, ArrayParameter):
            found.append(next(((slot.code, slot.offset) for _, slot in slots if slot.part == "pointer"), None))
        elif type(parameter) is ScalarParameter and len(slots) == 1 and slots[0][0] not in decisive:
            found.append((slots[0][1].code, slots[0][1].offset))
        else:
            found.append(None)
    return tuple(found)
