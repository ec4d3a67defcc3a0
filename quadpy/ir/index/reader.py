"""Expressions of the IR as forms and conditions."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import field
from itertools import product
from typing import Final

from quadpy.core.dtypes import Scalar, bounds_of
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.index import forms as ix
from quadpy.ir.index.counters import Forms, Part
from quadpy.ir.index.guards import assume, denied, equals, is_certain, is_impossible, needs_in, truth_of
from quadpy.ir.index.numbers import Given, TooComplex, made, select
from quadpy.ir.index.polynomials import atom_of, atom_poly

_DEEPEST: Final = 200
"""Deeper expressions are not analysed."""


@dataclass(slots=True)
class Known:
    """The values of variables at one point of an iteration, where ``guards`` hold; None if control never gets there."""

    guards: ix.Guards | None = None
    values: dict[ir.Var, ix.Form | ix.Condition] = field(default_factory=dict)
    is_live: bool = True

    def fork(self, condition: ix.Condition | None = None) -> Known:
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
        self.lets: dict[ir.Var, ix.Form | ix.Condition] = {}
        self.linear: ix.Form | None = None
        self.block_dim: int | None = None
        self._depth = 0

    def anything(self, type: Scalar) -> ix.Form | ix.Condition:
        """An unknown value of ``type``, or an unknown truth value."""
        return self.unknown(type) if _is_whole(type) else ix.Maybe()

    def first(self, type: Scalar) -> ix.Form | ix.Condition:
        """The value of a mutable variable before it is set."""
        return ix.fixed(0) if _is_whole(type) else ix.Maybe()

    def knows(self, var: ir.Var, known: Known) -> bool:
        """Whether ``var`` is set at this point."""
        return var in known.values or var in self.lets or var in self.mutable

    def value(self, e: ir.Expr, known: Known) -> ix.Form | ix.Condition:
        """The integer or truth value ``e``; floats are unknown."""
        if _is_whole(e.type):
            return self.form(e, known)
        return self.condition(e, known) if e.type.bits == 1 else ix.Maybe()

    def form(self, e: ir.Expr, known: Known) -> ix.Form:
        """The integer ``e``."""
        self._depth += 1
        try:
            return self._form(e, known) if self._depth < _DEEPEST else self.unknown(e.type)
        except TooComplex:
            return self.unknown(e.type)
        finally:
            self._depth -= 1

    def _form(self, e: ir.Expr, known: Known) -> ix.Form:
        match e:
            case ir.Const(value=value):
                return ix.fixed(int(value))
            case ir.ParamRead(name=name):
                return ix.fixed(atom_poly(Given(name)))
            case ir.ShapeOf(array=array, axis=axis):
                return ix.fixed(atom_poly(Given(array, "extent", axis)))
            case ir.VarRead(var=var):
                found = known.values.get(var) or self.lets.get(var)
                if found is None and var in self.mutable:
                    return ix.fixed(0)
                return found if isinstance(found, ix.Form) else self.unknown(e.type)
            case ir.ThreadIndex() | ir.BlockIndex() if self.linear is not None and self.block_dim:
                part: Part = "remainder" if isinstance(e, ir.ThreadIndex) else "quotient"
                return self.digit(self.linear, self.block_dim, part)
            case ir.Cast(operand=operand, type=type) | ir.BitCast(operand=operand, type=type) if _is_whole(
                operand.type
            ):
                return self._cast(self.index(operand, known), operand.type, type)
            case ir.Unary(op=ir.UnOp.NEG, operand=operand):
                return self._ring(0 - self.form(operand, known), e.type)
            case ir.Unary(op=ir.UnOp.NOT, operand=operand) if e.type.is_signed:
                return self._ring(-1 - self.form(operand, known), e.type)
            case ir.Unary(op=ir.UnOp.ABS, operand=operand) if e.type.is_signed:
                return self._magnitude(self.index(operand, known), e.type, known)
            case ir.Select(cond=cond, then=then, orelse=orelse):
                return self._select(self.condition(cond, known), then, orelse, known)
            case ir.Binary():
                return self._binary(e, known)
            case _:
                return self.unknown(e.type)

    def _select(self, condition: ix.Condition, then: ir.Expr, orelse: ir.Expr, known: Known) -> ix.Form:
        chosen, other = known.fork(condition), known.fork(denied(condition))
        a, b = self._within(self.form(then, chosen), then.type), self._within(self.form(orelse, other), orelse.type)
        if a == b or is_certain(condition):
            return a
        if is_impossible(condition):
            return b
        if not a.terms and not b.terms and (truth := truth_of(condition)) is not None:
            return ix.fixed(select(truth, a.constant, b.constant)).needing(*a.needs, *b.needs, *needs_in(condition))
        return self.chosen(((a, chosen.guards), (b, other.guards)))

    def _magnitude(self, form: ix.Form, type: Scalar, known: Known) -> ix.Form:
        negated = self._within(0 - form, type)
        is_natural = ix.AtLeastZero(form)
        if is_certain(is_natural):
            return form
        if is_impossible(is_natural):
            return negated
        if not form.terms:
            return ix.fixed(made("abs", form.constant)).needing(*form.needs, *negated.needs)
        natural, negative = known.fork(is_natural), known.fork(denied(is_natural))
        return self.chosen(((form, natural.guards), (negated, negative.guards)))

    def _cast(self, form: ix.Form, before: Scalar, after: Scalar) -> ix.Form:
        (least, most), (low, last) = bounds_of(before), bounds_of(after)
        return form if low <= least and most <= last else form.needing(*_open(ix.Need(form.bare, low, last)))

    def _ring(self, form: ix.Form, type: Scalar) -> ix.Form:
        """A sum or product modulo the range of ``type``: it has to fit into the range only where it is used."""
        return form if not _has_unknown(form) else self.unknown(type, form.bare)

    def _within(self, form: ix.Form, type: Scalar) -> ix.Form:
        """``form``, which must be a value of ``type`` for later uses."""
        return form if _is_plain(form) else self.typed(form, type)

    def typed(self, form: ix.Form, type: Scalar) -> ix.Form:
        """``form`` as what a variable of ``type`` holds."""
        return form.needing(*_open(ix.Need(form.bare, *bounds_of(type))))

    def index(self, e: ir.Expr, known: Known) -> ix.Form:
        """An index, or the bound of a loop, which must not wrap."""
        return self._within(_recombined(self.form(e, known)), e.type)

    def _binary(self, e: ir.Binary, known: Known) -> ix.Form:
        a, b, op = self.form(e.lhs, known), self.form(e.rhs, known), e.op
        match op:
            case ir.BinOp.ADD:
                return self._ring(a + b, e.type)
            case ir.BinOp.SUB:
                return self._ring(a - b, e.type)
            case ir.BinOp.MUL if not b.terms:
                return self._ring((a * b.constant).needing(*b.needs), e.type)
            case ir.BinOp.MUL if not a.terms:
                return self._ring((b * a.constant).needing(*a.needs), e.type)
            case ir.BinOp.MIN | ir.BinOp.MAX:
                return self.limited(op, self._within(a, e.type), self._within(b, e.type), e.type)
        if b.terms:
            return self.unknown(e.type)
        a, by = self._within(a, e.type), b.constant
        match op:
            case ir.BinOp.SHL if isinstance(by, int) and 0 <= by < e.type.bits:
                return self._ring(a * (1 << by), e.type)
            case ir.BinOp.SHR | ir.BinOp.USHR if isinstance(by, int) and 0 <= by < e.type.bits:
                return self._divided(a, ix.fixed(1 << by), e, "quotient", natural=op is ir.BinOp.USHR)
            case ir.BinOp.AND if isinstance(by, int) and by > 0 and by & (by + 1) == 0:
                return self.digit(a, by + 1, "remainder")
            case ir.BinOp.FLOORDIV | ir.BinOp.RAWDIV:
                return self._divided(a, b, e, "quotient", natural=op is ir.BinOp.RAWDIV)
            case ir.BinOp.MOD | ir.BinOp.RAWMOD:
                return self._divided(a, b, e, "remainder", natural=op is ir.BinOp.RAWMOD)
            case _:
                return self.unknown(e.type)

    def _divided(self, a: ix.Form, by: ix.Form, e: ir.Binary, part: Part, *, natural: bool) -> ix.Form:
        """``natural`` says that the kernel rounds as it should only where ``a`` is not negative."""
        needs = [ix.Need(by.bare, 1, e.type.max_int)] + [ix.Need(a.bare, 0, e.type.max_int)] * natural
        return self.digit(a, by.constant, part).needing(*_open(*needs), *by.needs)

    # ------------------------------------------------------------------ conditions

    def condition(self, e: ir.Expr, known: Known) -> ix.Condition:
        """The truth value ``e``."""
        match e:
            case ir.Const(value=value):
                return ix.AtLeastZero(ix.fixed(0 if value else -1))
            case ir.VarRead(var=var):
                found = known.values.get(var) or self.lets.get(var)
                return ix.Maybe() if found is None or isinstance(found, ix.Form) else found
            case ir.Unary(op=ir.UnOp.NOT, operand=operand):
                return denied(self.condition(operand, known))
            case ir.Binary(op=ir.BinOp.AND, lhs=lhs, rhs=rhs):
                return ix.Every((self.condition(lhs, known), self.condition(rhs, known)))
            case ir.Binary(op=ir.BinOp.OR, lhs=lhs, rhs=rhs):
                return ix.Some((self.condition(lhs, known), self.condition(rhs, known)))
            case ir.ParamRead(name=name):
                return ix.NotZero(ix.fixed(atom_poly(Given(name))))
            case ir.Compare(lhs=lhs) if _is_whole(lhs.type):
                return self._comparison(e, known)
            case ir.Cast(operand=operand) if _is_whole(operand.type):
                return ix.NotZero(self.index(operand, known))
            case _:
                return ix.Maybe()

    def _comparison(self, e: ir.Compare, known: Known) -> ix.Condition:
        a, b = self.index(e.lhs, known), self.index(e.rhs, known)
        match e.op:
            case ir.CmpOp.EQ:
                return equals(a - b)
            case ir.CmpOp.NE:
                return ix.NotZero(a - b)
            case ir.CmpOp.LT:
                return ix.AtLeastZero(b - a - 1)
            case ir.CmpOp.LE:
                return ix.AtLeastZero(b - a)
            case ir.CmpOp.GT:
                return ix.AtLeastZero(a - b - 1)
            case ir.CmpOp.GE:
                return ix.AtLeastZero(a - b)


def _is_whole(type: Scalar) -> bool:
    return not type.is_float and type.bits > 1


def _open(*needs: ix.Need) -> tuple[ix.Need, ...]:
    """Those of ``needs`` that are not met at every launch."""
    return tuple(need for need in needs if not _is_met(need))


def _is_met(need: ix.Need) -> bool:
    value = need.form.constant
    return not need.form.terms and isinstance(value, int) and need.low <= value <= need.last


def _is_plain(form: ix.Form) -> bool:
    """Whether it is just a loop variable or an argument: these are always values of their types."""
    if form.constant == 0 and len(form.terms) == 1:
        ((counter, factor),) = form.terms
        return factor == 1 and not isinstance(counter.origin, (ix.Digit, ix.Limited, ix.Chosen))
    return not form.terms and isinstance(atom_of(form.constant), Given)


def _has_unknown(form: ix.Form) -> bool:
    return any(isinstance(counter.origin, ix.Bounded) for counter in form.counters) and (
        len(form.terms) > 1 or form.terms[0][1] != 1 or form.constant != 0
    )


def _recombined(form: ix.Form) -> ix.Form:
    """``form`` with ``x`` in place of ``x // n * n + x % n``."""
    for (high, factor), (low, unit) in product(form.terms, form.terms):
        match high.origin, low.origin:
            case ix.Digit(part="quotient") as a, ix.Digit(part="remainder") as b if a.form == b.form:
                if a.divisor == b.divisor and factor == unit * a.divisor:
                    parts = ix.counter_form(high) * factor + ix.counter_form(low) * unit
                    return _recombined(form - parts + a.form * unit)
            case _:
                pass
    return form
