"""Loads of inner loops move to where their values are first known: to before the loop, or to the front of its body.

``for j in range(n): total += x[j] - x[i]`` loads ``x[i]`` once.  LLVM does this for one iteration of a parallel loop; in
a group of iterations side by side it would load all their elements again in each turn.  A load in a branch, or after
``continue``, moves only where the element exists whether or not the branch is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from quadpy.core.dtypes import u1
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.passes.hold import fits
from quadpy.ir.touches import changed_in
from quadpy.ir.types import Array
from quadpy.ir.variables import reads_of, set_in
from quadpy.ir.walk import map_children, walk

_LOOPS = (ir.For, ir.While)
_JUMPS = (ir.Continue, ir.Break, ir.Leave, ir.Return)


def with_early_loads(task: ir.ParallelTask, arrays: Mapping[str, Array], *, noalias: bool) -> ir.ParallelTask:
    """``task`` with the loads of its inner loops as early as their arrays, which are ``arrays``, allow."""
    mover = _Mover(arrays, noalias=noalias)
    return replace(task, body=mover.block(task.body, {axis.var: axis for axis in task.axes}))


@dataclass(slots=True)
class _Moved:
    """The loads that move to the ``front`` of a loop's body or to before the loop, where ``sure`` ones always load."""

    front: dict[ir.Place, ir.Load] = field(default_factory=dict)
    sure: dict[ir.Place, ir.Load] = field(default_factory=dict)
    first: dict[ir.Place, ir.Load] = field(default_factory=dict)

    def all(self) -> dict[ir.Place, ir.Load]:
        return self.front | self.sure | self.first


class _Mover:
    def __init__(self, arrays: Mapping[str, Array], *, noalias: bool) -> None:
        self.arrays, self.noalias = arrays, noalias

    def block(self, block: ir.Block, counters: Mapping[ir.Var, ir.Axis | ir.For]) -> ir.Block:
        stmts = tuple(new for stmt in block.stmts for new in self.statement(stmt, counters))
        return block if stmts == block.stmts else replace(block, stmts=stmts)

    def statement(self, stmt: ir.Stmt, counters: Mapping[ir.Var, ir.Axis | ir.For]) -> Iterator[ir.Stmt]:
        """``counters`` are the axes and counters of the loops around ``stmt``."""
        if not isinstance(stmt, ir.For):
            yield map_children(
                stmt, lambda child: self.block(child, counters) if isinstance(child, ir.Block) else child
            )
            return
        inside = {**counters, stmt.var: stmt}
        loop = replace(stmt, body=self.block(stmt.body, inside))
        moved = self.moved(loop, inside)
        if not (moves := moved.all()):
            yield loop
            return
        rest = _without(loop.body, moves)
        loop = replace(loop, body=replace(rest, stmts=(*moved.front.values(), *rest.stmts)))
        yield from moved.sure.values()
        if not moved.first:
            yield loop
            return
        body = ir.Block((*moved.first.values(), loop), span=loop.span)
        yield ir.If(_runs(loop), body, ir.Block((), span=loop.span), span=loop.span)

    def moved(self, loop: ir.For, counters: Mapping[ir.Var, ir.Axis | ir.For]) -> _Moved:
        moved, own = _Moved(), _bound_in(loop.body)
        written = {place.array for place in changed_in(loop.body) if isinstance(place, ir.Element)}
        opaque = written and not self.noalias
        for load, certain in _loads_of(loop.body):
            place, reads = load.place, reads_of(load.place)
            if not isinstance(place, ir.Element) or opaque or place.array in written or reads & own:
                continue
            known = moved.all()
            if place in known:
                continue
            if self.exists(place, counters):
                (moved.front if loop.var in reads else moved.sure)[place] = load
            elif certain and loop.var not in reads and _rises(loop):
                moved.first[place] = load
        return moved

    def exists(self, place: ir.Element, counters: Mapping[ir.Var, ir.Axis | ir.For]) -> bool:
        """Whether the loops around keep all its indices inside the array."""
        array = self.arrays.get(place.array)
        return array is not None and all(
            isinstance(index, ir.VarRead)
            and index.var in counters
            and fits(counters[index.var], place.array, number, array)
            for number, index in enumerate(place.index)
        )


def _loads_of(body: ir.Block) -> Iterator[tuple[ir.Load, bool]]:
    """The loads of ``body`` outside of its inner loops, and whether each runs whenever ``body`` does."""
    certain = True
    for stmt in body.stmts:
        if isinstance(stmt, ir.Load):
            yield stmt, certain
        elif isinstance(stmt, ir.If):
            for side in (stmt.then, stmt.orelse):
                yield from ((load, False) for load, _ in _loads_of(side))
        certain = certain and not any(isinstance(n, _JUMPS) for n in walk(stmt))


def _bound_in(body: ir.Block) -> set[ir.Var]:
    """The variables that ``body`` binds or assigns."""
    return {*set_in(body), *(n.var for n in walk(body) if isinstance(n, ir.For))}


def _without(body: ir.Block, moves: Mapping[ir.Place, ir.Load]) -> ir.Block:
    """``body`` without the loads ``moves``; others of the same places, outside of inner loops, take their values."""

    def rest(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, ir.Load) and stmt.place in moves:
            if moves[stmt.place] is not stmt:
                yield ir.Let(stmt.var, ir.VarRead(moves[stmt.place].var, span=stmt.span), span=stmt.span)
        elif isinstance(stmt, _LOOPS):
            yield stmt
        else:
            yield map_children(stmt, lambda child: _without(child, moves) if isinstance(child, ir.Block) else child)

    return replace(body, stmts=tuple(new for stmt in body.stmts for new in rest(stmt)))


def _rises(loop: ir.For) -> bool:
    return isinstance(loop.step, ir.Const) and loop.step.value > 0


def _runs(loop: ir.For) -> ir.Expr:
    return ir.Compare(ir.CmpOp.LT, loop.start, loop.stop, u1, span=loop.span)
