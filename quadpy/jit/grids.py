"""How many blocks each launch of a plan has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from quadpy.artifact import CodeObject
from quadpy.formula import Formula, values_in
from quadpy.jit.barrier_loops import BarrierLoop, barrier_loops
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.jit.plan import ArgumentValue

__all__ = ["Grids", "deciding_values"]


class Grids:
    """The grids of ``launches``, which are those of ``code``; safe from any thread.

    Most calls have the extents of the call before, so the last grids are kept: twenty formulas take longer than all else
    that a call does.  ``loops`` are the loops with barriers where they are not those of ``code``, such as of a kernel that
    was fused; they depend on no value that the formulas of ``code`` do not.
    """

    def __init__(
        self, code: CodeObject, launches: Sequence[TaskLaunch], loops: Iterable[BarrierLoop] | None = None
    ) -> None:
        self._launches = launches
        self._loops = tuple(barrier_loops(code, [launch.span for launch in launches]) if loops is None else loops)
        formulas = [formula for task in code.tasks for formula in (task.extent, task.coarsened) if formula is not None]
        self._key = deciding_values(formulas)
        self._last: tuple[object, tuple[int, ...] | None] | None = None

    def of(self, values: Sequence[ArgumentValue]) -> tuple[int, ...] | None:
        """Blocks of each launch, for the ``values`` of an argument block; None where a grid cannot be that large.

        Raises:
            ArgumentError: a loop with barriers has incomplete blocks.
        """
        key, last = self._key(values), self._last
        if last is not None and last[0] == key:
            return last[1]
        for loop in self._loops:
            loop.require_complete(values)
        found: list[int] = []
        grids: tuple[int, ...] | None = None
        for launch in self._launches:
            if (blocks := launch.blocks(values)) is None:
                break
            found.append(blocks)
        else:
            grids = tuple(found)
        self._last = key, grids
        return grids


def deciding_values(formulas: Iterable[Formula]) -> Callable[[Sequence[ArgumentValue]], object]:
    """A function that picks the values of an argument block on which ``formulas`` depend; a constant where there are none."""
    indices = sorted({index for formula in formulas for index in values_in(formula)})
    return itemgetter(*indices) if indices else len
