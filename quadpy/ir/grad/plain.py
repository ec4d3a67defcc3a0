"""Atomic updates that only one iteration makes become loads and stores, whose derivatives are known."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import Names
from quadpy.ir.loads import is_load
from quadpy.ir.passes.atomics import plain_steps, updated_apart
from quadpy.ir.passes.split_tasks import split_tasks
from quadpy.ir.variables import reads_of
from quadpy.ir.walk import map_children

SUMS: Final = (ir.AtomicOp.ADD, ir.AtomicOp.SUB)
_EXTREMES: Final = (ir.AtomicOp.MIN, ir.AtomicOp.MAX)


def plain_updates(block: ir.Block, kernel: ir.Kernel, names: Names, kept: Collection[ir.AtomicOp]) -> ir.Block:
    """``block``, the body of ``kernel``; those of ``kept`` whose result is not read stay updates."""
    tasks = iter([task for task in split_tasks(kernel).tasks if isinstance(task, ir.ParallelTask)])
    read = reads_of(block)

    def steps(stmt: ir.Stmt, apart: set[str] | None) -> Iterator[ir.Stmt]:
        if not isinstance(stmt, ir.Atomic):
            yield stmt
            return
        result = stmt.result if stmt.result in read else None
        alone = isinstance(stmt.place, ir.Element) and (apart is None or (stmt.in_launch and stmt.place.array in apart))
        if not alone or is_load(stmt) or (stmt.op in kept and result is None):
            yield stmt if is_load(stmt) else replace(stmt, result=result)
        else:
            load, store = plain_steps(stmt, result or names.fresh("old", stmt.place.type))
            yield load
            yield _last_of_equals(store) if stmt.op in _EXTREMES else store

    def visit(node: ir.Node, apart: set[str] | None) -> ir.Node:
        if isinstance(node, ir.ParallelFor):
            task = next(tasks)
            apart = updated_apart(task) if kernel.noalias else set()
        if isinstance(node, ir.Block):
            node = ir.Block(tuple(new for stmt in node.stmts for new in steps(stmt, apart)), span=node.span)
        return map_children(node, lambda child: visit(child, apart))

    made = visit(block, None)
    assert isinstance(made, ir.Block)
    return made


def _last_of_equals(store: ir.Stmt) -> ir.Stmt:
    """``store`` of a minimum or maximum, whose derivative at a tie is that of the new value: see ``extremes``."""
    assert isinstance(store, ir.Store)
    value = store.value
    assert isinstance(value, ir.Binary)
    return replace(store, value=replace(value, lhs=value.rhs, rhs=value.lhs))
