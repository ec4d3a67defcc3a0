"""Replaces calls of users' functions by their bodies, so that derivatives meet none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import Names, zero
from quadpy.ir.variables import assigned_in, set_in
from quadpy.ir.walk import N, map_children, walk


def inline_called(block: ir.Block, kernel: ir.Kernel, names: Names) -> ir.Block:
    """``block`` without calls of functions that ``is_called``; library functions stay."""
    called = {function.name: function for function in kernel.functions if function.is_called}
    return _Inliner(called, names).block(block) if called else block


class _Inliner:
    def __init__(self, called: Mapping[str, ir.Function], names: Names) -> None:
        self.called, self.names = called, names

    def block(self, block: ir.Block) -> ir.Block:
        out: list[ir.Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, ir.CallMany) and stmt.function in self.called:
                args = tuple(self.hoisted(arg, out) for arg in stmt.args)
                given = self.body_of(stmt.function, args, stmt.span, out)
                out += [ir.Let(v, e, span=stmt.span) for v, e in zip(stmt.results, given, strict=True)]
            elif isinstance(stmt, ir.While):
                head = list(self.block(stmt.head).stmts)
                cond = self.hoisted(stmt.cond, head)
                out.append(
                    replace(
                        stmt, head=ir.Block(tuple(head), span=stmt.head.span), cond=cond, body=self.block(stmt.body)
                    )
                )
            else:
                out.append(self.plain(stmt, out))
        return ir.Block(tuple(out), span=block.span)

    def plain(self, stmt: ir.Stmt, out: list[ir.Stmt]) -> ir.Stmt:
        return map_children(stmt, lambda c: self.block(c) if isinstance(c, ir.Block) else self.hoisted(c, out))

    def hoisted(self, e: N, out: list[ir.Stmt]) -> N:
        """``e`` with the results of calls, whose bodies ``out`` gets."""
        if not any(isinstance(node, ir.Call) and node.function in self.called for node in walk(e)):
            return e
        e = map_children(e, lambda child: self.hoisted(child, out))
        if isinstance(e, ir.Call) and e.function in self.called:
            return self.body_of(e.function, e.args, e.span, out)[0]  # type: ignore[return-value]  # an expression for one
        return e

    def body_of(self, name: str, args: tuple[ir.Expr, ...], span: Span, out: list[ir.Stmt]) -> list[ir.Expr]:
        """Appends the body of a function to ``out``; its results."""
        function = self.called[name]
        new = {var: self.names.fresh(var.name, var.type) for var in set_in(function.body)}
        params = {var.name: self.names.fresh(var.name, var.type) for var in function.params}
        results = [self.names.fresh("result", type) for type in function.results]
        label = self.names.fresh("call", function.results[0]).name
        labels = {
            node.label: self.names.fresh(node.label, function.results[0]).name
            for node in walk(function.body)
            if isinstance(node, ir.LabelledBlock)
        }

        def visit(node: ir.Node) -> ir.Node:
            match node:
                case ir.ParamRead(name=name):
                    return ir.VarRead(params[name], span=node.span)
                case ir.VarRead(var=var):
                    return ir.VarRead(new.get(var, var), span=node.span)
                case ir.Block(stmts=stmts):
                    return ir.Block(tuple(part for stmt in stmts for part in statement(stmt)), span=node.span)
            return _renamed(map_children(node, visit), new, labels)

        def statement(stmt: ir.Stmt) -> list[ir.Stmt]:
            if not isinstance(stmt, ir.Return):
                return [visit(stmt)]  # type: ignore[list-item]  # a statement for a statement
            values = [visit(value) for value in stmt.values]
            sets = [ir.Assign(var, value, span=stmt.span) for var, value in zip(results, values, strict=True)]  # type: ignore[arg-type]
            return [*sets, ir.Leave(label, span=stmt.span)]

        out += [ir.Let(var, arg, span=span) for var, arg in zip(params.values(), args, strict=True)]
        out += [ir.Assign(new[var], zero(var.type, span), span=span) for var in assigned_in(function.body)]
        body = self.block(visit(function.body))  # type: ignore[arg-type]  # a block for a block
        out.append(ir.LabelledBlock(label, body, span=span))
        return [ir.VarRead(var, span=span) for var in results]


def _renamed(node: ir.Node, new: Mapping[ir.Var, ir.Var], labels: Mapping[str, str]) -> ir.Node:
    match node:
        case ir.Let(var=var) | ir.Assign(var=var) | ir.For(var=var):
            return replace(node, var=new.get(var, var))
        case ir.CallMany(results=results):
            return replace(node, results=tuple(new[var] for var in results))
        case ir.LabelledBlock(label=label) | ir.Leave(label=label):
            return replace(node, label=labels[label])
        case _:
            return node
