"""How far around its own index an iteration reaches, as formulas that the host evaluates for a launch.

An index *follows* a loop variable if it is the variable plus a shift that other iterations have too: ``i - 1``,
``(i + 1) % n``, ``min(i + 1, n - 1)``, or ``i + d`` in a loop over ``d``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from quadpy.artifact import SHADOW
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.accesses import accesses_of
from quadpy.ir.footprints.affine import (
    Between,
    Bounded,
    Chosen,
    Counter,
    Digit,
    Form,
    Guards,
    Limited,
    Loop,
    counter_form,
)
from quadpy.ir.footprints.boxes import box_of
from quadpy.ir.footprints.model import BoxFormula
from quadpy.ir.footprints.numbers import ONE, Number, TooComplex, greater, lesser
from quadpy.ir.footprints.ranges import bounds
from quadpy.light import dataclass
from quadpy.source import Span

__all__ = ["Followed", "Shift", "StencilFormula", "stencils_of"]


@dataclass(frozen=True, slots=True)
class Shift:
    """``low`` to ``last`` beyond the loop variable, modulo ``modulus`` if there is one.

    ``wrapped`` says that the index is always a remainder; otherwise it may be a remainder written as a choice.
    """

    low: Number
    last: Number
    modulus: Number | None = None
    wrapped: bool = False

    def moved(self, low: Number, last: Number) -> Shift:
        return Shift(self.low + low, self.last + last, self.modulus, self.wrapped)


@dataclass(frozen=True, slots=True)
class Followed:
    """An index that follows the variable of the loop's ``axis``: each of ``shifts`` is possible."""

    axis: int
    shifts: tuple[Shift, ...]


@dataclass(frozen=True, slots=True)
class StencilFormula:
    """One access; the parameters as those of ``Footprint``.

    box      the elements that all iterations touch; None for the whole array
    follows  for each axis of the array, how it follows a loop variable; None if it does not
    by_data  for each axis of the array, whether its index contains values computed from data
    """

    array: str
    access: ir.Access
    operation: ir.AtomicOp | None
    box: BoxFormula | None
    follows: tuple[Followed | None, ...]
    by_data: tuple[bool, ...]
    location: Span


def stencils_of(task: ir.Task, extents: Mapping[str, Sequence[Number]]) -> tuple[StencilFormula, ...]:
    """The elements that the iterations of ``task`` touch, each around its own index; ``extents`` are those of arrays.

    Guards do not count: ``if i > 0: x[i - 1]`` reaches 1 to the left.
    """
    accesses = accesses_of(task)
    own = {SHADOW, *(array.name for array in task.shared)} if isinstance(task, ir.ParallelTask) else {SHADOW}
    found: dict[StencilFormula, None] = {}
    for each in accesses.found:
        name = each.place.array
        if name in own:
            continue
        follows = tuple(
            _followed(form, accesses.axes, each.guards, extent)
            for form, extent in zip(each.index, extents[name], strict=True)
        )
        by_data = tuple(any(map(_has_data, form.counters)) for form in each.index)
        formula = StencilFormula(name, each.access, each.operation, box_of(each), follows, by_data, each.span)
        found.setdefault(formula)
    return tuple(found)


def _followed(index: Form, axes: Sequence[Form], guards: Guards | None, extent: Number) -> Followed | None:
    """How ``index`` follows one of the loop variables ``axes``."""
    deciding = [number for number, axis in enumerate(axes) if axis.roots & index.roots]
    if len(deciding) != 1:
        return None
    try:
        shifts = _shifts(index.bare, axes[deciding[0]].bare, guards, extent)
    except TooComplex:
        return None
    return None if shifts is None else Followed(deciding[0], tuple(dict.fromkeys(shifts)))


def _shifts(form: Form, loop: Form, guards: Guards | None, extent: Number) -> list[Shift] | None:
    """The possible values of ``form - loop``; None if that depends on the iteration in a way that is not understood."""
    apart = form - loop
    following = [(counter, factor) for counter, factor in form.terms if counter.roots & loop.roots]
    if not following or not apart.roots & loop.roots:
        return [Shift(*bounds(apart, guards))]
    if len(following) > 1 or following[0][1] != ONE:
        return None
    counter = following[0][0]
    found = _shifts_of(counter, loop, guards, extent)
    rest = bounds(form - counter_form(counter), guards)
    return None if found is None else [each.moved(*rest) for each in found]


def _shifts_of(counter: Counter, loop: Form, guards: Guards | None, extent: Number) -> list[Shift] | None:
    match counter.origin:
        case Digit(form=form, divisor=divisor, part="remainder"):
            inner = _shifts(form, loop, guards, extent)
            if inner is None or any(each.modulus is not None for each in inner):
                return None
            return [Shift(each.low, each.last, divisor, wrapped=True) for each in inner]
        case Limited(op=op, forms=(a, b)):
            join = lesser if op == "min" else greater
            low, last = (_ends(each, loop, guards, extent) for each in (a, b))
            return None if low is None or last is None else [Shift(join(low[0], last[0]), join(low[1], last[1]))]
        case Between(first=first, last=last):
            begin, end = (_ends(each, loop, guards, extent) for each in (first, last))
            return None if begin is None or end is None else [Shift(begin[0], end[1])]
        case Chosen(choices=choices):
            parts = [_shifts(form, loop, own, extent) for form, own in choices]
            return _choices([each for part in parts for each in part or ()], extent) if all(parts) else None
    return None


def _choices(shifts: list[Shift], extent: Number) -> list[Shift]:
    """``shifts``, in which those that are not remainders may wrap: ``i + 1 if i + 1 < n else 0``."""
    return [each if each.modulus is not None else Shift(each.low, each.last, extent) for each in shifts]


def _ends(form: Form, loop: Form, guards: Guards | None, extent: Number) -> tuple[Number, Number] | None:
    """The smallest and the largest shift of a form that does not wrap."""
    found = _shifts(form, loop, guards, extent)
    if not found or any(each.modulus is not None for each in found):
        return None
    return functools.reduce(lesser, (each.low for each in found)), functools.reduce(
        greater, (each.last for each in found)
    )


def _has_data(counter: Counter) -> bool:
    """Whether values computed from data decide ``counter``."""
    match counter.origin:
        case Bounded():
            return True
        case Loop():
            return False
        case Digit(form=form):
            return any(map(_has_data, form.counters))
        case Limited(forms=forms):
            return any(map(_has_data, (counter for form in forms for counter in form.counters)))
        case Between(first=first, last=last):
            return any(map(_has_data, (*first.counters, *last.counters)))
        case Chosen(choices=choices):
            return any(map(_has_data, (counter for form, _ in choices for counter in form.counters)))
