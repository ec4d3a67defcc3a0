"""The ways in which an access takes place: one for each choice of branches that decides its index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from quadpy.ir.footprints.accesses import Reached
from quadpy.ir.footprints.affine import (
    AtLeastZero,
    Between,
    Bounded,
    Chosen,
    Condition,
    Counter,
    Digit,
    Entered,
    Every,
    Fact,
    Form,
    Guards,
    Limited,
    Loop,
    Maybe,
    Need,
    NotZero,
    Origin,
    Some,
    counter_form,
    fixed,
)
from quadpy.ir.footprints.numbers import ONE, ZERO, Number
from quadpy.ir.footprints.ranges import is_excluded

__all__ = ["Wraps", "ways_of"]

_MOST: Final = 64
"""Ways of one access; the choices that are left then stay as they are."""

Wraps: TypeAlias = Callable[[int, Number], bool]
"""Whether an index along an axis may exceed the end, instead of being a remainder by this divisor."""


def ways_of(reached: Reached, axes: Collection[int], wraps: Wraps) -> list[Reached]:
    """``reached`` for each choice that decides its indices along ``axes``, without the remainders that ``wraps`` names."""
    left, found = [reached], list[Reached]()
    while left:
        way = _unwrapped(left.pop(), axes, wraps)
        counter = next((each for axis in axes for each in _choices_in(way.index[axis])), None)
        if counter is None or len(left) + len(found) >= _MOST:
            found.append(way)
        else:
            left += _taken(way, counter)
    return found


def _unwrapped(way: Reached, axes: Collection[int], wraps: Wraps) -> Reached:
    index = list(way.index)
    for axis in axes:
        form = index[axis]
        if form.constant == ZERO and len(form.terms) == 1 and form.terms[0][1] == ONE:
            while (found := _whole(form, axis, wraps)) is not None:
                form = found
            index[axis] = form
    return replace(way, index=tuple(index))


def _whole(form: Form, axis: int, wraps: Wraps) -> Form | None:
    """``form``, used modulo an extent, with one of its remainders replaced by the dividend; None if it has none."""
    for counter, factor in form.terms:
        match counter.origin:
            case Digit(form=inner, divisor=divisor, part="remainder") if factor.constant and wraps(axis, divisor):
                return form - counter_form(counter).times(factor) + inner.times(factor)
            case _:
                pass
    return None


def _choices_in(form: Form) -> Iterator[Counter]:
    """The choices in ``form``, also inside its counters."""
    for counter in form.counters:
        if isinstance(counter.origin, Chosen):
            yield counter
        else:
            for part in _parts(counter.origin):
                yield from _choices_in(part)


def _parts(origin: Origin) -> tuple[Form, ...]:
    match origin:
        case Digit(form=form):
            return (form,)
        case Limited(forms=forms):
            return forms
        case Between(first=first, last=last):
            return first, last
        case Chosen(choices=choices):
            return tuple(form for form, _ in choices)
        case Loop() | Bounded():
            return ()


def _taken(way: Reached, counter: Counter) -> Iterator[Reached]:
    """``way`` for each choice of ``counter`` that is possible."""
    assert isinstance(counter.origin, Chosen)
    for form, chosen in counter.origin.choices:
        put = _Put(counter, form)
        known = set(map(id, chosen.chain())) if chosen else set()
        guards = chosen
        for each in list(way.guards.chain())[::-1] if way.guards else ():
            if id(each) not in known:
                guards = Guards(guards, put.fact(each.fact))
        if not is_excluded(guards):
            yield replace(way, index=tuple(map(put.form, way.index)), guards=guards)


class _Put:
    """Puts a form in the place of one counter."""

    def __init__(self, counter: Counter, form: Form) -> None:
        self._needs = form.needs
        self._forms = {counter: form}

    def form(self, form: Form) -> Form:
        found = fixed(form.constant).needing(*map(self.need, form.needs))
        for counter, factor in form.terms:
            found += self.counter(counter).times(factor)
        return found

    def counter(self, counter: Counter) -> Form:
        """The replacement of ``counter``: the same one wherever it occurs."""
        if counter not in self._forms:
            origin, found = self._origin(counter.origin), counter_form(counter)
            if origin != counter.origin:
                roots = counter.roots.union(*(form.roots for form in _parts(origin)))
                found = counter_form(replace(counter, origin=origin, roots=roots)).needing(*self._needs)
            self._forms[counter] = found
        return self._forms[counter]

    def _origin(self, origin: Origin) -> Origin:
        match origin:
            case Digit(form=form):
                return replace(origin, form=self.form(form).bare)
            case Limited(forms=(a, b)):
                return replace(origin, forms=(self.form(a).bare, self.form(b).bare))
            case Between(first=first, last=last):
                return Between(self.form(first), self.form(last))
            case Chosen() | Loop() | Bounded():
                return origin

    def need(self, need: Need) -> Need:
        return replace(need, form=self.form(need.form).bare)

    def fact(self, fact: Fact) -> Fact:
        match fact:
            case Entered(counter=counter, needs=needs):
                ((entered, _),) = self.counter(counter).terms
                return Entered(entered, frozenset(map(self.need, needs)))
            case Some(conditions=conditions):
                return Some(tuple(map(self.condition, conditions)))
            case _:
                return self.simple(fact)

    def condition(self, condition: Condition) -> Condition:
        match condition:
            case Every(conditions=conditions):
                return Every(tuple(map(self.condition, conditions)))
            case Some(conditions=conditions):
                return Some(tuple(map(self.condition, conditions)))
            case _:
                return self.simple(condition)

    def simple(self, condition: AtLeastZero | NotZero | Maybe) -> AtLeastZero | NotZero | Maybe:
        return condition if isinstance(condition, Maybe) else replace(condition, form=self.form(condition.form))
