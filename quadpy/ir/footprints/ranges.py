"""The values of forms where guards hold: their bounds, whether they are equally spaced, and what depends on what.

What is unsure is left out on the safe side: bounds contain every value, and a condition is false where it is not known
to hold.
"""

from __future__ import annotations

import functools
import math
from itertools import combinations

from quadpy.ir.footprints.affine import (
    AtLeastZero,
    Bounded,
    Chosen,
    Counter,
    Digit,
    Form,
    Guards,
    Limited,
    Loop,
    Need,
    NotZero,
)
from quadpy.ir.footprints.numbers import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Given,
    Made,
    Number,
    at_most,
    both,
    either,
    equal,
    greater,
    lesser,
    made,
    number,
    quotient,
    remainder,
    select,
)

__all__ = [
    "are_independent",
    "bounds",
    "counter_bounds",
    "free_bounds",
    "is_met",
    "parallel_to",
    "spacing",
    "takes_all",
]

Bounds = tuple[Number, Number]
"""The least and the greatest value."""


def bounds(form: Form, guards: Guards | None) -> Bounds:
    """The bounds of ``form`` where ``guards`` hold."""
    low, last = free_bounds(form, guards)
    if len(form.terms) > 1:
        for sign, apart in limits_of(form, guards):
            low, last = (greater(low, apart), last) if sign > 0 else (low, lesser(last, apart))
    return low, last


def free_bounds(form: Form, guards: Guards | None) -> Bounds:
    """As ``bounds``, without the guards on the form as a whole: both are values of the form, if its counters take all."""
    low = last = form.constant
    for counter, factor in form.terms:
        a, b = (end * factor for end in counter_bounds(counter, guards))
        if is_natural(factor):
            low, last = low + a, last + b
        elif is_natural(-factor):
            low, last = low + b, last + a
        else:
            low, last = low + lesser(a, b), last + greater(a, b)
    return low, last


def limits_of(form: Form, guards: Guards | None) -> list[tuple[int, Number]]:
    """What guards over the same counters say: ``(1, least)`` or ``(-1, greatest)``."""
    found = []
    for each in guards.chain() if guards else ():
        fact = each.fact
        if isinstance(fact, AtLeastZero) and (sign := parallel_to(fact.form, form)):
            found.append((sign, form.constant - fact.form.constant if sign > 0 else form.constant + fact.form.constant))
    return found


def parallel_to(one: Form, other: Form) -> int:
    """1 where the forms differ by a number of the launch alone, -1 where their sum is one, else 0."""
    if one.terms == other.terms:
        return 1
    same = len(one.terms) == len(other.terms) and all(
        a[0] is b[0] and a[1] == -b[1] for a, b in zip(one.terms, other.terms, strict=True)
    )
    return -1 if same else 0


@functools.lru_cache(maxsize=4096)
def counter_bounds(counter: Counter, guards: Guards | None) -> Bounds:
    """The bounds of ``counter``, narrowed by the guards on it alone."""
    low, last = _origin_bounds(counter, guards)
    for each in reversed(list(guards.chain())) if guards else ():
        match each.fact:
            case AtLeastZero(form=Form(terms=((on, factor),), constant=constant)) if on is counter:
                by = factor.constant or 0
                if by > 0:
                    low = greater(low, -quotient(constant, factor))
                elif by < 0:
                    last = lesser(last, quotient(constant, -factor))
            case NotZero(form=form) if (hole := _hole(form, counter)) is not None:
                low, last = _without(low, last, hole)
            case _:
                pass
    return low, last


def _without(low: Number, last: Number, hole: Number) -> Bounds:
    """The bounds without ``hole``, where that is one of them."""
    first, final = equal(low, hole), equal(last, hole)
    if first == TRUE:
        return low + ONE, last
    if final == TRUE:
        return low, last - ONE
    return low + select(first, ONE, ZERO), last - select(final, ONE, ZERO)


def _hole(form: Form, counter: Counter) -> Number | None:
    """The value that ``form != 0`` forbids ``counter``."""
    if len(form.terms) != 1 or form.terms[0][0] is not counter:
        return None
    factor = form.terms[0][1].constant
    return -form.constant if factor == 1 else form.constant if factor == -1 else None


