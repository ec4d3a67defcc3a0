"""Loops as counters."""

from __future__ import annotations

from quadpy.ir import nodes as ir
from quadpy.ir.footprints.affine import (
    Bounded,
    Counter,
    Entered,
    Form,
    Guards,
    Loop,
    Maybe,
    constant_form,
    counter_form,
    fixed,
)
from quadpy.ir.footprints.expressions import Known, Reader
from quadpy.ir.footprints.forms import type_bounds
from quadpy.ir.footprints.numbers import ONE, ZERO, Number, TooComplex, made, number, quotient

__all__ = ["enter_loop"]


def enter_loop(reader: Reader, axis: ir.Axis | ir.For, known: Known) -> tuple[Form | None, Number]:
    """Binds the loop variable of ``axis``: ``known`` is then its body.

    The number of the iteration, from 0, and how many there are; None where their number differs, or the host cannot know it.
    """
    start, stop, step = (reader.index(e, known) for e in (axis.start, axis.stop, axis.step))
    try:
        counter, value, count = _counted(reader, axis.var, start, stop, step)
    except TooComplex:
        counter, value, count = _unknown(reader, axis.var)
    needs = start.needs | stop.needs | step.needs
    known.guards = Guards(known.guards, Entered(counter, needs))
    reader.lets[axis.var] = value.needing(*needs)
    if count is None:
        known.guards = Guards(known.guards, Maybe())
        return None, ZERO
    assert isinstance(counter.origin, Loop)
    return counter_form(counter) - fixed(counter.origin.low), count


def _counted(reader: Reader, var: ir.Var, start: Form, stop: Form, step: Form) -> tuple[Counter, Form, Number | None]:
    """The counter, the loop variable, and the number of iterations: None where it is not the same for all around."""
    length, by = (stop - start).bare, step.constant.constant
    if step.terms or by == 0:
        return _unknown(reader, var)
    if length.terms:
        return _varying(reader, var, start, stop, by) if by else _unknown(reader, var)
    if by == 1 and not start.terms:
        counter = reader.counter(var.name, Loop(start.constant, stop.constant - ONE))
        return counter, counter_form(counter), length.constant
    if by:
        distance = length.constant if by > 0 else -length.constant
        count = quotient(distance + number(abs(by) - 1), number(abs(by)))
    elif start.terms:
        return _unknown(reader, var)
    else:
        count = made("count", start.constant, stop.constant, step.constant)
    counter = reader.counter(var.name, Loop(ZERO, count - ONE))
    return counter, start.bare + counter_form(counter).times(step.constant), count


def _varying(reader: Reader, var: ir.Var, start: Form, stop: Form, by: int) -> tuple[Counter, Form, None]:
    """Of a loop whose length depends on the iterations around it: all values that any of them has."""
    one = constant_form(1)
    first, last = (start, stop - one) if by > 0 else (stop + one, start)
    counter = reader.between(var.name, first.bare, last.bare)
    return counter, counter_form(counter), None


def _unknown(reader: Reader, var: ir.Var) -> tuple[Counter, Form, None]:
    counter = reader.counter(var.name, Bounded(*type_bounds(var.type)))
    return counter, counter_form(counter), None
