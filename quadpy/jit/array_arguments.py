"""Where a kernel's arrays are among the values of its argument block.  Owns: ArrayArguments.  Imports: ``artifact``, ``runtime``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quadpy.artifact import CodeObject
from quadpy.flow import conditions_of
from quadpy.runtime.launch.launch import MemoryRange, memory_range

__all__ = ["ArrayArguments"]


class ArrayArguments:
    """The arrays of a kernel, in the order of its parameters, those of fields last.

    pointers    the place of each array's address among the values
    written     whether any task writes it
    conditions  parameter -> its array, by number, and the place of the address, of each loop of the flow
    """

    def __init__(self, code: CodeObject) -> None:
        found = [(slot.param, place) for place, slot in enumerate(code.layout.slots) if slot.part == "pointer"]
        written = {name for task in code.tasks for name, access in task.effects if access != "r"}
        self.pointers = [place for _, place in found]
        self.written = [name in written for name, _ in found]
        self._members = {name: member for member, (name, _) in enumerate(found)}
        self._effects = [task.effects for task in code.tasks]
        self.conditions = {
            name: (self._members[name], self.pointers[self._members[name]]) for name in conditions_of(code.flow)
        }

    def ranges(self, task: int | None, letters: str, arrays: Sequence[Any]) -> tuple[MemoryRange, ...]:
        """The memory of ``arrays`` that a task, or any for None, touches in one of these ways."""
        effects = self._effects if task is None else [self._effects[task]]
        names = {name for each in effects for name, access in each if set(access) & set(letters)}
        touched = (memory_range(arrays[member]) for name, member in self._members.items() if name in names)
        return tuple(part for part in touched if part[1])
