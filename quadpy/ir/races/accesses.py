"""The memory accesses of an iteration, found by running its body on terms instead of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final, NamedTuple

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks
from quadpy.ir.effects import effects_of
from quadpy.ir.index.polynomials import atom_of, constant_of, parts_of
from quadpy.ir.jumps import BREAK, CONTINUE, OF_LOOPS, RETURN, assigned_in, jumps_from
from quadpy.ir.loads import chosen_in, unread_in
from quadpy.ir.races.terms import Atom, Term, Terms, wrapped
from quadpy.ir.touches import changed_in, name_of, touches, value_of
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import unhandled


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access to ``array[index]``, or to a variable that iterations share.

    operation  of an atomic update; None for a plain load or store
    value      the value that is stored or combined with the element; None for a load
    certain    whether every iteration does this, whatever the data
    phase      how many meetings of a block or wave came before
    """

    array: str
    component: int
    index: tuple[Term, ...]
    access: ir.Access
    operation: ir.AtomicOp | None
    value: Term | None
    certain: bool
    phase: int
    span: Span


_CHECKS: Final = "$stop"
"""The prefix of labels of blocks that a failed check leaves: a failed check is a separate error."""

_MOST_TURNS: Final = 4
"""Turns of an inner loop that are run one by one."""


class Summary(NamedTuple):
    """What a block does if it runs.

    meets     whether iterations may meet in it
    assigned  the variables that it assigns
    jumps     where jumps lead out of it, without those of failed checks, which are separate errors
    """

    meets: bool
    assigned: tuple[ir.Var, ...]
    jumps: tuple[str, ...]

    @staticmethod
    def of(block: ir.Block) -> Summary:
        jumps = (to for to in jumps_from(block) if not to.startswith(_CHECKS))
        return Summary(needs_whole_blocks(block), tuple(assigned_in((block,))), tuple(jumps))


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about all iterations of ``task``.

    written    arrays and slots that it changes
    noalias    whether arrays that it changes are distinct from all others
    shared     arrays that each block has for itself
    unread     variables on which nothing depends, since all components of a vector are loaded
    chosen     variables of loads that do not matter in each iteration
    summaries  of the blocks of the task, by their ``id``: many iterations are run, and blocks contain each other
    """

    task: ir.ParallelTask
    written: frozenset[str]
    noalias: bool
    shared: frozenset[str]
    unread: frozenset[ir.Var]
    chosen: frozenset[ir.Var]
    summaries: dict[int, Summary] = field(default_factory=dict)

    @staticmethod
    def of(task: ir.ParallelTask, *, noalias: bool) -> Facts:
        arrays = {name for name, access in effects_of(task) if access is not ir.Access.READ}
        slots = {name_of(place) for place in changed_in(task) if isinstance(place, ir.Slot)}
        shared = frozenset(array.name for array in task.shared)
        written, chosen = frozenset(arrays | slots), frozenset(chosen_in(task))
        return Facts(task, written, noalias or not arrays, shared, unread_in(task), chosen)

    def summary(self, block: ir.Block) -> Summary:
        """What ``block``, a part of the task, does if it runs."""
        if (found := self.summaries.get(id(block))) is None:
            found = self.summaries[id(block)] = Summary.of(block)
        return found


class Iteration:
    """Runs one iteration of a task; ``touches`` are its accesses, in their order.

    at      the values of the loop's variables
    every   stands for all iterations: all branches are taken, and the variable of an inner loop for all its values.
            Otherwise a particular iteration: accesses that may not happen are left out
    ranges  low and high (exclusive) of the variables of inner loops, by their atoms
    """

    def __init__(self, terms: Terms, facts: Facts, at: Mapping[ir.Var, Term], *, every: bool) -> None:
        self.terms, self.facts, self.every = terms, facts, every
        self.touches: list[MemoryAccess] = []
        self.bound: dict[ir.Var, Term] = dict(at)
        self.ranges: dict[int, tuple[Term, Term]] = {}
        self.phase = 0
        self._doubts: list[str] = []  # where an iteration may have jumped to already
        self._unsure = 0

    def run(self) -> list[MemoryAccess]:
        self.block(self.facts.task.body)
        self._doubts.clear()
        for reduction in self.facts.task.reductions:
            self.touch(reduction.place, ir.Access.ATOMIC, reduction.op, self.terms.unknown("sum"), reduction.span)
        return self.touches

    # ---------------------------------------------------------------- statements

    def block(self, block: ir.Block) -> str | None:
        """Runs ``block``; returns the target of a certain jump."""
        for stmt in block.stmts:
            if (jump := self.stmt(stmt)) is not None:
                return jump
        return None

    def stmt(self, stmt: ir.Stmt) -> str | None:
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                self.bound[var] = self.term(value)
            case ir.AssignOne(options=options):
                for option in options:
                    self.bound[option.var] = self.terms.unknown(option.var.name)
            case ir.Load(var=var, place=place):
                if var not in self.facts.unread:
                    matters_always = var not in self.facts.chosen
                    self._unsure += not matters_always
                    self.bound[var] = self.loaded(place, stmt.span)
                    self._unsure -= not matters_always
            case ir.CallMany(results=results, args=args):
                given = tuple(map(self.term, args))
                for number, var in enumerate(results):
                    self.bound[var] = self.terms.operation(f"{stmt.function}.{number}", given, var.type)
            case ir.If():
                return self.branch(stmt)
            case ir.For() | ir.While():
                self.loop(stmt)
            case ir.LabelledBlock(label=label, body=body):
                jump = self.block(body)
                self.settle((body,), label)
                return None if jump == label else jump
            case ir.Break():
                return self.jump(BREAK)
            case ir.Continue():
                return self.jump(CONTINUE)
            case ir.Leave(label=label):
                return None if label.startswith(_CHECKS) else self.jump(label)
            case ir.Return():
                return self.jump(RETURN)
            case ir.ParallelFor() | ir.Sections() | ir.DoWhile() | ir.Gate() | ir.Mark():
                raise AssertionError("a task has none of these")
            case _:
                self.effects(stmt)
        return None

    def effects(self, stmt: ir.Stmt) -> None:
        """What ``stmt`` touches, in which phase, and what it binds."""
        for place, access in touches(stmt):
            term: Term | None = None
            if access is not ir.Access.READ:
                value = value_of(stmt)
                term = self.terms.unknown("value") if value is None else self.term(value)
            self.touch(place, access, stmt.op if isinstance(stmt, ir.Atomic) else None, term, stmt.span)
        self.phase += not ir.MEETINGS.isdisjoint(stmt.ORDERS)
        for var in bound_by(stmt):
            self.bound[var] = self.terms.unknown(var.name)

    def jump(self, to: str) -> str | None:
        """A jump that happens, or, if all branches are taken, one that may happen."""
        if not self.every:
            return to
        self._doubts.append(to)
        return None

    def settle(self, blocks: tuple[ir.Block, ...], *labels: str) -> None:
        """Jumps in ``blocks`` to ``labels`` meet here: what the blocks assign is unknown where any may have happened."""
        left = [each for each in self._doubts if each not in labels]
        if len(left) < len(self._doubts):
            self.forget(blocks)
        self._doubts = left

    def branch(self, stmt: ir.If) -> str | None:
        cond = self.term(stmt.cond)
        if isinstance(cond, int):
            return self.block(stmt.then if cond else stmt.orelse)
        if not self.every:
            self.skip((stmt.then, stmt.orelse))
            return None
        self._unsure += 1
        before = dict(self.bound)
        self.block(stmt.then)
        then, self.bound = self.bound, before
        self.block(stmt.orelse)
        for var in dict.fromkeys(self.facts.summary(stmt.then).assigned + self.facts.summary(stmt.orelse).assigned):
            if then.get(var) != self.bound.get(var):
                self.bound[var] = self.terms.unknown(var.name)
        self._unsure -= 1
        return None

    def skip(self, blocks: Iterable[ir.Block]) -> None:
        """``blocks`` may or may not run: what they assign is unknown, and where they jump to too."""
        blocks = tuple(blocks)
        self.forget(blocks)
        self._doubts += [to for block in blocks for to in self.facts.summary(block).jumps]

    def forget(self, blocks: Iterable[ir.Block]) -> None:
        """``blocks`` may have run, in part or again: what they assign is unknown."""
        for block in blocks:
            summary = self.facts.summary(block)
            self.phase += 1000 * summary.meets
            for var in summary.assigned:
                self.bound[var] = self.terms.unknown(var.name)

    # ---------------------------------------------------------------- inner loops

    def loop(self, stmt: ir.For | ir.While) -> None:
        """An inner loop; doubts about jumps from the loops around stay, and so do those about jumps out of it."""
        outer, self._doubts = self._doubts, []
        self._unsure += bool(outer)
        blocks = (stmt.body,) if isinstance(stmt, ir.For) else (stmt.head, stmt.body)
        if self.every:
            self.all_turns(stmt, blocks)
        else:
            self.first_turns(stmt, blocks)
        self._unsure -= bool(outer)
        self._doubts = outer + self._doubts

    def all_turns(self, stmt: ir.For | ir.While, blocks: tuple[ir.Block, ...]) -> None:
        """Runs ``blocks`` once, for all turns."""
        bounds = [self.term(e) for e in (stmt.start, stmt.stop, stmt.step)] if isinstance(stmt, ir.For) else []
        self.forget(blocks)
        if isinstance(stmt, ir.For):
            start, stop, step = bounds
            var = self.terms.unknown(stmt.var.name)
            self.bound[stmt.var] = var
            if (found := self.terms.range_of(start, stop, step)) is not None and (number := atom_of(var)) is not None:
                self.ranges[number] = found
        self._unsure += 1
        for block in blocks:
            self.block(block)
        self._unsure -= 1
        self._doubts = [each for each in self._doubts if each not in OF_LOOPS]
        self.forget(blocks)

    def first_turns(self, stmt: ir.For | ir.While, blocks: tuple[ir.Block, ...]) -> None:
        """Runs the turns that certainly happen, and no more than ``_MOST_TURNS``."""
        if isinstance(stmt, ir.While):
            jump = self.block(stmt.head)
            known = jump is not None or self.term(stmt.cond) == 0
            self._doubts += [jump] if jump else []
        else:
            known = self.counted_turns(stmt)
        self.settle(blocks, BREAK, CONTINUE)
        if not known:
            self.skip(blocks)
            self._doubts = [each for each in self._doubts if each not in OF_LOOPS]

    def counted_turns(self, stmt: ir.For) -> bool:
        """Whether these are all turns."""
        start, stop, step = (self.term(e) for e in (stmt.start, stmt.stop, stmt.step))
        if not isinstance(step, int) or not step:
            return step == 0
        turns = self.turns(start, stop, step)
        for turn in range(min(turns, _MOST_TURNS)):
            self.bound[stmt.var] = start + turn * step
            jump = self.block(stmt.body)
            self.settle((stmt.body,), CONTINUE)
            if jump == BREAK:
                return True
            if jump not in (None, CONTINUE):
                self._doubts.append(jump)
                return True
        return turns <= _MOST_TURNS and isinstance(stop - start, int)

    def turns(self, start: Term, stop: Term, step: int) -> int:
        """How many turns there certainly are: extents of arrays are taken to be 2 at least."""
        length = stop - start
        if isinstance(length, int):
            return max(0, -(-length // step))
        others = [part for part in parts_of(length) if part[0]]
        if step > 0 and all(factor > 0 and self.is_extent(m) for m, factor in others):
            least = constant_of(length) + sum(factor << len(m) for m, factor in others)
            return min(1, max(0, least))
        return 0

    def is_extent(self, monomial: tuple[int, ...]) -> bool:
        return all(self.terms.atoms[number].name.startswith("shape(") for number in monomial)

    # ---------------------------------------------------------------- memory

    def loaded(self, place: ir.Place, span: Span) -> Term:
        name, index, component = self.place(place)
        self.touch(place, ir.Access.READ, None, None, span)
        facts, is_array = self.facts, isinstance(place, ir.Element)
        if name in facts.written or name in facts.shared or (is_array and not facts.noalias):
            return self.terms.unknown(name)
        return self.terms.operation(f"load {name}.{component}", index, place.type)

    def touch(
        self, place: ir.Place, access: ir.Access, operation: ir.AtomicOp | None, value: Term | None, span: Span
    ) -> None:
        name, index, component = self.place(place)
        if name not in self.facts.shared:
            certain = not (self._unsure or self._doubts)
            self.touches.append(
                MemoryAccess(name, component, index, access, operation, value, certain, self.phase, span)
            )  # fmt: skip

    def place(self, place: ir.Place) -> tuple[str, tuple[Term, ...], int]:
        if isinstance(place, ir.Slot):
            return name_of(place), (), 0
        return place.array, tuple(map(self.term, place.index)), place.component

    # ---------------------------------------------------------------- expressions

    def term(self, e: ir.Expr) -> Term:
        terms = self.terms
        match e:
            case ir.Const(value=number, type=scalar):
                return (
                    terms.atom(Atom(repr(number), type=scalar.name))
                    if scalar.is_float
                    else wrapped(int(number), scalar)
                )
            case ir.VarRead(var=var):
                found = self.bound.get(var)
                return 0 if found is None else found
            case ir.ParamRead(name=name):
                return terms.atom(Atom(name))
            case ir.ShapeOf(array=array, axis=axis):
                return terms.atom(Atom(f"shape({array}, {axis})"))
            case ir.SlotRead(number=slot):
                return terms.atom(Atom(ir.slot_name(slot)))
            case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=scalar):
                return terms.binary(op, self.term(lhs), self.term(rhs), scalar)
            case ir.Unary(op=ir.UnOp.NEG, operand=operand, type=scalar) if scalar.kind == "int":
                return terms.binary(ir.BinOp.SUB, 0, self.term(operand), scalar)
            case ir.Unary(op=ir.UnOp.NOT, operand=operand, type=scalar) if isinstance(bits := self.term(operand), int):
                return wrapped(~bits, scalar)
            case ir.Compare(op=op, lhs=lhs, rhs=rhs):
                return terms.compare(op, self.term(lhs), self.term(rhs), lhs.type)
            case ir.Select(cond=cond, then=then, orelse=orelse, type=scalar):
                return terms.select(self.term(cond), self.term(then), self.term(orelse), scalar)
            case ir.Pick(items=items, at=at, type=scalar):
                return terms.operation("pick", map(self.term, (at, *items)), scalar)
            case ir.Cast(operand=operand, type=scalar):
                return terms.cast(self.term(operand), operand.type, scalar)
            case ir.Unary(op=unary, operand=operand, type=scalar):
                return terms.operation(unary.value, (self.term(operand),), scalar)
            case ir.BitCast(operand=operand, type=scalar):
                return terms.operation("bits", (self.term(operand),), scalar)
            case ir.Intrinsic(name=name, args=args, type=scalar) | ir.Call(function=name, args=args, type=scalar):
                return terms.operation(name, map(self.term, args), scalar)
            case ir.ThreadIndex() | ir.BlockIndex():
                return terms.unknown(e.__class__.__name__)
            case _:
                raise unhandled(e)
