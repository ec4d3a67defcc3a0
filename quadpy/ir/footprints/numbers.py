"""Integers that the host knows at a launch, as polynomials over the arguments, and conditions on them.

The arithmetic is that of unbounded integers: a separate condition tells whether a kernel's arithmetic would wrap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final, Literal, TypeAlias

from quadpy.light import dataclass

__all__ = [
    "FALSE", "ONE", "TRUE", "ZERO", "Given", "Made", "Number", "TooComplex", "at_most", "atoms_of", "both", "either", "equal", "given",
    "greater", "lesser", "made", "negated", "number", "operands_of", "quotient", "remainder", "select",
]  # fmt: skip

Operator: TypeAlias = Literal[
    "floordiv",
    "mod",
    "min",
    "max",
    "count",
    "gcd",
    "abs",
    "dense",
    "at_most",
    "equal",
    "both",
    "either",
    "not",
    "select",
]
"""``dense`` takes strides and counts: the step of all sums of their multiples if these are equally spaced, else 0."""


@dataclass(frozen=True, slots=True)
class Given:
    """A scalar argument of the launch, or the extent of an array's axis."""

    param: str
    part: Literal["scalar", "extent"] = "scalar"
    axis: int = 0

    @property
    def key(self) -> str:
        return self.param if self.part == "scalar" else f"{self.param}.shape[{self.axis}]"


@dataclass(frozen=True, slots=True)
class Made:
    """An operation whose result is not a polynomial."""

    op: Operator
    operands: tuple[Number, ...]
    key: str = field(compare=False)


Atom: TypeAlias = Given | Made


@dataclass(frozen=True, slots=True)
class Number:
    """A sum of products of atoms: ``terms`` maps each product to its coefficient, none of them 0, in a fixed order.

    ``key`` tells numbers apart, and is what messages show.  Conditions are numbers too, 1 where they hold and 0 elsewhere.
    """

    terms: tuple[tuple[tuple[Atom, ...], int], ...] = field(compare=False)
    key: str

    def __add__(self, other: Number) -> Number:
        if not other.terms or not self.terms:
            return self if not other.terms else other
        found = dict(self.terms)
        for product, factor in other.terms:
            found[product] = found.get(product, 0) + factor
        return _number(found)

    def __mul__(self, other: Number) -> Number:
        if self.key == "1" or other.key == "1":
            return other if self.key == "1" else self
        found: dict[tuple[Atom, ...], int] = {}
        for mine, a in self.terms:
            for its, b in other.terms:
                product = tuple(sorted((*mine, *its), key=_atom_key))
                found[product] = found.get(product, 0) + a * b
        return _number(found)

    def __neg__(self) -> Number:
        terms = tuple((product, -factor) for product, factor in self.terms)
        return Number(terms, _text(terms))

    def __sub__(self, other: Number) -> Number:
        return self + -other

    @property
    def constant(self) -> int | None:
        """Its value, if it depends on nothing."""
        if not self.terms:
            return 0
        (product, factor), *others = self.terms
        return factor if not others and not product else None

    def __str__(self) -> str:
        return self.key


def _atom_key(atom: Atom) -> str:
    return atom.key


def _product_key(term: tuple[tuple[Atom, ...], int]) -> tuple[bool, int, list[str]]:
    """Constants last, as in ``n - 1``."""
    return not term[0], -len(term[0]), [atom.key for atom in term[0]]


def _number(found: Mapping[tuple[Atom, ...], int]) -> Number:
    terms = sorted(((product, factor) for product, factor in found.items() if factor), key=_product_key)
    return Number(tuple(terms), _text(terms))


def _text(terms: Iterable[tuple[tuple[Atom, ...], int]]) -> str:
    """The sum, with what is added before what is subtracted: ``n - 1``."""
    text = ""
    for product, factor in sorted(terms, key=lambda term: term[1] < 0):
        names = [atom.key for atom in product]
        part = " * ".join([str(abs(factor))] * (abs(factor) != 1 or not names) + names)
        sign = " - " if factor < 0 else " + "
        text += sign + part if text else (f"-{part}" if factor < 0 else part)
    return text or "0"


def number(value: int) -> Number:
    """The constant ``value``."""
    return Number((((), value),) if value else (), str(value))


class TooComplex(Exception):
    """A formula has become too long to be useful to a reader or to the host."""


MOST_TEXT: Final = 2000
"""Characters of a formula."""


ZERO: Final = number(0)
ONE: Final = number(1)
FALSE, TRUE = ZERO, ONE


def given(atom: Given) -> Number:
    """The value of an argument."""
    return Number((((atom,), 1),), atom.key)


def made(op: Operator, *operands: Number) -> Number:
    """The result of ``op``, not simplified; the functions below simplify."""
    atom = Made(op, operands, _call_text(op, operands))
    if len(atom.key) > MOST_TEXT:
        raise TooComplex
    return Number((((atom,), 1),), atom.key)


