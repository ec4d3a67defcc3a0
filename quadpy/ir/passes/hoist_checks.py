"""Loops whose checks one comparison before them can decide: ``for j in range(n): total += x[j] * w[j, i]``.

Such a loop becomes two: if ``n`` is at most both extents and ``i`` is in range, a loop without checks runs, which LLVM
can unroll and vectorise; otherwise the original loop runs and finds the failure.  Both do the same in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Final, TypeAlias, TypeGuard

from quadpy.core.dtypes import i64, u1
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, converted
from quadpy.ir.variables import reads_of, set_in
from quadpy.ir.walk import map_children, walk

Counter: TypeAlias = ir.For | ir.Axis

_LARGEST: Final = 400
"""Nodes of a body that is worth writing twice; larger ones gain little."""
_LARGEST_CONDITION: Final = 60
"""Nodes of a condition, with what its names stand for."""


def hoist_checks(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with two versions of each innermost sequential loop that needs no checks if a condition holds before it."""
    if not kernel.sites:
        return kernel
    return map_children(kernel, lambda node: map_children(node, _rewritten) if isinstance(node, _TASKS) else node)


def hoist_checks_of_tasks(kernel: ir.Kernel) -> ir.Kernel:
    """The same for parallel loops: each iteration chooses, and LLVM moves the choice to before a loop over iterations."""
    if not kernel.sites:
        return kernel
    return map_children(kernel, lambda node: _task(node) if isinstance(node, ir.ParallelTask) else node)


_TASKS: Final = (ir.SerialTask, ir.ParallelTask)
_WITH_BLOCKS: Final = (ir.Block, ir.If, ir.For, ir.While, ir.LabelledBlock)


def _rewritten(node: ir.Node) -> ir.Node:
    if not isinstance(node, _WITH_BLOCKS):
        return node
    node = map_children(node, _rewritten)
    if not isinstance(node, ir.For) or (found := _without_checks(node.body, (node,))) is None:
        return node
    holds, body = found
    return At(node.span).when(holds, [replace(node, body=body)], [node])


def _task(task: ir.ParallelTask) -> ir.ParallelTask:
    if (found := _without_checks(task.body, task.axes)) is None:
        return task
    holds, body = found
    choice = ir.If(holds, body, task.body, span=task.span)
    return replace(task, body=ir.Block((choice,), span=task.span))


def _without_checks(body: ir.Block, counters: Sequence[Counter]) -> tuple[ir.Expr, ir.Block] | None:
    """The body of a loop without its checks, and the condition for it; None if it cannot be decided before the loop."""
    nodes = list(walk(body))
    faults = sum(isinstance(node, ir.Fault) for node in nodes)
    if not faults or len(nodes) > _LARGEST or any(isinstance(node, (ir.For, ir.While)) for node in nodes):
        return None
    checks = [node for node in nodes if _is_check(node)]
    before = _Before(body, counters)
    parts = [part for check in checks for part in before.conditions(check)]
    found = list(dict.fromkeys(part for part in parts if part is not None))
    if len(checks) != faults or None in parts:
        return None
    return reduce(and_, found), _dropped(body)


def _is_check(node: ir.Node) -> TypeGuard[ir.If]:
    """Whether it reports a failure and leaves, and does nothing else."""
    kinds = (ir.Fault, ir.Leave)
    return (
        isinstance(node, ir.If)
        and not node.orelse.stmts
        and bool(node.then.stmts)
        and all(isinstance(stmt, kinds) for stmt in node.then.stmts)
    )


