"""Warnings of loops that update an array in place and race: each number of ranks gives other results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quadpy.core.importing import import_late
from quadpy.dist.division import Division
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import with_numbers
from quadpy.ir.index.numbers import Given
from quadpy.jit.race_warnings import warn_of_races


class LoopRaces:
    """The races of ``task``, a loop of ``kernel`` over ``grid``, at calls whose numbers are known.

    Without these, as for plain arrays, few races are certain.  ``extents`` are those of the grid's arrays; ``numbers``
    says where others are among the values of a call.
    """

    def __init__(
        self,
        kernel: ir.Kernel,
        task: ir.Task,
        grid: Division,
        extents: Mapping[Given, int],
        numbers: Mapping[Given, int],
    ) -> None:
        self._kernel, self._grid = replace(kernel, tasks=(task,)), grid
        self._extents, self._numbers = extents, numbers

    def warn(self, values: Sequence[float]) -> None:
        """Warn of those that are certain with these ``values``, on rank 0."""
        if self._grid.world.rank == 0:
            given = {atom: values[k] for atom, k in self._numbers.items() if isinstance(values[k], int)}
            kernel = with_numbers(self._kernel, {**given, **self._extents})  # type: ignore[dict-item]  # integers
            warn_of_races(import_late("quadpy.jit.races").races_in(kernel, kernel.name))
