"""Whether forms take all values between their bounds, and whether counters are independent of each other.

A condition is false unless it is known to hold.
"""

from __future__ import annotations

import functools
import math
from itertools import combinations

from quadpy.ir.footprints.affine import Between, Bounded, Chosen, Counter, Digit, Form, Guards, Limited, Loop
from quadpy.ir.footprints.numbers import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Number,
    at_most,
    both,
    either,
    equal,
    made,
    number,
    remainder,
    select,
)
from quadpy.ir.footprints.ranges import bounds, counter_bounds, holes_of, is_natural, share_quotient

__all__ = ["are_independent", "spacing", "takes_all"]


@functools.lru_cache(maxsize=4096)
def takes_all(counter: Counter, guards: Guards | None) -> Number:
    """Whether ``counter`` takes each integer within its bounds, if the values that decide it are free within theirs."""
    low, last = counter_bounds(counter, guards)
    full = _origin_takes_all(counter, guards)
    for hole in holes_of(counter, guards):
        full = both(full, either(at_most(hole, low - ONE), at_most(last + ONE, hole)))
    return full


def _origin_takes_all(counter: Counter, guards: Guards | None) -> Number:
    match counter.origin:
        case Loop():
            return TRUE
        case Between() | Bounded() | Chosen():
            return FALSE
        case Limited(forms=(a, b)):
            if a.terms and b.terms:
                return FALSE
            step, dense = spacing(a if a.terms else b, guards)
            return both(dense, equal(step, ONE))
        case Digit(form=form, divisor=divisor, part=part):
            step, dense = spacing(form, guards)
            if part == "quotient":
                return both(dense, at_most(step, divisor))
            low, last = bounds(form, guards)
            if low == ZERO or share_quotient(low, last, divisor):
                return both(dense, equal(step, ONE))
            return both(dense, equal(step, ONE), at_most(divisor, last - low + ONE))


def spacing(form: Form, guards: Guards | None) -> tuple[Number, Number]:
    """A step that divides all differences of values of ``form``, and whether no multiple is left out.

    Limits on the form as a whole are allowed for: they cut off both ends.
    """
    if not form.terms:
        return ONE, TRUE
    steps = [_size(factor) for _, factor in form.terms]
    free = both(*(takes_all(counter, guards) for counter in form.counters))
    if len(steps) == 1:
        return steps[0], free
    for a, b in combinations(form.counters, 2):
        free = both(free, are_independent(a, b, guards))
    if free == FALSE:
        return _common(steps), FALSE
    counts = [last - low + ONE for low, last in (counter_bounds(counter, guards) for counter in form.counters)]
    if (step := _plain_step(list(zip(steps, counts, strict=True)))) is not None:
        return step, free
    dense = made("dense", *(each for pair in zip(steps, counts, strict=True) for each in pair))
    common = _common(steps)
    if common.constant:
        return common, both(free, equal(dense, common))
    found = at_most(ONE, dense)
    return select(found, dense, common), both(free, found)


def _common(steps: list[Number]) -> Number:
    """The greatest common divisor."""
    known = math.gcd(*(step.constant for step in steps if step.constant))
    return number(known) if known == 1 or all(step.constant for step in steps) else made("gcd", *steps)


def _plain_step(terms: list[tuple[Number, Number]]) -> Number | None:
    """The step of all sums of multiples of strides, each with a count, if their text shows that none is left out.

    As in ``i * n + j`` with ``j`` below ``n``: each stride is at most what those before it cover.
    """
    left = [term for term in terms if term[1] != ONE]
    known = [term for term in left if term[0].constant]
    if not known:
        return None
    step, count = min(known, key=lambda term: (term[0].constant or 0, term[1].constant is None))
    left.remove((step, count))
    covered = step * count
    while left:
        fitting = (term for term in left if _fits(term[0], step, covered))
        if (found := next(fitting, None)) is None:
            return None
        left.remove(found)
        covered = covered + found[0] * (found[1] - ONE)
    return step


def _fits(stride: Number, step: Number, covered: Number) -> bool:
    """Whether ``stride`` is a multiple of ``step``, and leaves nothing between what is covered and its next multiple."""
    beyond = (stride - covered).constant
    return beyond is not None and beyond <= 0 and all(factor % (step.constant or 1) == 0 for _, factor in stride.terms)


def _size(factor: Number) -> Number:
    value = factor.constant
    if value is not None:
        return number(abs(value))
    return factor if is_natural(factor) else made("abs", factor)


def are_independent(a: Counter, b: Counter, guards: Guards | None) -> Number:
    """Whether every value of ``a`` meets every value of ``b``."""
    if not a.roots & b.roots:
        return TRUE
    one, other = _digits(a), _digits(b)
    for mine, its in zip(one, other, strict=False):
        if mine is its:
            continue
        x, y = mine.origin, its.origin
        if not (isinstance(x, Digit) and isinstance(y, Digit) and x.part != y.part):
            return FALSE
        if x.form != y.form or x.divisor != y.divisor:
            return FALSE
        low, last = bounds(x.form, guards)
        step, dense = spacing(x.form, guards)
        aligned = (equal(remainder(end, x.divisor), ZERO) for end in (low, last + ONE))
        return both(dense, equal(step, ONE), *aligned)
    return FALSE


def _digits(counter: Counter) -> list[Counter]:
    """The chain of digits that leads to ``counter``, the outermost first."""
    found = [counter]
    while isinstance(found[0].origin, Digit):
        form = found[0].origin.form
        if len(form.terms) != 1:
            break
        found.insert(0, form.terms[0][0])
    return found
