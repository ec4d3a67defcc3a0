"""One store to the component that a run-time number names, in place of a branch for each component.

``x[i][k] = v`` arrives as ``if k == 0: x[i][0] = v``, ``if k == 1: x[i][1] = v``, …: with one address, loops are vectorised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from quadpy.core.dtypes import i64
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, cast
from quadpy.ir.types import Array
from quadpy.ir.walk import map_children

_Case: TypeAlias = tuple[ir.Var, int, ir.Element, ir.Expr]
"""One case, ``if var == number: place = value``."""


def choose_components(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with one store for each such chain of branches."""
    arrays = kernel.array_types
    return replace(kernel, tasks=tuple(map_children(task, _Chooser(arrays).visit) for task in kernel.tasks))


class _Chooser:
    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    def visit(self, node: ir.Node) -> ir.Node:
        node = map_children(node, self.visit)
        if isinstance(node, ir.Block):
            stmts = tuple(self.joined(node.stmts))
            return node if len(stmts) == len(node.stmts) else ir.Block(stmts, span=node.span)
        return node

    def joined(self, stmts: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
        at = 0
        while at < len(stmts):
            chain = self.chain(stmts[at:])
            yield _chosen(chain) if len(chain) > 1 else stmts[at]
            at += max(1, len(chain))

    def chain(self, stmts: tuple[ir.Stmt, ...]) -> list[_Case]:
        """The cases at the start of ``stmts``, of one variable and of components that follow each other in memory."""
        cases: list[_Case] = []
        for number, stmt in enumerate(stmts):
            case = _case(stmt)
            if case is None or case[1] != number or (cases and not self.follows(cases[0], case)):
                break
            cases.append(case)
        return cases

    def follows(self, first: _Case, case: _Case) -> bool:
        var, number, place, value = case
        same = first[0] == var and first[3] == value and first[2] == replace(place, component=first[2].component)
        if not same or place.component != first[2].component + number or place.array not in self.arrays:
            return False
        layout = self.arrays[place.array].layout
        return layout.at(place.component)[0] is layout.at(first[2].component)[0]


def _case(stmt: ir.Stmt) -> _Case | None:
    match stmt:
        case ir.If(
            cond=ir.Compare(op=ir.CmpOp.EQ, lhs=ir.VarRead(var=var), rhs=ir.Const(value=number)),
            then=ir.Block(stmts=(ir.Store(place=ir.Element(chosen=None) as place, value=value),)),
            orelse=ir.Block(stmts=()),
        ) if var.type.kind in ("int", "uint"):
            return var, int(number), place, value
        case _:
            return None


def _chosen(cases: list[_Case]) -> ir.Stmt:
    var, _, first, value = cases[0]
    at = At(first.span)
    number = at.read(var)
    place = replace(first, chosen=cast(number, i64))
    return at.when((number >= 0) & (number < len(cases)), [at.store(place, value)])
