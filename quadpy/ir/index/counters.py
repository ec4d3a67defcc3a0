"""Forms of values that are not affine: each is a separate counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from quadpy.core.dtypes import Scalar, bounds_of
from quadpy.ir import nodes as ir
from quadpy.ir.index import forms as ix
from quadpy.ir.index.bounds import is_excluded
from quadpy.ir.index.guards import needs_in
from quadpy.ir.index.numbers import Number, greater, lesser, quotient, remainder

Part: TypeAlias = Literal["quotient", "remainder"]


class Forms:
    """Makes the counters of one task; equal values get the same counter."""

    def __init__(self) -> None:
        self._serial = 0
        self._made: dict[object, ix.Counter] = {}

    def counter(self, name: str, origin: ix.Origin, roots: frozenset[int] | None = None) -> ix.Counter:
        """A new counter; without ``roots``, it is its own root."""
        self._serial += 1
        return ix.Counter(self._serial, name, origin, frozenset((self._serial,)) if roots is None else roots)

    def between(self, name: str, first: ix.Form, last: ix.Form) -> ix.Counter:
        """The variable of a loop between forms; its turn is a root."""
        self._serial += 1
        return ix.Counter(
            self._serial, name, ix.Between(first, last), frozenset((self._serial,)) | first.roots | last.roots
        )

    def unknown(self, type: Scalar, key: object = None, name: str = "?") -> ix.Form:
        """An unknown value of ``type``; equal keys mean the same value."""
        low, last = bounds_of(type)
        return ix.counter_form(self._keyed((key, type), lambda: self.counter(name, ix.Bounded(low, last))))

    def _keyed(self, key: tuple[object, ...], make: Callable[[], ix.Counter]) -> ix.Counter:
        if key[0] is None:
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def digit(self, form: ix.Form, divisor: Number, part: Part) -> ix.Form:
        """``form // divisor`` or ``form % divisor``, rounded down, for a positive divisor."""
        bare = form.bare
        if not bare.terms:
            return ix.fixed((quotient if part == "quotient" else remainder)(bare.constant, divisor)).needing(
                *form.needs
            )
        found = self._keyed(
            (bare, divisor, part), lambda: self.counter(part, ix.Digit(bare, divisor, part), bare.roots)
        )
        return ix.counter_form(found).needing(*form.needs)

    def limited(self, op: ir.BinOp, a: ix.Form, b: ix.Form, type: Scalar) -> ix.Form:
        """The minimum or maximum."""
        needs = a.needs | b.needs
        if not a.terms and not b.terms:
            return ix.fixed((lesser if op is ir.BinOp.MIN else greater)(a.constant, b.constant)).needing(*needs)
        kind: Literal["min", "max"] = "min" if op is ir.BinOp.MIN else "max"
        forms = (a.bare, b.bare)
        found = self._keyed(
            (kind, forms, type),
            lambda: self.counter(kind, ix.Limited(*bounds_of(type), kind, forms), a.roots | b.roots),
        )
        return ix.counter_form(found).needing(*needs)

    def chosen(self, choices: tuple[tuple[ix.Form, ix.Guards | None], ...]) -> ix.Form:
        """One of several, each under its guards; where only one of these lets anything through, that one."""
        needs = frozenset[ix.Need]().union(*(form.needs for form, _ in choices))
        chains = (each.fact for _, guards in choices if guards for each in guards.chain())
        needs |= {need for fact in chains if not isinstance(fact, ix.Entered) for need in needs_in(fact)}
        likely = [form for form, guards in choices if not is_excluded(guards)]
        if len(likely) == 1:
            return likely[0].needing(*needs)
        roots = frozenset[int]().union(*(form.roots for form, _ in choices))
        counter = self.counter("chosen", ix.Chosen(choices), roots)
        return ix.counter_form(counter).needing(*needs)