def quotient(a: Number, b: Number) -> Number:
    """``a // b``, rounded down; ``b`` is positive."""
    if b.constant == 1:
        return a
    divisor = b.constant
    if divisor:
        whole = {product: factor // divisor for product, factor in a.terms if product and factor % divisor == 0}
        rest = _number({product: factor for product, factor in a.terms if product not in whole})
        if rest.constant is not None:
            return _number(whole) + number(rest.constant // divisor)
        if whole:
            return _number(whole) + made("floordiv", rest, b)
    elif a.constant == 0 or a == b:
        return number(int(a == b))
    return made("floordiv", a, b)


def remainder(a: Number, b: Number) -> Number:
    """``a % b``, with the sign of ``b``, which is positive."""
    return a - quotient(a, b) * b if a.constant is not None and b.constant else made("mod", a, b)


def lesser(a: Number, b: Number) -> Number:
    """The minimum."""
    return _extreme("min", a, b)


def greater(a: Number, b: Number) -> Number:
    """The maximum."""
    return _extreme("max", a, b)


def _extreme(op: Literal["min", "max"], a: Number, b: Number) -> Number:
    """The minimum or maximum of the operands of ``a`` and ``b``, without those that can never be the result."""
    kept: list[Number] = []
    for each in (*operands_of(op, a), *operands_of(op, b)):
        if not any(_is_beyond(op, each, other) for other in kept):
            kept = [other for other in kept if not _is_beyond(op, other, each)]
            kept.append(each)
    return kept[0] if len(kept) == 1 else made(op, *sorted(kept, key=str))


def _is_beyond(op: Literal["min", "max"], a: Number, b: Number) -> bool:
    """Whether ``a >= b`` is obvious for a minimum, or ``a <= b`` for a maximum."""
    apart = ((each - b).constant for each in operands_of("max" if op == "min" else "min", a))
    return any(by is not None and (by >= 0 if op == "min" else by <= 0) for by in apart)


def operands_of(op: Operator, a: Number) -> tuple[Number, ...]:
    """The operands, if ``a`` is the result of ``op``, such as a minimum; otherwise ``a`` alone."""
    atom = _atom_of(a)
    return atom.operands if isinstance(atom, Made) and atom.op == op else (a,)


def _atom_of(a: Number) -> Atom | None:
    """The atom, if ``a`` is nothing but one atom."""
    if len(a.terms) != 1 or a.terms[0][1] != 1 or len(a.terms[0][0]) != 1:
        return None
    return a.terms[0][0][0]


def at_most(a: Number, b: Number) -> Number:
    """Whether ``a <= b``."""
    apart = (b - a).constant
    return made("at_most", a, b) if apart is None else TRUE if apart >= 0 else FALSE


def equal(a: Number, b: Number) -> Number:
    """Whether ``a == b``."""
    apart = (b - a).constant
    return made("equal", a, b) if apart is None else TRUE if apart == 0 else FALSE


def both(*conditions: Number) -> Number:
    """Whether all of ``conditions`` hold."""
    if FALSE in conditions:
        return FALSE
    needed = [each for each in dict.fromkeys(conditions) if each != TRUE]
    return made("both", *needed) if len(needed) > 1 else needed[0] if needed else TRUE


def either(*conditions: Number) -> Number:
    """Whether one of ``conditions`` holds."""
    if TRUE in conditions:
        return TRUE
    needed = [each for each in dict.fromkeys(conditions) if each != FALSE]
    return made("either", *needed) if len(needed) > 1 else needed[0] if needed else FALSE


def negated(condition: Number) -> Number:
    """Whether ``condition`` does not hold."""
    return number(1 - condition.constant) if condition.constant is not None else made("not", condition)


def select(condition: Number, a: Number, b: Number) -> Number:
    """``a`` if ``condition`` holds, otherwise ``b``."""
    if condition.constant is not None or a == b:
        return a if condition.constant or a == b else b
    return made("select", condition, a, b)


_INFIX: Final = {
    "floordiv": "//", "mod": "%", "at_most": "<=", "equal": "==", "both": "and", "either": "or",
}  # fmt: skip


def _call_text(op: Operator, operands: tuple[Number, ...]) -> str:
    if op in _INFIX:
        parts = [
            each.key if each.constant is not None or _is_tight(_atom_of(each)) else f"({each.key})" for each in operands
        ]
        return f" {_INFIX[op]} ".join(parts) if op not in ("floordiv", "mod") else f"({f' {_INFIX[op]} '.join(parts)})"
    if op == "select":
        condition, a, b = operands
        return f"({a.key} if {condition.key} else {b.key})"
    return f"{op}({', '.join(each.key for each in operands)})"


def _is_tight(atom: Atom | None) -> bool:
    """Whether the text of ``atom`` needs no parentheses."""
    return atom is not None and (isinstance(atom, Given) or atom.key[-1] == ")")


def atoms_of(numbers: Iterable[Number]) -> Iterator[Given]:
    """The arguments on which ``numbers`` depend, each as often as it occurs."""
    for each in numbers:
        for product, _ in each.terms:
            for atom in product:
                if isinstance(atom, Given):
                    yield atom
                else:
                    yield from atoms_of(atom.operands)
