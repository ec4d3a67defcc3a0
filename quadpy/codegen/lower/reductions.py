"""Reductions of a loop in groups: one loop handles the partial results of a group, however many there are.

Owns: ``Group``, ``groups_of``, ``are_many``, ``for_each``.

Few reductions have a group each, and LLVM keeps their partial results in registers.  Of many, those of one operation and
type share a group, and their partial results lie in memory, in one table: LLVM takes seconds for dozens of reductions
if each has merging code of its own.  The order in which values combine is the same, and so are the bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quadpy.codegen.lower.atomics import merge_op
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.text import FunctionText
from quadpy.dtypes import Scalar
from quadpy.ir import nodes as ir

__all__ = ["Group", "are_many", "for_each", "groups_of"]

_MOST_ALONE: Final = 4


@dataclass(frozen=True, slots=True)
class Group:
    """``count`` reductions by ``op`` over ``type``, whose rows of partial results begin with number ``first``."""

    op: ir.AtomicOp
    type: Scalar
    reductions: tuple[ir.Reduction, ...]
    first: int

    @property
    def count(self) -> int:
        return len(self.reductions)


def are_many(reductions: tuple[ir.Reduction, ...]) -> bool:
    """Whether reductions of one kind share a group."""
    return len(reductions) > _MOST_ALONE


def groups_of(reductions: tuple[ir.Reduction, ...]) -> list[Group]:
    """All of ``reductions``, each in one group."""
    alike: dict[object, list[ir.Reduction]] = {}
    for number, r in enumerate(reductions):
        kind = (merge_op(r.op), r.var.type)
        alike.setdefault(kind if are_many(reductions) else number, []).append(r)
    groups: list[Group] = []
    for group in alike.values():
        first = groups[-1].first + groups[-1].count if groups else 0
        groups.append(Group(merge_op(group[0].op), group[0].var.type, tuple(group), first))
    return groups


def for_each(out: FunctionText, group: Group, body: Callable[[str], None], tag: str = "") -> None:
    """Write a loop over the group: ``body(its number)`` for each reduction; ``tag`` is the loop's metadata."""
    if group.count == 1:
        body("0")
    else:
        counted(out, "0", str(group.count), lambda a, _: body(a), tag=tag)
