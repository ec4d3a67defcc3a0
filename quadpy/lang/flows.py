"""Tasks that do not follow the order of the text: concurrent sections, and loops over tasks.

Under ``with qp.hazards.allow(x, reason="…"):``, iterations of the loops inside may race on ``x``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from quadpy.core.messages import shown
from quadpy.intrinsics import Builtin
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.lang.checkpoints import has_checkpoints, pausing, require_checkpoint
from quadpy.lang.concurrent import OpenFork, use_of
from quadpy.lang.frames import MutableVar
from quadpy.lang.graph_blocks import FORMS, checkpoint, do_while, parallel, parallel_context, stream_parallel
from quadpy.lang.scope import static_object
from quadpy.lang.values import ArrayRef, holds_runtime, shape_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadpy.core.source import Span
    from quadpy.lang.context import Trace

_SECTIONS: Final = (stream_parallel, parallel)


def stmt_With(t: Trace, node: ast.With) -> bool:
    if is_allowance(t, node):
        return with_allowed_races(t, node)
    span = t.span(node.items[0].context_expr)
    marker = marker_of(t, node.items[0].context_expr)
    if marker not in (*_SECTIONS, parallel_context, checkpoint):
        t.fail_syntax("with is not part of the kernel language", t.span(node),
                      "only with qp.stream_parallel():, with qp.hazards.allow(…): and, in graph kernels, "
                      "with qp.graph.parallel(): and with qp.checkpoint(…):")  # fmt: skip
    assert marker is not None
    _check_form(t, marker, node, span)
    _check_place(t, marker, span)
    if marker is checkpoint:
        _checkpoint(t, node, span)
    elif marker is parallel_context:
        _sections_of_context(t, node, span)
    else:
        _one_section(t, node, span)
    return False


def marker_of(t: Trace, node: ast.expr) -> Builtin | None:
    """The marker that ``node`` names or calls."""
    name = node.func if isinstance(node, ast.Call) else node
    found = static_object(t, name)
    if not isinstance(found, Builtin) or found.__name__ not in FORMS:
        return None
    t.expr(name)  # records what the name meant
    return found


def _check_form(t: Trace, marker: Builtin, node: ast.With, span: Span) -> None:
    """``with marker():`` and no more."""
    (item, *others), form = node.items, FORMS[marker.__name__]
    call = item.context_expr
    if others:
        t.fail_syntax(
            f"{marker.__name__} must be the only item of its with statement", span, f"write {form} on a line of its own"
        )
    if item.optional_vars is not None:
        t.fail_syntax(f"{marker.__name__} has no value to bind with as", span, f"write {form}")
    if not isinstance(call, ast.Call) or (marker is not checkpoint and (call.args or call.keywords)):
        t.fail_syntax(f"{marker.__name__} takes no arguments, and must be called", span, f"write {form}")


def _check_place(t: Trace, marker: Builtin, span: Span) -> None:
    """At the top level of a kernel, and of a graph kernel unless it is a stream's section."""
    if t.tasks.section is not None:
        hint = "put the loop around the sections" if marker is do_while else "write sections one after the other"
        t.fail_syntax(f"{marker.__name__} cannot be used inside a section", span, hint)
    if not t.at_top_level() or len(t.frames) > 1:
        t.fail_syntax(f"{marker.__name__} must be at the top level of a kernel", span,
                      "not inside a loop, a branch or a function")  # fmt: skip
    if marker is not stream_parallel and not t.tasks.graph:
        t.fail_syntax(f"{marker.__name__} needs a graph kernel", span, "decorate it with @qp.kernel(graph=True)")


def _sections_of_context(t: Trace, node: ast.With, span: Span) -> None:
    """The sections of one fork, and nothing else."""
    t.tasks.fork = None
    with t.build.block() as stmts:
        t.block(node.body)
    for stmt in stmts:
        if not isinstance(stmt, (ir.Sections, ir.Line, ir.Names)):
            t.fail_syntax("a parallel_context may only contain parallel() sections", stmt.span,
                          "move this before the context, or into a section")  # fmt: skip
    t.build.splice(stmts)
    t.tasks.fork = None


