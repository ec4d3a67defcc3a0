"""Copies of iterations in the loop over the elements that they reach."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, Protocol

from quadpy.core.dtypes import Scalar, u1
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, binary, converted, maximum, minimum, select
from quadpy.ir.grad.indices import Linear
from quadpy.ir.grad.inverse import Counter, Inverse, Inverter, Solved, counted
from quadpy.ir.grad.maths import Names, both, is_number, uncut
from quadpy.ir.grad.parts import Visit, renamed


class Position(NamedTuple):
    """The index of the element along an axis: not below any of ``lows``, and below each of ``ends``."""

    var: ir.Var
    lows: tuple[Linear, ...]
    ends: tuple[Linear, ...]


class Bounds(Protocol):
    """What a copy asks the gatherer."""

    inverter: Inverter
    names: Names

    def bounds(self, counter: Counter) -> tuple[Linear, Linear] | None: ...


def not_below(a: Linear, b: Linear) -> bool:
    """Whether ``a`` is certainly not less than ``b``."""
    return isinstance(by := a - b, int) and by >= 0


def goes_up(counter: Counter) -> bool:
    """Whether the step is a number above 0."""
    return isinstance(counter.step, ir.Const) and counter.step.value > 0


class Copy:
    """What the iterations give to ``element`` at the updates ``kept``, which have one index; each component has its sum."""

    def __init__(
        self, gatherer: Bounds, body: ir.Block, kept: Container[int], inverse: Inverse, element: Sequence[Position],
        sums: Mapping[int, ir.Var],
    ) -> None:  # fmt: skip
        self.gatherer, self.body, self.kept, self.inverse = gatherer, body, kept, inverse
        self.inverter, self.element, self.sums = gatherer.inverter, element, sums
        self.at = At(body.span)
        counters = [*self.inverse.every, *(step.counter for step in (*self.inverse.outer, *self.inverse.inner))]
        self.loops = {each.var: gatherer.names.fresh(each.var.name, each.var.type) for each in counters}
        self.new: dict[ir.Var, ir.Expr] = {old: self.at.read(var) for old, var in self.loops.items()}
        for step in self.inverse.outer:
            if not step.wraps:  # as an expression, not a variable: it is affine
                self.new[step.counter.var] = self.value(step)
        self.opened = {each.var for each in self.inverse.every} | {step.counter.var for step in self.inverse.inner}

    def stmts(self) -> list[ir.Stmt]:
        body = renamed(self.body, self.gatherer.names, self.new, self.instead)
        for step in reversed(self.inverse.outer):
            body = list(self.solved(step, body))
        for counter in reversed(self.inverse.every):
            start, stop, by = (self.inverter.spelled(e) or e for e in (counter.start, counter.stop, counter.step))
            body = [self.at.loop(self.loops[counter.var], start, stop, body, by)]
        return body

    def instead(self, stmt: ir.Stmt, visit: Visit) -> Iterable[ir.Stmt] | None:
        match stmt:
            case ir.Atomic(place=ir.Element() as place) if id(stmt) in self.kept:
                var, value = self.sums[place.component], visit(stmt.value)
                more = self.at.assign(var, self.at.read(var) + uncut(value))
                index = {axis: visit(place.index[axis]) for axis in self.inverse.checked}
                hits: list[ir.Expr] = [e.eq(self.wanted(axis, e)) for axis, e in index.items()]
                return [self.at.when(reduce(both, hits), [more])] if hits else [more]
            case ir.For() if (loop := counted(stmt)).var in self.opened:
                inner = visit(loop.body)
                assert isinstance(inner, ir.Block)
                step = next((each for each in self.inverse.inner if each.counter.var == loop.var), None)
                return inner.stmts if step is None else self.turn(step, loop, inner.stmts, visit)
        return None

    def wanted(self, axis: int, like: ir.Expr) -> ir.Expr:
        return converted(self.at.read(self.element[axis].var), like.type)

    def turn(self, step: Solved, loop: ir.For, body: Iterable[ir.Stmt], visit: Visit) -> Iterator[ir.Stmt]:
        """The one turn of a loop inside that reaches the element."""
        var = self.loops[step.counter.var]
        start, stop = visit(loop.start), visit(loop.stop)
        yield self.at.let(var, visit(self.value(step, {})))
        yield from self.where(self.within(self.at.read(var), start, stop, loop.step, self.known(step, loop)), body)

    def value(self, step: Solved, new: Mapping[ir.Var, ir.Expr] | None = None) -> ir.Expr:
        """The solution, where no wrap is around it; with what is new for counters, unless more is given."""
        rest = self.inverter.expr(step.rest, self.at, self.new if new is None else new)
        e = self.at.read(self.element[step.axis].var)
        found: ir.Expr = rest - e if step.factor < 0 else e if is_number(rest, 0) else e - rest
        if step.factor > 0 and isinstance(rest, ir.Const) and rest.value < 0:
            found = e + -int(rest.value)
        if abs(step.factor) != 1:
            found = found // abs(step.factor)
        return converted(found, step.counter.var.type)

    def known(self, step: Solved, loop: Counter) -> tuple[bool, bool]:
        """Whether no element is solved by a number before the first one, or after the last one, of a loop."""
        of, position = self.inverter.indices.of, self.element[step.axis]
        start, stop = of(loop.start), of(loop.stop)
        if abs(step.factor) != 1 or start is None or stop is None:
            return False, False
        lows = [low - step.rest for low in position.lows]
        ends = [end - step.rest for end in position.ends]
        if step.factor < 0:
            lows, ends = [1 - end for end in ends], [1 - low for low in lows]
        return any(not_below(low, start) for low in lows), any(not_below(stop, end) for end in ends)

    def within(
        self, read: ir.Expr, start: ir.Expr, stop: ir.Expr, step: ir.Expr, known: tuple[bool, bool] = (False, False)
    ) -> list[ir.Expr]:
        """What makes ``read`` one of the numbers of its loop, which goes up; ``known`` of its ends need no test."""
        is_natural = is_number(start, 0) and not read.type.is_signed
        found: list[ir.Expr] = [] if known[0] or is_natural else [start <= read]
        found += [] if known[1] and (known[0] or not is_natural) else [read < stop]
        return found if is_number(step, 1) else [*found, ((read - start) % step).eq(0)]

    def where(self, conditions: Sequence[ir.Expr], body: Iterable[ir.Stmt]) -> Iterable[ir.Stmt]:
        """``body`` under one branch, which code generation turns into a mask."""
        if not conditions:
            return body
        match body := tuple(body):
            case (ir.If(cond=cond, then=then, orelse=ir.Block(stmts=())),):
                return self.where([*conditions, cond], then.stmts)
        return [self.at.when(reduce(both, conditions), body)]

    def solved(self, step: Solved, body: list[ir.Stmt]) -> Iterator[ir.Stmt]:
        """``body`` for the numbers of an axis that reach the element."""
        at, axis = self.at, step.counter
        var, type, here = self.loops[axis.var], axis.var.type, self.new[axis.var]
        start, stop, by = (self.inverter.spelled(e) or e for e in (axis.start, axis.stop, axis.step))
        if not step.wraps:
            yield from self.where(self.within(here, start, stop, by, self.known(step, axis)), body)
        elif step.wraps[0].op is ir.BinOp.MOD:
            period = maximum(converted(step.wraps[0].by, type), 1)
            first = self.names("first", type)
            if is_number(by, 1) and self.is_once(axis, step, within=True):
                yield at.let(var, self.value(step) % period)
                yield from self.where(self.within(here, start, stop, by), body)
                return
            yield at.let(first, start + (self.value(step) - start) % period)
            if is_number(by, 1) and self.is_once(axis, step):
                yield at.let(var, at.read(first))
                yield at.when(here < stop, body)
            else:
                turn, count = self.names("turn", type), (stop - start + (period - 1)) // period
                more = [] if is_number(by, 1) else self.within(here, start, stop, by)[-1:]
                inner = self.where([here < stop, *more], body)
                yield at.loop(
                    turn, at.const(0, type), count, [at.let(var, at.read(first) + at.read(turn) * period), *inner]
                )
        else:
            yield from self.clamped(step, start, stop, by, body)

    def names(self, like: str, type: Scalar) -> ir.Var:
        return self.gatherer.names.fresh(like, type)

    def is_once(self, axis: Counter, step: Solved, *, within: bool = False) -> bool:
        """Whether the axis has no more numbers than the period; ``within`` it, if so asked."""
        bounds, period = self.gatherer.bounds(axis), self.inverter.indices.of(step.wraps[0].by)
        if bounds is None or period is None:
            return False
        first, last = bounds
        return not_below(period, last + 1) and not_below(first, 0) if within else not_below(period, last + 1 - first)

    def clamped(
        self, step: Solved, start: ir.Expr, stop: ir.Expr, by: ir.Expr, body: list[ir.Stmt]
    ) -> Iterator[ir.Stmt]:
        """Limits take more than one number to an element only at the limit itself."""
        at, var = self.at, self.loops[step.counter.var]
        e = at.read(self.element[step.axis].var)
        below: ir.Expr = at.const(False, u1)
        above = below
        for op, limit in step.wraps:
            limit = converted(limit, e.type)
            if op is ir.BinOp.MIN:
                above = binary(ir.BinOp.OR, above, limit <= e)
            else:
                below = binary(ir.BinOp.OR, below, e <= limit)
        if step.factor < 0:
            below, above = above, below
        here = self.names("here", var.type)
        yield at.let(here, self.value(step))
        low, high = self.names("low", var.type), self.names("high", var.type)
        last = at.read(here) if abs(step.factor) == 1 else at.read(here) + 1
        yield at.let(low, select(below, start, maximum(at.read(here), start)))
        yield at.let(high, select(above, stop, minimum(last + 1, stop)))
        inner = self.where([] if is_number(by, 1) else self.within(at.read(var), start, stop, by), body)
        yield at.loop(var, at.read(low), at.read(high), inner)
