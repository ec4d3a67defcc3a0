"""Integers of an iteration as affine forms: sums of counters times numbers that the host knows at a launch.

A *counter* takes consecutive integers: a loop variable in units of its step, or the values of a division, a remainder,
a minimum or a load.  Therefore, every integer has a form, and a value that is not affine is a separate counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Literal, TypeAlias

from quadpy.core.light import dataclass
from quadpy.ir.index.numbers import Number


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop variable from ``low`` to ``last``, in units of its step; all iterations around it have these bounds."""

    low: Number
    last: Number


@dataclass(frozen=True, slots=True)
class Between:
    """A loop variable from ``first`` to at most ``last``, which may differ between the iterations around the loop."""

    first: Form
    last: Form


@dataclass(frozen=True, slots=True)
class Digit:
    """``form // divisor``, or ``form % divisor``, rounded down; the divisor is positive."""

    form: Form
    divisor: Number
    part: Literal["quotient", "remainder"]


@dataclass(frozen=True, slots=True)
class Limited:
    """The minimum or maximum of two values from ``least`` to ``most``."""

    least: int
    most: int
    op: Literal["min", "max"]
    forms: tuple[Form, Form]


@dataclass(frozen=True, slots=True)
class Chosen:
    """One of several forms, each under the guards of its branch."""

    choices: tuple[tuple[Form, Guards | None], ...]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value, such as one from memory, of which only these bounds are known."""

    low: int
    last: int


Origin: TypeAlias = Loop | Between | Digit | Limited | Chosen | Bounded


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """Consecutive integers; ``serial`` distinguishes the counters of a task, in the order of their creation."""

    serial: int
    name: str
    origin: Origin
    roots: frozenset[int] = field(repr=False)
    """The serials of the loops and unknown values that decide it."""


@dataclass(frozen=True, slots=True)
class Need:
    """A requirement that ``form`` is in these bounds: otherwise the kernel's arithmetic wraps or rounds differently."""

    form: Form
    low: int
    last: int


@dataclass(frozen=True, slots=True)
class Form:
    """``constant`` and the sum of ``counter * factor``; ``terms`` are in the order of the counters, no factor 0."""

    terms: tuple[tuple[Counter, Number], ...]
    constant: Number
    needs: frozenset[Need] = frozenset()

    def __add__(self, other: Form | Number) -> Form:
        if not isinstance(other, Form):
            return Form(self.terms, self.constant + other, self.needs)
        factors = dict(self.terms)
        for counter, factor in other.terms:
            factors[counter] = factors.get(counter, 0) + factor
        kept = sorted(((c, f) for c, f in factors.items() if f != 0), key=_serial)
        return Form(tuple(kept), self.constant + other.constant, self.needs | other.needs)

    __radd__ = __add__

    def __sub__(self, other: Form | Number) -> Form:
        return self + other * -1

    def __rsub__(self, other: Number) -> Form:
        return self * -1 + other

    def __mul__(self, factor: Number) -> Form:
        """The product with a number of the launch."""
        terms = () if factor == 0 else tuple((counter, each * factor) for counter, each in self.terms)
        return Form(terms, self.constant * factor, self.needs)

    def needing(self, *needs: Need) -> Form:
        """The same form, valid only if ``needs`` hold as well."""
        return Form(self.terms, self.constant, self.needs | frozenset(needs)) if needs else self

    @property
    def bare(self) -> Form:
        """The same without needs."""
        return Form(self.terms, self.constant) if self.needs else self

    @property
    def counters(self) -> Iterable[Counter]:
        return (counter for counter, _ in self.terms)

    @property
    def roots(self) -> frozenset[int]:
        """The serials of the loops and unknown values that decide it."""
        return frozenset().union(*(counter.roots for counter in self.counters))


@dataclass(frozen=True, slots=True)
class AtLeastZero:
    """``form >= 0``."""

    form: Form


@dataclass(frozen=True, slots=True)
class NotZero:
    """``form != 0``."""

    form: Form


@dataclass(frozen=True, slots=True)
class Maybe:
    """A condition that the host cannot know."""


@dataclass(frozen=True, slots=True)
class Every:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """One of ``conditions``, or more."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = AtLeastZero | NotZero | Maybe | Every | Some


@dataclass(frozen=True, slots=True)
class Entered:
    """The statement is inside a loop with this counter, whose bounds are valid if ``needs`` hold."""

    counter: Counter
    needs: frozenset[Need]


Fact: TypeAlias = Entered | AtLeastZero | NotZero | Some | Maybe


@dataclass(frozen=True, slots=True, eq=False)
class Guards:
    """A chain of facts: ``fact``, and those of ``before``."""

    before: Guards | None
    fact: Fact

    def chain(self) -> Iterator[Guards]:
        """This and all before it, the last first."""
        here: Guards | None = self
        while here is not None:
            yield here
            here = here.before


def _serial(term: tuple[Counter, Number]) -> int:
    return term[0].serial


def fixed(value: Number) -> Form:
    """A number that all iterations have in common."""
    return Form((), value)


def counter_form(counter: Counter) -> Form:
    """The value of a counter alone."""
    return Form(((counter, 1),), 0)
