"""Finds the elements that tasks of several branches update: their atomics stay atomics.

Within a task an atomic may become plain, or a reduction that is merged once at the end, since nothing can see it; but
a task of another branch can.
"""

from __future__ import annotations

from itertools import combinations, product

from quadpy.flow import Flow, Fork, Loop, tasks_of
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

__all__ = ["kept_atomics"]


def kept_atomics(kernel: ir.Kernel) -> dict[int, frozenset[str]]:
    """The arrays of each task of which another branch updates the same elements, by the task's number."""
    kept: dict[int, frozenset[str]] = {}
    _visit(kernel, kernel.flow, kept)
    return kept


def _visit(kernel: ir.Kernel, flow: Flow, kept: dict[int, frozenset[str]]) -> None:
    for part in flow:
        if isinstance(part, Loop):
            _visit(kernel, part.body, kept)
        elif isinstance(part, Fork):
            for one, other in combinations(part.branches, 2):
                for a, b in product(tasks_of(one), tasks_of(other)):
                    names = _common(kernel, a, b)
                    kept[a], kept[b] = kept.get(a, frozenset()) | names, kept.get(b, frozenset()) | names
            for branch in part.branches:
                _visit(kernel, branch, kept)


def _common(kernel: ir.Kernel, a: int, b: int) -> frozenset[str]:
    """The arrays of which both tasks may update one element; where arrays may overlap, all that both update."""
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
