"""Parallel loops as loops of Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from quadpy.core.dtypes import i32
from quadpy.interpreter.expressions import constructor
from quadpy.interpreter.lanes import blocks, together
from quadpy.interpreter.merging import copies, count, merged
from quadpy.interpreter.numbers import MEMORY_TYPES, identity
from quadpy.interpreter.plans import LoopPlan
from quadpy.interpreter.statements import Statements, counts_up
from quadpy.interpreter.support import OrderedPrints, has_element, shared_array
from quadpy.interpreter.text import OWN, Origin, identifier
from quadpy.interpreter.unset import read_unset
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks
from quadpy.ir.walk import walk


class KernelStatements(Statements):
    """Like ``Statements``, with the loops of a kernel's top level."""

    def parallel(self, stmt: ir.ParallelFor) -> None:
        plan = self.plan.loops[self.plan.numbers[stmt]]
        ranges = []
        for axis in stmt.axes:
            ranges.append(self.scope.temporary())
            self.code.put(f"{ranges[-1]} = {self.range(axis.start, axis.stop, axis.step)}")
            if counts_up(axis.start, axis.step):
                self.natural.add(axis.var)
        if plan.block_dim:
            self.in_blocks(stmt, plan, ranges)
        elif plan.copied:
            self.on_copies(stmt, plan, ranges)
        else:
            self.one_by_one(stmt, plan, ranges)

    def values(self, stmt: ir.ParallelFor, ranges: Sequence[str]) -> list[str]:
        """The values of each loop variable."""
        kinds = [constructor(axis.var.type) for axis in stmt.axes]
        return [f"map{OWN}({kind}, {values})" for kind, values in zip(kinds, ranges, strict=True)]

    def every_index(self, stmt: ir.ParallelFor, ranges: Sequence[str]) -> str:
        """All indices, in order."""
        return f"{self.constants.function(product)}({', '.join(self.values(stmt, ranges))})"

    def body(self, stmt: ir.ParallelFor) -> None:
        self.zero(read_unset(stmt.body))
        self.block(stmt.body.stmts)

    def one_by_one(self, stmt: ir.ParallelFor, plan: LoopPlan, ranges: Sequence[str]) -> None:
        """If a loop accumulates, each iteration first sets aside the contribution of the one before."""
        lists = [self.scope.temporary() for _ in plan.reductions]
        totals = [self.scope.assign(r.var) for r in plan.reductions]
        for name, total in zip(lists, totals, strict=True):
            self.code.put(f"{name} = []; {total} = None")
        self.nested(stmt, plan, list(zip(self.values(stmt, ranges), stmt.axes, strict=True)), lists)
        for r, name, total in zip(plan.reductions, lists, totals, strict=True):
            self.code.put(f"{name}.append({total})")
            with self.code.block(f"if len{OWN}({name}) > 1:"):
                self.add_total(r, name)

    def nested(self, stmt: ir.ParallelFor, plan: LoopPlan, axes: list[tuple[str, ir.Axis]], lists: list[str]) -> None:
        if axes:
            (values, axis), *inner = axes
            with self.code.block(f"for {self.scope.assign(axis.var)} in {values}:"):
                self.nested(stmt, plan, inner, lists)
            return
        for r, name in zip(plan.reductions, lists, strict=True):
            nothing = self.nothing(r)
            self.code.put(f"{name}.append({self.scope.read(r.var)}); {self.scope.assign(r.var)} = {nothing}")
        self.body(stmt)

    def nothing(self, r: ir.Reduction) -> str:
        """The initial value of an iteration's contribution."""
        made = identity(_merging(r.op).value, r.var.type)
        return self.constants.of(made, (r.var.type, made.tobytes()))

    def add_total(self, r: ir.Reduction, name: str) -> None:
        """``place op= total``, unless it is outside the array: then no iteration reached it."""
        op, t = self.constants.of(r.op), self.constants.of(r.var.type)
        total = f"{self.constants.function(merged)}({op}, {t}, {name}[1:])"
        if isinstance(r.place, ir.Slot):
            number = r.place.number - len(self.plan.kernel.results)
            place: ir.Place = ir.Slot(number, r.place.type, span=r.span)
            inside = "True"
        else:
            place = self.fixed(r.place)
            assert isinstance(place, ir.Element)
            array = self.scope.given(f"{place.array}{OWN}{place.component}")
            indices = ", ".join(map(self.text, place.index))
            inside = f"{self.constants.function(has_element)}({array}, ({indices},))" if indices else "True"
        with self.code.block(f"if {inside}:"):
            self.store(place, self.expressions.binary(ir.COMBINES[r.op], self.load(place), total, r.var.type))

    def on_copies(self, stmt: ir.ParallelFor, plan: LoopPlan, ranges: Sequence[str]) -> None:
        """The same chunks on the same copies as in compiled code, which fixes the order of additions."""
        arrays, names, renamed = [], [], self.scope.variables.renamed
        for param, op in plan.copied:
            parts = [self.scope.given(f"{param.name}{OWN}{k}") for k in range(param.type.components)]
            names += [(part, f"{part}copy") for part in parts]
            given = f"({self.constants.of(op)}, {self.constants.of(param.type.elem)}, ({', '.join(parts)},))"
            arrays.append(given)
        iterations = self.scope.temporary()
        every, n = self.every_index(stmt, ranges), f"{self.constants.function(count)}({', '.join(ranges)})"
        chunks = f"{self.constants.function(copies)}({every}, {n}, {plan.cost}, ({', '.join(arrays)},))"
        self.scope.locals |= {copy for _, copy in names}
        with self.code.block(f"for {iterations}, {', '.join(copy for _, copy in names)} in {chunks}:"):
            renamed.update(names)
            with self.code.block(f"for {self.index_of(stmt)} in {iterations}:"):
                self.body(stmt)
            for part, _ in names:
                del renamed[part]

    def index_of(self, stmt: ir.ParallelFor) -> str:
        return f"{', '.join(self.scope.assign(axis.var) for axis in stmt.axes)},"

    def in_blocks(self, stmt: ir.ParallelFor, plan: LoopPlan, ranges: Sequence[str]) -> None:
        """Block by block; if iterations wait for each other, their output is put into their order at the end."""
        waits, block, items = needs_whole_blocks(stmt.body), f"block{OWN}", self.scope.temporary()
        chunks = f"{self.constants.function(blocks)}({self.every_index(stmt, ranges)}, {plan.block_dim})"
        self.scope.locals.add(block)
        if waits and any(isinstance(node, ir.Print) for node in walk(stmt.body)):
            prints = self.scope.temporary()
            self.code.put(f"{prints} = {self.constants.function(OrderedPrints)}({self.constants.prints})")
            self.scope.variables.prints = prints
            with self.code.block("try:"):
                self.each_block(stmt, f"for {block}, {items} in {chunks}:", items, waits=waits)
            with self.code.block("finally:"):
                self.code.put(f"{prints}.show()")
            self.scope.variables.prints = None
        else:
            self.each_block(stmt, f"for {block}, {items} in {chunks}:", items, waits=waits)

    def each_block(self, stmt: ir.ParallelFor, head: str, items: str, *, waits: bool) -> None:
        """The loop over blocks; ``items`` are the indices of one."""
        with self.code.block(head):
            for array in stmt.shared:
                self.share(array)
            line = self.code.line
            name = self.lane(stmt, waits=waits)
            self.code.line = line
            if waits:
                loops = tuple(axis.var.name.partition(".")[0] for axis in stmt.axes)
                self.code.put(f"{self.constants.function(together)}({name}, {items}, {loops})")
            else:
                thread = self.scope.temporary()
                with self.code.block(f"for {thread}, {items} in enumerate{OWN}({items}):"):
                    self.code.put(f"{name}(*{items}, {constructor(i32)}({thread}))")

    def share(self, array: ir.SharedArray) -> None:
        """A block's own array."""
        name, t = identifier(array.name), array.type
        names = [f"{name}{OWN}whole", *(f"{name}{OWN}{k}" for k in range(t.components))]
        self.scope.locals.update(names)
        kind = self.constants.of(MEMORY_TYPES[t.elem])
        made = f"{self.constants.function(shared_array)}({t.shape}, {t.element}, {kind})"
        self.code.put(f"{', '.join(names)} = {made}")

    def lane(self, stmt: ir.ParallelFor, *, waits: bool) -> str:
        """One iteration as a function of its index and its number in the block, a generator if it ``waits``; its name."""
        inner = self.inside(Origin(self.scope.origin.name, self.scope.origin.file, self.code.line))
        inner.scope.locals.add(f"thread{OWN}")
        indices = [inner.scope.assign(axis.var) for axis in stmt.axes]
        with self.code.block(f"def {inner.scope.python_name}({', '.join([*indices, f'thread{OWN}'])}):"):
            inner.prologue()
            with self.code.block(f"for {inner.scope.temporary()} in (0,):"):  # which ``continue`` goes on with
                inner.body(stmt)
            self.code.put("yield from ()" if waits else "pass")
        return inner.scope.python_name


def _merging(op: ir.AtomicOp) -> ir.AtomicOp:
    return ir.AtomicOp.ADD if op is ir.AtomicOp.SUB else op
