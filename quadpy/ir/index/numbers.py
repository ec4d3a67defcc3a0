"""Integers that the host knows at a launch, as polynomials over the arguments, and conditions on them.

The arithmetic is that of unbounded integers: a separate condition tells whether a kernel's arithmetic would wrap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final, Literal, NamedTuple, TypeAlias

from quadpy.core.light import dataclass
from quadpy.ir.index.polynomials import Poly, atom_of, atom_poly, parts_of, poly

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


class Given(NamedTuple):
    """A scalar argument of the launch, the extent of an array's axis, or, where its values are sought, a loop variable."""

    param: str
    part: Literal["scalar", "extent", "variable"] = "scalar"
    axis: int = 0

    def __str__(self) -> str:
        return f"{self.param}.shape[{self.axis}]" if self.part == "extent" else self.param

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other)


@dataclass(frozen=True, slots=True)
class Made:
    """An operation whose result is not a polynomial; its ``text`` tells it apart."""

    op: Operator = field(compare=False)
    operands: tuple[Number, ...] = field(compare=False)
    text: str

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: object) -> bool:
        return self.text < str(other)


Atom: TypeAlias = Given | Made

Number: TypeAlias = int | Poly[Atom]
"""Conditions are numbers too, 1 where they hold and 0 elsewhere."""


class TooComplex(Exception):
    """A formula has become too long to be useful to a reader or to the host."""


MOST_TEXT: Final = 2000
"""Characters of a formula."""


FALSE: Final = 0
TRUE: Final = 1


def made(op: Operator, *operands: Number) -> Number:
    """The result of ``op``, not simplified; the functions below simplify."""
    atom = Made(op, operands, _call_text(op, operands))
    if len(atom.text) > MOST_TEXT:
        raise TooComplex
    return atom_poly(atom)


def quotient(a: Number, b: Number) -> Number:
    """``a // b``, rounded down; ``b`` is positive."""
    if b == 1:
        return a
    if isinstance(b, int) and b:
        whole = {product: factor // b for product, factor in parts_of(a) if product and factor % b == 0}
        rest = poly({product: factor for product, factor in parts_of(a) if product not in whole})
        if isinstance(rest, int):
            return poly(whole) + rest // b
        if whole:
            return poly(whole) + made("floordiv", rest, b)
    elif a in (0, b):
        return int(a == b)
    return made("floordiv", a, b)


def remainder(a: Number, b: Number) -> Number:
    """``a % b``, with the sign of ``b``, which is positive."""
    return a - quotient(a, b) * b if isinstance(a, int) and isinstance(b, int) and b else made("mod", a, b)


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
    apart = (each - b for each in operands_of("max" if op == "min" else "min", a))
    return any(isinstance(by, int) and (by >= 0 if op == "min" else by <= 0) for by in apart)


def operands_of(op: Operator, a: Number) -> tuple[Number, ...]:
    """The operands, if ``a`` is the result of ``op``, such as a minimum; otherwise ``a`` alone."""
    atom = atom_of(a)
    return atom.operands if isinstance(atom, Made) and atom.op == op else (a,)


def at_most(a: Number, b: Number) -> Number:
    """Whether ``a <= b``."""
    apart = b - a
    return int(apart >= 0) if isinstance(apart, int) else made("at_most", a, b)


def equal(a: Number, b: Number) -> Number:
    """Whether ``a == b``."""
    apart = b - a
    return int(apart == 0) if isinstance(apart, int) else made("equal", a, b)


def both(*conditions: Number) -> Number:
    """Whether all of ``conditions`` hold, in whatever order they are given."""
    return _joined("both", conditions, FALSE)


def either(*conditions: Number) -> Number:
    """Whether one of ``conditions`` holds."""
    return _joined("either", conditions, TRUE)


def _joined(op: Literal["both", "either"], conditions: Iterable[Number], decides: int) -> Number:
    parts = dict.fromkeys(part for each in conditions for part in operands_of(op, each))
    if decides in parts:
        return decides
    open_ = sorted((each for each in parts if not isinstance(each, int)), key=str)
    return made(op, *open_) if len(open_) > 1 else open_[0] if open_ else 1 - decides


def negated(condition: Number) -> Number:
    """Whether ``condition`` does not hold."""
    return 1 - condition if isinstance(condition, int) else made("not", condition)


def select(condition: Number, a: Number, b: Number) -> Number:
    """``a`` if ``condition`` holds, otherwise ``b``."""
    if isinstance(condition, int) or a == b:
        return a if condition or a == b else b
    return made("select", condition, a, b)


_INFIX: Final = {
    "floordiv": "//", "mod": "%", "at_most": "<=", "equal": "==", "both": "and", "either": "or",
}  # fmt: skip


def _call_text(op: Operator, operands: tuple[Number, ...]) -> str:
    if op in _INFIX:
        parts = [str(each) if isinstance(each, int) or _is_tight(atom_of(each)) else f"({each})" for each in operands]
        return f" {_INFIX[op]} ".join(parts) if op not in ("floordiv", "mod") else f"({f' {_INFIX[op]} '.join(parts)})"
    if op == "select":
        condition, a, b = operands
        return f"({a} if {condition} else {b})"
    return f"{op}({', '.join(map(str, operands))})"


def _is_tight(atom: Atom | None) -> bool:
    """Whether the text of ``atom`` needs no parentheses."""
    return atom is not None and (isinstance(atom, Given) or atom.text[-1] == ")")
