"""Whether equal indices mean equal loop variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from quadpy.ir.index.bounds import bounds, counter_bounds
from quadpy.ir.index.forms import Counter, Digit, Form


def tells(indices: Iterable[Form], wanted: Collection[Counter]) -> bool:
    """Whether the values of ``indices`` together determine each counter in ``wanted``.

    ``16 * q + r`` with ``0 <= r < 16`` determines both; ``x // n`` and ``x % n`` together determine ``x``.
    """
    forms, told, before = {*indices}, set[Counter](), -1
    if not all(map(_is_exact, forms)):
        return False
    while len(told) > before:
        before = len(told)
        for form in forms:
            told.update(_told_by(form, told))
        forms.update(_wholes(told))
    return told.issuperset(wanted)


def _is_exact(form: Form) -> bool:
    """Whether no arithmetic wraps on the way to ``form``, whatever the launch."""
    ends = ((need, *bounds(need.form, None)) for need in form.needs)
    return all(isinstance(a, int) and isinstance(b, int) and need.low <= a <= b <= need.last for need, a, b in ends)


def _told_by(form: Form, told: Collection[Counter]) -> Iterator[Counter]:
    """The counters that ``form`` determines, given those that are ``told``: none unless it determines all."""
    unknown = {counter: factor for counter, factor in form.terms if counter not in told}
    sizes = {counter: abs(factor) for counter, factor in unknown.items() if isinstance(factor, int)}
    if len(sizes) < len(unknown):
        return
    covered = 0
    *lower, highest = sorted(sizes, key=sizes.__getitem__) or (None,)
    for counter in lower:
        low, last = counter_bounds(counter, None)
        if sizes[counter] <= covered or not (isinstance(low, int) and isinstance(last, int)):
            return
        covered += sizes[counter] * (last - low)
    if highest is not None and sizes[highest] > covered:
        yield from sizes


def _wholes(told: Iterable[Counter]) -> Iterator[Form]:
    """The forms whose quotient and remainder by one number are both ``told``."""
    digits = [counter.origin for counter in told if isinstance(counter.origin, Digit)]
    remainders = {(digit.form, digit.divisor) for digit in digits if digit.part == "remainder"}
    return (digit.form for digit in digits if digit.part == "quotient" and (digit.form, digit.divisor) in remainders)
