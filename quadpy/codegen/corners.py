"""The iterations of nested loops that seem to have the largest, or the smallest, value of an index.

Each one takes place if its loops run at all.  Whether its value is the extreme one is a guess: if the guess is wrong, an
index that leaves its array is not found before the launch, but nothing is found that is not so.

The host suspects that an index is outside by quotients of polynomials.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from operator import add, floordiv, mul, sub
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from quadpy.codegen.extent import NotOnHost
from quadpy.core.dtypes import i64
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, converted, maximum, minimum
from quadpy.ir.index.numbers import Atom, Given, Number
from quadpy.ir.index.polynomials import atom_poly, parts_of, poly
from quadpy.ir.walk import map_children, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

_MOST: Final = 8
"""Choices between operands of ``min`` and ``max`` in one index."""


class Loop(NamedTuple):
    """``whole`` says that no jump ends it early, so that its last iteration takes place too."""

    var: ir.Var
    start: ir.Expr
    stop: ir.Expr
    step: ir.Expr
    whole: bool


@dataclass(frozen=True, slots=True)
class Corner:
    """One iteration: the ``index`` there, and the ``values`` of loop variables, from the innermost loop on.

    ``slope`` is how the index depends on the loops that are still to be decided, ``estimate`` what it comes to at most (or
    at least).
    """

    index: ir.Expr
    values: tuple[tuple[str, ir.Expr], ...]
    slope: Quotient
    estimate: Quotient

    def beyond(self, extent: Number) -> Number:
        """What is not negative if the index is ``extent`` or more."""
        return self.estimate.over - extent * self.estimate.under

    def at(self, var: str, value: ir.Expr, slope: Quotient, estimate: Quotient) -> Corner:
        """Where the loop variable has that value, which is taken for ``slope`` and ``estimate``."""
        return Corner(
            index=put(self.index, {var: value}),
            values=(*self.values, (var, value)),
            slope=self.slope.put(variable(var), slope),
            estimate=self.estimate.put(variable(var), estimate),
        )

    def there(self, e: ir.Expr) -> ir.Expr:
        """``e`` in this iteration."""
        for var, value in self.values:
            e = put(e, {var: value})
        return e


def corners_of(index: ir.Expr, loops: tuple[Loop, ...], *, low: bool) -> list[Corner]:
    """The corners of the smallest, or the largest, value of ``index``; NotOnHost if it is made of something else."""
    corners = [Corner(index, (), *pair) for pair in _quotients(index, loops, low=low, test=low)]
    for k in reversed(range(len(loops))):
        corners = [each for corner in corners for each in _decided(corner, loops[k], loops[:k], low=low)]
    return corners


def _decided(corner: Corner, loop: Loop, outer: tuple[Loop, ...], *, low: bool) -> Iterator[Corner]:
    """With the first or the last iteration of ``loop``; with both, where its step is known only at run time."""
    name, moves = loop.var.name, corner.slope.mentions(variable(loop.var.name))
    step = int(loop.step.value) if isinstance(loop.step, ir.Const) else None
    if step == 0:
        raise NotOnHost
    if not moves and loop.whole and step in (1, -1) and (turn := _turn(corner.index, loop, low=low)):
        yield corner.at(name, turn, corner.slope, corner.estimate)  # neither has the variable
        return
    upward = corner.slope.rises(variable(name)) is not low
    to_last = moves and loop.whole
    if not to_last or step is None or (step > 0) is not upward:
        for pair in _quotients(loop.start, outer, low=not upward, test=low):
            yield corner.at(name, loop.start, *pair)
    if to_last and (step is None or (step > 0) is upward):
        end = loop.stop - (1 if upward else -1)
        for pair in _quotients(end, outer, low=not upward, test=low):
            yield corner.at(name, _last(loop, step), *pair)


def _quotients(e: ir.Expr, loops: tuple[Loop, ...], *, low: bool, test: bool) -> Iterator[tuple[Quotient, Quotient]]:
    names = {loop.var.name for loop in loops}
    for slope, estimate in _choices(e, names, low=low, test=test):
        yield quotient_of(slope), quotient_of(estimate)


def _choices(e: ir.Expr, names: set[str], *, low: bool, test: bool) -> list[tuple[ir.Expr, ir.Expr]]:
    """``e`` with an operand for each ``min`` and ``max``: the slope, and the estimate at most (or at least).

    ``max(a, b)`` is beyond a limit if one of both is, ``min(a, b)`` if both are.  Of these, the one without loop variables
    is tested: in ``min(i, n - 1)`` it was written as the limit.  ``test`` tells which end of the whole index is looked for; a
    quotient is subtracted from it where ``low`` is not the same, and then rounded up.
    """
    match e:
        case ir.Binary(op=ir.BinOp.MIN | ir.BinOp.MAX as op, lhs=lhs, rhs=rhs):
            left, right = _choices(lhs, names, low=low, test=test), _choices(rhs, names, low=low, test=test)
            if (op is ir.BinOp.MAX) is not low:
                found = left + right
            else:
                moving, fixed = (left, right) if _reads(lhs, names) else (right, left)
                found = [(slope, estimate) for slope, _ in moving for _, estimate in fixed]
        case ir.Binary(op=ir.BinOp.MOD, rhs=rhs, type=t):
            value: ir.Expr = At(e.span).const(0, t) if low else rhs - 1
            found = [(value, value)]
        case ir.Binary(op=op, lhs=lhs, rhs=rhs):
            scaled = op in (ir.BinOp.MUL, ir.BinOp.FLOORDIV)
            turned = op in (ir.BinOp.SUB, ir.BinOp.FLOORDIV) or (scaled and _is_negative(lhs))
            left = _choices(lhs, names, low=low is not (scaled and _is_negative(rhs)), test=test)
            right = _choices(rhs, names, low=low is not turned, test=test)
            up = op is ir.BinOp.FLOORDIV and low is not test
            found = [
                (replace(e, lhs=a, rhs=b), replace(e, lhs=_padded(c, d) if up else c, rhs=d))
                for (a, c), (b, d) in itertools.product(left, right)
            ]
        case ir.Unary(op=op, operand=operand):
            inner = _choices(operand, names, low=low is not (op is ir.UnOp.NEG), test=test)
            found = [(replace(e, operand=a), replace(e, operand=b)) for a, b in inner]
        case ir.Cast(operand=operand):
            found = [
                (replace(e, operand=a), replace(e, operand=b)) for a, b in _choices(operand, names, low=low, test=test)
            ]
        case _:
            found = [(e, e)]
    if len(found) > _MOST:
        raise NotOnHost
    return found


def _padded(over: ir.Expr, under: ir.Expr) -> ir.Expr:
    """``over - under + 1``, which turns ``over // under`` into the quotient that is rounded up, less 1."""
    return over - under + (-1 if _is_negative(under) else 1)