def _dropped(body: ir.Block) -> ir.Block:
    """``body`` without its checks."""

    def kept(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            node = At(node.span).block(stmt for stmt in node.stmts if not _is_check(stmt))
        return map_children(node, kept) if isinstance(node, _WITH_BLOCKS) else node

    found: ir.Block = kept(body)  # type: ignore[assignment]  # of the class that it was
    return found


class _Before:
    """Facts before a loop with ``counters`` about conditions in its ``body``."""

    def __init__(self, body: ir.Block, counters: Sequence[Counter]) -> None:
        self.lets = {node.var: node.value for node in walk(body) if isinstance(node, ir.Let)}
        self.changed = {*(counter.var for counter in counters), *set_in(body)}
        self.counters = {counter.var: counter for counter in counters if _counts(counter)}

    def conditions(self, check: ir.If) -> Iterator[ir.Expr | None]:
        """Conditions before the loop under which ``check`` never fails; None if there are no such conditions."""
        if not (isinstance(check.cond, ir.Unary) and check.cond.op is ir.UnOp.NOT):
            yield None
            return
        for part in _parts(self.resolved(check.cond.operand)):
            yield from self.condition(part)

    def condition(self, part: ir.Expr) -> Iterator[ir.Expr | None]:
        if self.is_fixed(part):
            yield part
        elif isinstance(part, ir.Compare) and part.op is ir.CmpOp.LT and self.is_index(part):
            yield from self.range_fits(*_offset(_plain(part.lhs)), _plain(part.rhs))
        else:
            yield None

    def is_index(self, part: ir.Compare) -> bool:
        """Whether it is ``0 <= counter + constant < extent``, as unsigned numbers."""
        index, _ = _offset(_plain(part.lhs))
        is_counter = isinstance(index, ir.VarRead) and index.var in self.counters
        return is_counter and isinstance(_plain(part.rhs), (ir.ShapeOf, ir.Const)) and part.lhs.type.kind == "uint"

    def range_fits(self, index: ir.Expr, offset: int, extent: ir.Expr) -> Iterator[ir.Expr]:
        """0 <= start + offset, and stop + offset <= extent; in 64 bits neither wraps."""
        assert isinstance(index, ir.VarRead)
        counter = self.counters[index.var]
        start, stop = (converted(end, i64) for end in (counter.start, counter.stop))
        if offset:
            start, stop = start + offset, stop + offset
        yield start >= 0
        yield stop <= converted(extent, i64)

    def is_fixed(self, e: ir.Expr) -> bool:
        return not reads_of(e) & self.changed and len(list(walk(e))) <= _LARGEST_CONDITION

    def resolved(self, e: ir.Expr, budget: int = _LARGEST_CONDITION) -> ir.Expr:
        """``e`` with the values of names that the body binds."""

        def one(node: ir.Node) -> ir.Node:
            nonlocal budget
            budget -= 1
            if isinstance(node, ir.VarRead) and node.var in self.lets and budget > 0:
                return one(self.lets[node.var])
            return map_children(node, one) if budget > 0 else node

        found: ir.Expr = one(e)  # type: ignore[assignment]  # an expression of the same type
        return found


def _counts(counter: Counter) -> bool:
    """Whether it rises, in numbers whose sums with constants fit into 64 bits, between bounds that the body can read."""
    rises = isinstance(counter.step, ir.Const) and counter.step.value > 0
    readable = not any(isinstance(node, ir.SlotRead) for end in (counter.start, counter.stop) for node in walk(end))
    return rises and readable and counter.var.type.bits <= 32


def _parts(e: ir.Expr) -> Iterator[ir.Expr]:
    """``e`` as conditions that must all hold."""
    if isinstance(e, ir.Binary) and e.op is ir.BinOp.AND and e.type == u1:
        yield from _parts(e.lhs)
        yield from _parts(e.rhs)
    else:
        yield e


def _offset(e: ir.Expr) -> tuple[ir.Expr, int]:
    """``e`` as an expression and a constant that is added to it; the sum may wrap."""
    if isinstance(e, ir.Binary) and e.op in (ir.BinOp.ADD, ir.BinOp.SUB):
        for one, other in ((e.lhs, e.rhs), (e.rhs, e.lhs)):
            if isinstance(other, ir.Const) and (e.op is ir.BinOp.ADD or other is e.rhs):
                return _plain(one), int(other.value) if e.op is ir.BinOp.ADD else -int(other.value)
    return e, 0


def _plain(e: ir.Expr) -> ir.Expr:
    """``e`` without casts between integers that keep its value, as long as that is not negative."""
    while isinstance(e, (ir.BitCast, ir.Cast)) and e.type.is_integral and e.operand.type.is_integral:
        if e.type.bits < e.operand.type.bits or u1 in (e.type, e.operand.type):
            break
        e = e.operand
    return e
