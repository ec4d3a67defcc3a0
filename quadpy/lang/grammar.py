"""The grammar of the kernel language: the rule for each type of node that it has, and hints for nodes that it lacks.

Its own rule is that of ``assert``: a check of the user's own, under ``debug=True``.
"""

from __future__ import annotations

import ast
from typing import Final

from quadpy.core.faults import MOST_VALUES, Site
from quadpy.core.output import Message
from quadpy.errors import KernelAssertionError
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
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
)
from quadpy.lang.checks import report
from quadpy.lang.context import Grammar, Trace
from quadpy.lang.marks import mark_line, mark_names
from quadpy.lang.scalars import decide, to_condition
from quadpy.lang.texts import text_of, words_of
from quadpy.lang.values import Text, is_runtime


def stmt_Assert(t: Trace, node: ast.Assert) -> None:
    """The condition is evaluated at run time only under ``debug=True``; a compile-time condition is decided at once."""
    span = t.span(node)
    with t.build.block() as stmts:
        cond = t.expr(node.test)
    has_effects = any(n.WRITES or isinstance(n, ir.Assign) for stmt in stmts for n in walk(stmt))
    checked = t.checks is not None and not t.checks.indices_only
    if checked or has_effects:
        t.build.splice(stmts)
    if not is_runtime(cond):
        if not decide(t, cond, t.span(node.test)):
            said = None if node.msg is None else _message(t, node)
            t.fail_type("this assertion fails at compile time" + (f": {said}" if isinstance(said, str) else ""), span)
        return
    if not checked:
        return
    holds = t.build.let(to_condition(t, cond, span))
    with t.frame.conditional(), t.build.block() as saying:
        parts, words = words_of(_message(t, node))
    if len(words) > MOST_VALUES:
        t.fail_type(f"a message can hold at most {MOST_VALUES} run-time numbers, not {len(words)}", span)
    site = Site(KernelAssertionError.__name__, "", (), (), t.frames[0].source.name, span, said=Message(parts).text)
    report(t, holds, site, saying, words)


def _message(t: Trace, node: ast.Assert) -> str | Text:
    """The message, with its run-time values."""
    if node.msg is None:
        return f"assertion failed: {ast.unparse(node.test)}"
    return text_of(t, t.expr(node.msg), t.span(node.msg))


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
