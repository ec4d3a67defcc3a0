"""Calls of ``@qp.func`` functions, which are traced in place."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from quadpy.core.messages import misfit, positional
from quadpy.core.source import Span
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, is_template
from quadpy.lang.dependencies import MISSING
from quadpy.lang.frames import Frame
from quadpy.lang.items import has_variables, in_variables
from quadpy.lang.marks import enter
from quadpy.lang.returns import annotated, leave_function, require_return
from quadpy.lang.scope import import_value
from quadpy.lang.source import FunctionSource
from quadpy.lang.values import Record, Value, Vec, holds_runtime, is_number, is_runtime, shaped
from quadpy.lang.variables import assign_name, declare, freeze_all

_STEPS_OF_A_CALL: Final = 50
"""What a call costs besides the body of the function."""
_DEEPEST: Final = 32
"""How often a function may be inside itself: a recursion without an end is noticed before Python's own limit."""


def inline(
    t: Trace, func: Func, args: list[Value], kwargs: dict[str, Value], span: Span, attributes: Mapping[str, Value] | None = None
) -> Value:  # fmt: skip
    """The body of ``func``, here, with its parameters bound to ``args``; names with a dot are variables, and may be bound."""
    source = func.source
    t.effort.take(_STEPS_OF_A_CALL)
    if func.requires_top_level and not t.at_top_level():
        t.fail_syntax(f"{source.name} must be called at the top level of a kernel", span,
                      "not inside a loop, a branch, or a function that is called there")  # fmt: skip
    if t.depth_of(source) >= _DEEPEST:
        raise KernelSyntaxError(
            f"{source.name} calls itself more than {_DEEPEST} times: a recursion must end while compiling", span,
            hint="end it by what is known then: n: qp.template(), and if qp.static(n > 0); or rewrite it as a loop",
        )  # fmt: skip
    tree = source.tree
    once = t.bound_once(tree.body, source)
    if attributes is not None:
        once = {name: again for name, again in once.items() if "." not in name}
    frame = Frame(source, {}, once, label=f"{source.name}", called_at=span)
    bound = bind_arguments(t, source, args, kwargs, span)
    marked = t.is_marked(source)
    if marked:
        enter(t, source)
    t.frames.append(frame)
    try:
        stored = t.stored(tree.body, source)
        _check_templates(t, source, bound, stored, span)
        _enter_parameters(t, bound, stored, span)
        for name, value in (attributes or {}).items():
            assign_name(t, name, value, span)
        with t.build.block() as stmts, t.own_loops():
            ends = t.block(tree.body)
        if not (ends or frame.early_returns):
            require_return(t, source)
    except Exception:
        t.trail.append((source, span))
        raise
    finally:
        t.frames.pop()
    value = leave_function(t, frame, stmts, span, ends=ends)
    if marked:
        t.build.emit(ir.Exit(span=span))
    return value


_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def bind_arguments(
    t: Trace, source: FunctionSource, args: list[Value], kwargs: dict[str, Value], span: Span
) -> dict[str, Value]:
    """Parameter names with their values, cast where the parameter is annotated with a type."""
    try:
        bound = source.signature.bind(*args, **kwargs)
    except TypeError as exc:
        names = [each.name for each in source.signature.parameters.values() if each.kind in _NAMED]
        t.fail_type(f"{source.name}: {misfit(names, len(args), kwargs, exc, positional(source.signature))}", span,
                    f"it takes {', '.join(names) or 'nothing'}")  # fmt: skip
    given = set(bound.arguments)
    bound.apply_defaults()
    values: dict[str, Value] = {}
    for name, value in bound.arguments.items():
        if name not in given and (default := t.deps.default(source, name)) is not MISSING:
            value = default
        annotation = t.deps.annotation(source, name)
        values[name] = annotated(t, import_value(t, value), annotation, span, f"{source.name}: {name}")
    return values


def _check_templates(t: Trace, source: FunctionSource, bound: dict[str, Value], stored: Any, span: Span) -> None:
    """Refuses a template parameter that the function assigns where the argument is not a place: the change would be lost.

    Raises:
        KernelTypeError: the function assigns a template parameter that stands for a run-time value.
    """
    for name in sorted(stored & bound.keys()):
        value = bound[name]
        scalars = value.elems if isinstance(value, (Vec, Record)) else (value,) if is_runtime(value) else ()
        known = all(isinstance(scalar, ir.Const) for scalar in scalars)
        if not (known and not (has_variables(t, name, value) and holds_runtime(value))) and is_template(
            t.deps.annotation(source, name)
        ):
            t.fail_type(
                f"{source.name} changes its template parameter {name!r}, which is not a reference to a variable", span,
                "pass a variable, a component of one, or an element of an array; or return the new value",
            )  # fmt: skip


def _enter_parameters(t: Trace, bound: dict[str, Value], stored: Any, span: Span) -> None:
    """Binds parameters in the new frame; those that the body assigns become variables."""
    for name, value in bound.items():
        if isinstance(value, (list, tuple, dict)):
            value = freeze_all(t, value)
            t.frame.env[name] = in_variables(t, name, value, span) if has_variables(t, name, value) else value
            continue
        if not (name in stored and (is_runtime(value) or is_number(value) or isinstance(value, (Vec, Record)))):
            if is_runtime(value):
                value = t.build.let(value, name)
            elif isinstance(value, (Vec, Record)):
                value = shaped(value.shape, [t.build.let(e, name) for e in value.elems])
            t.frame.env[name] = value
            continue
        declare(t, name, value, span)
