"""The ways in which an access takes place: one for each choice of branches that decides its index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from quadpy.ir.footprints.accesses import Reached
from quadpy.ir.index import forms as ix
from quadpy.ir.index.bounds import is_excluded
from quadpy.ir.index.numbers import Number

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
        if form.constant == 0 and len(form.terms) == 1 and form.terms[0][1] == 1:
            while (found := _whole(form, axis, wraps)) is not None:
                form = found
            index[axis] = form
    return replace(way, index=tuple(index))


def _whole(form: ix.Form, axis: int, wraps: Wraps) -> ix.Form | None:
    """``form``, used modulo an extent, with one of its remainders replaced by the dividend; None if it has none."""
    for counter, factor in form.terms:
        match counter.origin:
            case ix.Digit(form=inner, divisor=divisor, part="remainder") if isinstance(factor, int) and wraps(
                axis, divisor
            ):
                return form - ix.counter_form(counter) * factor + inner * factor
            case _:
                pass
    return None


def _choices_in(form: ix.Form) -> Iterator[ix.Counter]:
    """The choices in ``form``, also inside its counters."""
    for counter in form.counters:
        if isinstance(counter.origin, ix.Chosen):
            yield counter
        else:
            for part in _parts(counter.origin):
                yield from _choices_in(part)


def _parts(origin: ix.Origin) -> tuple[ix.Form, ...]:
    match origin:
        case ix.Digit(form=form):
            return (form,)
        case ix.Limited(forms=forms):
            return forms
        case ix.Between(first=first, last=last):
            return first, last
        case ix.Chosen(choices=choices):
            return tuple(form for form, _ in choices)
        case ix.Loop() | ix.Bounded():
            return ()


def _taken(way: Reached, counter: ix.Counter) -> Iterator[Reached]:
    """``way`` for each choice of ``counter`` that is possible."""
    assert isinstance(counter.origin, ix.Chosen)
    for form, chosen in counter.origin.choices:
        put = _Put(counter, form)
        known = set(map(id, chosen.chain())) if chosen else set()
        guards = chosen
        for each in list(way.guards.chain())[::-1] if way.guards else ():
            if id(each) not in known:
                guards = ix.Guards(guards, put.fact(each.fact))
        if not is_excluded(guards):
            yield replace(way, index=tuple(map(put.form, way.index)), guards=guards)


class _Put:
    """Puts a form in the place of one counter."""

    def __init__(self, counter: ix.Counter, form: ix.Form) -> None:
        self._needs = form.needs
        self._forms = {counter: form}

    def form(self, form: ix.Form) -> ix.Form:
        found = ix.fixed(form.constant).needing(*map(self.need, form.needs))
        for counter, factor in form.terms:
            found += self.counter(counter) * factor
        return found

    def counter(self, counter: ix.Counter) -> ix.Form:
        """The replacement of ``counter``: the same one wherever it occurs."""
        if counter not in self._forms:
            origin, found = self._origin(counter.origin), ix.counter_form(counter)
            if origin != counter.origin:
                roots = counter.roots.union(*(form.roots for form in _parts(origin)))
                found = ix.counter_form(replace(counter, origin=origin, roots=roots)).needing(*self._needs)
            self._forms[counter] = found
        return self._forms[counter]

    def _origin(self, origin: ix.Origin) -> ix.Origin:
        match origin:
            case ix.Digit(form=form):
                return replace(origin, form=self.form(form).bare)
            case ix.Limited(forms=(a, b)):
                return replace(origin, forms=(self.form(a).bare, self.form(b).bare))
            case ix.Between(first=first, last=last):
                return ix.Between(self.form(first), self.form(last))
            case ix.Chosen() | ix.Loop() | ix.Bounded():
                return origin

    def need(self, need: ix.Need) -> ix.Need:
        return replace(need, form=self.form(need.form).bare)

    def fact(self, fact: ix.Fact) -> ix.Fact:
        match fact:
            case ix.Entered(counter=counter, needs=needs):
                ((entered, _),) = self.counter(counter).terms
                return ix.Entered(entered, frozenset(map(self.need, needs)))
            case ix.Some(conditions=conditions):
                return ix.Some(tuple(map(self.condition, conditions)))
            case _:
                return self.simple(fact)

    def condition(self, condition: ix.Condition) -> ix.Condition:
        match condition:
            case ix.Every(conditions=conditions):
                return ix.Every(tuple(map(self.condition, conditions)))
            case ix.Some(conditions=conditions):
                return ix.Some(tuple(map(self.condition, conditions)))
            case _:
                return self.simple(condition)

    def simple(self, condition: ix.AtLeastZero | ix.NotZero | ix.Maybe) -> ix.AtLeastZero | ix.NotZero | ix.Maybe:
        return condition if isinstance(condition, ix.Maybe) else replace(condition, form=self.form(condition.form))
