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
    lambdas,
    loops,
    matches,
    statements,
    texts,
)  # fmt: skip
from quadpy.lang.assertions import stmt_Assert
from quadpy.lang.context import Grammar
from quadpy.lang.marks import mark_line, mark_names

GRAMMAR: Final = Grammar(
    expressions={
        ast.Attribute: access.expr_Attribute,
        ast.BinOp: expressions.expr_BinOp,
        ast.BoolOp: expressions.expr_BoolOp,
        ast.Call: calls.expr_Call,
        ast.Compare: expressions.expr_Compare,
        ast.Constant: expressions.expr_Constant,
        ast.Dict: displays.expr_Dict,
        ast.DictComp: displays.expr_DictComp,
        ast.GeneratorExp: displays.expr_ListComp,
        ast.IfExp: expressions.expr_IfExp,
        ast.JoinedStr: texts.expr_JoinedStr,
        ast.Lambda: lambdas.expr_Lambda,
        ast.List: displays.expr_List,
        ast.ListComp: displays.expr_ListComp,
        ast.Name: expressions.expr_Name,
        ast.NamedExpr: expressions.expr_NamedExpr,
        ast.Set: displays.expr_Set,
        ast.SetComp: displays.expr_SetComp,
        ast.Slice: displays.expr_Slice,
        ast.Subscript: access.expr_Subscript,
        ast.Tuple: displays.expr_Tuple,
        ast.UnaryOp: expressions.expr_UnaryOp,
    },
    statements={
        ast.AnnAssign: assignments.stmt_AnnAssign,
        ast.Assert: stmt_Assert,
        ast.Assign: assignments.stmt_Assign,
        ast.AugAssign: assignments.stmt_AugAssign,
        ast.Break: statements.stmt_Break,
        ast.Continue: statements.stmt_Continue,
        ast.Expr: statements.stmt_Expr,
        ast.For: loops.stmt_For,
        ast.If: statements.stmt_If,
        ast.Match: matches.stmt_Match,
        ast.Pass: statements.stmt_Pass,
        ast.Return: statements.stmt_Return,
        ast.While: loops.stmt_While,
        ast.With: flows.stmt_With,
    },
    call=calls.call_value,
    begin=mark_line,
    end=mark_names,
    missing={
        ast.AsyncFor: ("async for", "kernel launches are asynchronous already"),
        ast.AsyncFunctionDef: ("async def", "kernel launches are asynchronous already"),
        ast.AsyncWith: ("async with", "kernel launches are asynchronous already"),
        ast.Await: ("await", "kernel launches are asynchronous already"),
        ast.ClassDef: ("class", "define it outside, under @qp.dataclass"),
        ast.Delete: ("del", "names end with the kernel"),
        ast.FunctionDef: ("def inside a kernel", "define it outside, under @qp.func"),
        ast.Global: ("global", "write to a field, or to an element of an array"),
        ast.Import: ("import", "import outside the kernel"),
        ast.ImportFrom: ("import", "import outside the kernel"),
        ast.Nonlocal: ("nonlocal", "write to a field, or to an element of an array"),
        ast.Raise: ("raise", "kernels cannot raise exceptions: store what happened, and raise outside"),
        ast.Starred: ("a star here", "stars are allowed in lists, tuples, calls and targets of assignments"),
        ast.Try: ("try", "kernels cannot raise exceptions: test for the case with if"),
        **(
            {ast.TryStar: ("try", "kernels cannot raise exceptions: test for the case with if")}
            if hasattr(ast, "TryStar")
            else {}
        ),
        **({ast.TypeAlias: ("type", "define it outside the kernel")} if hasattr(ast, "TypeAlias") else {}),
        ast.Yield: ("yield", "return the value, or store it in an array"),
        ast.YieldFrom: ("yield", "return the value, or store it in an array"),
    },
)