def _origin_bounds(counter: Counter, guards: Guards | None) -> Bounds:
    match counter.origin:
        case Loop(low=low, last=last):
            return low, last
        case Bounded(low=low, last=last):
            return number(low), number(last)
        case Limited():
            return _limited_bounds(counter.origin, guards)
        case Chosen(choices=choices):
            found = [bounds(form, own) for form, own in choices]
            low, last = found[0]
            for least, greatest in found[1:]:
                low, last = lesser(low, least), greater(last, greatest)
            return low, last
        case Digit(form=form, divisor=divisor, part=part):
            low, last = bounds(form, guards)
            if part == "quotient":
                return quotient(low, divisor), quotient(last, divisor)
            if _meet(low, last, divisor):
                return remainder(low, divisor), remainder(last, divisor)
            most = divisor - ONE
            return ZERO, lesser(last, most) if is_natural(low) else most


def _meet(low: Number, last: Number, divisor: Number) -> bool:
    """Whether it is plain that the quotients of both ends are the same."""
    return equal(quotient(low, divisor), quotient(last, divisor)) == TRUE


def _limited_bounds(origin: Limited, guards: Guards | None) -> Bounds:
    """What is known of a value's type is not repeated."""
    (a0, a1), (b0, b1) = (bounds(form, guards) for form in origin.forms)
    least, most = number(origin.least), number(origin.most)
    if origin.op == "min":
        return least if least in (a0, b0) else lesser(a0, b0), a1 if b1 == most else b1 if a1 == most else lesser(
            a1, b1
        )
    return a0 if b0 == least else b0 if a0 == least else greater(a0, b0), most if most in (a1, b1) else greater(a1, b1)


@functools.lru_cache(maxsize=4096)
def takes_all(counter: Counter, guards: Guards | None) -> Number:
    """Whether ``counter`` takes each integer within its bounds, when all that decides it is free within its own."""
    low, last = counter_bounds(counter, guards)
    full = _origin_takes_all(counter, guards)
    for each in guards.chain() if guards else ():
        if isinstance(each.fact, NotZero) and (hole := _hole(each.fact.form, counter)) is not None:
            full = both(full, either(at_most(hole, low - ONE), at_most(last + ONE, hole)))
    return full


def _origin_takes_all(counter: Counter, guards: Guards | None) -> Number:
    match counter.origin:
        case Loop(whole=whole):
            return TRUE if whole else FALSE
        case Bounded() | Chosen():
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
            if low == ZERO or _meet(low, last, divisor):
                return both(dense, equal(step, ONE))
            return both(dense, equal(step, ONE), at_most(divisor, last - low + ONE))


def spacing(form: Form, guards: Guards | None) -> tuple[Number, Number]:
    """A step such that all values of ``form`` are multiples of it apart, and whether none of these is left out.

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
    """The step of all sums of multiples of strides, each with a count, where their text tells that none is left out.

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


def is_natural(factor: Number) -> bool:
    """Whether it is certainly not negative: made of extents, and of what is added and multiplied from them."""
    return all(by > 0 and all(map(_is_natural_atom, product)) for product, by in factor.terms)


def _is_natural_atom(atom: Given | Made) -> bool:
    if isinstance(atom, Given):
        return atom.part == "extent"
    return atom.op == "count" or (atom.op in ("min", "max", "floordiv") and all(map(is_natural, atom.operands)))


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
    """From ``counter`` the digits that it is a digit of, the outermost first."""
    found = [counter]
    while isinstance(found[0].origin, Digit):
        form = found[0].origin.form
        if len(form.terms) != 1:
            break
        found.insert(0, form.terms[0][0])
    return found


def is_met(need: Need, guards: Guards | None) -> Number:
    """Whether what ``need`` asks for holds."""
    low, last = bounds(need.form, guards)
    enough = TRUE if need.low <= 0 and is_natural(low) else at_most(number(need.low), low)
    return both(enough, at_most(last, number(need.last)))
