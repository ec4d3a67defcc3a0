"""Cuts the body of a kernel into tasks.  Owns: split_tasks.  Imports: ``ir`` only.

Each top-level loop is a task; statements between loops make serial ones.  Values that follow from the
arguments alone (``n = x.shape[0] // 2``) are computed again in each task that uses them, so they cost no
task of their own; all else that crosses from task to task goes through slots of scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from quadpy.ir.nodes import (
    Assign,
    Atomic,
    Axis,
    Block,
    CallMany,
    Const,
    Expr,
    Kernel,
    Let,
    Load,
    Node,
    ParallelFor,
    ParallelTask,
    ParamRead,
    Return,
    SerialTask,
    ShapeOf,
    Slot,
    SlotRead,
    Stmt,
    Store,
    Task,
    Var,
    VarRead,
)  # fmt: skip
from quadpy.ir.walk import map_children, walk

__all__ = ["split_tasks"]


def split_tasks(kernel: Kernel, slots: Mapping[Var, int]) -> Kernel:
    """``kernel`` with tasks instead of a body; ``slots`` are those that parallel loops asked for already."""
    return _Splitter(kernel, slots).run()


class _Splitter:
    def __init__(self, kernel: Kernel, slots: Mapping[Var, int]) -> None:
        self.kernel = kernel
        self.uniform: dict[Var, Let] = {}
        first = len(kernel.results)
        self.slots = {var: first + number for var, number in slots.items()}
        self.shift = first
        self.stored: set[Var] = set()

    def run(self) -> Kernel:
        segments = list(self.segments())
        self.find_crossing(segments)
        tasks: list[Task] = []
        for segment in segments:
            task = self.parallel(segment) if isinstance(segment, ParallelFor) else self.serial(segment)
            if task is not None:
                tasks.append(replace(task, name=f"{self.kernel.name}_t{len(tasks)}"))
        body = Block((), span=self.kernel.span)
        return replace(self.kernel, body=body, tasks=tuple(tasks),
                       slots=self.shift + len(self.slots))  # fmt: skip

    def segments(self) -> Iterator[ParallelFor | list[Stmt]]:
        """Top-level loops, and runs of other statements; uniform values are set aside."""
        run: list[Stmt] = []
        for stmt in self.kernel.body.stmts:
            if isinstance(stmt, ParallelFor):
                if run:
                    yield run
                run = []
                yield stmt
            elif isinstance(stmt, Let) and self.is_uniform(stmt.value):
                self.uniform[stmt.var] = stmt
            else:
                run.append(stmt)
        if run:
            yield run

    def is_uniform(self, value: Expr) -> bool:
        leaves = (node for node in walk(value) if not node.CHILDREN)
        return all(
            isinstance(leaf, (Const, ParamRead, ShapeOf)) or (isinstance(leaf, VarRead) and leaf.var in self.uniform)
            for leaf in leaves
        )

    def find_crossing(self, segments: list[ParallelFor | list[Stmt]]) -> None:
        """Gives a slot to each variable that one task sets and another reads."""
        sets: list[set[Var]] = []
        reads: list[set[Var]] = []
        for segment in segments:
            nodes = [segment] if isinstance(segment, ParallelFor) else segment
            sets.append({var for node in nodes for var in _defined(node)})
            reads.append({sub.var for node in nodes for sub in walk(node) if isinstance(sub, VarRead)})
        for i, names in enumerate(sets):
            for j, used in enumerate(reads):
                if i != j:
                    for var in sorted(names & used, key=lambda v: v.name):
                        self.slots.setdefault(var, self.shift + len(self.slots))

    def serial(self, run: list[Stmt]) -> SerialTask | None:
        stmts = self.renumber(Block(tuple(run), span=run[0].span)).stmts
        defined = {var for stmt in run for var in _defined(stmt)}
        assigned = {node.var for stmt in run for node in walk(stmt) if isinstance(node, Assign)}
        used = _read(run) | assigned
        span = run[0].span
        head: list[Stmt] = []
        for var, number in self.slots.items():
            if var in used and var in self.stored:
                head += _enter(var, number, mutable=var in assigned or var not in defined, run=run)
        tail = [Store(Slot(n, v.type, span=span), VarRead(v, span=span), span=span)
                for v, n in self.slots.items() if v in defined]  # fmt: skip
        self.stored |= {v for v in self.slots if v in defined}
        body = [*self.recomputed([*run, *tail]), *head, *stmts]
        returns = [s for s in body if isinstance(s, Return)]
        body = _live([*(s for s in body if not isinstance(s, Return)), *tail, *returns])
        return SerialTask("", Block(tuple(body), span=span), span=span) if body else None

    def parallel(self, loop: ParallelFor) -> ParallelTask:
        used = _read([loop.body])
        head: list[Stmt] = [
            Load(var, Slot(n, var.type, span=loop.span), span=loop.span) for var, n in self.slots.items() if var in used
        ]
        body = self.renumber(loop.body)
        stmts = (*self.recomputed([loop.body]), *head, *body.stmts)
        axes = tuple(self.substitute(axis) for axis in loop.axes)
        return ParallelTask("", axes, Block(stmts, span=loop.body.span), block_dim=loop.block_dim, span=loop.span)

    def recomputed(self, nodes: Iterable[Node]) -> list[Stmt]:
        """The uniform values that ``nodes`` need, in the order in which they were written."""
        needed, pending = set(), _read(nodes) & self.uniform.keys()
        while pending:
            needed |= pending
            pending = (_read(self.uniform[var] for var in pending) & self.uniform.keys()) - needed
        return [let for var, let in self.uniform.items() if var in needed]

    def substitute(self, axis: Axis) -> Axis:
        """An axis over constants, parameters, extents and slots alone."""

        def visit(node: Node) -> Node:
            if isinstance(node, VarRead):
                if node.var in self.uniform:
                    return visit(self.uniform[node.var].value)
                return SlotRead(self.slots[node.var], node.type, span=node.span)
            return map_children(node, visit)

        return map_children(axis, visit)

    def renumber(self, block: Block) -> Block:
        """Slots that the trace numbered come after those of the results."""

        def visit(node: Node) -> Node:
            return (
                replace(node, number=node.number + self.shift) if isinstance(node, Slot) else map_children(node, visit)
            )

        return map_children(block, visit) if self.shift else block


def _enter(var: Var, number: int, *, mutable: bool, run: list[Stmt]) -> list[Stmt]:
    """Brings what an earlier task stored into a serial task."""
    span = run[0].span
    place = Slot(number, var.type, span=span)
    if not mutable:
        return []
    if not any(isinstance(node, Assign) and node.var == var for stmt in run for node in walk(stmt)):
        return [Load(var, place, span=span)]
    incoming = Var(f"{var.name}.in", var.type)
    return [Load(incoming, place, span=span), Assign(var, VarRead(incoming, span=span), span=span)]


def _read(nodes: Iterable[Node]) -> set[Var]:
    return {sub.var for node in nodes for sub in walk(node) if isinstance(sub, VarRead)}


def _defined(node: Node) -> Iterator[Var]:
    """The variables that ``node`` sets at any depth; a parallel loop keeps its own."""
    if isinstance(node, ParallelFor):
        return
    for sub in walk(node):
        if isinstance(sub, (Let, Load, Assign)):
            yield sub.var
        elif isinstance(sub, Atomic) and sub.result is not None:
            yield sub.result
        elif isinstance(sub, CallMany):
            yield from sub.results


def _live(stmts: list[Stmt]) -> list[Stmt]:
    """Without the bindings that nothing reads."""
    used: set[Var] = set()
    kept: list[Stmt] = []
    for stmt in reversed(stmts):
        if isinstance(stmt, (Let, Load)) and stmt.var not in used:
            continue
        used |= _read([stmt])
        kept.append(stmt)
    return kept[::-1]
