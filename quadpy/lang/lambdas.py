"""``lambda``: a compile-time function, whose expression is traced wherever it is called."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.lang.context import Trace
from quadpy.lang.frames import Frame
from quadpy.lang.values import Value, holds_runtime, shape_text
from quadpy.lang.variables import freeze_all


@dataclass(frozen=True, eq=False, slots=True)
class Lambda:
    """A lambda in a function being traced, whose names it sees as they are at each call, as in Python.

    ``scope`` has those of the comprehensions around it; ``t`` is the trace in which Python's functions may call it.
    """

    t: Trace
    node: ast.Lambda
    signature: inspect.Signature
    frame: Frame
    scope: dict[str, object]

    def __call__(self, *args: Value) -> Value:
        """Called by a function of Python's at compile time, such as ``sorted``."""
        span = self.frame.source.span_of(self.node)
        value = call_lambda(self.t, self, args, {}, span)
        if holds_runtime(value):
            self.t.fail_type(f"a lambda that Python calls gives values known at compile time, not {shape_text(value)}",
                             span, "call a @qp.func in a loop instead")  # fmt: skip
        return value


def expr_Lambda(t: Trace, node: ast.Lambda) -> Value:
    given = node.args
    if given.vararg or given.kwarg:
        t.fail_syntax("a lambda in a kernel must name each parameter", t.span(node))
    plain = [*given.posonlyargs, *given.args]
    defaults = dict(zip((arg.arg for arg in plain[len(plain) - len(given.defaults) :]), given.defaults, strict=True))
    defaults |= {arg.arg: value for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    kinds = inspect.Parameter
    parameters = [
        kinds(
            arg.arg,
            kinds.KEYWORD_ONLY if arg in given.kwonlyargs else kinds.POSITIONAL_OR_KEYWORD,
            default=freeze_all(t, t.expr(defaults[arg.arg])) if arg.arg in defaults else kinds.empty,
        )
        for arg in [*plain, *given.kwonlyargs]
    ]
    return Lambda(t, node, inspect.Signature(parameters), t.frame, t.frame.comprehended)


def call_lambda(t: Trace, fn: Lambda, args: Sequence[Value], kwargs: Mapping[str, Value], span: Span) -> Value:
    """The expression of ``fn``, with its parameters bound to ``args``."""
    t.effort.take(1)
    try:
        bound = fn.signature.bind(*args, **kwargs)
    except TypeError as exc:
        t.fail_type(f"lambda: {exc}", span)
    bound.apply_defaults()
    if any(frame.function is fn for frame in t.frames):
        t.fail_syntax(
            "this lambda calls itself: functions of kernels cannot recurse", span, "rewrite the recursion as a loop"
        )
    values = {name: freeze_all(t, value) for name, value in bound.arguments.items()}
    env = {**fn.frame.env, **fn.scope, **values}
    t.frames.append(Frame(fn.frame.source, env, static=fn.frame.static, function=fn, finished=fn.frame.finished))
    try:
        return freeze_all(t, t.expr(fn.node.body))
    finally:
        t.frames.pop()
