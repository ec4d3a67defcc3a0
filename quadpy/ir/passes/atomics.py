"""Atomics lose old values that nothing reads, and those that need be one step only in their launch become plain.

With ``y[i] += x[i]`` in a loop over ``i``, only one iteration updates each element, whatever others read; in a serial
task, there is only one thread.  ``qp.atomic_add(y[i], x[i])`` stays: another launch may update the element at the same
time.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Final, TypeVar

from quadpy.core.dtypes import BY_NAME
from quadpy.core.importing import import_late
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, binary, bits, select
from quadpy.ir.loads import is_load
from quadpy.ir.touches import changed_in
from quadpy.ir.uniform import is_launch_uniform
from quadpy.ir.variables import reads_of
from quadpy.ir.walk import map_children, walk

N = TypeVar("N", bound="ir.Task | ir.ParallelFor")

_DIGITS: Final = (ir.BinOp.SHR, ir.BinOp.AND, ir.BinOp.FLOORDIV, ir.BinOp.MOD)
"""Operations that split a number, such as that of a tree's cell, into parts that together are the number."""


def drop_unused_results(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` without the results of atomics that their tasks do not use: only then can a loop become a reduction."""
    return replace(kernel, tasks=tuple(map(without_unused, kernel.tasks)))


def without_unused(task: N) -> N:
    """A task, or a parallel loop, without such results."""
    used = reads_of(task)

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Atomic) and node.result is not None and node.result not in used:
            node = replace(node, result=None)
        return map_children(node, visit)

    return map_children(task, visit)


def demote_atomics(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with plain operations where no other iteration updates the element, and no other launch may."""
    return replace(kernel, tasks=tuple(_demoted(task, kernel.noalias) for task in kernel.tasks))


def _demoted(task: ir.Task, noalias: bool) -> ir.Task:
    is_serial, apart, blocks = isinstance(task, ir.SerialTask), set[str](), set[str]()
    if isinstance(task, ir.ParallelTask) and noalias:
        apart, blocks = updated_apart(task), {array.name for array in task.shared}
    numbers = count(1)

    def is_alone(stmt: ir.Atomic) -> bool:
        if isinstance(stmt.place, ir.Slot):
            return is_serial
        return (is_serial or stmt.place.array in apart) and (stmt.in_launch or stmt.place.array in blocks)

    def plain(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, ir.Atomic) and not is_load(stmt) and is_alone(stmt):
            yield from plain_steps(stmt, stmt.result or ir.Var(f"old${next(numbers)}", stmt.place.type))
        else:
            yield stmt

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            node = At(node.span).block(new for stmt in node.stmts for new in plain(stmt))
        return map_children(node, visit)

    return map_children(task, visit) if is_serial or apart else task


def plain_steps(atomic: ir.Atomic, old: ir.Var) -> Iterator[ir.Stmt]:
    """Load, compute, store."""
    at = At(atomic.span)
    yield at.load(old, atomic.place)
    before = at.read(old)
    if atomic.op in ir.COMBINES:
        value: ir.Expr = binary(ir.COMBINES[atomic.op], before, atomic.value)
    elif atomic.op is ir.AtomicOp.CAS:
        assert atomic.expected is not None
        value = select(_bits(before).eq(_bits(atomic.expected)), atomic.value, before)
    else:
        value = atomic.value
    yield at.store(atomic.place, value)


def _bits(value: ir.Expr) -> ir.Expr:
    """The operand of a compare-and-swap; for floats, their bits."""
    return bits(value, BY_NAME[f"u{value.type.bits}"]) if value.type.is_float else value


def updated_apart(task: ir.ParallelTask) -> set[str]:
    """The arrays of which no two iterations store or update one element: indices that they all use tell the iteration.

    Atomic loads count as updates, since iterations may wait for what they read.
    """
    places: dict[str, list[ir.Element]] = {}
    lets, uniform = dict[ir.Var, ir.Expr](), set[ir.Var]()
    for node in walk(task):
        if isinstance(node, ir.Let):
            lets[node.var] = node.value
            if is_launch_uniform(node.value, uniform):
                uniform.add(node.var)
    for place in changed_in(task.body):
        if isinstance(place, ir.Element):
            places.setdefault(place.array, []).append(place)
    axes = {axis.var for axis in task.axes}

    def told(places: list[ir.Element]) -> Iterator[ir.Var]:
        for parts in zip(*(place.index for place in places), strict=True):
            forms = {_telling(part, axes, lets, uniform) for part in parts}
            if len(forms) == 1 and (form := forms.pop()) is not None:
                yield form[0]

    apart = {array for array, found in places.items() if axes <= set(told(found))}
    left = {array: found for array, found in places.items() if array not in apart}
    has_digits = any(isinstance(node, ir.Binary) and node.op in _DIGITS for node in walk(task))
    if not left or not has_digits:
        return apart
    accesses = import_late("quadpy.ir.footprints.accesses")  # few kernels need it
    return apart.union(accesses.places_by_one_iteration(task, left))


def _telling(
    e: ir.Expr, axes: Container[ir.Var], lets: Mapping[ir.Var, ir.Expr], uniform: Container[ir.Var]
) -> tuple[ir.Var, ir.Expr] | None:
    """The one loop variable that ``e`` differs with, even where it wraps, as ``n - i`` does; and ``e`` without names."""
    match e:
        case ir.VarRead(var=var):
            return (var, e) if var in axes else _telling(lets[var], axes, lets, uniform) if var in lets else None
        case ir.Cast(operand=operand, type=type) if type.is_integral and type.bits >= operand.type.bits:
            found = _telling(operand, axes, lets, uniform)
            return found and (found[0], replace(e, operand=found[1]))
        case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB, lhs=lhs, rhs=rhs) if is_launch_uniform(rhs, uniform):
            found = _telling(lhs, axes, lets, uniform)
            return found and (found[0], replace(e, lhs=found[1]))
        case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB, lhs=lhs, rhs=rhs) if is_launch_uniform(lhs, uniform):
            found = _telling(rhs, axes, lets, uniform)
            return found and (found[0], replace(e, rhs=found[1]))
    return None


def private_arrays(task: ir.ParallelTask) -> set[str]:
    """The arrays to which every access uses the same index, which differs from iteration to iteration."""
    indices: dict[str, set[tuple[ir.Expr, ...]]] = {}
    for node in walk(task):
        if isinstance(node, ir.Element):
            indices.setdefault(node.array, set()).add(node.index)
    axes = {axis.var for axis in task.axes}
    return {
        array
        for array, found in indices.items()
        if len(found) == 1 and axes <= {part.var for part in next(iter(found)) if isinstance(part, ir.VarRead)}
    }
