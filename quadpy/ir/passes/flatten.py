"""Branches of pure functions as selections, for targets whose loops are vectorised.

A branch around the rare case of a function (sine of a huge number) saves a GPU most of its work, but stops a CPU's
vectoriser.  Every operation of a function is defined for every operand, so both sides may be computed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from quadpy.dtypes import Scalar, u1
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children

__all__ = ["flatten_branches"]


def flatten_branches(function: ir.Function) -> ir.Function:
    """``function`` without those branches that only compute and assign."""
    return map_children(function, _Flattener().visit)


class _Flattener:
    def __init__(self) -> None:
        self.fresh = 0

    def visit(self, node: ir.Node) -> ir.Node:
        node = map_children(node, self.visit)  # inner branches first
        if isinstance(node, ir.Block):
            stmts = tuple(flat for stmt in node.stmts for flat in self.statement(stmt))
            return node if stmts == node.stmts else ir.Block(stmts, span=node.span)
        return node

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if not (isinstance(stmt, ir.If) and _only_computes(stmt.then) and _only_computes(stmt.orelse)):
            yield stmt
            return
        span = stmt.span
        cond = self.var("taken", u1)
        yield ir.Let(cond, stmt.cond, span=span)
        outcomes: dict[ir.Var, tuple[ir.Expr, ir.Expr]] = {}
        for side, block in enumerate((stmt.then, stmt.orelse)):
            values = yield from self.side(block)
            for var, value in values.items():
                before: ir.Expr = ir.VarRead(var, span=span)
                then, orelse = outcomes.get(var, (before, before))
                outcomes[var] = (then, value) if side else (value, orelse)
        chosen = []
        for var, (then, orelse) in outcomes.items():
            merged = self.var(var.name, var.type)
            yield ir.Let(merged, ir.Select(ir.VarRead(cond, span=span), then, orelse, var.type, span=span), span=span)
            chosen.append(ir.Assign(var, ir.VarRead(merged, span=span), span=span))
        yield from chosen

    def side(self, block: ir.Block) -> Generator[ir.Stmt, None, dict[ir.Var, ir.Expr]]:
        """The statements of one side, its assignments as new names; returns what each variable ends as."""
        values: dict[ir.Var, ir.Expr] = {}

        def now(node: ir.Node) -> ir.Node:
            if isinstance(node, ir.VarRead) and node.var in values:
                return values[node.var]
            return map_children(node, now)

        for stmt in block.stmts:
            renamed = map_children(stmt, now)
            if isinstance(renamed, ir.Assign):
                var = self.var(renamed.var.name, renamed.var.type)
                yield ir.Let(var, renamed.value, span=renamed.span)
                values[renamed.var] = ir.VarRead(var, span=renamed.span)
            else:
                assert isinstance(renamed, (ir.Let, ir.CallMany))
                yield renamed
        return values

    def var(self, name: str, dtype: Scalar) -> ir.Var:
        self.fresh += 1
        return ir.Var(f"{name}$flat{self.fresh}", dtype)


def _only_computes(block: ir.Block) -> bool:
    return all(isinstance(stmt, (ir.Let, ir.Assign, ir.CallMany)) for stmt in block.stmts)
