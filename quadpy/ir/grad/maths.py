"""Makes the expressions and variables of derivatives, and collects the library functions that they call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from quadpy.core.dtypes import Scalar, f32, u1
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.types import Array

Library: TypeAlias = Callable[[str, tuple[Scalar, ...]], Iterable[ir.Function]]
"""The math library: the function of this name for operands of these types, after those that it calls."""


class Names:
    """Makes variables whose names no trace and no other pass gives."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def fresh(self, like: str, type: Scalar) -> ir.Var:
        return ir.Var(f"{like.partition('.')[0]}.g{next(self._numbers)}", type)


class Functions:
    """The functions of a kernel, with those that its derivative calls in addition."""

    def __init__(self, kernel: ir.Kernel, library: Library) -> None:
        self.library, self.all = library, {function.name: function for function in kernel.functions}

    def call(self, name: str, args: tuple[ir.Expr, ...], span: Span) -> ir.Call:
        *callees, function = self.library(name, tuple(arg.type for arg in args))
        for each in (*callees, function):
            self.all.setdefault(each.name, each)
        return ir.Call(function.name, args, function.results[0], span=span)


def accurate(type: Scalar) -> Scalar:
    """The type in which numbers of ``type`` are summed."""
    return f32 if type.is_float and type.bits < 32 else type


def cast(value: ir.Expr, type: Scalar) -> ir.Expr:
    return value if value.type == type else ir.Cast(value, type, span=value.span)


def uncut(value: ir.Expr) -> ir.Expr:
    """``value`` before it was rounded to the type of an array, in the type in which it is summed."""
    if isinstance(value, ir.Cast) and value.operand.type == accurate(value.type):
        return value.operand
    return cast(value, accurate(value.type))


def constant(value: float, type: Scalar, span: Span) -> ir.Const:
    return ir.Const(float(value) if type.is_float else int(value), type, span=span)


def is_number(e: ir.Expr, value: float) -> bool:
    return isinstance(e, ir.Const) and e.value == value


def zero(type: Scalar, span: Span) -> ir.Const:
    return ir.Const(0.0 if type.is_float else False if type.bits == 1 else 0, type, span=span)


def first_of(types: Mapping[str, Array], array: str, param: str, index: Scalar, span: Span, way: int = 0) -> ir.Element:
    """The derivative of a scalar parameter in ``array``, which has one element: for ``v.2``, the component 2 of that.

    With several directions, the elements are those of each ``way``.
    """
    component = param.rpartition(".")[2]
    number = int(component) if component.isdecimal() else 0
    at = (ir.Const(way, index, span=span),) * types[array].ndim
    return ir.Element(array, at, number, types[array].layout.at(number)[0].scalar, span=span)


def both(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Binary(ir.BinOp.AND, a, b, u1, span=a.span)


class Guard(ir.Select):
    """What an adjoint gives through an operation whose slope may be infinite: 0, ``then``, if the adjoint is 0.

    In its tangent, an adjoint of 0 whose own tangent is not 0 does give something.
    """

    __slots__ = ()

    def plain(self) -> ir.Select:
        return ir.Select(self.cond, self.then, self.orelse, self.type, span=self.span)


@dataclass(frozen=True, slots=True)
class Maths:
    """Arithmetic of one ``type`` at one place of the source."""

    functions: Functions
    type: Scalar
    span: Span

    def number(self, value: float) -> ir.Const:
        return constant(value, self.type, self.span)

    def binary(self, op: ir.BinOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Binary(op, a, b, self.type, span=self.span)

    def add(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return b if is_number(a, 0) else a if is_number(b, 0) else self.binary(ir.BinOp.ADD, a, b)

    def sub(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return a if is_number(b, 0) else self.binary(ir.BinOp.SUB, a, b)

    def mul(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return b if is_number(a, 1) else a if is_number(b, 1) else self.binary(ir.BinOp.MUL, a, b)

    def div(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return a if is_number(b, 1) else self.binary(ir.BinOp.DIV, a, b)

    def neg(self, a: ir.Expr) -> ir.Expr:
        return (
            replace(a, value=-a.value)
            if isinstance(a, ir.Const)
            else ir.Unary(ir.UnOp.NEG, a, self.type, span=self.span)
        )

    def sqrt(self, a: ir.Expr) -> ir.Expr:
        return ir.Unary(ir.UnOp.SQRT, a, self.type, span=self.span)

    def floor(self, a: ir.Expr) -> ir.Expr:
        return ir.Unary(ir.UnOp.FLOOR, a, self.type, span=self.span)

    def trunc(self, a: ir.Expr) -> ir.Expr:
        return ir.Unary(ir.UnOp.TRUNC, a, self.type, span=self.span)

    def compare(self, op: ir.CmpOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Compare(op, a, b, u1, span=self.span)

    def select(self, cond: ir.Expr, then: ir.Expr, orelse: ir.Expr) -> ir.Expr:
        return ir.Select(cond, then, orelse, then.type, span=self.span)

    def only_if(self, cond: ir.Expr, value: ir.Expr) -> ir.Expr:
        return self.select(cond, value, self.number(0))

    def call(self, name: str, *args: ir.Expr) -> ir.Expr:
        return self.functions.call(name, args, self.span)

    def square(self, a: ir.Expr) -> ir.Expr:
        return self.mul(a, a)
