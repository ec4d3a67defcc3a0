"""Finds the memory that a parallel loop only accumulates into.

``total[0] += x[i]`` becomes a reduction over a variable of the iteration.  An array that the loop updates at varying
indices, and does nothing else with, is among the ``privates``: code generation may give groups of iterations their
own copies.  Both require that nothing reads the old value and that no other access can see it.  Elements whose indices
are constants and arguments are each examined alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from quadpy.ir import nodes as ir
from quadpy.ir.blocks import uses_block
from quadpy.ir.build import At, binary
from quadpy.ir.passes.atomics import updated_apart
from quadpy.ir.touches import name_of, touched_in
from quadpy.ir.uniform import is_launch_uniform
from quadpy.ir.walk import map_children


def accumulate(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with the reductions and private arrays of its loops."""
    return replace(kernel, tasks=tuple(_accumulated(task, kernel.noalias) for task in kernel.tasks))


def _accumulated(task: ir.Task, noalias: bool) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or uses_block(task):
        return task
    lets = (stmt for stmt in task.body.stmts if isinstance(stmt, ir.Let))
    uniform = {let.var: let.value for let in lets if is_launch_uniform(let.value)}
    groups: dict[ir.Place, ir.Reduction] = {}
    privates, apart = list[ir.Private](), updated_apart(task)
    for key, accesses in _accesses(task).items():
        is_array = isinstance(accesses[0].place, ir.Element)
        if is_array and not noalias:
            continue
        places = [_fixed(access.place, uniform) for access in accesses]
        whole = _only_accumulates(accesses)
        if is_array and whole is not None and None in places:
            if key not in apart:
                privates.append(ir.Private(key, *whole))
            continue
        for place, (op, in_launch) in _fixed_groups(accesses, places):
            var = ir.Var(f"acc${len(groups)}", place.type)
            groups[place] = ir.Reduction(op, place, var, in_launch, span=place.span)
    if not groups and not privates:
        return task

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Atomic) and (place := _fixed(node.place, uniform)) in groups and place is not None:
            var = groups[place].var
            at = At(node.span)
            return at.assign(var, binary(ir.COMBINES[node.op], at.read(var), node.value))
        return map_children(node, visit)

    body = map_children(task.body, visit)
    return replace(task, body=body, reductions=tuple(groups.values()), privates=tuple(privates))


class _Access(NamedTuple):
    """``node`` accesses ``place``."""

    node: ir.Node
    place: ir.Place


def _accesses(task: ir.ParallelTask) -> dict[str, list[_Access]]:
    """All accesses to each array and slot, by name."""
    found: dict[str, list[_Access]] = {}
    for node, place, _ in touched_in(task.body):
        found.setdefault(name_of(place), []).append(_Access(node, place))
    return found


def _fixed_groups(
    accesses: list[_Access], places: list[ir.Place | None]
) -> Iterator[tuple[ir.Place, tuple[ir.AtomicOp, bool]]]:
    """The fixed places of one array or slot that iterations only accumulate into, with what ``_only_accumulates`` says.

    ``places`` are those of ``accesses``, if they are fixed.  Accesses to places that are certainly different
    do not matter: ``s[0] += x; atomic_max(s[1], x)`` are two reductions.
    """
    by_component: dict[int, list[tuple[_Access, ir.Place | None]]] = {}
    for access, fixed in zip(accesses, places, strict=True):
        by_component.setdefault(_component(access.place), []).append((access, fixed))
    for near in by_component.values():
        for place in dict.fromkeys(fixed for _, fixed in near if fixed is not None):
            how = _only_accumulates([access for access, fixed in near if _may_meet(place, fixed or access.place)])
            if how is not None:
                yield place, how


def _component(place: ir.Place) -> int:
    return place.component if isinstance(place, ir.Element) else 0


def _may_meet(some: ir.Place, other: ir.Place) -> bool:
    """Whether two places with the same component in one array, or in one slot, may be the same."""
    if isinstance(some, ir.Slot) or isinstance(other, ir.Slot):
        return True
    for a, b in zip(map(_based, some.index), map(_based, other.index), strict=True):
        if a[0] == b[0] and a[1] != b[1]:
            return False
    return True


def _based(e: ir.Expr) -> tuple[ir.Expr | None, int]:
    """``e`` as an expression and a constant that is added to it, modulo the range of its type."""
    size = 1 << e.type.bits
    match e:
        case ir.Const(value=value):
            return None, int(value) % size
        case (
            ir.Binary(op=ir.BinOp.ADD, lhs=base, rhs=ir.Const(value=value))
            | ir.Binary(op=ir.BinOp.ADD, lhs=ir.Const(value=value), rhs=base)
        ):
            inner, offset = _based(base)
            return inner, (offset + int(value)) % size
        case ir.Binary(op=ir.BinOp.SUB, lhs=base, rhs=ir.Const(value=value)):
            inner, offset = _based(base)
            return inner, (offset - int(value)) % size
        case _:
            return e, 0


def _only_accumulates(accesses: Sequence[_Access]) -> tuple[ir.AtomicOp, bool] | None:
    """The one operation that all of ``accesses`` are, and whether ``in_launch``; None if they differ.

    Subtraction counts as addition.
    """
    ops, in_launch = set(), True
    for node, _ in accesses:
        if not isinstance(node, ir.Atomic) or node.result is not None or node.op not in ir.COMBINES:
            return None
        ops.add(ir.AtomicOp.ADD if node.op is ir.AtomicOp.SUB else node.op)
        in_launch &= node.in_launch
    return (ops.pop(), in_launch) if len(ops) == 1 else None


def _fixed(place: ir.Place, uniform: dict[ir.Var, ir.Expr]) -> ir.Place | None:
    """``place`` over constants and parameters alone, or None if it differs between iterations."""
    if isinstance(place, ir.Slot):
        return place

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.VarRead) and node.var in uniform:
            return uniform[node.var]
        return map_children(node, visit)

    fixed = map_children(place, visit)
    return fixed if all(map(is_launch_uniform, fixed.index)) else None
