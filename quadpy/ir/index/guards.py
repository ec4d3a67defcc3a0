"""Conditions: their consequences and their negations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quadpy.ir.index import forms as ix
from quadpy.ir.index.numbers import Number, at_most, both, either, equal, negated
from quadpy.ir.walk import unhandled


def needs_in(condition: ix.Condition) -> Iterator[ix.Need]:
    """The requirements under which ``condition`` is valid."""
    match condition:
        case ix.AtLeastZero(form=form) | ix.NotZero(form=form):
            yield from form.needs
        case ix.Every(conditions=conditions) | ix.Some(conditions=conditions):
            for each in conditions:
                yield from needs_in(each)
        case ix.Maybe():
            pass


_NEVER: Final = ix.AtLeastZero(ix.fixed(-1))


def denied(condition: ix.Condition) -> ix.Condition:
    """The negation of ``condition``."""
    match condition:
        case ix.AtLeastZero(form=form):
            return ix.AtLeastZero(-1 - form)
        case ix.NotZero(form=form):
            return equals(form)
        case ix.Maybe():
            return condition
        case ix.Every(conditions=conditions):
            return ix.Some(tuple(map(denied, conditions)))
        case ix.Some(conditions=conditions):
            return ix.Every(tuple(map(denied, conditions)))


def equals(form: ix.Form) -> ix.Condition:
    """``form == 0``."""
    return ix.Every((ix.AtLeastZero(form), ix.AtLeastZero(0 - form)))


def is_certain(condition: ix.Condition) -> bool:
    """Whether it holds at every launch, as far as its text tells."""
    return isinstance(condition, ix.AtLeastZero) and _constant(condition.form, least=0)


def is_impossible(condition: ix.Condition) -> bool:
    """Whether it holds at no launch, as far as its text tells."""
    match condition:
        case ix.Every(conditions=conditions):
            return any(map(is_impossible, conditions))
        case ix.Some(conditions=conditions):
            return all(map(is_impossible, conditions))
        case ix.Maybe():
            return False
        case _:
            return is_certain(denied(condition)) or (
                isinstance(condition, ix.NotZero) and condition.form == ix.fixed(0)
            )


def truth_of(condition: ix.Condition) -> Number | None:
    """Whether ``condition`` holds, if that is the same for all iterations; otherwise None."""
    match condition:
        case ix.AtLeastZero(form=form):
            return None if form.terms else at_most(0, form.constant)
        case ix.NotZero(form=form):
            return None if form.terms else negated(equal(form.constant, 0))
        case ix.Every(conditions=conditions) | ix.Some(conditions=conditions):
            found = [truth for each in conditions if (truth := truth_of(each)) is not None]
            join = both if isinstance(condition, ix.Every) else either
            return join(*found) if len(found) == len(conditions) else None
        case ix.Maybe():
            return None
        case _:
            raise unhandled(condition)


def _constant(form: ix.Form, least: int) -> bool:
    value = form.constant
    return not form.terms and not form.needs and isinstance(value, int) and value >= least


def assume(guards: ix.Guards | None, condition: ix.Condition) -> ix.Guards | None:
    """``guards`` and ``condition``."""
    match condition:
        case ix.Every(conditions=conditions):
            for each in conditions:
                guards = assume(guards, each)
            return guards
        case ix.Some(conditions=conditions):
            likely = [each for each in conditions if not is_impossible(each)]
            if len(likely) == 1:
                return assume(guards, likely[0])
            if any(map(is_certain, likely)):
                return guards
            return ix.Guards(guards, ix.Some(tuple(likely)) if likely else _NEVER)
        case _:
            return guards if is_certain(condition) else ix.Guards(guards, condition)
