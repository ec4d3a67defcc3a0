"""The tangents of atomic minima and maxima: see ``extremes``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from quadpy.core.dtypes import u64
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, select
from quadpy.ir.grad.exact import Memory
from quadpy.ir.grad.extremes import WHY, Marks, number_in
from quadpy.ir.grad.indices import accesses_in
from quadpy.ir.grad.keep import Kept, meet, refuse
from quadpy.ir.grad.liveness import live_part
from quadpy.ir.grad.maths import Names, both, cast
from quadpy.ir.grad.parts import Visit, renamed
from quadpy.ir.walk import map_children, walk


class Tangents(Protocol):
    """What the loops ask of forward mode."""

    kernel: ir.Kernel
    names: Names
    memory: Memory
    crossing: list[ir.Var]
    variables: dict[ir.Var, list[ir.Var]]
    arrays: dict[str, str]

    def dual_place(self, place: ir.Place, way: int) -> ir.Place: ...


class Winners:
    """The loops after ``loop``: one finds the iterations that results came from, the other stores their tangents.

    ``body`` has the iteration with tangents, ``found`` the tangents of the values of its minima and maxima by ``id``.
    """

    def __init__(
        self,
        tangents: Tangents,
        loop: ir.ParallelFor,
        body: ir.Block,
        found: Mapping[int, Sequence[ir.Expr]],
        arrays: set[str],
    ) -> None:
        self.of, self.loop, self.body, self.found, self.arrays = tangents, loop, body, found, arrays
        self.names, self.at = tangents.names, At(loop.span)
        self.marks = Marks(tangents.memory, self.names)
        slots = [node.place for node in walk(body) if id(node) in found and isinstance(node.place, ir.Slot)]  # type: ignore[attr-defined]  # atomics
        of = dict.fromkeys(tangents.kernel.crossing[slot.number] for slot in slots)
        self.won = {var: self.names.fresh("won", u64) for var in of}
        self.moved = {var: [self.names.fresh("moved", var.type) for _ in tangents.variables[var]] for var in of}

    def stmts(self) -> Iterator[ir.Stmt]:
        self.check()
        at, read = self.at, self.at.read
        for var, won in self.won.items():
            yield at.assign(won, at.const(0, u64))
            for moved in self.moved[var]:
                yield at.assign(moved, at.const(0.0, var.type))
        yield from self.marks.cleared(self.arrays, self.loop)
        yield self.copy(is_marking=True)
        yield self.copy(is_marking=False)
        for var, won in self.won.items():
            for dual, moved in zip(self.of.variables[var], self.moved[var], strict=True):
                yield at.assign(dual, select(read(won).eq(0), read(dual), read(moved)))

    def slot(self, var: ir.Var) -> ir.Slot:
        if var not in self.of.crossing:
            self.of.crossing.append(var)
        return ir.Slot(self.of.crossing.index(var), var.type, span=self.loop.span)

    def copy(self, *, is_marking: bool) -> ir.ParallelFor:
        at = self.at
        axes = tuple(replace(axis, var=self.names.fresh(axis.var.name, axis.var.type)) for axis in self.loop.axes)
        number = number_in(axes, self.loop)
        got = {var: [self.names.fresh("got", var.type) for _ in self.moved[var]] for var in self.won}

        def instead(stmt: ir.Stmt, visit: Visit) -> Iterable[ir.Stmt] | None:
            if not isinstance(stmt, (ir.Store, ir.Atomic)):
                return None
            if id(stmt) not in self.found:
                return ()
            place, value, out = visit(stmt.place), visit(stmt.value), list[ir.Stmt]()
            claims: list[ir.Stmt] = []
            if isinstance(place, ir.Slot):
                var = self.of.kernel.crossing[place.number]
                hit = value.eq(at.read(var))
                mark: ir.Place = self.slot(self.won[var])
                claims += [at.assign(v, visit(d)) for v, d in zip(got[var], self.found[id(stmt)], strict=True)]
            else:
                final = self.names.fresh("final", place.type)
                out.append(at.load(final, place))
                hit = value.eq(at.read(final))
                for way, d in enumerate(self.found[id(stmt)]):
                    dual = self.of.dual_place(place, way)
                    claims.append(at.store(dual, cast(visit(d), dual.type)))
                if place.array not in self.arrays:  # only this iteration updates it
                    return () if is_marking else [*out, at.when(hit, claims)]
                mark = word = self.marks.word(place, out)
            if is_marking:
                return [*out, at.when(hit, [at.update(ir.AtomicOp.MAX, mark, number)])]
            won = at.read(self.won[var]) if isinstance(place, ir.Slot) else self.loaded(word, out)
            return [*out, at.when(both(hit, won.eq(number)), claims)]

        new = {old.var: at.read(axis.var) for old, axis in zip(self.loop.axes, axes, strict=True)}
        stmts: list[ir.Stmt] = [at.assign(v, at.const(0.0, v.type)) for each in got.values() for v in each]
        stmts += renamed(self.body, self.names, new, instead)
        if not is_marking:
            for var, won in self.won.items():
                for moved, own in zip(self.moved[var], got[var], strict=True):
                    claimed = select(at.read(won).eq(number), at.read(own), 0.0)
                    stmts.append(at.update(ir.AtomicOp.ADD, self.slot(moved), claimed))
        stored = ((self.of.arrays[name], "one iteration stores each tangent") for name in sorted(self.arrays))
        return replace(self.loop, axes=axes, body=at.block(stmts), allowed=(*WHY, *stored) if self.arrays else ())

    def loaded(self, word: ir.Element, out: list[ir.Stmt]) -> ir.Expr:
        out.append(self.at.load(var := self.names.fresh("won", u64), word))
        return self.at.read(var)

    def check(self) -> None:
        """Raises a KernelTypeError if the loop overwrites what is needed to compute the values again."""

        def visit(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.Block):
                return map_children(node, visit)
            kept = [new for stmt in node.stmts for new in needed(stmt)]
            return ir.Block(tuple(kept), span=node.span)

        def needed(stmt: ir.Stmt) -> list[ir.Stmt]:
            if not isinstance(stmt, (ir.Store, ir.Atomic)):
                return [visit(stmt)]  # type: ignore[list-item]  # a statement for a statement
            values = (stmt.value, *self.found[id(stmt)]) if id(stmt) in self.found else ()
            index = stmt.place.index if isinstance(stmt.place, ir.Element) else ()
            return [ir.Store(ir.Element("$site", index, 0, e.type, span=e.span), e, span=e.span) for e in values]

        kernel = self.of.kernel
        live = live_part(replace(kernel, body=self.at.block([replace(self.loop, body=visit(self.body))])))  # type: ignore[arg-type]  # a block for a block
        loaded = {node.var for node in walk(live.body) if isinstance(node, ir.Load)}
        all_accesses, kept = list(accesses_in(self.body)), Kept(self.body)
        writes = [
            each for each in all_accesses if not isinstance(each.stmt, ir.Load) and id(each.stmt) not in self.found
        ]
        for read in all_accesses:
            if isinstance(read.stmt, ir.Load) and read.stmt.var in loaded:
                for write in writes:
                    if meet(read, write, kernel, kept):
                        refuse(read, write, kernel, "the tangent")
