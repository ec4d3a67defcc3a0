"""Finds the footprints of a task."""

from __future__ import annotations

from collections.abc import Iterator

from quadpy.ir import nodes as ir
from quadpy.ir.footprints.model import Footprint
from quadpy.ir.walk import walk

__all__ = ["footprints_of"]


def footprints_of(task: ir.Task) -> tuple[Footprint, ...]:
    """What ``task`` touches of the arrays that the launch gets, without shared arrays and the memory of prints."""
    shared = {array.name for array in task.shared} if isinstance(task, ir.ParallelTask) else set()
    return tuple(found for found in _accesses(task) if found.array not in shared)


def _accesses(task: ir.Task) -> Iterator[Footprint]:
    for node in walk(task):
        match node:
            case ir.Load(place=ir.Element() as place):
                yield _whole(place, ir.Access.READ, node)
            case ir.Store(place=ir.Element() as place):
                yield _whole(place, ir.Access.WRITE, node)
            case ir.Atomic(op=op, place=ir.Element() as place):
                yield _whole(place, ir.Access.ATOMIC, node, op)
            case ir.Reduction(place=ir.Element() as place):
                yield _whole(place, ir.Access.READ, node)
                yield _whole(place, ir.Access.WRITE, node)
            case _:
                pass


def _whole(place: ir.Element, access: ir.Access, node: ir.Node, op: ir.AtomicOp | None = None) -> Footprint:
    return Footprint(place.array, access, op, None, None, exact=False, always=False, location=node.span)
