"""``with qp.hazards.allow(x, reason="…"):`` in a kernel: iterations of the loops inside may race on ``x``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from quadpy.core.messages import shown
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.frames import MutableVar
from quadpy.lang.scope import static_object
from quadpy.lang.values import ArrayRef, holds_runtime, shape_text

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
