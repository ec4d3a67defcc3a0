"""The accesses of a task to arrays, each with its index as forms and the conditions under which it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from quadpy.core.dtypes import bounds_of
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.loops import added, enter_loop, remembered, rising_in
from quadpy.ir.index import forms as ix
from quadpy.ir.index.bounds import bounds, is_natural
from quadpy.ir.index.guards import denied, is_impossible
from quadpy.ir.index.numbers import Number, greater
from quadpy.ir.index.reader import Known, Reader
from quadpy.ir.index.telling import tells
from quadpy.ir.jumps import CONTINUE, OF_LOOPS, assigned_in, jumps_from
from quadpy.ir.loads import is_load, unread_in
from quadpy.ir.passes.unprinted import unchecked
from quadpy.ir.touches import only_reads, touches
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import walk


@dataclass(frozen=True, slots=True)
class Reached:
    """An access: ``index`` has a form for each axis, ``guards`` hold where it takes place.

    ``is_merge`` says that it takes place once after the loop in any case; the guards say when the program asked for it.
    """

    place: ir.Element
    access: ir.Access
    operation: ir.AtomicOp | None
    index: tuple[ix.Form, ...]
    guards: ix.Guards | None
    span: Span
    is_merge: bool = False


def accesses_of(task: ir.Task) -> list[Reached]:
    """The accesses of ``task`` to arrays, in the order of its text; unused loads are left out, and all checks hold."""
    task = cast("ir.Task", unchecked(task))
    walker, known = _Walker(task), Known()
    if isinstance(task, ir.ParallelTask):
        walker.enter_axes(task, known)
    walker.block(task.body, known)
    walker.finish()
    return walker.found


def places_by_one_iteration(task: ir.ParallelTask, places: Mapping[str, Sequence[ir.Element]]) -> Iterator[str]:
    """The arrays whose ``places`` all have one index, which determines the iteration."""
    task = cast("ir.ParallelTask", unchecked(task))
    walker, known = _Walker(task), Known()
    walker.enter_axes(task, known)
    walker.block(task.body, known)
    axes = [counter for axis in task.axes for counter in cast("ix.Form", walker.reader.lets[axis.var]).counters]
    for array, wanted in places.items():
        found = {each.index for each in walker.found if each.place in wanted}
        if len(found) == 1 and tells(found.pop(), axes):
            yield array


class _Walker:
    """``left`` holds the states in which labelled blocks around are left; ``merges`` are the places of reductions."""

    def __init__(self, task: ir.Task) -> None:
        self.reader, self.found = Reader(assigned_in([task])), list[Reached]()
        self.unread = unread_in(task)
        self.left: dict[str, list[Known]] = {}
        reductions = task.reductions if isinstance(task, ir.ParallelTask) else ()
        self.merges = {r.var: r for r in reductions if isinstance(r.place, ir.Element)}
        self.unmerged = dict(self.merges)

    # ------------------------------------------------------------------- statements

    def block(self, block: ir.Block, known: Known) -> None:
        for stmt in block.stmts:
            if not known.is_live:
                return
            self.stmt(stmt, known)

    def stmt(self, stmt: ir.Stmt, known: Known) -> None:
        match stmt:
            case ir.Let(var=var, value=value):
                self.reader.lets[var] = self.reader.value(value, known)
            case ir.Assign(var=var, value=value):
                if var in self.merges:
                    self.merge(var, known, stmt.span)
                else:
                    known.values[var] = self.reader.value(value, known)
            case ir.AssignOne(options=options):
                for option in options:
                    known.values[option.var] = self.reader.unknown(option.var.type)
            case ir.If():
                self.branch(stmt, known)
            case ir.For():
                self.loop(stmt, known)
            case ir.While():
                self.repeat(stmt, known)
            case ir.LabelledBlock():
                self.labelled_block(stmt, known)
            case ir.Leave(label=label):
                self.left[label].append(known.fork())
                known.is_live = False
            case ir.Break() | ir.Continue() | ir.Return():
                known.is_live = False
            case _:
                if not (only_reads(stmt) and self.unread.issuperset(bound_by(stmt))):
                    self.reach(stmt, known)
                for var in bound_by(stmt):  # of which only the type is known
                    self.reader.lets[var] = self.reader.anything(var.type)

    def reach(self, stmt: ir.Stmt, known: Known) -> None:
        for place, kind in touches(stmt):
            if isinstance(place, ir.Element):
                for access, operation in _seen(stmt, kind):
                    index = tuple(self.reader.index(e, known) for e in place.index)
                    self.found.append(Reached(place, access, operation, index, known.guards, stmt.span))

    def merge(self, var: ir.Var, known: Known, span: Span) -> None:
        """Adds the accesses to the place that ``var`` is merged into."""
        merge = self.merges[var]
        assert isinstance(merge.place, ir.Element)
        self.unmerged.pop(var, None)
        index = tuple(self.reader.index(e, Known()) for e in merge.place.index)
        for access, operation in _seen(merge, ir.Access.ATOMIC):
            self.found.append(Reached(merge.place, access, operation, index, known.guards, span, is_merge=True))

    def finish(self) -> None:
        """Adds the merges of variables that no iteration accumulates into."""
        for var, merge in list(self.unmerged.items()):
            self.merge(var, Known(ix.Guards(None, ix.Maybe())), merge.place.span)

    # ----------------------------------------------------------------- control flow

    def branch(self, stmt: ir.If, known: Known) -> None:
        condition = self.reader.condition(stmt.cond, known)
        sides: list[tuple[Known, ix.Guards | None]] = []
        for block, holds in ((stmt.then, condition), (stmt.orelse, denied(condition))):
            if not is_impossible(holds):
                side = known.fork(holds)
                before = side.guards
                self.block(block, side)
                sides.append((side, before))
        whole = all(side.is_live and side.guards is before for side, before in sides)
        self.join(known, [side for side, _ in sides if side.is_live], whole=whole)
        if whole and len(sides) == 2:
            known.values |= _short_circuits(condition, sides[0][0], sides[1][0])

    def join(self, known: Known, ends: Sequence[Known], *, whole: bool) -> None:
        """Makes ``known`` the facts where ``ends`` meet; ``whole`` says that every earlier path gets there."""
        if len(ends) == 1 and not whole:
            known.guards, known.values = ends[0].guards, ends[0].values
            return
        known.is_live = bool(ends)
        if not whole:
            known.guards = ix.Guards(known.guards, ix.Maybe())
        values: dict[ir.Var, ix.Form | ix.Condition] = {}
        for end in ends:
            values |= end.values
        for var, value in values.items():  # most are what they were before: thousands of them, in a large kernel
            same = all(end.values.get(var) is value for end in ends)
            known.values[var] = value if same else self.merged(var, ends)

    def merged(self, var: ir.Var, ends: Sequence[Known]) -> ix.Form | ix.Condition:
        found = [end.values.get(var, self.reader.first(var.type)) for end in ends]
        if all(each == found[0] for each in found):
            return found[0]
        forms = tuple((each, end.guards) for each, end in zip(found, ends, strict=True) if isinstance(each, ix.Form))
        return self.reader.chosen(forms) if len(forms) == len(found) else self.reader.anything(var.type)

    def forget(self, variables: Iterable[ir.Var], known: Known) -> None:
        """The values of ``variables`` are unknown from here on."""
        for var in variables:
            known.values[var] = self.reader.anything(var.type)

    def enter_axes(self, task: ir.ParallelTask, known: Known) -> None:
        """Binds the loop's variables."""
        linear: ix.Form | None = ix.fixed(0)
        for axis in task.axes:
            number, count = enter_loop(self.reader, axis, known)
            linear = None if linear is None or number is None else linear * count + number
        self.reader.linear, self.reader.block_dim = linear, task.block_dim

    def loop(self, stmt: ir.For, known: Known) -> None:
        assigned = assigned_in([stmt.body])
        inside = known.fork()
        turn, count = enter_loop(self.reader, stmt, inside)
        jumps = set(jumps_from(stmt.body))
        steps = added(stmt.body, known, but=self.merges) if turn is not None else {}
        kept = remembered(self.reader, (stmt.body,), known, inside)
        self.forget(assigned, inside)
        inside.values |= kept
        if turn is not None:
            inside.values |= {
                var: self.reader.typed(before + turn * step, var.type) for var, (before, step) in steps.items()
            }
        if jumps - {CONTINUE}:
            inside.guards = ix.Guards(inside.guards, ix.Maybe())
        self.block(stmt.body, inside)
        self.after(known, assigned, jumps)
        known.values |= kept
        if not jumps - {CONTINUE}:
            turns = count if is_natural(count) else greater(count, 0)
            known.values |= {var: before + turns * step for var, (before, step) in steps.items()}

    def repeat(self, stmt: ir.While, known: Known) -> None:
        assigned = assigned_in([stmt.head, stmt.body])
        inside = known.fork()
        kept = remembered(self.reader, (stmt.head, stmt.body), known, inside)
        self.forget(assigned, inside)
        inside.values |= kept
        self.rise(stmt, known, inside)
        self.block(stmt.head, inside)
        if inside.is_live:
            condition = self.reader.condition(stmt.cond, inside)
            inside = inside.fork(condition)
            inside.guards = ix.Guards(inside.guards, ix.Maybe())
            self.block(stmt.body, inside)
        self.after(known, assigned, set(jumps_from(stmt.head, stmt.body)))
        known.values |= kept

    def rise(self, stmt: ir.While, known: Known, inside: Known) -> None:
        """Binds the variables that ``stmt`` only increases: from their values before it to one turn past its condition.

        This holds as long as they do not wrap, so the condition of the loop must prevent that.
        """
        low: dict[ir.Var, tuple[ix.Form, ix.Form]] = {}
        rising = rising_in(stmt)
        for var in rising:
            before = known.values.get(var, ix.fixed(0))
            if isinstance(before, ix.Form) and not any(isinstance(node, ir.Leave) for node in walk(stmt.head)):
                low[var] = before, self.rising(var, before, bounds_of(var.type)[1])
        if not low:
            return
        trial, reached = inside.fork(), len(self.found)
        trial.values |= {var: form for var, (_, form) in low.items()}
        self.block(stmt.head, trial)
        del self.found[reached:]
        guards = trial.fork(self.reader.condition(stmt.cond, trial)).guards
        for var, (before, form) in low.items():
            _, last = bounds(form.bare, guards)
            if last != bounds_of(var.type)[1]:
                following = last + rising[var]
                most = greater(bounds(before.bare, known.guards)[1], following)
                inside.values[var] = self.rising(var, before, most).needing(
                    ix.Need(ix.fixed(following), *bounds_of(var.type))
                )

    def rising(self, var: ir.Var, before: ix.Form, most: Number) -> ix.Form:
        counter = self.reader.between(var.name, before.bare, ix.fixed(most))
        return ix.counter_form(counter).needing(*before.needs)

    def after(self, known: Known, assigned: Iterable[ir.Var], jumps: set[str]) -> None:
        """Updates ``known`` for the end of a loop whose body has ``jumps``."""
        self.forget(assigned, known)
        if jumps - OF_LOOPS:
            known.guards = ix.Guards(known.guards, ix.Maybe())

    def labelled_block(self, stmt: ir.LabelledBlock, known: Known) -> None:
        before, inside = known.guards, known.fork()
        self.left[stmt.label] = []
        self.block(stmt.body, inside)
        ends = self.left.pop(stmt.label) + [inside] * inside.is_live
        known.guards = before
        self.join(known, ends, whole=set(jumps_from(stmt.body)) <= {stmt.label})


def _seen(node: ir.Node, kind: ir.Access) -> tuple[tuple[ir.Access, ir.AtomicOp | None], ...]:
    """What other launches see of an access."""
    if isinstance(node, ir.Atomic) and is_load(node):
        return ((ir.Access.READ, None),)
    if kind is ir.Access.ATOMIC and isinstance(node, (ir.Atomic, ir.Reduction)) and not node.in_launch:
        return ((kind, node.op),)
    return ((ir.Access.READ, None), (ir.Access.WRITE, None)) if kind is ir.Access.ATOMIC else ((kind, None),)


def _short_circuits(condition: ix.Condition, then: Known, orelse: Known) -> dict[ir.Var, ix.Form | ix.Condition]:
    """The value of ``c`` after ``c = a; if c: c = b``, which is ``a and b``; with ``if not c`` it is ``a or b``."""
    found: dict[ir.Var, ix.Form | ix.Condition] = {}
    for var, second in then.values.items():
        first = orelse.values.get(var)
        if isinstance(second, ix.Form) or isinstance(first, (ix.Form, ix.Maybe)) or first is None or first is second:
            continue
        if first == condition:
            found[var] = ix.Every((first, second))
        elif denied(first) == condition:
            found[var] = ix.Some((first, second))
    return found
