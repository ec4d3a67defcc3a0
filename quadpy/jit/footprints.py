"""What the launches of a kernel touch."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.codegen.launches import symbols_of
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import Box, Footprint, footprints_of

__all__ = ["KernelFootprints", "Touch", "Touches"]


class Touch(NamedTuple):
    """A footprint, and the elements that it covers at one launch."""

    footprint: Footprint
    box: Box


Touches: TypeAlias = tuple[tuple[Touch, ...], ...]
"""What each launch of a kernel touches, in the order of ``CodeObject.tasks``."""


class KernelFootprints:
    """The footprints of the launches of ``code``, which was compiled from ``kernel``.

    Without ``kernel``, each launch may touch all of the arrays that it names.
    tasks  the footprints of each launch, in the order of ``code.tasks``
    """

    def __init__(self, code: CodeObject, kernel: ir.Kernel | None) -> None:
        known = {} if kernel is None else _by_symbol(kernel)
        arrays = {value.param for value in code.layout.values if value.part == "pointer"}
        self.tasks = tuple(
            known[task.symbol] if task.symbol in known else tuple(_unknown(task, arrays)) for task in code.tasks
        )

    def at(self, values: Sequence[float]) -> Touches:
        """What each launch touches with these ``values`` of the argument block; hidden ones may be missing.

        A footprint that covers nothing is left out.  Equal numbers give the identical object where they can, so that
        what is derived from it can be kept with it.
        """
        return tuple(
            tuple(Touch(each, Box(None, exact=False, always=False)) for each in footprints) for footprints in self.tasks
        )


def _by_symbol(kernel: ir.Kernel) -> dict[str, tuple[Footprint, ...]]:
    found: dict[str, tuple[Footprint, ...]] = {}
    for number, task in enumerate(kernel.tasks):
        found |= dict.fromkeys(symbols_of(kernel, number), footprints_of(task))
    return found


_LETTERS = {"r": ir.Access.READ, "w": ir.Access.WRITE, "a": ir.Access.ATOMIC}


def _unknown(task: TaskInfo, arrays: Container[str]) -> Iterator[Footprint]:
    for array, letters in task.effects:
        for letter in letters if array in arrays else "":
            yield Footprint(array, _LETTERS[letter], None, None, None, exact=False, always=False, location=None)
