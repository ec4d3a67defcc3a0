"""The positions of a kernel's arrays in its argument block, their accesses by tasks, and which of them overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from quadpy.core.artifact import SHADOW, CodeObject
from quadpy.core.flow import conditions_of
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.errors import ArgumentError
from quadpy.jit.plan import ArgumentValue, Plan, Views
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.launch import MemoryRange, memory_range
from quadpy.runtime.launch.observing import KernelAccess


class ArrayArguments:
    """The arrays of a kernel by number: in the order of its parameters, those of fields last.

    pointers    the index of each array's address among the values
    written     whether any task writes it
    conditions  parameter -> number, for the arrays that decide whether loops of the flow go on
    """

    def __init__(self, code: CodeObject) -> None:
        found = list(enumerate(code.layout.values))
        pointers = {value.param: index for index, value in found if value.part == "pointer" and value.param != SHADOW}
        written = code.written
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
        """ArgumentError if the array whose element 0 decides whether a loop goes on is empty."""
        for name, index in self._extents:
            if not values[index]:
                raise ArgumentError(f"{name} is empty: its element 0 decides whether the loop continues")


@dataclass(frozen=True, slots=True)
class LaunchedCall:
    """A call of ``plan`` with ``block``, from which ``unpack`` takes the values; ``arrays`` end with the kernel's fields."""

    plan: Plan
    unpack: Callable[[bytes], tuple[Any, ...]]
    block: bytes
    arrays: Sequence[ArrayMemory]

    def __call__(self) -> list[tuple[ArrayMemory, KernelAccess]]:
        """Each access of its launches, and its array."""
        find = import_late("quadpy.jit.observed_call").accesses_of  # most programs do not need it
        return [(self.arrays[access.array], access) for access in find(self.plan, self.unpack(self.block))]


MOST_PAIRS: Final = 400
"""Pairs of arrays that are compared one by one; beyond them, ranges are sorted: 512 arrays take 0.2 ms in place of 20."""


class Overlaps:
    """Arrays, by their ``names``, that must not overlap: pairs that the code touches, of which at least one is written, and arrays
    and ``fields``.

    pairs   such arrays, by number; () for more than ``MOST_PAIRS``
    sorted  whether there are more
    """

    def __init__(self, names: Sequence[str], code: CodeObject, fields: Sequence[tuple[int, int]]) -> None:
        written, touched = code.written, {name for task in code.tasks for name, _ in task.effects}
        self._written, self._touched = ([name in some for name in names] for some in (written, touched))
        self._fields = fields  # their memory can reach a kernel a second time, as a NumPy view
        read = self._written.count(False)
        self.sorted = len(names) * (len(names) - 1) // 2 - read * (read - 1) // 2 > MOST_PAIRS
        self.pairs = () if self.sorted else tuple(
            (i, j)
            for i, first in enumerate(self._written)
            for j, second in enumerate(self._written[i + 1 :], i + 1)
            if (first or second) and self._touched[i] and self._touched[j]
        )  # fmt: skip

    def found(self, views: Views) -> bool:
        """Whether arrays with these addresses overlap."""
        for i, j in self.pairs:
            a, b = views[i], views[j]
            start_a, start_b = a.pointer, b.pointer
            if start_a < start_b + b.nbytes and start_b < start_a + a.nbytes:
                return True
        for start, nbytes in self._fields:
            for view in views:
                if view.pointer < start + nbytes and start < view.pointer + view.nbytes:
                    return True
        return self.sorted and self._found_in_order(views)

    def _found_in_order(self, views: Views) -> bool:
        """Like ``found`` for arrays: in the order of addresses, one must begin after the end of those before it."""
        ranges = sorted(
            (view.pointer, view.nbytes, writes)
            for view, writes, touches in zip(views, self._written, self._touched, strict=True)
            if view.nbytes and touches
        )
        end = written_end = 0
        for start, nbytes, writes in ranges:
            if start < (end if writes else written_end):
                return True
            end = max(end, start + nbytes)
            if writes:
                written_end = max(written_end, start + nbytes)
        return False