def _one_section(t: Trace, node: ast.With, span: Span) -> None:
    """Another branch of the fork before it, if there is nothing in between; otherwise the first branch of a new one."""
    frame = t.frame
    joins = t.tasks.fork is not None and t.tasks.fork.node is not None and t.build.retract(t.tasks.fork.node)
    fork = t.tasks.fork = t.tasks.fork if joins and t.tasks.fork else OpenFork()
    outer, t.random.draws, t.tasks.section = (t.random.draws, t.random.serial_stream), None, span
    t.random.streams += 1
    t.random.serial_stream = t.random.streams
    frame.env = fork.enter(frame.env)
    try:
        with t.build.block() as stmts:
            t.block(node.body)
    finally:
        (t.random.draws, t.random.serial_stream), t.tasks.section = outer, None
    use = use_of(stmts, t.signature.slots, span)
    clash = fork.clash(use)
    if clash is not None:
        name, at, other = clash
        t.fail_syntax(f"{name!r} is shared with a concurrent section (line {other.line}), and one of them "
                      "changes it", at, "give each section its own variable, or run one section after the other")  # fmt: skip
    frame.env = fork.add(use, stmts, frame.env)
    assert fork.node is not None
    t.build.emit(fork.node)


def _condition_array(t: Trace, call: ast.expr, span: Span) -> str:
    """The array parameter that ``do_while(cond)`` names."""
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        t.fail_syntax("do_while takes the name of one array", span, f"write {FORMS['graph.do_while']}")
    return _integer(t, do_while, call.args[0], span, ndim=0 if has_checkpoints(t) else 1).name


