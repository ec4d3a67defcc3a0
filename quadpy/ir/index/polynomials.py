"""Polynomials with integer coefficients; one that is a constant is an ``int``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from quadpy.core.light import dataclass


class Ordered(Protocol):
    """What products are sorted by."""

    def __lt__(self, other: Any, /) -> bool: ...


A = TypeVar("A", bound=Ordered)

Terms: TypeAlias = tuple[tuple[tuple[A, ...], int], ...]
"""Products of atoms, each in ascending order, with their coefficients, none of them 0; the constant is that of ``()``."""


@dataclass(frozen=True, slots=True)
class Poly(Generic[A]):
    """A sum of products of atoms: those of more atoms first, so the constant last, as in ``n - 1``."""

    terms: Terms[A]

    def __add__(self, other: int | Poly[A]) -> int | Poly[A]:
        if other == 0:
            return self
        found = dict(self.terms)
        for product, factor in parts_of(other):
            found[product] = found.get(product, 0) + factor
        return poly(found)

    __radd__ = __add__

    def __mul__(self, other: int | Poly[A]) -> int | Poly[A]:
        if isinstance(other, int):
            return Poly(tuple((product, factor * other) for product, factor in self.terms)) if other else 0
        found: dict[tuple[A, ...], int] = {}
        for mine, a in self.terms:
            for its, b in other.terms:
                product = tuple(sorted((*mine, *its)))
                found[product] = found.get(product, 0) + a * b
        return poly(found)

    __rmul__ = __mul__

    def __neg__(self) -> int | Poly[A]:
        return self * -1

    def __sub__(self, other: int | Poly[A]) -> int | Poly[A]:
        return self + other * -1

    def __rsub__(self, other: int) -> int | Poly[A]:
        return self * -1 + other

    def __str__(self) -> str:
        return text_of(self, str)


def poly(found: Mapping[tuple[A, ...], int]) -> int | Poly[A]:
    """The sum of these products with these coefficients."""
    terms = [term for term in found.items() if term[1]]
    if len(terms) > 1:
        terms.sort(key=_order)
    elif not terms or not terms[0][0]:
        return terms[0][1] if terms else 0
    return Poly(tuple(terms))


def _order(term: tuple[tuple[Any, ...], int]) -> tuple[int, tuple[Any, ...]]:
    return -len(term[0]), term[0]


def atom_poly(atom: A) -> Poly[A]:
    """``atom`` alone."""
    return Poly((((atom,), 1),))


def atom_of(a: int | Poly[A]) -> A | None:
    """The atom, if ``a`` is nothing but one atom."""
    match a:
        case Poly(terms=(((atom,), 1),)):
            return atom
    return None


def parts_of(a: int | Poly[A]) -> Terms[A]:
    """The products in ``a`` with their coefficients."""
    return a.terms if isinstance(a, Poly) else (((), a),) if a else ()


def constant_of(a: int | Poly[A]) -> int:
    """The constant that is added to the products of atoms."""
    return a if isinstance(a, int) else next((factor for product, factor in a.terms if not product), 0)


def text_of(a: int | Poly[A], name: Callable[[A], str]) -> str:
    """The sum, with what is added before what is subtracted: ``n - 1``."""
    text = ""
    for product, factor in sorted(parts_of(a), key=lambda term: term[1] < 0):
        names = [name(atom) for atom in product]
        part = " * ".join([str(abs(factor))] * (abs(factor) != 1 or not names) + names)
        sign = " - " if factor < 0 else " + "
        text += sign + part if text else (f"-{part}" if factor < 0 else part)
    return text or "0"
