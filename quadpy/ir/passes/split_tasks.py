"""Cuts the body of a kernel into tasks.

Each top-level loop is a task; the statements between loops make serial tasks.  Values that follow from the arguments
alone (``n = x.shape[0] // 2``) are computed again in each task that uses them, so they do not need a separate task.
Everything else that crosses from task to task, or from one iteration of a do-while loop to the next, goes through
slots of scratch memory.

First, the top level is taken apart into segments.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, TypeAlias

from quadpy.core.artifact import CHECKPOINT
from quadpy.core.flow import Flow, Fork, Loop, Step
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.build import At
from quadpy.ir.touches import changed_in, is_binding
from quadpy.ir.uniform import is_launch_uniform
from quadpy.ir.variables import assigned_in, bound_by, reads_of, set_in
from quadpy.ir.walk import map_children, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def split_tasks(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with tasks instead of a body."""
    return _Splitter(kernel).run()


class _Splitter:
    """``slots`` numbers the variables that cross, from ``shift`` on: the slots of the results come before them."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self.uniform: dict[ir.Var, ir.Let] = {}
        self.shift = len(kernel.results)
        self.slots = {var: self.shift + number for number, var in enumerate(kernel.crossing)}
        self.stored: set[ir.Var] = set()
        self.tasks: list[ir.Task] = []
        self.gate: ir.TaskGate | None = None

    def run(self) -> ir.Kernel:
        items = self.cut(self.kernel.body.stmts)
        self.find_crossing(list(segments_of(items)))
        self.find_carried(items)
        flow = self.build(items)
        body = ir.Block((), span=self.kernel.span)
        return replace(
            self.kernel, body=body, tasks=tuple(self.tasks), slots=self.shift + len(self.slots), crossing=(),
            variables=("",) * self.shift + tuple(var.name.partition(".")[0] for var in self.slots), flow=() if all(isinstance(part, int) for part in flow) else flow,
        )  # fmt: skip

    def cut(self, stmts: Iterable[ir.Stmt]) -> tuple[Item, ...]:
        """Loops, runs of other statements, and what holds them; uniform values are set aside."""
        items: list[Item] = []
        run: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.Let) and is_launch_uniform(stmt.value, self.uniform):
                self.uniform[stmt.var] = stmt
            elif isinstance(stmt, (ir.ParallelFor, ir.Sections, ir.DoWhile, ir.Gate)):
                items += [run] if run else []
                items.append(self.part(stmt))
                run = []
            else:
                run.append(stmt)
        return (*items, run) if run else tuple(items)

    def part(self, stmt: ir.ParallelFor | ir.Sections | ir.DoWhile | ir.Gate) -> Item:
        match stmt:
            case ir.Sections(branches=branches):
                return Forked(tuple(self.cut(branch.stmts) for branch in branches))
            case ir.DoWhile(body=body):
                return Repeated(stmt, self.cut(body.stmts))
            case ir.Gate(number=number, body=body):
                return Gated(number, self.cut(body.stmts))
            case ir.ParallelFor():
                return stmt

    def build(self, items: Iterable[Item]) -> Flow:
        """Makes the tasks of ``items``; their order."""
        flow: list[Step] = []
        for item in items:
            match item:
                case Forked(branches=branches):
                    built = [branch for branch in map(self.build, branches) if branch]
                    flow += [Fork(tuple(built))] if len(built) > 1 else (part for branch in built for part in branch)
                case Repeated(node=node, body=body):
                    flow += self.add(self.begin(item))
                    flow.append(Loop(node.condition, self.build(body)))
                case Gated(number=number, body=body):
                    self.gate = ir.TaskGate(CHECKPOINT, number)
                    flow += self.build(body)
                    self.gate = None
                case ir.ParallelFor():
                    flow += self.add(self.parallel(item))
                case _:
                    flow += self.add(self.serial(item))
        return tuple(flow)

    def add(self, task: ir.Task | None) -> tuple[int, ...]:
        """Appends ``task``, if there is one; its number."""
        if task is None:
            return ()
        self.tasks.append(replace(task, name=f"{self.kernel.name}_t{len(self.tasks)}", gate=self.gate))
        return (len(self.tasks) - 1,)

    def find_crossing(self, segments: list[Segment]) -> None:
        """Gives a slot to each variable that one task sets and another reads."""
        sets: list[set[ir.Var]] = []
        reads: list[set[ir.Var]] = []
        for segment in segments:
            nodes = [segment] if isinstance(segment, ir.ParallelFor) else segment
            sets.append({var for node in nodes for var in defined_in(node)})
            reads.append(reads_of(*nodes))
        for i, j in permutations(range(len(segments)), 2):
            self.give_slots(sets[i] & reads[j])

    def find_carried(self, items: Iterable[Item]) -> None:
        """Gives a slot to each variable that passes from one iteration of a loop to the next."""
        for item in items:
            if isinstance(item, Forked):
                for branch in item.branches:
                    self.find_carried(branch)
            elif isinstance(item, Repeated):
                self.give_slots(carried(item, self.kernel.crossing))
                self.find_carried(item.body)

    def give_slots(self, variables: Iterable[ir.Var]) -> None:
        for var in sorted(variables, key=lambda v: v.name):
            self.slots.setdefault(var, self.shift + len(self.slots))

    def begin(self, loop: Repeated) -> ir.SerialTask | None:
        """A task that sets variables to 0 that ``loop`` carries and nothing has set before."""
        unset = [var for var in carried(loop, self.kernel.crossing) if var not in self.stored]
        if not unset:
            return None
        self.stored.update(unset)
        at = At(loop.node.span)
        zeros = (at.store(ir.Slot(self.slots[v], v.type, span=at.span), at.const(0, v.type)) for v in unset)
        return ir.SerialTask("", at.block(zeros), span=at.span)

    def serial(self, run: list[ir.Stmt]) -> ir.SerialTask | None:
        stmts = self.renumber(ir.Block(tuple(run), span=run[0].span)).stmts
        defined = {var for stmt in run for var in defined_in(stmt)}
        assigned = assigned_in(*run)
        used = reads_of(*run) | assigned
        at = At(run[0].span)
        head: list[ir.Stmt] = []
        for var, number in self.slots.items():
            if var in used and var in self.stored:
                head += _enter(var, number, mutable=var in assigned or var not in defined, run=run)
        tail = [at.store(ir.Slot(n, v.type, span=at.span), at.read(v)) for v, n in self.slots.items() if v in defined]
        self.stored |= {v for v in self.slots if v in defined}
        body = [*self.recomputed([*run, *tail]), *head, *stmts]
        returns = [s for s in body if isinstance(s, ir.Return)]
        body = _live([*(s for s in body if not isinstance(s, ir.Return)), *tail, *returns])
        return ir.SerialTask("", at.block(body), span=at.span) if body else None

    def parallel(self, loop: ir.ParallelFor) -> ir.ParallelTask:
        used = reads_of(loop.body)
        head: list[ir.Stmt] = [
            At(loop.span).load(var, ir.Slot(n, var.type, span=loop.span))
            for var, n in self.slots.items()
            if var in used
        ]
        body = self.renumber(loop.body)
        stmts = (*self.recomputed([loop.body]), *head, *body.stmts)
        axes = tuple(self.substitute(axis) for axis in loop.axes)
        return ir.ParallelTask(
            "", axes, ir.Block(stmts, span=loop.body.span), block_dim=loop.block_dim, shared=loop.shared,
            allowed=tuple(self.allowed(loop)), span=loop.span,
        )  # fmt: skip

    def allowed(self, loop: ir.ParallelFor) -> Iterator[tuple[str, str]]:
        """By name; a variable that no other task needs has no slot, and belongs to each iteration."""
        for what, reason in loop.allowed:
            if isinstance(what, str):
                yield what, reason
            elif what in self.slots:
                yield ir.slot_name(self.slots[what]), reason

    def recomputed(self, nodes: Iterable[ir.Node]) -> list[ir.Stmt]:
        """The uniform values that ``nodes`` need, in the order in which they were written."""
        needed, pending = set(), reads_of(*nodes) & self.uniform.keys()
        while pending:
            needed |= pending
            pending = (reads_of(*(self.uniform[var] for var in pending)) & self.uniform.keys()) - needed
        return [let for var, let in self.uniform.items() if var in needed]

    def substitute(self, axis: ir.Axis) -> ir.Axis:
        """An axis over constants, parameters, extents and slots alone."""

        def visit(node: ir.Node) -> ir.Node:
            if isinstance(node, ir.VarRead):
                if node.var in self.uniform:
                    return visit(self.uniform[node.var].value)
                return ir.SlotRead(self.slots[node.var], node.type, span=node.span)
            return map_children(node, visit)

        return map_children(axis, visit)

    def renumber(self, block: ir.Block) -> ir.Block:
        """Slots that the trace numbered come after those of the results."""

        def visit(node: ir.Node) -> ir.Node:
            if isinstance(node, ir.Slot):
                return replace(node, number=node.number + self.shift)
            return map_children(node, visit)

        return map_children(block, visit) if self.shift else block


def _enter(var: ir.Var, number: int, *, mutable: bool, run: list[ir.Stmt]) -> list[ir.Stmt]:
    """Statements that load, in a serial task, the value that an earlier task stored."""
    at = At(run[0].span)
    place = ir.Slot(number, var.type, span=at.span)
    if not mutable:
        return []
    if not any(isinstance(node, ir.Assign) and node.var == var for stmt in run for node in walk(stmt)):
        return [at.load(var, place)]
    incoming = ir.Var(f"{var.name}.in", var.type)
    return [at.load(incoming, place), at.assign(var, at.read(incoming))]


def _live(stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    """``stmts`` without the bindings that nothing reads."""
    used: set[ir.Var] = set()
    kept: list[ir.Stmt] = []
    for stmt in reversed(stmts):
        if is_binding(stmt) and used.isdisjoint(bound_by(stmt)):
            continue
        used |= reads_of(stmt)
        kept.append(stmt)
    return kept[::-1]


Segment: TypeAlias = ir.ParallelFor | list[ir.Stmt]
"""The source of one task: a parallel loop, or a run of other statements."""


@dataclass(frozen=True, slots=True)
class Forked:
    """Branches that run at once."""

    branches: tuple[tuple[Item, ...], ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """The body of a do-while loop."""

    node: ir.DoWhile
    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Gated:
    """A part with checkpoints around it."""

    number: int
    body: tuple[Item, ...]


Item: TypeAlias = "Segment | Forked | Repeated | Gated"


def segments_of(items: Iterable[Item]) -> Iterator[Segment]:
    """All segments, in the order in which they stand."""
    for item in items:
        if isinstance(item, Forked):
            for branch in item.branches:
                yield from segments_of(branch)
        elif isinstance(item, (Repeated, Gated)):
            yield from segments_of(item.body)
        else:
            yield item


def defined_in(node: ir.Node) -> Iterator[ir.Var]:
    """The variables that ``node`` sets at any depth; a parallel loop keeps its own."""
    return iter(()) if isinstance(node, ir.ParallelFor) else set_in(node)


def carried(loop: Repeated, crossing: Sequence[ir.Var]) -> list[ir.Var]:
    """The variables whose values pass from one iteration of ``loop`` to the next, by name.

    They change in the loop, and on some path nothing sets them before they are read, or changed in part;
    ``crossing`` are the variables of the slots that the trace numbered.
    """
    stmts = [
        stmt
        for segment in segments_of(loop.body)
        for stmt in ([segment] if isinstance(segment, ir.ParallelFor) else segment)
    ]
    changed = {var for stmt in stmts for var in _changed(stmt, crossing)}
    asked: set[ir.Var] = set()
    settled: set[ir.Var] = set()
    for stmt in stmts:
        asked |= _asked(stmt, crossing) - settled
        if isinstance(stmt, ir.Assign):
            settled.add(stmt.var)
    return sorted(asked & changed, key=lambda var: var.name)


def _changed(stmt: ir.Stmt, crossing: Sequence[ir.Var]) -> Iterator[ir.Var]:
    if not isinstance(stmt, ir.ParallelFor):
        yield from assigned_in(stmt)
    yield from (crossing[place.number] for place in changed_in(stmt) if isinstance(place, ir.Slot))


def _asked(stmt: ir.Stmt, crossing: Sequence[ir.Var]) -> set[ir.Var]:
    """The variables whose earlier values ``stmt`` needs."""
    if isinstance(stmt, ir.Assign):
        return reads_of(stmt.value)
    slots = {crossing[node.number] for node in walk(stmt) if isinstance(node, ir.Slot)}
    if isinstance(stmt, ir.ParallelFor):
        return reads_of(stmt) | slots
    return reads_of(stmt) | slots | assigned_in(stmt)
