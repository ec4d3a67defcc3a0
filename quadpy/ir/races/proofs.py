"""Proofs that no two iterations of a task touch one element.

Two accesses are apart if a common element would identify the iteration: some of the indices, as
functions of the loop's variables, are the same in both, and differ from iteration to iteration.  Or they never meet,
because a remainder or a range keeps them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from quadpy.core.light import dataclass
from quadpy.ir.index.polynomials import parts_of, poly
from quadpy.ir.races.accesses import MemoryAccess
from quadpy.ir.races.terms import Term, Terms


@dataclass(frozen=True, slots=True)
class Space:
    """The iterations of a task.

    axes      the atoms of the loop's variables
    ranges    low and high (exclusive) of the variables of the loop and of loops inside
    positive  atoms that are larger than 0 if there is an iteration
    """

    terms: Terms
    axes: frozenset[int]
    ranges: Mapping[int, tuple[Term, Term]]
    positive: frozenset[int] = frozenset()


def are_apart(space: Space, a: MemoryAccess, b: MemoryAccess) -> bool:
    """Whether ``a`` in one iteration and ``b`` in another are never the same element."""
    if any(_never_meet(space, i, j) for i, j in zip(a.index, b.index, strict=True)):
        return True
    owners: list[Term] = []
    for i, j in zip(a.index, b.index, strict=True):
        owners += _common(space, i, j)
    return _tells_iteration(space, owners)


# ------------------------------------------------------------- the same function of the iteration


def _common(space: Space, a: Term, b: Term) -> list[Term]:
    """Functions of the loop's variables that are equal whenever ``a`` and ``b`` are."""
    if a == b and _is_of_iteration(space, a):
        return [a]
    for size in _sizes(space, a, b):
        some, others = (_block_of(space, each, size) for each in (a, b))
        if some is not None and some == others:
            return [some]
    return []


def _is_of_iteration(space: Space, term: Term) -> bool:
    """Whether ``term`` follows from the loop's variables and values that all iterations share."""
    terms = space.terms
    waiting, seen = [term], set[int]()
    while waiting:
        for number in terms.numbers_in(waiting.pop()):
            if number in seen or number in space.axes or number not in terms.varying:
                continue
            seen.add(number)
            operands = terms.atoms[number].operands
            if not any(map(terms.varies, operands)):
                return False  # it varies by itself
            waiting += operands
    return True


def _sizes(space: Space, *found: Term) -> set[Term]:
    """The sizes of blocks that ``found`` may be numbers in: lengths of loops, and coefficients."""
    sizes: set[Term] = set()
    for term in found:
        for monomial, factor in parts_of(term):
            if len(monomial) == 1:
                if monomial[0] in space.ranges:
                    sizes.add(space.ranges[monomial[0]][1])
                sizes.add(abs(factor))
    return {size for size in sizes - {0, 1} if not space.terms.varies(size)}


def _block_of(space: Space, term: Term, size: Term) -> Term | None:
    """``q`` where ``term = size * q + r`` with ``0 <= r < size``, and ``q`` follows from the iteration alone."""
    high: Term = 0
    whole: Term = 0
    for monomial, factor in parts_of(term):
        quotient = space.terms.quotient(poly({monomial: factor}), size) if monomial else None
        if quotient is not None and _is_of_iteration(space, quotient):
            whole = whole + quotient
            continue
        most = _most_of(space, monomial, factor)
        if most is None:
            return None
        high = high + most
    left = size - high
    return whole if isinstance(left, int) and left > 0 else None


def _most_of(space: Space, monomial: tuple[int, ...], factor: int) -> Term | None:
    """The maximum of ``factor * monomial`` if it counts up from 0; None if it does not."""
    if factor < 0:
        return None
    if not monomial:
        return factor
    if len(monomial) == 1 and monomial[0] in space.ranges:
        low, end = space.ranges[monomial[0]]
        if low == 0:
            return factor * (end - 1)
    return None


def _tells_iteration(space: Space, owners: list[Term]) -> bool:
    """Whether the values of ``owners`` identify the iteration."""
    known: set[int] = set()
    owners = _joined(space, owners)
    grew = True
    while grew and not space.axes <= known:
        grew = False
        for owner in owners:
            found = _told_by(space, owner, known)
            if not found <= known:
                known |= found
                grew = True
    return space.axes <= known


