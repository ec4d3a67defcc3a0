"""Whether forms take all values between their bounds, and whether counters are independent of each other.

A condition is false unless it is known to hold.
"""

from __future__ import annotations

import functools
import math
from itertools import combinations

from quadpy.ir.index.bounds import bounds, counter_bounds, holes_of, is_natural, share_quotient
from quadpy.ir.index.forms import Between, Bounded, Chosen, Counter, Digit, Form, Guards, Limited, Loop
from quadpy.ir.index.numbers import FALSE, TRUE, Number, at_most, both, either, equal, made, remainder, select
from quadpy.ir.index.polynomials import parts_of


@functools.lru_cache(maxsize=4096)
def takes_all(counter: Counter, guards: Guards | None) -> Number:
    """Whether ``counter`` takes each integer within its bounds, if the values that decide it are free within theirs."""
    low, last = counter_bounds(counter, guards)
    full = _origin_takes_all(counter, guards)
    for hole in holes_of(counter, guards):
        full = both(full, either(at_most(hole, low - 1), at_most(last + 1, hole)))
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
            return both(dense, equal(step, 1))
        case Digit(form=form, divisor=divisor, part=part):
            step, dense = spacing(form, guards)
            if part == "quotient":
                return both(dense, at_most(step, divisor))
            low, last = bounds(form, guards)
            if low == 0 or share_quotient(low, last, divisor):
                return both(dense, equal(step, 1))
            return both(dense, equal(step, 1), at_most(divisor, last - low + 1))


def spacing(form: Form, guards: Guards | None) -> tuple[Number, Number]:
    """A step that divides all differences of values of ``form``, and whether no multiple is left out.

    Limits on the form as a whole are allowed for: they cut off both ends.
    """
    if not form.terms:
        return 1, TRUE
    steps = [_size(factor) for _, factor in form.terms]
    free = both(*(takes_all(counter, guards) for counter in form.counters))
    if len(steps) == 1:
        return steps[0], free
    for a, b in combinations(form.counters, 2):
        free = both(free, are_independent(a, b, guards))
    if free == FALSE:
        return _common(steps), FALSE
    counts = [last - low + 1 for low, last in (counter_bounds(counter, guards) for counter in form.counters)]
    if (step := _plain_step(list(zip(steps, counts, strict=True)))) is not None:
        return step, free
    dense = made("dense", *(each for pair in zip(steps, counts, strict=True) for each in pair))
    common = _common(steps)
    if isinstance(common, int):
        return common, both(free, equal(dense, common))
    found = at_most(1, dense)
    return select(found, dense, common), both(free, found)


def _common(steps: list[Number]) -> Number:
    """The greatest common divisor."""
    known = math.gcd(*(step for step in steps if isinstance(step, int)))
    return known if known == 1 or all(isinstance(step, int) for step in steps) else made("gcd", *steps)


def _plain_step(terms: list[tuple[Number, Number]]) -> Number | None:
    """The step of all sums of multiples of strides, each with a count, if their text shows that none is left out.

    As in ``i * n + j`` with ``j`` below ``n``: each stride is at most what those before it cover.
    """
    left = [term for term in terms if term[1] != 1]
    known = [(step, count) for step, count in left if isinstance(step, int) and step]
    if not known:
        return None
    step, count = min(known, key=lambda term: (term[0], not isinstance(term[1], int)))
    left.remove((step, count))
    covered = step * count
    while left:
        fitting = (term for term in left if _fits(term[0], step, covered))
        if (found := next(fitting, None)) is None:
            return None
        left.remove(found)
        covered = covered + found[0] * (found[1] - 1)
    return step


def _fits(stride: Number, step: int, covered: Number) -> bool:
    """Whether ``stride`` is a multiple of ``step``, and leaves nothing between what is covered and its next multiple."""
    beyond = stride - covered
    return isinstance(beyond, int) and beyond <= 0 and all(factor % step == 0 for _, factor in parts_of(stride))


def _size(factor: Number) -> Number:
    if isinstance(factor, int):
        return abs(factor)
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
        aligned = (equal(remainder(end, x.divisor), 0) for end in (low, last + 1))
        return both(dense, equal(step, 1), *aligned)
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
