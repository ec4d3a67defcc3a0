"""Conditions: their consequences and their negations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quadpy.ir.footprints.affine import (
    AtLeastZero,
    Condition,
    Every,
    Form,
    Guards,
    Maybe,
    Need,
    NotZero,
    Some,
    constant_form,
)
from quadpy.ir.footprints.numbers import ZERO, Number, at_most, both, either, equal, negated
from quadpy.ir.walk import unhandled

__all__ = ["assume", "denied", "equals", "is_certain", "is_impossible", "needs_in", "truth_of"]


def needs_in(condition: Condition) -> Iterator[Need]:
    """The requirements under which ``condition`` is valid."""
    match condition:
        case AtLeastZero(form=form) | NotZero(form=form):
            yield from form.needs
        case Every(conditions=conditions) | Some(conditions=conditions):
            for each in conditions:
                yield from needs_in(each)
        case Maybe():
            pass


_NEVER: Final = AtLeastZero(constant_form(-1))


def denied(condition: Condition) -> Condition:
    """The negation of ``condition``."""
    match condition:
        case AtLeastZero(form=form):
            return AtLeastZero(constant_form(-1) - form)
        case NotZero(form=form):
            return equals(form)
        case Maybe():
            return condition
        case Every(conditions=conditions):
            return Some(tuple(map(denied, conditions)))
        case Some(conditions=conditions):
            return Every(tuple(map(denied, conditions)))


def equals(form: Form) -> Condition:
    """``form == 0``."""
    return Every((AtLeastZero(form), AtLeastZero(constant_form(0) - form)))


def is_certain(condition: Condition) -> bool:
    """Whether it holds at every launch, as far as its text tells."""
    return isinstance(condition, AtLeastZero) and _constant(condition.form, least=0)


def is_impossible(condition: Condition) -> bool:
    """Whether it holds at no launch, as far as its text tells."""
    match condition:
        case Every(conditions=conditions):
            return any(map(is_impossible, conditions))
        case Some(conditions=conditions):
            return all(map(is_impossible, conditions))
        case Maybe():
            return False
        case _:
            return is_certain(denied(condition)) or (
                isinstance(condition, NotZero) and condition.form == constant_form(0)
            )


def truth_of(condition: Condition) -> Number | None:
    """Whether ``condition`` holds, if that is the same for all iterations; otherwise None."""
    match condition:
        case AtLeastZero(form=form):
            return None if form.terms else at_most(ZERO, form.constant)
        case NotZero(form=form):
            return None if form.terms else negated(equal(form.constant, ZERO))
        case Every(conditions=conditions) | Some(conditions=conditions):
            found = [truth for each in conditions if (truth := truth_of(each)) is not None]
            join = both if isinstance(condition, Every) else either
            return join(*found) if len(found) == len(conditions) else None
        case Maybe():
            return None
        case _:
            raise unhandled(condition)


def _constant(form: Form, least: int) -> bool:
    value = form.constant.constant
    return not form.terms and not form.needs and value is not None and value >= least


def assume(guards: Guards | None, condition: Condition) -> Guards | None:
    """``guards`` and ``condition``."""
    match condition:
        case Every(conditions=conditions):
            for each in conditions:
                guards = assume(guards, each)
            return guards
        case Some(conditions=conditions):
            likely = [each for each in conditions if not is_impossible(each)]
            if len(likely) == 1:
                return assume(guards, likely[0])
            if any(map(is_certain, likely)):
                return guards
            return Guards(guards, Some(tuple(likely)) if likely else _NEVER)
        case _:
            return guards if is_certain(condition) else Guards(guards, condition)
