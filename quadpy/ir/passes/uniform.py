"""What all iterations of a block have in common.  Owns: check_barriers (they all reach them, or the kernel is refused),
varying.

What differs between the iterations of a block: their number, and all that is computed from it; what they load, but for
arrays that the loop only reads; variables that only some of them assign.  Conditions over all else are *uniform*.
Imports: ``ir`` and leaves only.
"""

from __future__ import annotations

from quadpy.errors import KernelSyntaxError
from quadpy.ir.blocks import done_together, has_barrier
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import (
    Access,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    CallMany,
    Continue,
    Element,
    For,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    Node,
    ParallelTask,
    Place,
    Region,
    Slot,
    Stmt,
    Store,
    ThreadIndex,
    Var,
    VarRead,
    While,
)  # fmt: skip
from quadpy.ir.walk import walk
from quadpy.source import Span

__all__ = ["check_barriers", "varying"]


def check_barriers(task: ParallelTask, kernel: Kernel) -> None:
    """KernelSyntaxError where a condition that is not uniform decides who comes to a barrier."""
    if has_barrier(task.body):
        _Divergence(task, {axis.var for axis in task.axes}, noalias=kernel.noalias).check()


def varying(task: ParallelTask, lanes: Var, *, noalias: bool) -> set[Var]:
    """The variables that may differ between iterations of ``task`` that only the axis of ``lanes`` tells apart."""
    divergence = _Divergence(task, {lanes}, noalias=noalias)
    divergence.run()
    return divergence.varying


class _Divergence:
    """``varying`` holds variables that may differ in a block; ``split``, by the ``id`` of a loop or region, where some
    iterations leave it earlier than others.  Both grow until nothing changes.

    A *cause* is the place of what keeps iterations apart; None where they are together.
    """

    def __init__(self, task: ParallelTask, varying: set[Var], *, noalias: bool) -> None:
        self.task, self.together = task, done_together(task.body)
        self.varying = varying
        self.split: dict[int, Span] = {}
        self.around: list[For | While | Region] = []
        self.left: Span | None = None
        self.checks = False
        written = {name for name, access in effects_of(task) if access is not Access.READ}
        shared = {array.name for array in task.shared}
        arrays = {node.array for node in walk(task.body) if isinstance(node, Element)} - shared
        self.constant = arrays - written if noalias or not written else set()
        self.own_slots = {
            n.place.number for n in walk(task.body) if isinstance(n, (Store, Atomic)) and isinstance(n.place, Slot)
        }

    def run(self) -> None:
        known = -1
        while known != (known := len(self.varying) + len(self.split)):
            self.left = None
            self.block(self.task.body, None)

    def check(self) -> None:
        self.run()
        self.left, self.checks = None, True
        self.block(self.task.body, None)

    def block(self, block: Block, cause: Span | None) -> None:
        for stmt in block.stmts:
            apart = cause or self.left
            if self.checks and apart and id(stmt) in self.together and isinstance(stmt, _STEPS):
                self.refuse(stmt, apart)
            self.stmt(stmt, apart)

    def refuse(self, stmt: Stmt, cause: Span) -> None:
        what = "this block.sync() is" if isinstance(stmt, Barrier) else "a block.sync() comes after this, and is then"
        raise KernelSyntaxError(
            f"{what} not reached by all threads of a block: what line {cause.line} decides may differ between them",
            stmt.span, hint="let parameters, shapes, block_idx() or loop counters decide, or move the barrier out",
        )  # fmt: skip

    def stmt(self, stmt: Stmt, cause: Span | None) -> None:
        match stmt:
            case Let(var=var, value=value):
                self.bind(var, varies=self.varies(value))
            case Assign(var=var, value=value):
                self.bind(var, varies=cause is not None or self.varies(value))
            case Load(var=var, place=place):
                self.bind(var, varies=not self.is_constant(place))
            case Atomic(result=result) if result is not None:
                self.bind(result, varies=True)
            case CallMany(results=results, args=args):
                for var in results:
                    self.bind(var, varies=any(map(self.varies, args)))
            case If(cond=cond, then=then, orelse=orelse):
                cause = cause or (stmt.span if self.varies(cond) else None)
                self.block(then, cause)
                self.block(orelse, cause)
            case For() | While() | Region():
                self.construct(stmt, cause)
            case Break() | Continue() | Leave() if cause:
                self.jump(stmt, cause)
            case _:
                pass

    def construct(self, stmt: For | While | Region, cause: Span | None) -> None:
        cause = cause or self.split.get(id(stmt))
        if isinstance(stmt, For):
            self.bind(stmt.var, varies=self.varies(stmt.start) or self.varies(stmt.step))
            if any(map(self.varies, (stmt.start, stmt.stop, stmt.step))):
                cause = cause or stmt.span
        elif isinstance(stmt, While) and self.varies(stmt.cond):
            cause = cause or stmt.span
            self.split.setdefault(id(stmt), stmt.span)
        self.around.append(stmt)
        for block in (stmt.head, stmt.body) if isinstance(stmt, While) else (stmt.body,):
            self.block(block, cause)
        self.around.pop()

    def jump(self, stmt: Break | Continue | Leave, cause: Span) -> None:
        """Some iterations jump and others do not: all that the jump leads over is done apart."""
        for outer in reversed(self.around):
            self.split.setdefault(id(outer), cause)
            if isinstance(stmt, Leave) and isinstance(outer, Region) and outer.label == stmt.label:
                return
            if not isinstance(stmt, Leave) and not isinstance(outer, Region):
                return
        self.left = cause

    def bind(self, var: Var, *, varies: bool) -> None:
        if varies:
            self.varying.add(var)

    def is_constant(self, place: Place) -> bool:
        if isinstance(place, Slot):
            return place.number not in self.own_slots
        return place.array in self.constant and not any(map(self.varies, place.index))

    def varies(self, node: Node) -> bool:
        return any(isinstance(n, ThreadIndex) or (isinstance(n, VarRead) and n.var in self.varying) for n in walk(node))


_STEPS = (Barrier, Break, Continue, Leave)