def _is_negative(e: ir.Expr) -> bool:
    return isinstance(e, ir.Const) and e.value < 0


def _reads(e: ir.Expr, names: Container[str]) -> bool:
    return any(isinstance(n, ir.VarRead) and n.var.name in names for n in walk(e))


def put(e: ir.Expr, values: Mapping[str, ir.Expr]) -> ir.Expr:
    """``e`` with expressions in place of variables."""
    if not _reads(e, values):
        return e

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.VarRead) and node.var.name in values:
            return values[node.var.name]
        return map_children(node, visit)

    return cast("ir.Expr", visit(e))


# ------------------------------------------------------------- iterations that take place


def _last(loop: Loop, step: int | None) -> ir.Expr:
    """The loop variable in the last iteration, if there is one."""
    if step in (1, -1):
        return loop.stop - loop.step
    at, (start, stop, by) = At(loop.stop.span), (converted(e, i64) for e in (loop.start, loop.stop, loop.step))
    sign = maximum(at.const(-1, i64), minimum(at.const(1, i64), by))
    return converted(start + (stop - start - sign) // by * by, loop.var.type)


def _turn(index: ir.Expr, loop: Loop, *, low: bool) -> ir.Expr | None:
    """Where ``(i + c) % n`` in ``index`` is n - 1 for the last time, or 0 for the first time; None without such a part.

    Where it never is, an iteration all the same: each is between the first one and the last.
    """
    for n in walk(index):
        if not isinstance(n, ir.Binary) or n.op is not ir.BinOp.MOD or not _reads(n, {loop.var.name}):
            continue
        if {factor for product, factor in parts_of(quotient_of(n.lhs).over) if variable(loop.var.name) in product} != {
            1
        }:
            continue
        ends = [loop.start, _last(loop, int(cast("ir.Const", loop.step).value))]
        bottom, top = ends if cast("ir.Const", loop.step).value > 0 else ends[::-1]
        there = put(n.lhs, {loop.var.name: bottom if low else top})
        away = converted((-there if low else there + 1) % n.rhs, loop.var.type)
        return minimum(top, maximum(bottom, bottom + away if low else top - away))
    return None


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
        """Whether it rises with the loop variable if all other factors are positive; a guess if it is not linear."""
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
