"""Decides which parallel loops the CPU vectorises over their iterations although they have inner loops.

LLVM vectorises innermost loops.  One that carries a float from turn to turn (``sum += x[k]``) is a chain that may not
be reordered, so it stays scalar, while the iterations of the parallel loop around it are independent.  If all of
them run the inner loops alike, a group of iterations runs these loops side by side, one in each element of a vector.
Each does what it would do alone, in the same order, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from quadpy.codegen.plans.cost import cost_of, lines_of
from quadpy.codegen.plans.inlining import INLINED_LINES
from quadpy.codegen.plans.sections import SectionPlan, plan_sections
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import uses_block
from quadpy.ir.numbering import Numbers
from quadpy.ir.touches import only_reads, touched_in
from quadpy.ir.types import Array
from quadpy.ir.uniform import decided_by, varying
from quadpy.ir.variables import assigned_in, bound_by, reads_of
from quadpy.ir.walk import children, walk

_BYTES: Final = 64
"""A group's values of one variable: one register with AVX-512, two with AVX2, so that two chains overlap."""
_UNROLLED: Final = 256
"""Cost up to which LLVM unrolls a loop with a known number of turns, so that no inner loop is left."""
_MOST_LINES: Final = INLINED_LINES // 2
"""Most lines of a body, which is written twice: in longer ones, library functions would no longer be inlined."""
_MOST_STACK: Final = 16 << 10
"""Most bytes of a group's values; those that do not fit into registers stay on the thread's stack."""
_STEP: Final = 4
"""The largest distance, in scalars, from one iteration's element to the next."""
_APART: Final = (ir.While, ir.Return, ir.Break, ir.AssignOne, ir.Pick)
"""What an iteration cannot run together with others, beside all that orders something."""


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """Groups of ``width`` iterations of the last axis run side by side."""

    width: int
    sections: SectionPlan


def plan_vector(kernel: ir.Kernel, task: ir.Task) -> VectorPlan | None:
    """The plan for ``task``; None if its iterations run one after the other."""
    if not isinstance(task, ir.ParallelTask) or task.reductions or task.privates or uses_block(task):
        return None
    nodes = list(walk(task.body))
    if not any(isinstance(n, ir.For) for n in nodes) or any(n.ORDERS or isinstance(n, _APART) for n in nodes):
        return None
    differing = varying(task, task.axes[-1].var, noalias=kernel.noalias)
    alike = list(_alike(task.body, differing))
    loops = [stmt for stmt in alike if isinstance(stmt, ir.For)]
    if len(loops) < sum(isinstance(n, ir.For) for n in nodes) or _jumps_far(task.body):
        return None
    functions = {f.name: f for f in kernel.functions}
    carried = [place.type.nbytes for x in loops if not is_unrolled(x, functions) for place in carried_by(x)]
    if not carried or not Closeness(kernel, task, differing).holds() or lines_of(task.body, functions) > _MOST_LINES:
        return None
    width = _BYTES // max(4, *carried)
    shared = (load for loop in loops for load in _shared_loads(loop.body, differing))
    sections = plan_sections(task, Numbers(task.body).of((*alike, *shared)))
    if sum(width * var.type.nbytes for var in sections.kept) > _MOST_STACK:
        return None
    return VectorPlan(width, sections)


def _alike(block: ir.Block, differing: set[ir.Var]) -> Iterator[ir.For | ir.If]:
    """The loops of ``block`` that all iterations run alike, and the branches around them, outermost first."""
    for stmt in block.stmts:
        if not isinstance(stmt, (ir.For, ir.If)) or differing & reads_of(*decided_by(stmt)):
            continue
        if isinstance(stmt, ir.For):
            yield stmt
            yield from _alike(stmt.body, differing)
        elif _nests(stmt):
            yield stmt
            yield from _alike(stmt.then, differing)
            yield from _alike(stmt.orelse, differing)


def _shared_loads(body: ir.Block, differing: set[ir.Var]) -> Iterator[ir.Stmt]:
    """Loads at the beginning of ``body`` that read one element for all iterations: a group does each once.

    LLVM moves them into the branches that use the value, and then loads once for each lane that takes the branch.
    """
    return (load for load in takewhile(only_reads, body.stmts) if not differing & reads_of(load))