def _joined(space: Space, owners: Iterable[Term]) -> list[Term]:
    """``owners``, and ``e`` wherever ``e // n`` and ``e % n`` are among them."""
    found = list(dict.fromkeys(owners))
    grew = True
    while grew:
        grew = False
        for owner in found:
            rest = space.terms.is_atom(owner)
            if rest is None or rest.name != "mod":
                continue
            e, n = rest.operands
            if e in found:
                continue
            whole = space.terms.divided("floordiv", e, n, rest.type)
            if whole in found or _is_fixed(space, whole):
                found.append(e)
                grew = True
                break
    return found


def _is_fixed(space: Space, term: Term) -> bool:
    return not space.terms.varies(term)


def _told_by(space: Space, owner: Term, known: set[int]) -> set[int]:
    """The loop's variables that follow from ``owner``, given those that are ``known``."""
    coefficients: dict[int, int] = {}
    for monomial, factor in parts_of(owner):
        unknown = [n for n in monomial if n in space.terms.varying and n not in known]
        if not unknown:
            continue
        others = [number for number in monomial if number != unknown[0]]
        if len(unknown) > 1 or unknown[0] not in space.axes or not space.positive.issuperset(others):
            return _told_by_blocks(space, owner, known)
        if unknown[0] in coefficients:  # n * i - i may be 0
            return set()
        coefficients[unknown[0]] = factor
    if len(coefficients) == 1:
        return set(coefficients)
    return _told_by_blocks(space, owner, known)


def _told_by_blocks(space: Space, owner: Term, known: set[int]) -> set[int]:
    """Like ``_told_by``, of ``n * i + j`` with ``0 <= j < n``: numbers in a mixed radix."""
    terms = space.terms
    open_part: Term = 0
    for monomial, factor in parts_of(owner):
        if any(number in terms.varying and number not in known for number in monomial):
            open_part = open_part + poly({monomial: factor})
    for monomial, factor in parts_of(open_part):
        number = monomial[0]
        if factor != 1 or len(monomial) > 1 or number not in space.axes or number not in space.ranges:
            continue
        low, end = space.ranges[number]
        whole = terms.quotient(open_part - poly({monomial: 1}), end - low)
        if whole is not None and not terms.varies(end) and not terms.varies(low):
            return {number} | _told_by(space, whole, known | {number})
    return set()


# ------------------------------------------------------------- never the same


def _never_meet(space: Space, a: Term, b: Term) -> bool:
    """Whether ``a`` and ``b`` differ, each in any iteration."""
    terms = space.terms
    step = 0
    low: Term | None = 0
    high: Term | None = 0
    for sign, term in ((1, a), (-1, b)):
        for monomial, factor in parts_of(term):
            part = poly({monomial: sign * factor})
            if not terms.varies(part):
                low, high = (None if each is None else each + part for each in (low, high))
                continue
            step = math.gcd(step, factor)
            least, most = _bounds(space, monomial, sign * factor)
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
    if (isinstance(low, int) and low > 0) or (isinstance(high, int) and high < 0):
        return True
    fixed = _fixed_part(space, a) - _fixed_part(space, b)
    return isinstance(fixed, int) and (fixed % step != 0 if step else fixed != 0)


def _fixed_part(space: Space, term: Term) -> Term:
    found: Term = 0
    for monomial, factor in parts_of(term):
        if not space.terms.varies(part := poly({monomial: factor})):
            found = found + part
    return found


def _bounds(space: Space, monomial: tuple[int, ...], factor: int) -> tuple[Term | None, Term | None]:
    """The minimum and maximum of ``factor * monomial``, whose atom varies."""
    if len(monomial) != 1 or monomial[0] not in space.ranges:
        return None, None
    low, end = space.ranges[monomial[0]]
    terms = space.terms
    if terms.varies(low) or terms.varies(end):
        return None, None
    ends = factor * low, factor * (end - 1)
    return ends if factor > 0 else ends[::-1]
