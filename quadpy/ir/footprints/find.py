"""Finds the footprints of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

from quadpy.core.artifact import SHADOW
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.accesses import Reached, accesses_of
from quadpy.ir.footprints.boxes import box_of
from quadpy.ir.footprints.model import BoxFormula, Footprint
from quadpy.ir.index.numbers import Given
from quadpy.ir.walk import map_children

_Key = tuple[str, ir.Access, ir.AtomicOp | None, BoxFormula | None]


def footprints_of(
    task: ir.Task, ways: Callable[[Reached], Iterable[Reached]] = lambda reached: (reached,)
) -> tuple[Footprint, ...]:
    """The elements that ``task`` touches of the launch's arrays, without shared arrays and memory of prints and checks.

    Accesses in the same way to the same box are one footprint, with the place of the first of them.  ``ways`` tells apart
    those of one access.
    """
    own = {SHADOW, *(array.name for array in task.shared)} if isinstance(task, ir.ParallelTask) else {SHADOW}
    found: dict[_Key, tuple[set[int], Span]] = {}
    accesses = (each for each in accesses_of(task) if each.place.array not in own)
    for reached in accesses:
        for each in ways(reached):
            key = (each.place.array, each.access, each.operation, box_of(each))
            found.setdefault(key, (set(), each.span))[0].add(each.place.component)
    return tuple(Footprint(*key[:3], tuple(sorted(parts)), key[3], span) for key, (parts, span) in found.items())


def with_numbers(kernel: ir.Kernel, numbers: Mapping[Given, int]) -> ir.Kernel:
    """``kernel`` with ``numbers`` in place of these scalars and extents, so that formulas are short."""

    def visit(node: ir.Node) -> ir.Node:
        match node:
            case ir.ParamRead(name=name, type=type) if (atom := Given(name)) in numbers:
                return ir.Const(numbers[atom], type, span=node.span)
            case ir.ShapeOf(array=array, axis=axis, type=type) if (atom := Given(array, "extent", axis)) in numbers:
                return ir.Const(numbers[atom], type, span=node.span)
            case _:
                return map_children(node, visit)

    return replace(kernel, tasks=tuple(cast("ir.Task", visit(task)) for task in kernel.tasks))
