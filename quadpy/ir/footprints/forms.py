"""Forms of values that are not affine: each is a separate counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from quadpy.dtypes import Scalar, bounds_of
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.affine import (
    Between,
    Bounded,
    Chosen,
    Counter,
    Digit,
    Entered,
    Form,
    Guards,
    Limited,
    Need,
    Origin,
    counter_form,
    fixed,
)
from quadpy.ir.footprints.guards import needs_in
from quadpy.ir.footprints.numbers import Number, greater, lesser, quotient, remainder
from quadpy.ir.footprints.ranges import is_excluded

__all__ = ["Forms", "Part"]

Part: TypeAlias = Literal["quotient", "remainder"]


class Forms:
    """Makes the counters of one task; equal values get the same counter."""

    def __init__(self) -> None:
        self._serial = 0
        self._made: dict[object, Counter] = {}

    def counter(self, name: str, origin: Origin, roots: frozenset[int] | None = None) -> Counter:
        """A new counter; without ``roots``, it is its own root."""
        self._serial += 1
        return Counter(self._serial, name, origin, frozenset((self._serial,)) if roots is None else roots)

    def between(self, name: str, first: Form, last: Form) -> Counter:
        """The variable of a loop between forms; its turn is a root."""
        self._serial += 1
        return Counter(self._serial, name, Between(first, last), frozenset((self._serial,)) | first.roots | last.roots)

    def unknown(self, type: Scalar, key: object = None, name: str = "?") -> Form:
        """An unknown value of ``type``; equal keys mean the same value."""
        low, last = bounds_of(type)
        return counter_form(self._keyed((key, type), lambda: self.counter(name, Bounded(low, last))))

    def _keyed(self, key: tuple[object, ...], make: Callable[[], Counter]) -> Counter:
        if key[0] is None:
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def digit(self, form: Form, divisor: Number, part: Part) -> Form:
        """``form // divisor`` or ``form % divisor``, rounded down, for a positive divisor."""
        bare = form.bare
        if not bare.terms:
            return fixed((quotient if part == "quotient" else remainder)(bare.constant, divisor)).needing(*form.needs)
        found = self._keyed((bare, divisor, part), lambda: self.counter(part, Digit(bare, divisor, part), bare.roots))
        return counter_form(found).needing(*form.needs)

    def limited(self, op: ir.BinOp, a: Form, b: Form, type: Scalar) -> Form:
        """The minimum or maximum."""
        needs = a.needs | b.needs
        if not a.terms and not b.terms:
            return fixed((lesser if op is ir.BinOp.MIN else greater)(a.constant, b.constant)).needing(*needs)
        kind: Literal["min", "max"] = "min" if op is ir.BinOp.MIN else "max"
        forms = (a.bare, b.bare)
        found = self._keyed(
            (kind, forms, type), lambda: self.counter(kind, Limited(*bounds_of(type), kind, forms), a.roots | b.roots)
        )
        return counter_form(found).needing(*needs)

    def chosen(self, choices: tuple[tuple[Form, Guards | None], ...]) -> Form:
        """One of several, each under its guards; where only one of these lets anything through, that one."""
        needs = frozenset[Need]().union(*(form.needs for form, _ in choices))
        chains = (each.fact for _, guards in choices if guards for each in guards.chain())
        needs |= {need for fact in chains if not isinstance(fact, Entered) for need in needs_in(fact)}
        likely = [form for form, guards in choices if not is_excluded(guards)]
        if len(likely) == 1:
            return likely[0].needing(*needs)
        roots = frozenset[int]().union(*(form.roots for form, _ in choices))
        counter = self.counter("chosen", Chosen(choices), roots)
        return counter_form(counter).needing(*needs)
