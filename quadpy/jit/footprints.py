"""The elements that the launches of a kernel touch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from quadpy.codegen.launches import symbols_of
from quadpy.core.artifact import HIDDEN, CodeObject, TaskInfo
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import Box, Footprint, footprints_of, with_numbers
from quadpy.ir.footprints.evaluate import Ends, Numbers, boxes_function, ends_function
from quadpy.ir.index.numbers import Given, Number
from quadpy.ir.index.polynomials import atom_poly

_MOST_KNOWN: Final = 256
"""Most launches whose boxes are kept."""
_UNKNOWN: Final = Box(None, exact=False, always=False)


class LaunchFootprint(NamedTuple):
    """A footprint, and the elements that it covers at one launch."""

    footprint: Footprint
    box: Box


LaunchFootprints: TypeAlias = tuple[tuple[LaunchFootprint, ...], ...]
"""The footprints of each launch of a kernel, in the order of ``CodeObject.tasks``."""


class KernelFootprints:
    """The footprints of the launches of ``code``, which was compiled from ``kernel``; safe from any thread.

    Without ``kernel``, each launch may touch all of the arrays that it names.  If the formula of a box would be too
    long, the box is found again for each launch that asks, with its numbers in place of the arguments.
    tasks   the footprints of each launch, in the order of ``code.tasks``
    called  the source names of the fields
    """

    def __init__(self, code: CodeObject, kernel: ir.Kernel | None, *, again: bool = True) -> None:
        known = {} if kernel is None else _by_symbol(kernel)
        arrays = {value.param for value in code.layout.values if value.part == "pointer"}
        self.tasks = tuple(
            tuple(each for symbol in (task.symbol, *task.joined) for each in known[symbol])
            if task.symbol in known
            else tuple(_unknown(task, arrays))
            for task in code.tasks
        )
        indices = {Given(v.param, v.part, v.axis): k for k, v in enumerate(code.layout.values) if v.part in _GIVEN}
        params = kernel.arrays if kernel is not None else {}
        self.called = {name: param.called for name, param in params.items() if param.called}
        extents = {name: _extents(param) for name, param in params.items()}
        boxes = [(each.box, extents[each.array]) for task in self.tasks for each in task if each.box is not None]
        self._boxes, used = boxes_function(boxes, indices)
        is_long = any(each.box is None for task in self.tasks for each in task)
        self._numbers = _whole_numbers(kernel, indices) if kernel is not None and again and is_long else {}
        used = sorted({*used, *self._numbers.values()})
        self.key: Callable[[Numbers], object] = itemgetter(*used) if used else _nothing
        """Of the values of an argument block, what decides what the launches touch."""
        places = [k for k, v in enumerate(code.layout.values) if v.part in _PLACE and not v.param.startswith(HIDDEN)]
        self.place: Callable[[Numbers], object] = itemgetter(*places) if places else _nothing
        """Of the same, where the caller's arrays are, and how they lie in memory."""
        self._known: dict[object, LaunchFootprints] = {}
        self.observed: object = None
        """Data that ``quadpy.jit.observed_call`` derives from the footprints."""
        self._code, self._kernel, self._extents, self._indices = code, kernel, extents, indices

    def at(self, values: Sequence[float]) -> LaunchFootprints:
        """The footprints of each launch with these ``values`` of the argument block; hidden ones may be missing.

        A footprint that covers nothing is left out.  Equal numbers usually give the identical object, so that derived
        data can be kept with it.
        """
        key = self.key(values)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._touches(values)
        return found

    def together(self, calls: Iterable[Numbers]) -> tuple[LaunchFootprint, ...]:
        """Boxes that contain those of all ``calls``: for many calls this is faster than ``at``."""
        hulls = map(_hull, zip(*map(self._ends, calls), strict=True))
        found = []
        for footprint in (each for task in self.tasks for each in task):
            if footprint.box is None:
                found.append(LaunchFootprint(footprint, _UNKNOWN))
            elif (ends := next(hulls)) is not None:
                axes = tuple(range(low, 1 - last) for low, last in zip(ends[::2], ends[1::2], strict=True))
                found.append(LaunchFootprint(footprint, Box(axes, exact=False, always=False)))
        return tuple(touch for touch in found if touch.box.axes is None or all(touch.box.axes))

    @functools.cached_property
    def _ends(self) -> Callable[[Numbers], tuple[Ends | None, ...]]:
        boxes = [(each.box, self._extents[each.array]) for task in self.tasks for each in task if each.box is not None]
        return ends_function(boxes, self._indices)

    def _touches(self, values: Numbers) -> LaunchFootprints:
        if self._kernel is not None and self._numbers:
            numbers = {atom: int(values[index]) for atom, index in self._numbers.items()}
            return KernelFootprints(self._code, with_numbers(self._kernel, numbers), again=False).at(values)
        boxes = iter(self._boxes(values))
        found = []
        for task in self.tasks:
            pairs = ((each, _UNKNOWN if each.box is None else next(boxes)) for each in task)
            found.append(_distinct(LaunchFootprint(each, box) for each, box in pairs if box is not None))
        return tuple(found)


def _whole_numbers(kernel: ir.Kernel, indices: Mapping[Given, int]) -> dict[Given, int]:
    """The arguments of ``kernel`` that may decide on indices: extents, and scalars that are whole numbers."""
    floats = {param.name for param in kernel.params if isinstance(param, ir.ScalarParam) and param.type.is_float}
    return {
        atom: index for atom, index in indices.items() if atom.param not in floats and not atom.param.startswith(HIDDEN)
    }


def _hull(ends: Iterable[Ends | None]) -> Ends | None:
    """The ends of a box that contains all of these; None where they cover nothing."""
    some = [each for each in ends if each is not None]
    return tuple(map(min, some[0], *some)) if some else None


_GIVEN: Final = ("scalar", "extent")
_PLACE: Final = ("pointer", "extent", "stride")


def _nothing(_: Numbers) -> object:
    return None


def _extents(param: ir.ArrayParam) -> Sequence[Number]:
    if param.type.shape is not None:
        return list(param.type.shape)
    return [atom_poly(Given(param.name, "extent", axis)) for axis in range(param.type.ndim)]


def _distinct(touches: Iterator[LaunchFootprint]) -> tuple[LaunchFootprint, ...]:
    """``touches`` without redundant ones, whose box lies in another that is certainly touched in the same way."""
    kept: list[LaunchFootprint] = []
    for touch in touches:
        if not any(_covers(other, touch) for other in kept):
            kept = [other for other in kept if not _covers(touch, other)]
            kept.append(touch)
    return tuple(kept)


def _covers(one: LaunchFootprint, other: LaunchFootprint) -> bool:
    """Whether ``one`` includes everything that ``other`` says."""
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
