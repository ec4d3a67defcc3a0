"""The top level of a kernel, taken apart before it becomes tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.touches import changed_in
from quadpy.ir.variables import assigned_in, reads_of, set_in
from quadpy.ir.walk import walk

Segment: TypeAlias = ir.ParallelFor | list[ir.Stmt]
"""The source of one task: a parallel loop, or a run of other statements."""


@dataclass(frozen=True, slots=True)
class Forked:
    """Branches that run at once."""

    branches: tuple[tuple[Item, ...], ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """The body of a do-while loop."""

    node: ir.DoWhile
    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Gated:
    """A part with checkpoints around it."""

    number: int
    body: tuple[Item, ...]


Item: TypeAlias = "Segment | Forked | Repeated | Gated"


def segments_of(items: Iterable[Item]) -> Iterator[Segment]:
    """All segments, in the order in which they stand."""
    for item in items:
        if isinstance(item, Forked):
            for branch in item.branches:
                yield from segments_of(branch)
        elif isinstance(item, (Repeated, Gated)):
            yield from segments_of(item.body)
        else:
            yield item


def defined_in(node: ir.Node) -> Iterator[ir.Var]:
    """The variables that ``node`` sets at any depth; a parallel loop keeps its own."""
    return iter(()) if isinstance(node, ir.ParallelFor) else set_in(node)


def carried(loop: Repeated, crossing: Sequence[ir.Var]) -> list[ir.Var]:
    """The variables whose values pass from one iteration of ``loop`` to the next, by name.

    They change in the loop, and on some path nothing sets them before they are read, or changed in part;
    ``crossing`` are the variables of the slots that the trace numbered.
    """
    stmts = [
        stmt
        for segment in segments_of(loop.body)
        for stmt in ([segment] if isinstance(segment, ir.ParallelFor) else segment)
    ]
    changed = {var for stmt in stmts for var in _changed(stmt, crossing)}
    asked: set[ir.Var] = set()
    settled: set[ir.Var] = set()
    for stmt in stmts:
        asked |= _asked(stmt, crossing) - settled
        if isinstance(stmt, ir.Assign):
            settled.add(stmt.var)
    return sorted(asked & changed, key=lambda var: var.name)


def _changed(stmt: ir.Stmt, crossing: Sequence[ir.Var]) -> Iterator[ir.Var]:
    if not isinstance(stmt, ir.ParallelFor):
        yield from assigned_in(stmt)
    yield from (crossing[place.number] for place in changed_in(stmt) if isinstance(place, ir.Slot))


def _asked(stmt: ir.Stmt, crossing: Sequence[ir.Var]) -> set[ir.Var]:
    """The variables whose earlier values ``stmt`` needs."""
    if isinstance(stmt, ir.Assign):
        return reads_of(stmt.value)
    slots = {crossing[node.number] for node in walk(stmt) if isinstance(node, ir.Slot)}
    if isinstance(stmt, ir.ParallelFor):
        return reads_of(stmt) | slots
    return reads_of(stmt) | slots | assigned_in(stmt)