def _integer(t: Trace, marker: Builtin, node: ast.expr, span: Span, ndim: int) -> ArrayRef:
    """The array parameter, or array in an argument, that ``node`` names: of one integer, and at most ``ndim`` axes."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        t.fail_syntax(f"{marker.__name__} takes the name of one array", span, f"write {FORMS[marker.row.name]}")
    value, what = t.expr(node), marker.__name__.rpartition(".")[2]
    hint = f"such as {'flag' if marker is checkpoint else 'cond'}: qp.types.ndarray(dtype=qp.i32, ndim=0)"
    params = {param.name for param in t.signature.params if isinstance(param, ir.ArrayParam)}
    if not isinstance(value, ArrayRef) or value.name not in params:
        is_field = isinstance(value, ArrayRef) and value.shape is not None
        t.fail_type(f"{what} takes an array parameter, not {'a field' if is_field else shape_text(value)}", span, hint)
    type = value.type
    if type.elem.kind not in ("int", "uint") or type.components != 1 or type.ndim > ndim:
        t.fail_type(f"{what} takes an array of one integer, not {shape_text(value)}", span, hint)
    return value


def _checkpoint(t: Trace, node: ast.With, span: Span) -> None:
    """Part of the kernel at whose end it may pause, and at whose beginning it resumes."""
    call = node.items[0].context_expr
    assert isinstance(call, ast.Call)
    number, flag_name = require_checkpoint(t, call, span)
    flag = _integer(t, checkpoint, flag_name, span, ndim=0)
    t.tasks.fork, t.tasks.checkpoint = None, True
    try:
        with t.build.block() as stmts:
            t.block(node.body)
    finally:
        t.tasks.fork, t.tasks.checkpoint = None, False
    t.build.emit(pausing(t, number, flag, stmts, span))


def _repeated_body(t: Trace, node: ast.While) -> list[ir.Stmt]:
    """The body; with a count of iterations for random numbers, if it draws them."""
    frame, drew = t.frame, t.random.drew_in_loop
    t.random.drew_in_loop = False
    t.tasks.repeats += 1
    frame.loops.append("do_while")
    try:
        with frame.conditional(depth=0), t.build.block() as stmts:
            t.block(node.body)
    finally:
        frame.loops.pop()
        t.tasks.repeats -= 1
    if t.random.drew_in_loop and t.random.passes is not None:
        span = t.span(node)
        following = ir.VarRead(t.random.passes, span=span) + 1
        stmts.insert(0, ir.Assign(t.random.passes, following, span=span))
    t.random.drew_in_loop |= drew
    return stmts


def do_while_loop(t: Trace, node: ast.While) -> bool:
    """``while qp.graph.do_while(cond):``."""
    span = t.span(node.test)
    _check_place(t, do_while, span)
    if node.orelse:
        t.fail_syntax("a loop has no else in the kernel language", span, "write it after the loop")
    condition = _condition_array(t, node.test, span)
    t.tasks.fork = None
    stmts = _repeated_body(t, node)
    if not any(n.WRITES or isinstance(n, ir.ParallelFor) for stmt in stmts for n in walk(stmt)):
        t.fail_syntax(f"this loop changes nothing in memory, so {condition!r} would never change", span,
                      f"let it set {condition}[()] or {condition}[0]")  # fmt: skip
    t.tasks.fork = None
    t.build.emit(ir.DoWhile(condition, ir.Block(tuple(stmts), span=t.span(node)), span=span))
    return False


_FORM = 'with qp.hazards.allow(x, reason="why the races of x do no harm"):'


def is_allowance(t: Trace, node: ast.With) -> bool:
    """Whether ``node`` begins with ``qp.hazards.allow``."""
    call = node.items[0].context_expr
    found = static_object(t, call.func if isinstance(call, ast.Call) else call)
    return isinstance(found, type) and getattr(found, "__quadpy_allows_races__", False)


def with_allowed_races(t: Trace, node: ast.With) -> bool:
    """Traces the body; True where control does not reach its end."""
    if not t.at_top_level():
        t.fail_syntax("hazards.allow must enclose parallel loops", t.span(node.items[0].context_expr),
                      "at the top level of a kernel, or of a function that is called there")  # fmt: skip
    before = t.tasks.allowed
    t.tasks.allowed = (*before, *(each for item in node.items for each in _allowed(t, node, item)))
    try:
        return t.block(node.body)
    finally:
        t.tasks.allowed = before


def _allowed(t: Trace, node: ast.With, item: ast.withitem) -> Iterator[tuple[str | ir.Var, str]]:
    """What ``item`` names, an array or the variables of a name, each with the reason."""
    call = item.context_expr
    span = t.span(call)
    if item.optional_vars is not None or not is_allowance(t, ast.With([item], node.body)):
        t.fail_syntax("hazards.allow must be the only item of its with statement, without as", span, f"write {_FORM}")
    if (
        not isinstance(call, ast.Call)
        or len(call.args) != 1
        or [keyword.arg for keyword in call.keywords] != ["reason"]
    ):
        t.fail_syntax("hazards.allow takes an array and a reason", span, f"write {_FORM}")
    reason = t.expr(call.keywords[0].value)
    if not isinstance(reason, str) or not reason.strip():
        what = "a run-time text" if holds_runtime(reason) else shown(reason)
        t.fail_type(f"hazards.allow takes the reason as a string, not {what}", span, f"write {_FORM}")
    target = call.args[0]
    variable = t.frame.env.get(target.id) if isinstance(target, ast.Name) else None
    if isinstance(variable, MutableVar):
        yield from ((var, reason) for var in variable.vars)
        return
    value = t.expr(target)
    if not isinstance(value, ArrayRef):
        t.fail_type(f"hazards.allow takes an array, a field or a variable that a loop assigns, not {shape_text(value)}",
                    t.span(target), "name the whole array, without an index")  # fmt: skip
    yield value.name, reason
