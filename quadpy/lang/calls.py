"""``f(…)``, by the kind of value that is called."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from quadpy.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.lang.atomics import atomic_call
from quadpy.lang.builtins import BUILTINS, Builtin
from quadpy.lang.constructors import call_type, construct
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func
from quadpy.lang.displays import display_items
from quadpy.lang.functions import inline
from quadpy.lang.graph_blocks import FORMS
from quadpy.lang.intrinsics import RULES
from quadpy.lang.library import traced
from quadpy.lang.operators import bit_cast, select
from quadpy.lang.python_calls import (
    attribute_by_name,
    call_at_compile_time,
    call_pythons_own,
    is_pythons_own,
    takes_a_name,
)
from quadpy.lang.ranges import Grouped, NdRange
from quadpy.lang.scalars import call_function, library_args, to_scalar
from quadpy.lang.values import ArrayRef, BoundMethod, Value
from quadpy.lang.vecmethods import METHODS
from quadpy.mathlib import ops
from quadpy.mathlib.library import LibraryFunction
from quadpy.source import Span

__all__ = ["call_value", "expr_Call"]


ATOMICS: Final = {f"atomic_{op.value}": op for op in ir.AtomicOp}


_OPS_UNARY: Final = {ops.sqrt: ir.UnOp.SQRT, ops.floor: ir.UnOp.FLOOR, ops.rint: ir.UnOp.RINT, ops.trunc: ir.UnOp.TRUNC,
                     ops.abs_: ir.UnOp.ABS}  # fmt: skip


def expr_Call(t: Trace, node: ast.Call) -> Value:
    span, fn = t.span(node), t.expr(node.func)
    if isinstance(fn, Builtin) and fn.__name__ in ATOMICS:
        return atomic_call(t, ATOMICS[fn.__name__], node)
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
        return _call_builtin(t, fn.__name__, args, kwargs, span)
    if isinstance(fn, Func):
        return inline(t, fn, args, kwargs, span)
    if isinstance(fn, BoundMethod):
        return _call_method(t, fn, args, kwargs, span)
    if isinstance(fn, Scalar) or fn in (int, float, bool):
        return call_type(t, fn, args, span)
    if isinstance(fn, LibraryFunction):
        return call_function(t, traced(fn), library_args(t, fn, args, span), span)
    if getattr(fn, "__quadpy_kernel__", False):
        t.fail_syntax("a kernel cannot call a kernel", span, "make the callee a @qp.func")
    if is_pythons_own(fn):
        return call_pythons_own(t, fn, args, kwargs, span)
    if t.is_library and fn in (*_OPS_UNARY, ops.select, ops.bitcast, ops.copysign):
        return _call_op(t, fn, args, span)
    made = construct(t, fn, args, kwargs, span)
    return made if made is not None else call_at_compile_time(t, fn, args, kwargs, span)


def _call_builtin(t: Trace, name: str, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if name in FORMS:
        t.fail_syntax(f"{name} is no value", span, f"write {FORMS[name]}")
    if name == "ndrange":
        return NdRange.of(args, span)
    if name == "grouped":
        if len(args) != 1:
            t.fail_type(f"grouped takes 1 argument, not {len(args)}", span)
        return Grouped(args[0])
    if name not in RULES:
        t.fail_syntax(f"{name} stands on a line of its own", span)
    try:
        return RULES[name](t, span, *args, **kwargs)
    except TypeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
            doc = BUILTINS[name].__doc__ if name in BUILTINS else ""
            t.fail_type(f"{name}: {str(exc).partition('() ')[2] or exc}", span, doc or "")
        raise


def _call_method(t: Trace, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if isinstance(method.receiver, ArrayRef):
        t.fail_syntax(f"arrays have no {method.name}() inside a kernel", span, "call it from Python, outside")
    try:
        return METHODS[method.name](t, method.receiver, span, *args, **kwargs)
    except TypeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
            t.fail_type(f"{method.name}: wrong arguments", span)
        raise


def _call_op(t: Trace, fn: Callable[..., Any], args: list[Value], span: Span) -> Value:
    """A primitive of ``mathlib.ops``."""
    if fn is ops.select:
        return select(t, args[0], args[1], args[2], span)
    if fn is ops.bitcast:
        return bit_cast(t, args[0], args[1], span)
    if fn is ops.copysign:
        return RULES["copysign"](t, span, *args)
    x = to_scalar(t, args[0], span)
    return ir.Unary(_OPS_UNARY[fn], x, x.type, span=span)
