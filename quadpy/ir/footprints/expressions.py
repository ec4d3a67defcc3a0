"""Expressions of the IR as forms and conditions."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import field
from itertools import product
from typing import Final

from quadpy.dtypes import Scalar, bounds_of
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.affine import (
    AtLeastZero,
    Bounded,
    Chosen,
    Condition,
    Digit,
    Every,
    Form,
    Guards,
    Limited,
    Maybe,
    Need,
    NotZero,
    Some,
    constant_form,
    counter_form,
    fixed,
)
from quadpy.ir.footprints.forms import Forms, Part
from quadpy.ir.footprints.guards import assume, denied, equals, is_certain, is_impossible, needs_in, truth_of
from quadpy.ir.footprints.numbers import Given, TooComplex, given, made, number, select
from quadpy.light import dataclass

__all__ = ["Known", "Reader"]

_DEEPEST: Final = 200
"""Deeper expressions are not analysed."""


@dataclass(slots=True)
class Known:
    """The values of variables at one point of an iteration, where ``guards`` hold; None if control never gets there."""

    guards: Guards | None = None
    values: dict[ir.Var, Form | Condition] = field(default_factory=dict)
    is_live: bool = True

    def fork(self, condition: Condition | None = None) -> Known:
        """A copy, in which ``condition`` holds."""
        guards = self.guards if condition is None else assume(self.guards, condition)
        return Known(guards, dict(self.values), self.is_live)


class Reader(Forms):
    """Gives integers their forms, and truth values their conditions.

    ``mutable`` are the variables that are 0 at first; ``linear`` is the number of the iteration, in blocks of ``block_dim``.
    """

    def __init__(self, mutable: Container[ir.Var] = ()) -> None:
        super().__init__()
        self.mutable = mutable
        self.lets: dict[ir.Var, Form | Condition] = {}
        self.linear: Form | None = None
        self.block_dim: int | None = None
        self._depth = 0

    def anything(self, type: Scalar) -> Form | Condition:
        """An unknown value of ``type``, or an unknown truth value."""
        return self.unknown(type) if _is_whole(type) else Maybe()

    def first(self, type: Scalar) -> Form | Condition:
        """The value of a mutable variable before it is set."""
        return constant_form(0) if _is_whole(type) else Maybe()

    def knows(self, var: ir.Var, known: Known) -> bool:
        """Whether ``var`` is set at this point."""
        return var in known.values or var in self.lets or var in self.mutable

    def value(self, e: ir.Expr, known: Known) -> Form | Condition:
        """The integer or truth value ``e``; floats are unknown."""
        if _is_whole(e.type):
            return self.form(e, known)
        return self.condition(e, known) if e.type.bits == 1 else Maybe()

    def form(self, e: ir.Expr, known: Known) -> Form:
        """The integer ``e``."""
        self._depth += 1
        try:
            return self._form(e, known) if self._depth < _DEEPEST else self.unknown(e.type)
        except TooComplex:
            return self.unknown(e.type)
        finally:
            self._depth -= 1

    def _form(self, e: ir.Expr, known: Known) -> Form:
        match e:
            case ir.Const(value=value):
                return constant_form(int(value))
            case ir.ParamRead(name=name):
                return fixed(given(Given(name)))
            case ir.ShapeOf(array=array, axis=axis):
                return fixed(given(Given(array, "extent", axis)))
            case ir.VarRead(var=var):
                found = known.values.get(var) or self.lets.get(var)
                if found is None and var in self.mutable:
                    return constant_form(0)
                return found if isinstance(found, Form) else self.unknown(e.type)
            case ir.ThreadIndex() | ir.BlockIndex() if self.linear is not None and self.block_dim:
                part: Part = "remainder" if isinstance(e, ir.ThreadIndex) else "quotient"
                return self.digit(self.linear, number(self.block_dim), part)
            case ir.Cast(operand=operand, type=type) | ir.BitCast(operand=operand, type=type) if _is_whole(
                operand.type
            ):
                return self._cast(self.index(operand, known), operand.type, type)
            case ir.Unary(op=ir.UnOp.NEG, operand=operand):
                return self._ring(constant_form(0) - self.form(operand, known), e.type)
            case ir.Unary(op=ir.UnOp.NOT, operand=operand) if e.type.is_signed:
                return self._ring(constant_form(-1) - self.form(operand, known), e.type)
            case ir.Unary(op=ir.UnOp.ABS, operand=operand) if e.type.is_signed:
                return self._magnitude(self.index(operand, known), e.type, known)
            case ir.Select(cond=cond, then=then, orelse=orelse):
                return self._select(self.condition(cond, known), then, orelse, known)
            case ir.Binary():
                return self._binary(e, known)
            case _:
                return self.unknown(e.type)

    def _select(self, condition: Condition, then: ir.Expr, orelse: ir.Expr, known: Known) -> Form:
        chosen, other = known.fork(condition), known.fork(denied(condition))
        a, b = self._within(self.form(then, chosen), then.type), self._within(self.form(orelse, other), orelse.type)
        if a == b or is_certain(condition):
            return a
        if is_impossible(condition):
            return b
        if not a.terms and not b.terms and (truth := truth_of(condition)) is not None:
            return fixed(select(truth, a.constant, b.constant)).needing(*a.needs, *b.needs, *needs_in(condition))
        return self.chosen(((a, chosen.guards), (b, other.guards)))

    def _magnitude(self, form: Form, type: Scalar, known: Known) -> Form:
        negated = self._within(constant_form(0) - form, type)
        is_natural = AtLeastZero(form)
        if is_certain(is_natural):
            return form
        if is_impossible(is_natural):
            return negated
        if not form.terms:
            return fixed(made("abs", form.constant)).needing(*form.needs, *negated.needs)
        natural, negative = known.fork(is_natural), known.fork(denied(is_natural))
        return self.chosen(((form, natural.guards), (negated, negative.guards)))

    def _cast(self, form: Form, before: Scalar, after: Scalar) -> Form:
        (least, most), (low, last) = bounds_of(before), bounds_of(after)
        return form if low <= least and most <= last else form.needing(*_open(Need(form.bare, low, last)))

    def _ring(self, form: Form, type: Scalar) -> Form:
        """A sum or product modulo the range of ``type``: it has to fit into the range only where it is used."""
        return form if not _has_unknown(form) else self.unknown(type, form.bare)

    def _within(self, form: Form, type: Scalar) -> Form:
        """``form``, which must be a value of ``type`` for later uses."""
        return form if _is_plain(form) else self.typed(form, type)

    def typed(self, form: Form, type: Scalar) -> Form:
        """``form`` as what a variable of ``type`` holds."""
        return form.needing(*_open(Need(form.bare, *bounds_of(type))))

    def index(self, e: ir.Expr, known: Known) -> Form:
        """An index, or the bound of a loop, which must not wrap."""
        return self._within(_recombined(self.form(e, known)), e.type)

    def _binary(self, e: ir.Binary, known: Known) -> Form:
        a, b, op = self.form(e.lhs, known), self.form(e.rhs, known), e.op
        match op:
            case ir.BinOp.ADD:
                return self._ring(a + b, e.type)
            case ir.BinOp.SUB:
                return self._ring(a - b, e.type)
            case ir.BinOp.MUL if not b.terms:
                return self._ring(a.times(b.constant).needing(*b.needs), e.type)
            case ir.BinOp.MUL if not a.terms:
                return self._ring(b.times(a.constant).needing(*a.needs), e.type)
            case ir.BinOp.MIN | ir.BinOp.MAX:
                return self.limited(op, self._within(a, e.type), self._within(b, e.type), e.type)
        if b.terms:
            return self.unknown(e.type)
        a, by = self._within(a, e.type), b.constant
        match op:
            case ir.BinOp.SHL if by.constant is not None and 0 <= by.constant < e.type.bits:
                return self._ring(a.times(number(1 << by.constant)), e.type)
            case ir.BinOp.SHR | ir.BinOp.USHR if by.constant is not None and 0 <= by.constant < e.type.bits:
                return self._divided(a, constant_form(1 << by.constant), e, "quotient", natural=op is ir.BinOp.USHR)
            case ir.BinOp.AND if by.constant is not None and by.constant > 0 and by.constant & (by.constant + 1) == 0:
                return self.digit(a, number(by.constant + 1), "remainder")
            case ir.BinOp.FLOORDIV | ir.BinOp.RAWDIV:
                return self._divided(a, b, e, "quotient", natural=op is ir.BinOp.RAWDIV)
            case ir.BinOp.MOD | ir.BinOp.RAWMOD:
                return self._divided(a, b, e, "remainder", natural=op is ir.BinOp.RAWMOD)
            case _:
                return self.unknown(e.type)

    def _divided(self, a: Form, by: Form, e: ir.Binary, part: Part, *, natural: bool) -> Form:
        """``natural`` says that the kernel rounds as it should only where ``a`` is not negative."""
        needs = [Need(by.bare, 1, e.type.max_int)] + [Need(a.bare, 0, e.type.max_int)] * natural
        return self.digit(a, by.constant, part).needing(*_open(*needs), *by.needs)

    # ------------------------------------------------------------------ conditions

    def condition(self, e: ir.Expr, known: Known) -> Condition:
        """The truth value ``e``."""
        match e:
            case ir.Const(value=value):
                return AtLeastZero(constant_form(0 if value else -1))
            case ir.VarRead(var=var):
                found = known.values.get(var) or self.lets.get(var)
                return Maybe() if found is None or isinstance(found, Form) else found
            case ir.Unary(op=ir.UnOp.NOT, operand=operand):
                return denied(self.condition(operand, known))
            case ir.Binary(op=ir.BinOp.AND, lhs=lhs, rhs=rhs):
                return Every((self.condition(lhs, known), self.condition(rhs, known)))
            case ir.Binary(op=ir.BinOp.OR, lhs=lhs, rhs=rhs):
                return Some((self.condition(lhs, known), self.condition(rhs, known)))
            case ir.ParamRead(name=name):
                return NotZero(fixed(given(Given(name))))
            case ir.Compare(lhs=lhs) if _is_whole(lhs.type):
                return self._comparison(e, known)
            case ir.Cast(operand=operand) if _is_whole(operand.type):
                return NotZero(self.index(operand, known))
            case _:
                return Maybe()

    def _comparison(self, e: ir.Compare, known: Known) -> Condition:
        a, b = self.index(e.lhs, known), self.index(e.rhs, known)
        one = constant_form(1)
        match e.op:
            case ir.CmpOp.EQ:
                return equals(a - b)
            case ir.CmpOp.NE:
                return NotZero(a - b)
            case ir.CmpOp.LT:
                return AtLeastZero(b - a - one)
            case ir.CmpOp.LE:
                return AtLeastZero(b - a)
            case ir.CmpOp.GT:
                return AtLeastZero(a - b - one)
            case ir.CmpOp.GE:
                return AtLeastZero(a - b)


def _is_whole(type: Scalar) -> bool:
    return not type.is_float and type.bits > 1


def _open(*needs: Need) -> tuple[Need, ...]:
    """Those of ``needs`` that are not met at every launch."""
    return tuple(need for need in needs if not _is_met(need))


def _is_met(need: Need) -> bool:
    value = need.form.constant.constant
    return not need.form.terms and value is not None and need.low <= value <= need.last


def _is_plain(form: Form) -> bool:
    """Whether it is just a loop variable or an argument: these are always values of their types."""
    if form.constant.constant == 0 and len(form.terms) == 1:
        ((counter, factor),) = form.terms
        return factor.constant == 1 and not isinstance(counter.origin, (Digit, Limited, Chosen))
    terms = form.constant.terms
    return (
        not form.terms
        and len(terms) == 1
        and terms[0][1] == 1
        and len(terms[0][0]) == 1
        and isinstance(terms[0][0][0], Given)
    )


def _has_unknown(form: Form) -> bool:
    return any(isinstance(counter.origin, Bounded) for counter in form.counters) and (
        len(form.terms) > 1 or form.terms[0][1].constant != 1 or form.constant.constant != 0
    )


def _recombined(form: Form) -> Form:
    """``form`` with ``x`` in place of ``x // n * n + x % n``."""
    for (high, factor), (low, unit) in product(form.terms, form.terms):
        match high.origin, low.origin:
            case Digit(part="quotient") as a, Digit(part="remainder") as b if a.form == b.form:
                if a.divisor == b.divisor and factor == unit * a.divisor:
                    parts = counter_form(high).times(factor) + counter_form(low).times(unit)
                    return _recombined(form - parts + a.form.times(unit))
            case _:
                pass
    return form
