"""Statements other than assignments and loops."""

from __future__ import annotations

import ast
from collections.abc import Callable

from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.items import lengthen
from quadpy.lang.loops import StaticBreak, StaticContinue
from quadpy.lang.parallel import loop_config
from quadpy.lang.returns import kernel_return, return_value
from quadpy.lang.scalars import decide, to_condition
from quadpy.lang.scope import end_block, static_object
from quadpy.lang.values import is_runtime


def stmt_Pass(t: Trace, node: ast.Pass) -> None:
    pass


def stmt_Expr(t: Trace, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Call):
        fn = static_object(t, node.value.func)
        if fn is BUILTINS["loop_config"]:
            loop_config(t, node.value)
            return
        if lengthen(t, node.value):
            return
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return  # a docstring
    t.expr(node.value)


def stmt_If(t: Trace, node: ast.If) -> bool:
    cond = t.expr(node.test)
    if not is_runtime(cond):
        return t.block(node.body if decide(t, cond, t.span(node.test)) else node.orelse)
    span = t.span(node)
    return branches(t, to_condition(t, cond, span), lambda: t.block(node.body), lambda: t.block(node.orelse), span)


def branches(t: Trace, cond: ir.Expr, then: Callable[[], bool], orelse: Callable[[], bool], span: Span) -> bool:
    """A run-time branch, whose sides ``then`` and ``orelse`` trace; True if neither side reaches its end."""
    frame, before = t.frame, t.frame.assigned()
    then_stmts, then_ends = _branch_block(t, then)
    paths = [] if then_ends else [frame.assigned()]
    frame.meet([before])
    else_stmts, else_ends = _branch_block(t, orelse)
    frame.meet(paths if else_ends else [*paths, frame.assigned()])
    t.build.branch(cond, then_stmts, else_stmts, span)
    return then_ends and else_ends


def _branch_block(t: Trace, trace: Callable[[], bool]) -> tuple[list[ir.Stmt], bool]:
    """Traces a block that may not run; its compile-time bindings end with it."""
    frame = t.frame
    before = dict(frame.env)
    with frame.conditional(), t.build.block() as stmts, t.own_loops():
        ends = trace()
    end_block(t, before)
    return stmts, ends


def stmt_Break(t: Trace, node: ast.Break) -> bool:
    kind = _innermost_loop(t, "break", node)
    if kind == "parallel":
        t.fail_syntax("a parallel loop cannot break: its iterations have no order", t.span(node),
                      "use continue, or put qp.loop_config(serialize=True) before the loop")  # fmt: skip
    if kind.startswith("static"):
        raise StaticBreak
    if t.frame.breaks:
        t.frame.breaks[-1].append(t.frame.assigned())
    t.build.emit(ir.Break(span=t.span(node)))
    return True


def stmt_Continue(t: Trace, node: ast.Continue) -> bool:
    if _innermost_loop(t, "continue", node).startswith("static"):
        raise StaticContinue
    t.build.emit(ir.Continue(span=t.span(node)))
    return True


def _innermost_loop(t: Trace, what: str, node: ast.stmt) -> str:
    """The kind of the loop that a jump leaves or continues; raises if the jump is not allowed."""
    kind = t.frame.loops[-1] if t.frame.loops else "none"
    if kind == "do_while":  # the jump would leave its tasks in the middle
        t.fail_syntax(f"{what} cannot be used in a do_while loop", t.span(node),
                      "only its condition ends it; to skip work, use an if inside the tasks")  # fmt: skip
    if kind.startswith("static") and kind != f"static{t.frame.runtime_depth}":
        t.fail_syntax(f"{what} in an unrolled loop needs a condition that is known at compile time", t.span(node),
                      "make the condition static, or use a run-time loop")  # fmt: skip
    return kind


def stmt_Return(t: Trace, node: ast.Return) -> bool:
    value = None if node.value is None else t.expr(node.value)
    if len(t.frames) > 1 or t.is_library:
        return_value(t, value, t.span(node))
    else:
        kernel_return(t, value, t.span(node))
    return True
