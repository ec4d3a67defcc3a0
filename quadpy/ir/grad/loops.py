"""Loops on the way back: the state before each turn is found again from states that were kept.

A turn of a loop of n turns is repeated about n/512 times, with 32 kept states of the variables that need it, whatever n is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quadpy.core.dtypes import u1, u64
from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import accurate, cast, is_number, zero
from quadpy.ir.grad.structured import turns_of, unsigned, value_at
from quadpy.ir.grad.values import Env, Values
from quadpy.ir.touches import touched_in
from quadpy.ir.variables import assigned_in

_SLOTS: Final = 16
"""States that each level keeps."""
_LEVELS: Final = 2


class Loop:
    """A sequential loop: writes it for its values, and, with ``back``, what takes it back.

    carried  the variables that it assigns
    count    the type in which turns are counted
    """

    def __init__(self, reverse: Values, loop: ir.For | ir.While, env: Env, out: list[ir.Stmt]) -> None:
        self.reverse, self.loop, self.span, self.names = reverse, loop, loop.span, reverse.names
        self.carried = sorted(assigned_in(loop.body), key=lambda var: var.name)
        self.entry = {var: env.get(var, zero(var.type, self.span)) for var in self.carried}
        self.count = unsigned(loop.var.type) if isinstance(loop, ir.For) else u64
        if isinstance(loop, ir.For):
            start, stop, step = (
                reverse.named(reverse.value(e, env, out), out) for e in (loop.start, loop.stop, loop.step)
            )
            self.fixed = replace(loop, start=start, stop=stop, step=step)
            self.turns: ir.Expr = (
                reverse.named(turns_of(self.fixed), out) if reverse.tape is not None else self.number(0)
            )
        self.env = dict(env)
        self.after = self.forward(out)
        env.update(self.after)
        self.is_active = any(
            reverse.active.has_place(place) and (isinstance(place, ir.Element) or access is not ir.Access.READ)
            for _, place, access in touched_in(loop.body)
        ) or any(var in reverse.active.variables for var in self.carried)

    def number(self, value: int) -> ir.Const:
        return ir.Const(value, self.count, span=self.span)

    def read(self, var: ir.Var) -> ir.VarRead:
        return ir.VarRead(var, span=self.span)

    def binary(self, op: ir.BinOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        if op in (ir.BinOp.ADD, ir.BinOp.SUB) and is_number(b, 0):
            return a
        if op is ir.BinOp.ADD and is_number(a, 0):
            return b
        return ir.Binary(op, a, b, self.count, span=self.span)

    def let(self, e: ir.Expr, like: str, out: list[ir.Stmt]) -> ir.VarRead:
        var = self.names.fresh(like, e.type)
        out.append(ir.Let(var, e, span=self.span))
        return self.read(var)

    # ------------------------------------------------------------------- forward

    def begun(self, state: Mapping[ir.Var, ir.Expr], out: list[ir.Stmt]) -> dict[ir.Var, ir.VarRead]:
        """New variables, which begin with ``state``."""
        new = {var: self.names.fresh(var.name, var.type) for var in self.carried}
        out += [ir.Assign(new[var], state[var], span=self.span) for var in self.carried]
        return {var: self.read(new[var]) for var in self.carried}

    def forward(self, out: list[ir.Stmt]) -> dict[ir.Var, ir.VarRead]:
        """Writes the whole loop; the values afterwards."""
        now, reverse, loop = self.begun(self.entry, out), self.reverse, self.loop
        if isinstance(loop, ir.For):
            var = self.names.fresh(loop.var.name, loop.var.type)
            body = ir.Block(tuple(self.turn(now, self.read(var))), span=loop.body.span)
            out.append(replace(self.fixed, var=var, body=body))
        else:
            counter = self.names.fresh("turns", self.count)
            self.turns = self.read(counter)
            out.append(ir.Assign(counter, self.number(0), span=self.span))
            stmts = self.turn(now, None)
            stmts.append(ir.Assign(counter, self.binary(ir.BinOp.ADD, self.turns, self.number(1)), span=self.span))
            assert isinstance(loop.cond, ir.VarRead)
            out.append(replace(loop, cond=now[loop.cond.var], body=ir.Block(tuple(stmts), span=loop.body.span)))
        if reverse.tape is not None:
            for var in self.carried:
                if var in reverse.active.variables:
                    reverse.adjoints.add(now[var].var)
        return now

    def turn(self, now: Mapping[ir.Var, ir.VarRead], at: ir.Expr | None) -> list[ir.Stmt]:
        """One turn for its values, from ``now`` to ``now``."""
        stmts: list[ir.Stmt] = []
        env = self.inner(now, at)
        self.reverse.repeated(self.loop.body, env, stmts)
        changed = [var for var in self.carried if env[var] != now[var]]
        moved = {now[var].var for var in changed}
        values = {var: self.let(env[var], var.name, stmts) if _var(env[var]) in moved else env[var] for var in changed}
        return [*stmts, *(ir.Assign(now[var].var, values[var], span=self.span) for var in changed)]

    def inner(self, now: Mapping[ir.Var, ir.VarRead], at: ir.Expr | None) -> Env:
        env = {**self.env, **now}
        if isinstance(self.loop, ir.For) and at is not None:
            env[self.loop.var] = at
        return env

    def at(self, turn: ir.Expr, out: list[ir.Stmt]) -> ir.Expr | None:
        """The loop's variable in a turn."""
        if not isinstance(self.loop, ir.For):
            return None
        return self.let(value_at(self.loop, self.fixed.start, self.fixed.step, turn), self.loop.var.name, out)

    def over(self, length: ir.Expr, write: list[ir.Stmt], var: ir.Var) -> ir.For:
        """``write`` for ``var`` from 0 to ``length``."""
        body = ir.Block(tuple(write), span=self.span)
        return ir.For(var, self.number(0), length, self.number(1), body, span=self.span)

    # ---------------------------------------------------------------------- back

    def back(self, out: list[ir.Stmt]) -> None:
        adjoints = self.reverse.adjoints
        self.sums: dict[ir.Var, ir.Var] = {}
        for var in self.carried:
            if var in self.reverse.active.variables:
                self.sums[var] = total = self.names.fresh(var.name, accurate(var.type))
                first = adjoints.of(self.after[var]) or zero(total.type, self.span)
                out.append(ir.Assign(total, first, span=self.span))
        kept, self.reverse.kept = self.reverse.kept, False
        self.part(_LEVELS if id(self.loop) in self.reverse.deep else 0, self.entry, self.number(0), self.turns, out)
        self.reverse.kept = kept
        for var, total in self.sums.items():
            adjoints.give(self.entry[var], self.read(total), out)

    def part(
        self, level: int, state: Mapping[ir.Var, ir.Expr], low: ir.Expr, high: ir.Expr, out: list[ir.Stmt]
    ) -> None:
        """The turns from ``low`` to ``high``, back to front; ``state`` is that before ``low``."""
        size = self.let(self.binary(ir.BinOp.SUB, high, low), "size", out)
        number = self.names.fresh("part", self.count)
        last = self.binary(ir.BinOp.SUB, size, self.number(1))
        stmts: list[ir.Stmt] = []
        if level == 0:
            left = self.let(self.binary(ir.BinOp.SUB, last, self.read(number)), "turn", stmts)
            self.single(state, low, left, stmts)
            out.append(self.over(size, stmts, number))
            return
        more = self.binary(ir.BinOp.ADD, size, self.number(_SLOTS - 1))
        length = self.let(self.binary(ir.BinOp.RAWDIV, more, self.number(_SLOTS)), "length", out)
        slots = self.states(state, low, size, length, out)
        above = self.binary(ir.BinOp.SUB, self.binary(ir.BinOp.ADD, size, length), self.number(1))
        parts = self.let(self.binary(ir.BinOp.RAWDIV, above, length), "parts", out)
        before = self.binary(ir.BinOp.SUB, parts, self.number(1))
        this = self.let(self.binary(ir.BinOp.SUB, before, self.read(number)), "part", stmts)
        begin = self.let(self.binary(ir.BinOp.ADD, low, self.binary(ir.BinOp.MUL, this, length)), "low", stmts)
        end = self.binary(ir.BinOp.MIN, self.binary(ir.BinOp.ADD, begin, length), high)
        found = {
            var: self.let(ir.Pick(tuple(map(self.read, slots[var])), this, var.type, span=self.span), var.name, stmts)
            for var in self.carried
        }
        self.part(level - 1, found, begin, self.let(end, "high", stmts), stmts)
        out.append(self.over(parts, stmts, number))

    def states(
        self, state: Mapping[ir.Var, ir.Expr], low: ir.Expr, size: ir.Expr, length: ir.Expr, out: list[ir.Stmt]
    ) -> dict[ir.Var, list[ir.Var]]:
        """Keeps the state before every ``length``-th of ``size`` turns."""
        slots = {var: [self.names.fresh(var.name, var.type) for _ in range(_SLOTS)] for var in self.carried}
        now, turn, stmts = self.begun(state, out), self.names.fresh("turn", self.count), list[ir.Stmt]()
        k = self.read(turn)
        slot = self.let(self.binary(ir.BinOp.RAWDIV, k, length), "slot", stmts)
        first = ir.Compare(ir.CmpOp.EQ, self.binary(ir.BinOp.MUL, slot, length), k, u1, span=self.span)
        keeps = [
            ir.AssignOne(tuple(ir.Assign(each, now[var], span=self.span) for each in slots[var]), slot, span=self.span)
            for var in self.carried
        ]
        empty = ir.Block((), span=self.span)
        stmts.append(ir.If(first, ir.Block(tuple(keeps), span=self.span), empty, span=self.span))
        stmts += self.turn(now, self.at(self.binary(ir.BinOp.ADD, low, k), stmts))
        out.append(self.over(size, stmts, turn))
        return slots

    def single(self, state: Mapping[ir.Var, ir.Expr], low: ir.Expr, left: ir.Expr, out: list[ir.Stmt]) -> None:
        """Repeats ``left`` turns from ``state``, then takes the next one back."""
        reverse, adjoints = self.reverse, self.reverse.adjoints
        now, turn, stmts = self.begun(state, out), self.names.fresh("turn", self.count), list[ir.Stmt]()
        stmts += self.turn(now, self.at(self.binary(ir.BinOp.ADD, low, self.read(turn)), stmts))
        out.append(self.over(left, stmts, turn))
        reverse.repeats[turn] = id(self.loop)
        made: list[ir.Stmt] = []
        with adjoints.around() as owned:
            for var in self.sums:
                adjoints.add(now[var].var)
            env = self.inner(now, self.at(self.binary(ir.BinOp.ADD, low, left), made))
            tape = reverse.recorded(self.loop.body, env, made)
            for var, total in self.sums.items():
                adjoints.give(env[var], self.read(total), made)
            for step in reversed(tape):
                step(made)
            for var, total in self.sums.items():
                rest = adjoints.of(now[var]) or zero(total.type, self.span)
                made.append(ir.Assign(total, cast(rest, total.type), span=self.span))
            out += adjoints.zeros(owned, self.span)
        out += made


def _var(e: ir.Expr) -> ir.Var | None:
    return e.var if isinstance(e, ir.VarRead) else None
