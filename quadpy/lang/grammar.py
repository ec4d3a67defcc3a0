"""The grammar of the kernel language: the rule for each type of node that it has, and hints for nodes that it lacks."""

from __future__ import annotations

import ast
from typing import Final

from quadpy.lang import (
    access,
    assignments,
    calls,
    displays,
    expressions,
    flows,
    loops,
    statements,
    texts,
)  # fmt: skip
from quadpy.lang.context import Grammar

__all__ = ["GRAMMAR"]

GRAMMAR: Final = Grammar(
    expressions={
        ast.Attribute: access.expr_Attribute,
        ast.BinOp: expressions.expr_BinOp,
        ast.BoolOp: expressions.expr_BoolOp,
        ast.Call: calls.expr_Call,
        ast.Compare: expressions.expr_Compare,
        ast.Constant: expressions.expr_Constant,
        ast.Dict: displays.expr_Dict,
        ast.IfExp: expressions.expr_IfExp,
        ast.JoinedStr: texts.expr_JoinedStr,
        ast.List: displays.expr_List,
        ast.ListComp: displays.expr_ListComp,
        ast.Name: expressions.expr_Name,
        ast.NamedExpr: expressions.expr_NamedExpr,
        ast.Slice: displays.expr_Slice,
        ast.Subscript: access.expr_Subscript,
        ast.Tuple: displays.expr_Tuple,
        ast.UnaryOp: expressions.expr_UnaryOp,
    },
    statements={
        ast.AnnAssign: assignments.stmt_AnnAssign,
        ast.Assert: statements.stmt_Assert,
        ast.Assign: assignments.stmt_Assign,
        ast.AugAssign: assignments.stmt_AugAssign,
        ast.Break: statements.stmt_Break,
        ast.Continue: statements.stmt_Continue,
        ast.Expr: statements.stmt_Expr,
        ast.For: loops.stmt_For,
        ast.If: statements.stmt_If,
        ast.Pass: statements.stmt_Pass,
        ast.Return: statements.stmt_Return,
        ast.While: loops.stmt_While,
        ast.With: flows.stmt_With,
    },
    call=calls.call_value,
    hints={
        ast.Await: "kernel launches are asynchronous already",
        ast.FunctionDef: "define it outside, under @qp.func",
        ast.GeneratorExp: "use a list comprehension",
        ast.Global: "write to a field, or to an element of an array",
        ast.Import: "import outside the kernel",
        ast.ImportFrom: "import outside the kernel",
        ast.Lambda: "write a @qp.func",
        ast.Nonlocal: "write to a field, or to an element of an array",
        ast.Raise: "kernels cannot raise exceptions: store what happened, and raise outside",
        ast.Set: "use a tuple",
        ast.Try: "kernels cannot raise exceptions: test for the case with if",
    },
)
