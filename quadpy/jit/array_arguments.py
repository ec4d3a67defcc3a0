"""Where a kernel's arrays are among the values of its argument block, and what its tasks do with them."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.artifact import SHADOW, CodeObject
from quadpy.errors import ArgumentError
from quadpy.flow import conditions_of
from quadpy.jit.plan import ArgumentValue
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.launch import MemoryRange, memory_range

__all__ = ["ArrayArguments"]


class ArrayArguments:
    """The arrays of a kernel by number: in the order of its parameters, those of fields last.

    pointers    the index of each array's address among the values
    written     whether any task writes it
    conditions  parameter -> number, of the arrays that decide whether loops of the flow go on
    """

    def __init__(self, code: CodeObject) -> None:
        found = list(enumerate(code.layout.values))
        pointers = {value.param: index for index, value in found if value.part == "pointer" and value.param != SHADOW}
        written = {name for task in code.tasks for name, access in task.effects if access != "r"}
        self.pointers = list(pointers.values())
        self.written = [name in written for name in pointers]
        self._numbers = {name: number for number, name in enumerate(pointers)}
        self._effects = [task.effects for task in code.tasks]
        self.conditions = {name: self._numbers[name] for name in conditions_of(code.flow)}
        self._extents = [(v.param, k) for k, v in found if v.part == "extent" and v.param in self.conditions]

    def ranges(self, task: int | None, letters: str, arrays: Sequence[ArrayMemory]) -> tuple[MemoryRange, ...]:
        """The memory of ``arrays`` that a task, or any for None, accesses in one of these ways."""
        effects = self._effects if task is None else [self._effects[task]]
        names = {name for each in effects for name, access in each if set(access) & set(letters)}
        touched = (memory_range(arrays[number]) for name, number in self._numbers.items() if name in names)
        return tuple(part for part in touched if part[1])

    def require_conditions(self, values: Sequence[ArgumentValue]) -> None:
        """ArgumentError where an array is empty whose element 0 decides whether a loop goes on."""
        for name, index in self._extents:
            if not values[index]:
                raise ArgumentError(f"{name} is empty: its element 0 decides whether the loop goes on")
