"""How many blocks each launch of a plan has.  Owns: Grids.  Imports: ``artifact``, the launches.

Most calls have the extents of the call before, and twenty formulas take longer than all else that a call does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from quadpy.artifact import CodeObject, Formula
from quadpy.jit.barrier_loops import BarrierLoop, barrier_loops
from quadpy.jit.gpu_launch import TaskLaunch

__all__ = ["Grids", "places_in", "what_decides"]


class Grids:
    """The grids of ``launches``, which are those of ``code``; any thread may ask.

    ``whole`` are loops in whole blocks, where they are not those of ``code``; no value decides there that does not here.
    """

    def __init__(
        self, code: CodeObject, launches: Sequence[TaskLaunch], whole: Iterable[BarrierLoop] | None = None
    ) -> None:  # fmt: skip
        self._launches = launches
        self._whole = tuple(barrier_loops(code, [launch.span for launch in launches]) if whole is None else whole)
        found = [formula for task in code.tasks for formula in (task.extent, task.tiled) if formula is not None]
        self._key = what_decides(found)
        self._last: tuple[Any, tuple[int, ...] | None] | None = None

    def of(self, values: list[Any]) -> tuple[int, ...] | None:
        """BarrierLoop of each launch, for the ``values`` of an argument block; None where a grid cannot be that large.

        Raises:
            ArgumentError: a loop whose iterations wait for each other has not as many as whole blocks have.
        """
        key, last = self._key(values), self._last
        if last is not None and last[0] == key:
            return last[1]
        for blocks in self._whole:
            blocks.require_whole(values)
        found = [launch.blocks(values) for launch in self._launches]
        grids: tuple[int, ...] | None = None if None in found else tuple(found)  # type: ignore[arg-type]  # no None is left
        self._last = key, grids
        return grids


def what_decides(formulas: Iterable[Formula]) -> Callable[[Sequence[Any]], Any]:
    """Of the values of an argument block those at which ``formulas`` look; where there is none, something constant."""
    places = sorted({place for formula in formulas for place in places_in(formula)})
    return itemgetter(*places) if places else len


def places_in(formula: Formula) -> Iterator[int]:
    """Which values of the argument block ``formula`` looks at, by their places."""
    if isinstance(formula, int):
        return
    name, *rest = formula
    if name == "value":
        yield rest[0]
        return
    for part in rest:
        if isinstance(part, (list, tuple)):
            yield from places_in(part)  # type: ignore[arg-type]
