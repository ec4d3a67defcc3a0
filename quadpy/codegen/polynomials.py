"""Polynomials with integer coefficients, and quotients of them, by which the host suspects that an index is outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from quadpy.codegen.extent import NotOnHost
from quadpy.ir import nodes as ir

__all__ = ["Polynomial", "Quotient", "compared", "mentions", "quotient_of", "rises", "substituted"]

Atom: TypeAlias = "int | str"
"""The number of a value of the argument block, or the name of a loop variable."""
Polynomial: TypeAlias = dict[tuple[Atom, ...], int]


class Quotient(NamedTuple):
    """``over`` divided by ``under``, which is taken to be positive.

    That ``//`` rounds down makes no difference where integers are added to it, and the sum is compared with an integer.
    """

    over: Polynomial
    under: Polynomial


def compared(quotient: Quotient, number: Polynomial) -> Polynomial:
    """What is not negative if the quotient is at least ``number``."""
    return _sum(quotient.over, _product(number, quotient.under), -1)


def mentions(quotient: Quotient, var: str) -> bool:
    return any(var in atoms for atoms in quotient.over)


def rises(quotient: Quotient, var: str) -> bool:
    """Whether it rises with the loop variable, where everything else is positive: a guess, if it is no linear function."""
    return sum(factor for atoms, factor in quotient.over.items() if var in atoms) > 0


def substituted(quotient: Quotient, var: str, value: Quotient) -> Quotient:
    if not any(var in atoms for terms in quotient for atoms in terms):
        return quotient
    over, under = (_substituted(terms, var, value) for terms in quotient)
    return _divided(over, under)


def quotient_of(e: ir.Expr, numbers: Mapping[tuple[str, str, int], int]) -> Quotient:
    """``e`` without regard to its width; ``numbers`` are those of the values of the argument block."""
    match e:
        case ir.Const(value=value, type=t) if not t.is_float:
            return Quotient({(): int(value)} if value else {}, _ONE)
        case ir.VarRead(var=var):
            return Quotient({(var.name,): 1}, _ONE)
        case ir.ParamRead(name=name, type=t) if not t.is_float:
            return Quotient({(numbers[name, "scalar", 0],): 1}, _ONE)
        case ir.ShapeOf(array=array, axis=axis):
            return Quotient({(numbers[array, "extent", axis],): 1}, _ONE)
        case ir.Cast(operand=operand, type=t) if not t.is_float and not operand.type.is_float and t.bits > 1:
            return quotient_of(operand, numbers)
        case ir.Unary(op=ir.UnOp.NEG, operand=operand):
            return _added(Quotient({}, _ONE), quotient_of(operand, numbers), -1)
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t) if op in _OPERATIONS and not t.is_float:
            return _OPERATIONS[op](quotient_of(lhs, numbers), quotient_of(rhs, numbers))
        case _:
            raise NotOnHost


_ONE: Final[Polynomial] = {(): 1}


def _sum(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    """``a + factor * b``."""
    return {key: total for key in {**a, **b} if (total := a.get(key, 0) + factor * b.get(key, 0))}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    if b == _ONE:
        return a
    total: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            total = _sum(total, {tuple(sorted((*left, *right), key=str)): x * y})
    return total


def _substituted(terms: Polynomial, var: str, value: Quotient) -> Quotient:
    total = Quotient({}, _ONE)
    for atoms, factor in terms.items():
        part = Quotient({tuple(atom for atom in atoms if atom != var): factor}, _ONE)
        for _ in range(atoms.count(var)):
            part = _multiplied(part, value)
        total = _added(total, part)
    return total


def _added(a: Quotient, b: Quotient, factor: int = 1) -> Quotient:
    if a.under == b.under:  # mostly 1
        return Quotient(_sum(a.over, b.over, factor), a.under)
    return Quotient(_sum(_product(a.over, b.under), _product(b.over, a.under), factor), _product(a.under, b.under))


def _multiplied(a: Quotient, b: Quotient) -> Quotient:
    return Quotient(_product(a.over, b.over), _product(a.under, b.under))


def _divided(a: Quotient, b: Quotient) -> Quotient:
    over, under = _product(a.over, b.under), _product(a.under, b.over)
    if not under:
        raise NotOnHost
    sign = -1 if under.keys() == {()} and under[()] < 0 else 1
    return Quotient(_sum({}, over, sign), _sum({}, under, sign))


_OPERATIONS: Final[dict[ir.BinOp, Callable[[Quotient, Quotient], Quotient]]] = {
    ir.BinOp.ADD: _added,
    ir.BinOp.SUB: lambda a, b: _added(a, b, -1),
    ir.BinOp.MUL: _multiplied,
    ir.BinOp.FLOORDIV: _divided,
}
