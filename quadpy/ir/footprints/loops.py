"""Loops as counters."""

from __future__ import annotations

from collections import Counter as Times
from collections.abc import Container, Sequence

from quadpy.core.dtypes import bounds_of
from quadpy.ir import nodes as ir
from quadpy.ir.index import forms as ix
from quadpy.ir.index.numbers import Number, TooComplex, made, quotient
from quadpy.ir.index.reader import Known, Reader
from quadpy.ir.walk import walk


def enter_loop(reader: Reader, axis: ir.Axis | ir.For, known: Known) -> tuple[ix.Form | None, Number]:
    """Binds the loop variable of ``axis``: ``known`` is then its body.

    The number of the iteration, from 0, and how many there are; None where their number differs, or the host cannot know it.
    """
    start, stop, step = (reader.index(e, known) for e in (axis.start, axis.stop, axis.step))
    try:
        counter, value, count = _counted(reader, axis.var, start, stop, step)
    except TooComplex:
        counter, value, count = _unknown(reader, axis.var)
    needs = start.needs | stop.needs | step.needs
    known.guards = ix.Guards(known.guards, ix.Entered(counter, needs))
    reader.lets[axis.var] = value.needing(*needs)
    if count is None:
        known.guards = ix.Guards(known.guards, ix.Maybe())
        return None, 0
    assert isinstance(counter.origin, ix.Loop)
    return ix.counter_form(counter) - counter.origin.low, count


def _counted(
    reader: Reader, var: ir.Var, start: ix.Form, stop: ix.Form, step: ix.Form
) -> tuple[ix.Counter, ix.Form, Number | None]:
    """The counter, the loop variable, and the number of iterations: None if it is not the same for all around."""
    length, by = (stop - start).bare, step.constant
    if step.terms or by == 0:
        return _unknown(reader, var)
    if length.terms:
        return _varying(reader, var, start, stop, by) if isinstance(by, int) else _unknown(reader, var)
    if by == 1 and not start.terms:
        counter = reader.counter(var.name, ix.Loop(start.constant, stop.constant - 1))
        return counter, ix.counter_form(counter), length.constant
    if isinstance(by, int):
        distance = length.constant if by > 0 else -length.constant
        count = quotient(distance + abs(by) - 1, abs(by))
    elif start.terms:
        return _unknown(reader, var)
    else:
        count = made("count", start.constant, stop.constant, step.constant)
    counter = reader.counter(var.name, ix.Loop(0, count - 1))
    return counter, start.bare + ix.counter_form(counter) * step.constant, count


def _varying(reader: Reader, var: ir.Var, start: ix.Form, stop: ix.Form, by: int) -> tuple[ix.Counter, ix.Form, None]:
    """The same for a loop whose length depends on the iterations around it: all values that occur in any of them."""
    first, last = (start, stop - 1) if by > 0 else (stop + 1, start)
    counter = reader.between(var.name, first.bare, last.bare)
    return counter, ix.counter_form(counter), None


def _unknown(reader: Reader, var: ir.Var) -> tuple[ix.Counter, ix.Form, None]:
    counter = reader.counter(var.name, ix.Bounded(*bounds_of(var.type)))
    return counter, ix.counter_form(counter), None


def remembered(reader: Reader, bodies: Sequence[ir.Block], known: Known, inside: Known) -> dict[ir.Var, ix.Form]:
    """The variables that a loop sets independently of earlier turns (``best = k``), at each turn and after the loop.

    known, inside  before the loop, and where its body begins
    """
    nodes = [node for body in bodies for node in walk(body)]
    lets = {node.var: node.value for node in nodes if isinstance(node, ir.Let)}
    sets: dict[ir.Var, list[ir.Expr]] = {}
    for node in nodes:
        if isinstance(node, ir.Assign):
            sets.setdefault(node.var, []).append(node.value)

    def is_free(e: ir.Expr) -> bool:
        reads = [node.var for node in walk(e) if isinstance(node, ir.VarRead)]
        return all(
            is_free(lets[var]) if var in lets else reader.knows(var, inside) and var not in sets for var in reads
        )

    def value(e: ir.Expr) -> ix.Form:
        for node in walk(e):
            if isinstance(node, ir.VarRead) and node.var in lets:
                reader.lets[node.var] = value(lets[node.var])
        return reader.index(e, inside)

    found = {}
    for var, values in sets.items():
        before = known.values.get(var, reader.first(var.type))
        if isinstance(before, ix.Form) and all(map(is_free, values)):
            forms = [(before, known.guards), *((value(e), inside.guards) for e in values)]
            found[var] = reader.chosen(tuple(forms))
    return found


def added(body: ir.Block, known: Known, *, but: Container[ir.Var]) -> dict[ir.Var, tuple[ix.Form, int]]:
    """The variables, except ``but``, to which each turn adds the same: their first values, and the increments."""
    found = {}
    times = Times(node.var for node in walk(body) if isinstance(node, ir.Assign))
    for stmt in body.stmts:
        match stmt:
            case ir.Assign(
                var=var, value=ir.Binary(op=ir.BinOp.ADD, lhs=ir.VarRead(var=old), rhs=ir.Const(value=by))
            ) if old == var and times[var] == 1 and var not in but and not var.type.is_float:
                before = known.values.get(var, ix.fixed(0))
                if isinstance(before, ix.Form):
                    found[var] = before, int(by)
            case _ if any(isinstance(node, ir.Continue) for node in walk(stmt)):
                break  # a turn may end before the next statement
            case _:
                pass
    return found


def rising_in(stmt: ir.While) -> dict[ir.Var, int]:
    """The variables that ``stmt`` only adds a positive constant to, once a turn at most, and the constants."""
    nodes = [node for block in (stmt.head, stmt.body) for node in walk(block)]
    times = Times(node.var for node in nodes if isinstance(node, ir.Assign))
    repeated = {
        node.var
        for loop in nodes
        if isinstance(loop, (ir.For, ir.While))
        for node in walk(loop)
        if isinstance(node, ir.Assign)
    }
    found = {}
    for node in nodes:
        match node:
            case ir.Assign(
                var=var, value=ir.Binary(op=ir.BinOp.ADD, lhs=ir.VarRead(var=old), rhs=ir.Const(value=by))
            ) if old == var and times[var] == 1 and var not in repeated and not var.type.is_float and by > 0:
                found[var] = int(by)
            case _:
                pass
    return found
