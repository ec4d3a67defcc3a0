"""``assert``: a check of the user's own, under ``debug=True``."""

from __future__ import annotations

import ast

from quadpy.core.faults import MOST_VALUES, Site
from quadpy.core.output import Message
from quadpy.errors import KernelAssertionError
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.lang.checks import report
from quadpy.lang.context import Trace
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