def _jumps_far(body: ir.Block) -> bool:
    """Whether a ``continue`` in ``body`` skips inner loops, or ends an iteration of the parallel loop."""
    jumps = any(isinstance(stmt, ir.Continue) for stmt in _outside_loops(body))
    return jumps or any(
        _nests(loop) and any(isinstance(stmt, ir.Continue) for stmt in _outside_loops(loop.body))
        for loop in walk(body)
        if isinstance(loop, ir.For)
    )


def _nests(stmt: ir.For | ir.If) -> bool:
    return any(isinstance(n, ir.For) for child in children(stmt) for n in walk(child))


def _outside_loops(node: ir.Node) -> Iterator[ir.Node]:
    """``node`` and its descendants outside of loops."""
    yield node
    if not isinstance(node, ir.For):
        for child in children(node):
            yield from _outside_loops(child)


def is_unrolled(loop: ir.For, functions: dict[str, ir.Function]) -> bool:
    """Whether LLVM unrolls ``loop`` completely."""
    counted = all(isinstance(e, ir.Const) for e in (loop.start, loop.stop, loop.step))
    return counted and cost_of(loop, functions) <= _UNROLLED


def carried_by(loop: ir.For) -> Iterator[ir.Var | ir.Place]:
    """The floats that a turn of ``loop`` gets from the turn before, in variables or in memory."""
    assigned = assigned_in(loop.body)
    for stmt in loop.body.stmts:
        for var in reads_of(stmt) & assigned:
            if var.type.is_float:
                yield var
        if isinstance(stmt, ir.Assign):
            assigned.discard(stmt.var)  # what reads it now reads this turn's value
    turn = {loop.var, *(var for n in walk(loop.body) for var in bound_by(n))}
    accesses = [(place, access) for _, place, access in touched_in(loop.body)]
    loaded, stored = ({p for p, access in accesses if access is kind} for kind in (ir.Access.READ, ir.Access.WRITE))
    for place in loaded & stored:
        if place.type.is_float and not turn & reads_of(place):
            yield place


class Closeness:
    """Whether the elements that a group accesses at once in inner loops are neighbours, or one element.

    Iterations that each walk along a different row would read a cache line each, and rows 4 KiB apart evict each other.
    ``close`` are the variables that grow from one iteration to the next by one at most.
    """

    def __init__(self, kernel: ir.Kernel, task: ir.ParallelTask, differing: set[ir.Var]) -> None:
        self.task, self.differing = task, differing
        self.types = kernel.array_types
        axis = task.axes[-1]
        self.close = {axis.var} if isinstance(axis.step, ir.Const) and abs(axis.step.value) == 1 else set()
        for n in walk(task.body):
            if isinstance(n, ir.Let) and self.is_close(n.value):
                self.close.add(n.var)

    def holds(self) -> bool:
        loops = (n for n in walk(self.task.body) if isinstance(n, ir.For))
        return all(self.is_near(n) for loop in loops for n in walk(loop.body) if isinstance(n, ir.Element))

    def is_near(self, place: ir.Element) -> bool:
        if not self.differing & reads_of(place):
            return True
        array = self.types[place.array]
        return not array.strided and step_of(array, place) <= _STEP * place.type.nbytes and self.follows(place)

    def follows(self, place: ir.Element) -> bool:
        """Whether the next iteration's element is the next one along the last axis."""
        if not place.index:
            return False
        *rows, last = place.index
        return not self.differing & reads_of(*rows) and self.is_close(last)

    def is_close(self, e: ir.Expr) -> bool:
        match e:
            case ir.VarRead(var=var):
                return var in self.close or var not in self.differing
            case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB | ir.BinOp.MIN | ir.BinOp.MAX, lhs=lhs, rhs=rhs):
                return self.is_close(lhs) and self.is_close(rhs)
            case ir.Cast(operand=operand, type=t):
                return not t.is_float and not operand.type.is_float and self.is_close(operand)
            case _:
                return not self.differing & reads_of(e)


def step_of(array: Array, place: ir.Element) -> int:
    """The bytes from the scalar ``place`` of ``array`` to that of the next element along the last axis."""
    member, _ = array.layout.at(place.component)
    return member.axes[-1] if member.axes is not None else array.layout.size
