"""How far around its own index each iteration of a kernel's launches reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from quadpy.artifact import CodeObject
from quadpy.codegen.launches import symbols_of
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import Box
from quadpy.ir.footprints.evaluate import Extents, Numbers, boxes_function, numbers_function
from quadpy.ir.footprints.numbers import Given, Number
from quadpy.ir.footprints.stencils import Followed, StencilFormula, stencils_of
from quadpy.source import Span

__all__ = ["Far", "KernelStencils", "Near", "Stencil"]


class Near(NamedTuple):
    """An index that follows the variable of a parallel loop: the variable plus ``low`` to ``last``.

    axis   the axis of the loop
    wraps  whether the sum is taken modulo the extent of the array's axis
    """

    axis: int
    low: int
    last: int
    wraps: bool


class Far(NamedTuple):
    """An index that follows no loop variable.

    indices  its values over all iterations; None for any index of the axis
    by_data  whether it is computed from data, such as an index from memory
    """

    indices: range | None
    by_data: bool


class Stencil(NamedTuple):
    """The elements of an array that the iterations of a launch touch, each around its own index.

    axes      for each axis of the array; None if nothing is known
    location  the first access of this kind in the kernel; None if that is unknown
    """

    array: str
    access: ir.Access
    operation: ir.AtomicOp | None
    axes: tuple[Near | Far, ...] | None
    location: Span | None


Stencils: TypeAlias = tuple[tuple[Stencil, ...], ...]
"""The stencils of each launch of a kernel, in the order of ``CodeObject.tasks``."""


class KernelStencils:
    """The stencils of the launches of ``code``, which was compiled from ``kernel``."""

    def __init__(
        self, code: CodeObject, kernel: ir.Kernel, extents: Mapping[str, Extents], indices: Mapping[Given, int]
    ) -> None:
        known: dict[str, tuple[StencilFormula, ...]] = {}
        for number, task in enumerate(kernel.tasks):
            known |= dict.fromkeys(symbols_of(kernel, number), stencils_of(task, extents))
        self._tasks = [
            [each for symbol in (task.symbol, *task.joined) for each in known.get(symbol, ())] for task in code.tasks
        ]
        every = [each for task in self._tasks for each in task]
        boxes = [(each.box, extents[each.array]) for each in every if each.box is not None]
        self._boxes, _ = boxes_function(boxes, indices)
        self._extents = extents
        self._numbers, _ = numbers_function(_numbers_in(every, extents), indices)

    def at(self, values: Numbers) -> Stencils:
        """The stencils of each launch with these ``values`` of the argument block; one that touches nothing is left out."""
        boxes, known = iter(self._boxes(values)), self._numbers(values)
        found = []
        for task in self._tasks:
            pairs = ((each, _UNKNOWN if each.box is None else next(boxes)) for each in task)
            stencils = (self._stencil(each, box, known) for each, box in pairs if box is not None)
            distinct = {stencil[:-1]: stencil for stencil in reversed([*stencils])}
            found.append(tuple(reversed(distinct.values())))
        return tuple(found)

    def _stencil(self, formula: StencilFormula, box: Box, known: Mapping[Number, int]) -> Stencil:
        axes = []
        for number, (follows, by_data) in enumerate(zip(formula.follows, formula.by_data, strict=True)):
            far = Far(None if box.axes is None else box.axes[number], by_data)
            extent = known[self._extents[formula.array][number]]
            near = None if box.axes is None or follows is None else _near(follows, extent, known)
            axes.append(near or far)
        return Stencil(formula.array, formula.access, formula.operation, tuple(axes), formula.location)


_UNKNOWN: Final = Box(None, exact=False, always=False)


def _numbers_in(formulas: Sequence[StencilFormula], extents: Mapping[str, Extents]) -> Iterator[Number]:
    for each in formulas:
        yield from extents[each.array]
        for shift in (shift for axis in each.follows if axis is not None for shift in axis.shifts):
            yield from (shift.low, shift.last)
            if shift.modulus is not None:
                yield shift.modulus


def _near(follows: Followed, extent: int, known: Mapping[Number, int]) -> Near | None:
    """All shifts together; None if one of them is a remainder by a number other than the extent."""
    low, last, wraps = [], [], False
    for shift in follows.shifts:
        ends, turns = (known[shift.low], known[shift.last]), 0
        if shift.modulus is not None:
            if known[shift.modulus] != extent:
                return None
            turns = _turns(sum(ends), extent)
            wraps = wraps or turns != 0 or shift.wrapped
        low.append(ends[0] - turns * extent)
        last.append(ends[1] - turns * extent)
    return Near(follows.axis, min(low), max(last), wraps)


def _turns(twice: int, extent: int) -> int:
    """How many times ``extent`` goes into half of ``twice``, to the nearest: towards 0 between two."""
    turns = -((extent - abs(twice)) // (2 * extent))
    return turns if twice > 0 else -turns
