"""Decisions from the extents of a call: the blocks of each launch, whether blocks with barriers are complete, and whether
accesses are certain to leave their arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from quadpy.core.artifact import CodeObject
from quadpy.core.formula import Formula, values_in
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.errors import ArgumentError
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.jit.limits import Limits
from quadpy.jit.plan import ArgumentValue


@dataclass(frozen=True, slots=True)
class BarrierLoop:
    """A loop whose iterations wait for each other: how many it has, and how many make a block."""

    extent: Evaluator
    block_dim: int
    span: Span | None

    def require_complete(self, values: Sequence[ArgumentValue]) -> None:
        """ArgumentError if a block would lack iterations: the others would wait for them at a barrier."""
        count = self.extent(values)
        if count % self.block_dim:
            line = f" on line {self.span.line}" if self.span else ""
            raise ArgumentError(
                f"the loop{line} has {count} iterations; they wait for each other, so the loop runs in whole blocks of "
                f"{self.block_dim}", self.span,
                hint=f"round its range up to {-(-count // self.block_dim) * self.block_dim}, and skip the added iterations "
                "with an if",
            )  # fmt: skip


def barrier_loops(code: CodeObject, spans: Sequence[Span | None]) -> Iterator[BarrierLoop]:
    """The loops of ``code`` with barriers; ``spans`` says where its tasks begin, and is empty if that is unknown."""
    for task, span in zip(code.tasks, spans or [None] * len(code.tasks), strict=True):
        if task.has_barrier and task.extent is not None:
            yield BarrierLoop(compile_formula(task.extent), task.block_dim, span)


class Grids:
    """The grids of ``launches``, which are those of ``code``; safe from any thread.

    Most calls have the extents of the call before, so the last grids are kept: twenty formulas take longer than all else
    that a call does.  ``limits`` are those of the accesses, ``loops`` are the loops with barriers where they are not those of ``code``, such as of a kernel that
    was fused; they depend on no value that the formulas of ``code`` do not.
    """

    def __init__(
        self,
        code: CodeObject,
        launches: Sequence[TaskLaunch],
        limits: Limits,
        loops: Iterable[BarrierLoop] | None = None,
    ) -> None:
        self._launches, self._limits = launches, limits
        self._loops = tuple(barrier_loops(code, [launch.span for launch in launches]) if loops is None else loops)
        formulas = [formula for task in code.tasks for formula in (task.extent, task.coarsened) if formula is not None]
        self._key = deciding_values([*formulas, *limits.formulas()])
        self._last: tuple[object, tuple[int, ...] | None] | None = None

    def of(self, values: Sequence[ArgumentValue]) -> tuple[int, ...] | None:
        """Blocks of each launch, for the ``values`` of an argument block; None if a grid cannot be that large.

        Raises:
            ArgumentError: a loop with barriers has incomplete blocks.
            BoundsError: an access is certain to be outside its array.
        """
        key, last = self._key(values), self._last
        if last is not None and last[0] == key:
            return last[1]
        self._limits.require(values)
        for loop in self._loops:
            loop.require_complete(values)
        found = [blocks for launch in self._launches if (blocks := launch.blocks(values)) is not None]
        grids = tuple(found) if len(found) == len(self._launches) else None
        self._last = key, grids
        return grids


def deciding_values(formulas: Iterable[Formula]) -> Callable[[Sequence[ArgumentValue]], object]:
    """A function that picks the values of an argument block that ``formulas`` need; a constant if there are none."""
    indices = sorted({index for formula in formulas for index in values_in(formula)})
    return itemgetter(*indices) if indices else len
