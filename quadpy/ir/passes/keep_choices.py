"""Values from which a loop picks by a run-time number become variables, which are in memory before the loop starts.

``for k in range(n): total += w[k % 16]`` would otherwise copy the components of ``w`` to memory in each turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from quadpy.ir import nodes as ir
from quadpy.ir.variables import assigned_in, bound_by
from quadpy.ir.walk import map_children, walk

B = TypeVar("B", bound=ir.SerialTask | ir.ParallelTask | ir.Function)


def keep_choices(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with variables in place of the values from which its loops pick."""
    tasks = tuple(_kept(task) for task in kernel.tasks)
    return replace(kernel, tasks=tasks, functions=tuple(map(_kept, kernel.functions)))


def _kept(owner: B) -> B:
    assigned = assigned_in(owner.body)
    loops = (n for n in walk(owner.body) if isinstance(n, (ir.For, ir.While)))
    picks = (n for loop in loops for n in walk(loop) if isinstance(n, ir.Pick))
    choices = dict.fromkeys(pick.items for pick in picks if not any(_is_one_of(item, assigned) for item in pick.items))
    return replace(owner, body=_Keeper(choices).whole(owner.body)) if choices else owner


def _is_one_of(item: ir.Expr, variables: set[ir.Var]) -> bool:
    return isinstance(item, ir.VarRead) and item.var in variables


class _Keeper:
    """``copies`` are the variables that take each value; ``first`` the assignments of those known from the start."""

    def __init__(self, choices: dict[tuple[ir.Expr, ...], None]) -> None:
        self.kept = {
            items: tuple(ir.Var(f"choice${number}.{k}", item.type) for k, item in enumerate(items))
            for number, items in enumerate(choices)
        }
        self.copies: dict[ir.Var, list[ir.Var]] = defaultdict(list)
        self.first: list[ir.Stmt] = []
        for items, variables in self.kept.items():
            for item, var in zip(items, variables, strict=True):
                if isinstance(item, ir.VarRead):
                    self.copies[item.var].append(var)
                else:
                    self.first.append(ir.Assign(var, item, span=item.span))

    def whole(self, body: ir.Block) -> ir.Block:
        """``body``; a value that no statement binds is known from the start, such as the index of a parallel loop."""
        inner = {var for n in walk(body) for var in ((n.var,) if isinstance(n, ir.For) else bound_by(n))}
        outer = [copy for var in self.copies.keys() - inner for copy in self.copied(var, body)]
        new = self.visit(body)
        assert isinstance(new, ir.Block)
        return replace(new, stmts=(*self.first, *sorted(outer, key=lambda copy: copy.var.name), *new.stmts))

    def copied(self, var: ir.Var, at: ir.Node) -> Iterator[ir.Assign]:
        return (ir.Assign(copy, ir.VarRead(var, span=at.span), span=at.span) for copy in self.copies.get(var, ()))

    def visit(self, node: ir.Node) -> ir.Node:
        node = map_children(node, self.visit)
        match node:
            case ir.Pick(items=items) if (variables := self.kept.get(items)) is not None:
                return replace(node, items=tuple(ir.VarRead(var, span=node.span) for var in variables))
            case ir.Block(stmts=stmts):
                added = [(stmt, *(copy for var in bound_by(stmt) for copy in self.copied(var, stmt))) for stmt in stmts]
                return replace(node, stmts=tuple(stmt for each in added for stmt in each))
            case ir.For(var=var, body=body) if var in self.copies:
                return replace(node, body=replace(body, stmts=(*self.copied(var, node), *body.stmts)))
            case _:
                return node
