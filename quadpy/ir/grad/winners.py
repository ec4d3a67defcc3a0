"""The adjoints of atomic minima and maxima: see ``extremes``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from quadpy.core.dtypes import u64
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, select
from quadpy.ir.grad.extremes import WHY, Marks, contested, extremes_in, number_in
from quadpy.ir.grad.maths import both
from quadpy.ir.grad.values import Env, Values


class Extremes(Values):
    """The part of the backward kernel that finds who won.

    number  the number of the iteration that is written, in a loop with minima or maxima
    arrays  those of the loop that several iterations may update
    won     the variables from outside that the loop takes the minimum or maximum of, each with the winner's number
    claim   the adjoints of these that the iteration has, until it gives them to a value
    """

    number: ir.Expr | None = None
    is_marking = False
    arrays: Collection[str] = ()
    won: Mapping[ir.Var, ir.Var] = MappingProxyType({})
    claim: dict[ir.Var, ir.Var]

    def mark(self, loop: ir.ParallelFor, axes: Iterable[ir.Axis], after: Env, out: list[ir.Stmt]) -> None:
        """Writes the loop that finds the winners of ``loop``, if it has minima or maxima."""
        at, self.arrays, self.claim = At(loop.span), contested(self.kernel, loop, self.active), {}
        sites = (site.place for site in extremes_in(loop.body, self.active) if isinstance(site.place, ir.Slot))
        self.won = {var: self.names.fresh("won", u64) for var in dict.fromkeys(map(self.active.crossing, sites))}
        if not self.arrays and not self.won:
            return
        out += [at.assign(var, at.const(0, u64)) for var in self.won.values()]
        out += Marks(self.memory, self.names).cleared(self.arrays, loop)
        new_axes, inner = self.axes_of(axes, after)
        stmts: list[ir.Stmt] = []
        self.number, self.is_marking = number_in(new_axes, loop), True
        self.repeated(loop.body, inner, stmts)
        self.is_marking = False
        out.append(replace(loop, axes=new_axes, body=at.block(stmts), allowed=WHY if self.arrays else ()))

    def unless_won(self, var: ir.Var, d: ir.Expr) -> ir.Expr:
        """What of the adjoint ``d`` of a variable after the loop goes to the one before."""
        if var not in self.won:
            return d
        return select(At(d.span).read(self.won[var]).eq(0), d, 0.0)

    def claims(self, env: Env) -> list[ir.Stmt]:
        """Gives the winning iteration the adjoint."""
        stmts: list[ir.Stmt] = []
        for var, won in self.won.items():
            if (d := self.adjoints.of(env[var])) is not None:
                assert self.number is not None
                self.claim[var] = claim = self.names.fresh("claim", d.type)
                stmts.append(At(d.span).assign(claim, select(At(d.span).read(won).eq(self.number), d, 0.0)))
        return stmts

    def extreme(self, stmt: ir.Atomic, env: Env, out: list[ir.Stmt]) -> None:
        """An atomic minimum or maximum whose result nothing reads."""
        at, place, number = At(stmt.span), stmt.place, self.number
        if not self.active.has_place(place) or not (self.is_marking or self.tape is not None):
            return
        if self.kernel.fast_math and not self.won and not self.arrays:
            contested(self.kernel, ir.ParallelFor((), ir.Block((stmt,), span=stmt.span), span=stmt.span), self.active)
        value = self.named(self.value(stmt.value, env, out), out)
        if isinstance(place, ir.Slot):
            var = self.active.crossing(place)
            if self.is_marking:
                assert number is not None
                mark = at.update(ir.AtomicOp.MAX, ir.Slot(self.slot_of(self.won[var]), u64, span=stmt.span), number)
                out.append(at.when(value.eq(env[var]), [mark]))
            elif (claim := self.claim.get(var)) is not None:
                assert self.tape is not None
                after, held = env[var], at.read(claim)

                def back_to_slot(out: list[ir.Stmt]) -> None:
                    hit = value.eq(after)
                    self.adjoints.give(value, select(hit, held, 0.0), out)
                    out.append(at.assign(claim, select(hit, at.const(0.0, claim.type), held)))

                self.tape.append(back_to_slot)
            return
        here, is_contested = self.place(place, env, out), place.array in self.arrays
        marks = Marks(self.memory, self.names)

        def hits(out: list[ir.Stmt]) -> ir.Expr:
            final = self.names.fresh("final", here.type)
            out.append(at.load(final, here))
            self.origins[final] = stmt
            return value.eq(at.read(final))

        if self.is_marking:
            if is_contested:
                assert number is not None
                hit, inner = hits(out), list[ir.Stmt]()
                inner.append(at.update(ir.AtomicOp.MAX, marks.word(here, inner), number))
                out.append(at.when(hit, inner))
            return

        def back(out: list[ir.Stmt]) -> None:
            twin = self.twin(here)
            d, hit = self.read_adjoint(twin, stmt.span, out), hits(out)
            if is_contested:
                assert number is not None
                won = self.names.fresh("won", u64)
                out.append(at.load(won, marks.word(here, out)))
                hit = both(hit, at.read(won).eq(number))
            self.adjoints.give(value, select(hit, d, 0.0), out)
            out.append(at.when(hit, [at.store(twin, at.const(0.0, twin.type))]))

        assert self.tape is not None
        self.tape.append(back)

    def axes_of(self, axes: Iterable[ir.Axis], env: Env) -> tuple[tuple[ir.Axis, ...], Env]:
        """``axes`` with new variables, and what an iteration knows."""
        raise NotImplementedError

    def slot_of(self, var: ir.Var) -> int:
        """The slot of a variable of the backward kernel."""
        raise NotImplementedError
