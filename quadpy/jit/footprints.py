"""What the launches of a kernel touch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.codegen.launches import symbols_of
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import Box, Footprint, footprints_of
from quadpy.ir.footprints.evaluate import Numbers, boxes_function
from quadpy.ir.footprints.numbers import Given, Number, given, number
from quadpy.jit.stencils import KernelStencils, Stencil, Stencils

__all__ = ["KernelFootprints", "Touch", "Touches"]

_MOST_KNOWN: Final = 256
"""Launches whose boxes are kept."""
_UNKNOWN: Final = Box(None, exact=False, always=False)


class Touch(NamedTuple):
    """A footprint, and the elements that it covers at one launch."""

    footprint: Footprint
    box: Box


Touches: TypeAlias = tuple[tuple[Touch, ...], ...]
"""What each launch of a kernel touches, in the order of ``CodeObject.tasks``."""


class KernelFootprints:
    """The footprints of the launches of ``code``, which was compiled from ``kernel``; safe from any thread.

    Without ``kernel``, each launch may touch all of the arrays that it names.
    tasks   the footprints of each launch, in the order of ``code.tasks``
    called  what the source calls the fields
    """

    def __init__(self, code: CodeObject, kernel: ir.Kernel | None) -> None:
        known = {} if kernel is None else _by_symbol(kernel)
        arrays = {value.param for value in code.layout.values if value.part == "pointer"}
        self.tasks = tuple(
            known[task.symbol] if task.symbol in known else tuple(_unknown(task, arrays)) for task in code.tasks
        )
        indices = {Given(v.param, v.part, v.axis): k for k, v in enumerate(code.layout.values) if v.part in _GIVEN}
        params = kernel.params if kernel is not None else ()
        self.called = {p.name: p.called for p in params if isinstance(p, ir.ArrayParam) and p.called}
        extents = {param.name: _extents(param) for param in params if isinstance(param, ir.ArrayParam)}
        boxes = [(each.box, extents[each.array]) for task in self.tasks for each in task if each.box is not None]
        self._boxes, used = boxes_function(boxes, indices)
        self.key: Callable[[Numbers], object] = itemgetter(*used) if used else _nothing
        """Of the values of an argument block, what decides what the launches touch."""
        shapes = [k for k, value in enumerate(code.layout.values) if value.part in ("extent", "stride")]
        self.layout: Callable[[Numbers], object] = itemgetter(*shapes) if shapes else _nothing
        """Of the same, how the arrays lie in memory, besides their addresses."""
        self._known: dict[object, Touches] = {}
        self.observed: object = None
        """What ``quadpy.jit.observed_call`` derives from it."""
        self._code, self._kernel, self._extents, self._indices = code, kernel, extents, indices

    def at(self, values: Sequence[float]) -> Touches:
        """What each launch touches with these ``values`` of the argument block; hidden ones may be missing.

        A footprint that covers nothing is left out.  Equal numbers mostly give the identical object, so that what is
        derived from it can be kept with it.
        """
        key = self.key(values)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._touches(values)
        return found

    def together(self, calls: Iterable[Numbers]) -> tuple[Touch, ...]:
        """Boxes that contain those of all ``calls``: many calls take less time than by ``at``."""
        hulls = [_Hull(each) for task in self.tasks for each in task]
        some = [hull for hull in hulls if hull.footprint.box is not None]
        for values in calls:
            for hull, box in zip(some, self._boxes(values), strict=True):
                if box is not None:
                    hull.add(box)
        return tuple(hull.touch() for hull in hulls if not hull.is_empty)

    def stencils(self, values: Sequence[float]) -> Stencils:
        """How far around its own index each iteration of each launch reaches, with ``values`` as in ``at``."""
        if self._stencils is not None:
            return self._stencils.at(values)
        return tuple(
            tuple(Stencil(*each, None, None) for each in dict.fromkeys((f.array, f.access, f.operation) for f in task))
            for task in self.tasks
        )

    @functools.cached_property
    def _stencils(self) -> KernelStencils | None:
        if self._kernel is None:
            return None
        return KernelStencils(self._code, self._kernel, self._extents, self._indices)

    def _touches(self, values: Numbers) -> Touches:
        boxes = iter(self._boxes(values))
        found = []
        for task in self.tasks:
            pairs = ((each, _UNKNOWN if each.box is None else next(boxes)) for each in task)
            found.append(_distinct(Touch(each, box) for each, box in pairs if box is not None))
        return tuple(found)


class _Hull:
    """The least and the greatest index of several boxes of one footprint, along each axis; None where one is the whole array."""

    __slots__ = ("_axes", "_is_whole", "footprint")

    def __init__(self, footprint: Footprint) -> None:
        self.footprint = footprint
        self._axes: list[list[int]] = []
        self._is_whole = footprint.box is None

    @property
    def is_empty(self) -> bool:
        return not (self._axes or self._is_whole)

    def add(self, box: Box) -> None:
        if box.axes is None:
            self._is_whole = True
        elif not self._axes:
            self._axes = [[axis.start, axis.stop] for axis in box.axes]
        else:
            for ends, axis in zip(self._axes, box.axes, strict=True):
                ends[0] = min(ends[0], axis.start)
                ends[1] = max(ends[1], axis.stop)

    def touch(self) -> Touch:
        axes = None if self._is_whole else tuple(range(low, stop) for low, stop in self._axes)
        return Touch(self.footprint, Box(axes, exact=False, always=False))


_GIVEN: Final = ("scalar", "extent")


def _nothing(_: Numbers) -> object:
    return None


def _extents(param: ir.ArrayParam) -> Sequence[Number]:
    if param.type.shape is not None:
        return [number(extent) for extent in param.type.shape]
    return [given(Given(param.name, "extent", axis)) for axis in range(param.type.ndim)]


def _distinct(touches: Iterator[Touch]) -> tuple[Touch, ...]:
    """``touches`` without those that say nothing new: their box is in another that is certainly touched in the same way."""
    kept: list[Touch] = []
    for touch in touches:
        if not any(_covers(other, touch) for other in kept):
            kept = [other for other in kept if not _covers(touch, other)]
            kept.append(touch)
    return tuple(kept)


def _covers(one: Touch, other: Touch) -> bool:
    """Whether ``one`` says all that ``other`` does."""
    (a, box), (b, inner) = one, other
    if (a.array, a.access, a.operation, a.components) != (b.array, b.access, b.operation, b.components):
        return False
    if box == inner:
        return True
    if not (box.exact and box.always) or box.axes is None or inner.axes is None:
        return False
    return all(
        x.start <= y.start and y[-1] <= x[-1] and (x.step == 1 or (y.start in x and y.step % x.step == 0))
        for x, y in zip(box.axes, inner.axes, strict=True)
    )


def _by_symbol(kernel: ir.Kernel) -> dict[str, tuple[Footprint, ...]]:
    found: dict[str, tuple[Footprint, ...]] = {}
    for each, task in enumerate(kernel.tasks):
        found |= dict.fromkeys(symbols_of(kernel, each), footprints_of(task))
    return found


_LETTERS: Final = {"r": ir.Access.READ, "w": ir.Access.WRITE, "a": ir.Access.ATOMIC}


def _unknown(task: TaskInfo, arrays: Container[str]) -> Iterator[Footprint]:
    for array, letters in task.effects:
        for letter in letters if array in arrays else "":
            yield Footprint(array, _LETTERS[letter], None, None, None, None)
