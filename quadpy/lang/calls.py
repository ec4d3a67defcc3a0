"""``f(…)``, by the kind of value that is called."""

from __future__ import annotations

import ast
from typing import Any

from quadpy.dtypes import Scalar
from quadpy.intrinsics import Builtin
from quadpy.intrinsics.rows import Row, Update
from quadpy.ir import nodes as ir
from quadpy.lang.atomics import atomic_call
from quadpy.lang.constructors import call_type, construct
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method
from quadpy.lang.displays import display_items
from quadpy.lang.functions import inline
from quadpy.lang.intrinsics import RULES
from quadpy.lang.library import traced
from quadpy.lang.python_calls import (
    attribute_by_name,
    call_at_compile_time,
    call_pythons_own,
    is_pythons_own,
    takes_a_name,
)
from quadpy.lang.scalars import call_function, convert
from quadpy.lang.values import ArrayRef, BoundMethod, Value
from quadpy.lang.vecmethods import METHODS
from quadpy.mathlib.library import LibraryFunction
from quadpy.source import Span

__all__ = ["call_value", "expr_Call"]


def expr_Call(t: Trace, node: ast.Call) -> Value:
    span, fn = t.span(node), t.expr(node.func)
    if isinstance(fn, Builtin) and isinstance(fn.row.lowering, Update):
        return atomic_call(t, ir.AtomicOp(fn.row.lowering.op), node)
    if (fn is getattr or fn is hasattr) and takes_a_name(fn, node):
        return attribute_by_name(t, fn, node, span)
    args = display_items(t, node.args)
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            t.fail_syntax("** is not part of the kernel language", span)
        kwargs[keyword.arg] = t.expr(keyword.value)
    return call_value(t, fn, args, kwargs, span)


def call_value(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """Calls whatever ``fn`` turned out to be."""
    if isinstance(fn, Builtin):
        return _call_builtin(t, fn.row, args, kwargs, span)
    if isinstance(fn, Func):
        return inline(t, fn, args, kwargs, span)
    if isinstance(fn, Method):
        return inline(t, fn.func, [fn.instance, *args], kwargs, span)
    if isinstance(fn, BoundMethod):
        return _call_method(t, fn, args, kwargs, span)
    if isinstance(fn, Scalar) or fn in (int, float, bool):
        return call_type(t, fn, args, span)
    if isinstance(fn, LibraryFunction):
        typed = zip(args, fn.params, strict=True)
        results = call_function(t, traced(fn), tuple(convert(t, a, type, span) for a, (_, type) in typed), span)
        return results[0] if len(results) == 1 else results
    if getattr(fn, "__quadpy_kernel__", False):
        t.fail_syntax("a kernel cannot call another kernel", span, "make the callee a @qp.func")
    if is_pythons_own(fn):
        return call_pythons_own(t, fn, args, kwargs, span)
    made = construct(t, fn, args, kwargs, span)
    return made if made is not None else call_at_compile_time(t, fn, args, kwargs, span)


def _call_builtin(t: Trace, row: Row, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if row.per_block:
        _need_block(t, row, span)
    try:
        return RULES[row.name](t, span, *args, **kwargs)
    except TypeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
            t.fail_type(f"{row.name}: {str(exc).partition('() ')[2] or exc}", span, f"{row.signature}: {row.doc}")
        raise


def _need_block(t: Trace, row: Row, span: Span) -> None:
    """The loop around this has blocks; it remembers that it needs them."""
    if t.loop is None:
        t.fail_syntax(
            f"{row.name}() belongs to the iterations of a parallel loop, and there is none here", span,
            "put it into a top-level for loop that is not serialized",
        )  # fmt: skip
    t.loop.uses_block = True


def _call_method(t: Trace, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if isinstance(method.receiver, ArrayRef):
        t.fail_syntax(f"arrays have no {method.name}() inside a kernel", span, "call it from Python, outside")
    try:
        return METHODS[method.name](t, method.receiver, span, *args, **kwargs)
    except TypeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
            t.fail_type(f"{method.name}: wrong arguments", span)
        raise
