"""The top level of a kernel, taken apart before it becomes tasks.

Owns: Segment, Forked, Repeated, leaves, defined_in, read_in, carried.  Imports: ``ir`` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from quadpy.ir.nodes import (
    Assign,
    Atomic,
    CallMany,
    DoWhile,
    Let,
    Load,
    Node,
    ParallelFor,
    Slot,
    Stmt,
    Store,
    Var,
    VarRead,
)  # fmt: skip
from quadpy.ir.walk import walk

__all__ = ["Forked", "Item", "Repeated", "Segment", "carried", "defined_in", "leaves", "read_in"]

Segment: TypeAlias = "ParallelFor | list[Stmt]"
"""What becomes one task: a parallel loop, or a run of other statements."""


@dataclass(frozen=True, slots=True)
class Forked:
    """Branches that run at once."""

    branches: tuple[tuple[Item, ...], ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a do-while loop repeats."""

    node: DoWhile
    body: tuple[Item, ...]


Item: TypeAlias = "Segment | Forked | Repeated"


def leaves(items: Iterable[Item]) -> Iterator[Segment]:
    """All segments, in the order in which they stand."""
    for item in items:
        if isinstance(item, Forked):
            for branch in item.branches:
                yield from leaves(branch)
        elif isinstance(item, Repeated):
            yield from leaves(item.body)
        else:
            yield item


def read_in(nodes: Iterable[Node]) -> set[Var]:
    """The variables that ``nodes`` read."""
    return {sub.var for node in nodes for sub in walk(node) if isinstance(sub, VarRead)}


def defined_in(node: Node) -> Iterator[Var]:
    """The variables that ``node`` sets at any depth; a parallel loop keeps its own."""
    if isinstance(node, ParallelFor):
        return
    for sub in walk(node):
        if isinstance(sub, (Let, Load, Assign)):
            yield sub.var
        elif isinstance(sub, Atomic) and sub.result is not None:
            yield sub.result
        elif isinstance(sub, CallMany):
            yield from sub.results


def carried(loop: Repeated, behind: Mapping[int, Var]) -> list[Var]:
    """The variables whose values pass from one iteration of ``loop`` to the next, by name.

    They change in the loop, and on some path nothing sets them before they are asked for, or changed in part;
    ``behind`` are the variables of the slots that the trace numbered.
    """
    stmts = [
        stmt for segment in leaves(loop.body) for stmt in ([segment] if isinstance(segment, ParallelFor) else segment)
    ]
    changed = {var for stmt in stmts for var in _changed(stmt, behind)}
    asked: set[Var] = set()
    settled: set[Var] = set()
    for stmt in stmts:
        asked |= _asked(stmt, behind) - settled
        if isinstance(stmt, Assign):
            settled.add(stmt.var)
    return sorted(asked & changed, key=lambda var: var.name)


def _changed(stmt: Stmt, behind: Mapping[int, Var]) -> Iterator[Var]:
    for node in walk(stmt):
        if isinstance(node, Assign) and not isinstance(stmt, ParallelFor):
            yield node.var
        elif isinstance(node, (Store, Atomic)) and isinstance(node.place, Slot):
            yield behind[node.place.number]


def _asked(stmt: Stmt, behind: Mapping[int, Var]) -> set[Var]:
    """The variables of which ``stmt`` needs what they were before it."""
    if isinstance(stmt, Assign):
        return read_in([stmt.value])
    slots = {behind[node.number] for node in walk(stmt) if isinstance(node, Slot)}
    if isinstance(stmt, ParallelFor):
        return read_in([stmt]) | slots
    return read_in([stmt]) | slots | {node.var for node in walk(stmt) if isinstance(node, Assign)}
