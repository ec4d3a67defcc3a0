"""Finds what a parallel loop only accumulates into.  Owns: accumulate.  Imports: ``ir`` only.

``total[0] += x[i]`` becomes a reduction over a variable of the iteration; an array that the loop adds to
at varying places, and does nothing else with, is named in ``privates``: code generation may give groups of
iterations copies of their own.  Only where the old value is not asked for, and no other access can see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from quadpy.ir.nodes import (
    Assign,
    Atomic,
    AtomicOp,
    Binary,
    BinOp,
    Const,
    Element,
    Expr,
    Kernel,
    Let,
    Load,
    Node,
    ParallelTask,
    ParamRead,
    Place,
    Reduction,
    ShapeOf,
    Slot,
    Store,
    Var,
    VarRead,
)  # fmt: skip
from quadpy.ir.walk import map_children, walk

__all__ = ["accumulate"]

_STEP: Final = {
    AtomicOp.ADD: BinOp.ADD, AtomicOp.SUB: BinOp.SUB, AtomicOp.MUL: BinOp.MUL, AtomicOp.MIN: BinOp.MIN,
    AtomicOp.MAX: BinOp.MAX, AtomicOp.AND: BinOp.AND, AtomicOp.OR: BinOp.OR, AtomicOp.XOR: BinOp.XOR,
}  # fmt: skip


def accumulate(task: ParallelTask, kernel: Kernel, kept: frozenset[str] = frozenset()) -> ParallelTask:
    """``task`` with its reductions and private arrays found, none of them of the arrays ``kept``."""
    uniform = {
        stmt.var: stmt.value
        for stmt in task.body.stmts
        if isinstance(stmt, Let) and all(_is_uniform_leaf(leaf) for leaf in walk(stmt.value) if not leaf.CHILDREN)
    }
    groups: dict[Place, tuple[AtomicOp, Var]] = {}
    privates: list[tuple[str, AtomicOp]] = []
    for key, accesses in _accesses(task).items():
        op = _only_accumulates(accesses)
        if op is None or (isinstance(key, str) and (key in kept or not kernel.noalias)):
            continue
        places = [_fixed(a.place, uniform) for a in accesses if isinstance(a, Atomic)]
        if all(place is not None for place in places):
            for place in places:
                if place is not None and place not in groups:
                    groups[place] = (op, Var(f"acc${len(groups)}", place.type))
        elif isinstance(key, str):
            privates.append((key, op))
    if not groups and not privates:
        return task

    def visit(node: Node) -> Node:
        if isinstance(node, Atomic) and (place := _fixed(node.place, uniform)) in groups and place is not None:
            var = groups[place][1]
            step = Binary(_STEP[node.op], VarRead(var, span=node.span), node.value, var.type, span=node.span)
            return Assign(var, step, span=node.span)
        return map_children(node, visit)

    reductions = tuple(Reduction(op, place, var, span=place.span) for place, (op, var) in groups.items())
    body = map_children(task.body, visit)
    return replace(task, body=body, reductions=reductions, privates=tuple(privates))


def _accesses(task: ParallelTask) -> dict[str | int, list[Load | Store | Atomic]]:
    """All accesses to each array (by name) and slot (by number)."""
    found: dict[str | int, list[Load | Store | Atomic]] = {}
    for node in walk(task.body):
        if isinstance(node, (Load, Store, Atomic)):
            key = node.place.array if isinstance(node.place, Element) else node.place.number
            found.setdefault(key, []).append(node)
    return found


def _only_accumulates(accesses: list[Load | Store | Atomic]) -> AtomicOp | None:
    """The one operation that all of ``accesses`` are, subtraction being an addition; None where they differ."""
    ops = set()
    for access in accesses:
        if not isinstance(access, Atomic) or access.result is not None or access.op not in _STEP:
            return None
        ops.add(AtomicOp.ADD if access.op is AtomicOp.SUB else access.op)
    return ops.pop() if len(ops) == 1 else None


def _fixed(place: Place, uniform: dict[Var, Expr]) -> Place | None:
    """``place`` over constants and parameters alone, or None where it differs between iterations."""
    if isinstance(place, Slot):
        return place

    def visit(node: Node) -> Node:
        if isinstance(node, VarRead) and node.var in uniform:
            return uniform[node.var]
        return map_children(node, visit)

    fixed = map_children(place, visit)
    return fixed if all(_is_uniform_leaf(leaf) for leaf in _leaves(fixed.index)) else None


def _leaves(index: tuple[Node, ...]) -> Iterator[Node]:
    for part in index:
        yield from (node for node in walk(part) if not node.CHILDREN)


def _is_uniform_leaf(node: Node) -> bool:
    return isinstance(node, (Const, ParamRead, ShapeOf))
