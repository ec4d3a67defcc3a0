"""Quotients of polynomials, by which the host suspects that an index is outside."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, floordiv, mul, sub
from typing import Final

from quadpy.codegen.extent import NotOnHost
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.index.numbers import Atom, Given, Number
from quadpy.ir.index.polynomials import atom_poly, parts_of, poly


@dataclass(frozen=True, slots=True)
class Quotient:
    """``over`` divided by ``under``, which is taken to be positive.

    That ``//`` rounds down makes no difference where integers are added to it, and the sum is compared with an integer.
    """

    over: Number
    under: Number = 1

    def __add__(self, other: Quotient) -> Quotient:
        if self.under == other.under:  # mostly 1
            return Quotient(self.over + other.over, self.under)
        return Quotient(self.over * other.under + other.over * self.under, self.under * other.under)

    def __sub__(self, other: Quotient) -> Quotient:
        return self + Quotient(-other.over, other.under)

    def __mul__(self, other: Quotient) -> Quotient:
        return Quotient(self.over * other.over, self.under * other.under)

    def __floordiv__(self, other: Quotient) -> Quotient:
        over, under = self.over * other.under, self.under * other.over
        if under == 0:
            raise NotOnHost
        sign = -1 if isinstance(under, int) and under < 0 else 1
        return Quotient(over * sign, under * sign)

    def mentions(self, var: Given) -> bool:
        return any(var in product for product, _ in parts_of(self.over))

    def rises(self, var: Given) -> bool:
        """Whether it rises with the loop variable, where everything else is positive: a guess, if it is no linear function."""
        return sum(factor for product, factor in parts_of(self.over) if var in product) > 0

    def put(self, var: Given, value: Quotient) -> Quotient:
        """The same with ``value`` in place of ``var``."""
        over = _put(self.over, var, value)
        return over if self.under == 1 else over // _put(self.under, var, value)


def _put(number: Number, var: Given, value: Quotient) -> Quotient:
    parts = parts_of(number)
    total = Quotient(poly({product: factor for product, factor in parts if var not in product}))
    for product, factor in parts:
        if var in product:
            rest: tuple[Atom, ...] = tuple(atom for atom in product if atom != var)
            part = Quotient(poly({rest: factor}))
            for _ in range(len(product) - len(rest)):
                part *= value
            total += part
    return total


def variable(name: str) -> Given:
    """The loop variable of this name."""
    return Given(name, "variable")


def quotient_of(e: ir.Expr) -> Quotient:
    """``e`` without regard to its width."""
    match e:
        case ir.Const(value=value, type=t) if not t.is_float:
            return Quotient(int(value))
        case ir.VarRead(var=var):
            return Quotient(atom_poly(variable(var.name)))
        case ir.ParamRead(name=name, type=t) if not t.is_float:
            return Quotient(atom_poly(Given(name)))
        case ir.ShapeOf(array=array, axis=axis):
            return Quotient(atom_poly(Given(array, "extent", axis)))
        case ir.Cast(operand=operand, type=t) if not t.is_float and not operand.type.is_float and t.bits > 1:
            return quotient_of(operand)
        case ir.Unary(op=ir.UnOp.NEG, operand=operand):
            return Quotient(0) - quotient_of(operand)
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t) if op in _OPERATIONS and not t.is_float:
            return _OPERATIONS[op](quotient_of(lhs), quotient_of(rhs))
        case _:
            raise NotOnHost


_OPERATIONS: Final[dict[ir.BinOp, Callable[[Quotient, Quotient], Quotient]]] = {
    ir.BinOp.ADD: add, ir.BinOp.SUB: sub, ir.BinOp.MUL: mul, ir.BinOp.FLOORDIV: floordiv,
}  # fmt: skip
