"""The smallest and the largest values of forms where guards hold.

Bounds contain every value, and occur as values if the counters take all values between theirs: see ``spacing``.
"""

from __future__ import annotations

import functools

from quadpy.ir.index import forms as ix
from quadpy.ir.index.numbers import (
    FALSE,
    TRUE,
    Atom,
    Given,
    Number,
    at_most,
    both,
    equal,
    greater,
    lesser,
    quotient,
    remainder,
    select,
)
from quadpy.ir.index.polynomials import parts_of

Bounds = tuple[Number, Number]
"""The smallest and the largest value."""


def bounds(form: ix.Form, guards: ix.Guards | None) -> Bounds:
    """The bounds of ``form`` where ``guards`` hold."""
    low, last = free_bounds(form, guards)
    if len(form.terms) > 1:
        for sign, apart in limits_of(form, guards):
            low, last = (greater(low, apart), last) if sign > 0 else (low, lesser(last, apart))
    return low, last


def free_bounds(form: ix.Form, guards: ix.Guards | None) -> Bounds:
    """``bounds`` without guards on the form as a whole: both occur as values, if the counters take all of theirs."""
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


def limits_of(form: ix.Form, guards: ix.Guards | None) -> list[tuple[int, Number]]:
    """The limits from guards over the same counters: ``(1, smallest)`` or ``(-1, largest)``."""
    found = []
    for each in guards.chain() if guards else ():
        fact = each.fact
        if isinstance(fact, ix.AtLeastZero) and (sign := parallel_to(fact.form, form)):
            found.append((sign, form.constant - fact.form.constant if sign > 0 else form.constant + fact.form.constant))
    return found


def parallel_to(one: ix.Form, other: ix.Form) -> int:
    """1 if the difference of the forms is a number of the launch, -1 if their sum is one, otherwise 0."""
    if one.terms == other.terms:
        return 1
    same = len(one.terms) == len(other.terms) and all(
        a[0] is b[0] and a[1] == -b[1] for a, b in zip(one.terms, other.terms, strict=True)
    )
    return -1 if same else 0


@functools.lru_cache(maxsize=4096)
def counter_bounds(counter: ix.Counter, guards: ix.Guards | None) -> Bounds:
    """The bounds of ``counter``, narrowed by the guards on it alone."""
    low, last = _origin_bounds(counter, guards)
    loose = isinstance(counter.origin, (ix.Between, ix.Bounded))
    facts = [each.fact for each in guards.chain()][::-1] if guards else []
    for fact in facts:
        match fact:
            case ix.AtLeastZero(form=ix.Form(terms=((on, factor),), constant=constant)) if on is counter:
                by = factor if isinstance(factor, int) else 0
                if by > 0:
                    least = -quotient(constant, factor)
                    low = least if loose and _is_wide(low) else greater(low, least)
                elif by < 0:
                    most = quotient(constant, -factor)
                    last = most if loose and _is_wide(last) else lesser(last, most)
            case _:
                pass
    for hole in holes_of(counter, guards):
        low, last = _without(low, last, hole)
    return low, last


def _is_wide(bound: Number) -> bool:
    """Whether it is only the bound of a type, which is omitted if there are others."""
    return isinstance(bound, int) and not -(1 << 31) < bound < (1 << 31) - 1


def holes_of(counter: ix.Counter, guards: ix.Guards | None) -> list[Number]:
    """The values that guards forbid ``counter``, the first guard's first."""
    facts = [each.fact for each in guards.chain()][::-1] if guards else []
    found = (_hole_in(fact.form, counter) for fact in facts if isinstance(fact, ix.NotZero))
    return [hole for hole in found if hole is not None]


def _without(low: Number, last: Number, hole: Number) -> Bounds:
    """The bounds without ``hole``, if that is one of them."""
    first, final = equal(low, hole), equal(last, hole)
    if first == TRUE:
        return low + 1, last
    if final == TRUE:
        return low, last - 1
    return low + select(first, 1, 0), last - select(final, 1, 0)


def _hole_in(form: ix.Form, counter: ix.Counter) -> Number | None:
    """The value that ``form != 0`` forbids ``counter``."""
    if len(form.terms) != 1 or form.terms[0][0] is not counter:
        return None
    factor = form.terms[0][1]
    return -form.constant if factor == 1 else form.constant if factor == -1 else None


def _origin_bounds(counter: ix.Counter, guards: ix.Guards | None) -> Bounds:
    match counter.origin:
        case ix.Loop(low=low, last=last):
            return low, last
        case ix.Bounded(low=low, last=last):
            return low, last
        case ix.Between(first=first, last=end):
            return bounds(first, guards)[0], bounds(end, guards)[1]
        case ix.Limited():
            return _limited_bounds(counter.origin, guards)
        case ix.Chosen(choices=choices):
            found = [bounds(form, own) for form, own in choices]
            low, last = found[0]
            for least, greatest in found[1:]:
                low, last = lesser(low, least), greater(last, greatest)
            return low, last
        case ix.Digit(form=form, divisor=divisor, part=part):
            low, last = bounds(form, guards)
            if part == "quotient":
                return quotient(low, divisor), quotient(last, divisor)
            if share_quotient(low, last, divisor):
                return remainder(low, divisor), remainder(last, divisor)
            most = divisor - 1
            return 0, lesser(last, most) if is_natural(low) else most


def is_excluded(guards: ix.Guards | None) -> bool:
    """Whether it is obvious that ``guards`` exclude everything."""
    for each in guards.chain() if guards else ():
        if isinstance(each.fact, ix.AtLeastZero) and at_most(0, bounds(each.fact.form.bare, each.before)[1]) == FALSE:
            return True
    return False


def share_quotient(low: Number, last: Number, divisor: Number) -> bool:
    """Whether it is obvious that the quotients of both ends are the same."""
    return equal(quotient(low, divisor), quotient(last, divisor)) == TRUE


def _limited_bounds(origin: ix.Limited, guards: ix.Guards | None) -> Bounds:
    """The bounds of a minimum or maximum, without those of the value's type."""
    (a0, a1), (b0, b1) = (bounds(form, guards) for form in origin.forms)
    least, most = origin.least, origin.most
    if origin.op == "min":
        return least if least in (a0, b0) else lesser(a0, b0), a1 if b1 == most else b1 if a1 == most else lesser(
            a1, b1
        )
    return a0 if b0 == least else b0 if a0 == least else greater(a0, b0), most if most in (a1, b1) else greater(a1, b1)


def is_natural(factor: Number) -> bool:
    """Whether it is certainly not negative: made of extents, and of their sums and products."""
    return all(by > 0 and all(map(_is_natural_atom, product)) for product, by in parts_of(factor))


def _is_natural_atom(atom: Atom) -> bool:
    if isinstance(atom, Given):
        return atom.part == "extent"
    return atom.op in ("abs", "count") or (
        atom.op in ("min", "max", "floordiv") and all(map(is_natural, atom.operands))
    )


def is_met(need: ix.Need, guards: ix.Guards | None) -> Number:
    """Whether ``need`` is met."""
    low, last = bounds(need.form, guards)
    enough = TRUE if need.low <= 0 and is_natural(low) else at_most(need.low, low)
    return both(enough, at_most(last, need.last))
