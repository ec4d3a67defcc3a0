"""Atomics that nothing can observe lose their old values, or become plain reads and writes.

With ``y[i] += x[i]`` in a loop over ``i``, only one iteration touches each element; in a serial task, only one thread
does.  If tasks of several branches update the same elements, atomics stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, count, product

from quadpy.dtypes import BY_NAME, u1
from quadpy.flow import Flow, Fork, Loop, tasks_of
from quadpy.ir import nodes as ir
from quadpy.ir.loads import is_load
from quadpy.ir.variables import reads_of
from quadpy.ir.walk import map_children, walk

__all__ = ["demote_atomics", "drop_unused_results", "is_private", "kept_atomics"]


def drop_unused_results(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` without the results of atomics that their tasks do not use: only then can a loop become a reduction."""
    return replace(kernel, tasks=tuple(map(_without_unused, kernel.tasks)))


def _without_unused(task: ir.Task) -> ir.Task:
    used = reads_of(task)

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Atomic) and node.result is not None and node.result not in used:
            node = replace(node, result=None)
        return map_children(node, visit)

    return map_children(task, visit)


def demote_atomics(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with plain operations where each element belongs to one iteration, and no other branch updates it."""
    kept = zip(kernel.tasks, kept_atomics(kernel), strict=True)
    return replace(kernel, tasks=tuple(_demoted(task, kernel.noalias, names) for task, names in kept))


def _demoted(task: ir.Task, noalias: bool, kept: frozenset[str]) -> ir.Task:
    arrays = {place.array for place in _elements(task)}
    if isinstance(task, ir.ParallelTask):
        arrays = {name for name in arrays if noalias and is_private(task, name)}
    arrays -= kept
    slots, numbers = isinstance(task, ir.SerialTask), count(1)

    def plain(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if not isinstance(stmt, ir.Atomic) or is_load(stmt):
            yield stmt
        elif stmt.place.array in arrays if isinstance(stmt.place, ir.Element) else slots:
            yield from _plain(stmt, stmt.result or ir.Var(f"old${next(numbers)}", stmt.place.type))
        else:
            yield stmt

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            node = ir.Block(tuple(new for stmt in node.stmts for new in plain(stmt)), span=node.span)
        return map_children(node, visit)

    return map_children(task, visit) if arrays or slots else task


def _plain(atomic: ir.Atomic, old: ir.Var) -> Iterator[ir.Stmt]:
    """Load, compute, store."""
    span, place = atomic.span, atomic.place
    yield ir.Load(old, place, span=span)
    before: ir.Expr = ir.VarRead(old, span=span)
    if atomic.op in ir.COMBINES:
        value: ir.Expr = ir.Binary(ir.COMBINES[atomic.op], before, atomic.value, place.type, span=span)
    elif atomic.op is ir.AtomicOp.CAS:
        assert atomic.expected is not None
        hit = ir.Compare(ir.CmpOp.EQ, _bits(before), _bits(atomic.expected), u1, span=span)
        value = ir.Select(hit, atomic.value, before, place.type, span=span)
    else:
        value = atomic.value
    yield ir.Store(place, value, span=span)


def _bits(value: ir.Expr) -> ir.Expr:
    """The operand of a compare-and-swap; for floats, their bits."""
    if not value.type.is_float:
        return value
    return ir.BitCast(value, BY_NAME[f"u{value.type.bits}"], span=value.span)


def _elements(task: ir.Task) -> Iterator[ir.Element]:
    return (node for node in walk(task) if isinstance(node, ir.Element))


def is_private(task: ir.ParallelTask, array: str) -> bool:
    """Whether every access to ``array`` uses the same index, which differs from iteration to iteration."""
    indices = {place.index for place in _elements(task) if place.array == array}
    if len(indices) != 1:
        return False
    variables = {part.var for part in indices.pop() if isinstance(part, ir.VarRead)}
    return all(axis.var in variables for axis in task.axes)


# ------------------------------------------------------------- several branches


def kept_atomics(kernel: ir.Kernel) -> list[frozenset[str]]:
    """For each task, the arrays in which a task of another branch updates the same elements.

    Within a task an atomic may become plain, or a reduction that is merged once at the end, since nothing can see it;
    but a task of another branch can.
    """
    kept: list[frozenset[str]] = [frozenset()] * len(kernel.tasks)
    _visit(kernel, kernel.flow, kept)
    return kept


def _visit(kernel: ir.Kernel, flow: Flow, kept: list[frozenset[str]]) -> None:
    for part in flow:
        if isinstance(part, Loop):
            _visit(kernel, part.body, kept)
        elif isinstance(part, Fork):
            for one, other in combinations(part.branches, 2):
                for a, b in product(tasks_of(one), tasks_of(other)):
                    names = _common(kernel, a, b)
                    kept[a] |= names
                    kept[b] |= names
            for branch in part.branches:
                _visit(kernel, branch, kept)


def _common(kernel: ir.Kernel, a: int, b: int) -> frozenset[str]:
    """The arrays in which both tasks may update one element; if arrays may overlap, all that both update."""
    mine, others = _updated(kernel, a), _updated(kernel, b)
    if not kernel.noalias:
        return frozenset((*mine, *others)) if mine and others else frozenset()
    return frozenset(name for name in mine.keys() & others.keys() if _may_meet(mine[name], others[name]))


def _updated(kernel: ir.Kernel, number: int) -> dict[str, set[ir.Element]]:
    """The arrays that a task updates atomically, and where."""
    found: dict[str, set[ir.Element]] = {}
    for node in walk(kernel.tasks[number]):
        if isinstance(node, ir.Atomic) and isinstance(node.place, ir.Element):
            found.setdefault(node.place.array, set()).add(node.place)
    return found


def _may_meet(some: set[ir.Element], others: set[ir.Element]) -> bool:
    known = all(isinstance(part, ir.Const) for place in (*some, *others) for part in place.index)
    return not known or bool(some & others)
