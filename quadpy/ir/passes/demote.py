"""Atomics that nothing can observe become plain reads and writes.

``y[i] += x[i]`` in a loop over ``i`` touches each element from one iteration only; so does everything in a serial
task, which one thread runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quadpy.dtypes import BY_NAME, u1
from quadpy.ir import nodes as ir
from quadpy.ir.passes.shared_atomics import kept_atomics
from quadpy.ir.walk import map_children, walk

__all__ = ["demote_atomics"]


def demote_atomics(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with plain operations where each element belongs to one iteration, and no other branch updates it."""
    kept = kept_atomics(kernel)
    tasks = (_demoted(task, kernel.noalias, kept.get(k, frozenset())) for k, task in enumerate(kernel.tasks))
    return replace(kernel, tasks=tuple(tasks))


def _demoted(task: ir.Task, noalias: bool, kept: frozenset[str]) -> ir.Task:
    if isinstance(task, ir.SerialTask):
        arrays = {place.array for place in _places(task)} | {""}
    elif noalias:
        arrays = {name for name in {p.array for p in _places(task)} if _is_private(task, name)}
    else:
        arrays = set()
    arrays -= kept
    if not arrays:
        return task
    names = _Names()

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            return map_children(ir.Block(tuple(_expand(node.stmts, arrays, names)), span=node.span), visit)
        return map_children(node, visit)

    return map_children(task, visit)


class _Names:
    """Fresh names for loaded values."""

    def __init__(self) -> None:
        self.count = 0

    def old(self, atomic: ir.Atomic) -> ir.Var:
        if atomic.result is not None:
            return atomic.result
        self.count += 1
        return ir.Var(f"old${self.count}", atomic.place.type)


def _expand(stmts: tuple[ir.Stmt, ...], arrays: set[str], names: _Names) -> Iterator[ir.Stmt]:
    for stmt in stmts:
        place = stmt.place if isinstance(stmt, ir.Atomic) else None
        if isinstance(stmt, ir.Atomic) and (place.array if isinstance(place, ir.Element) else "") in arrays:
            yield from _plain(stmt, names.old(stmt))
        else:
            yield stmt


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
    """What a compare-and-swap compares: of floats the bits."""
    if not value.type.is_float:
        return value
    return ir.BitCast(value, BY_NAME[f"u{value.type.bits}"], span=value.span)


def _places(task: ir.Task) -> Iterator[ir.Element]:
    for node in walk(task):
        if isinstance(node, ir.Element):
            yield node


def _is_private(task: ir.ParallelTask, array: str) -> bool:
    """True where every access to ``array`` uses the same index, which differs from iteration to iteration."""
    indices = {place.index for place in _places(task) if place.array == array}
    if len(indices) != 1:
        return False
    (index,) = indices
    variables = {part.var for part in index if isinstance(part, ir.VarRead)}
    return all(axis.var in variables for axis in task.axes)
