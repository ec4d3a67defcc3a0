"""Calls of ``@qp.real_func`` functions: compiled once for the types of their arguments, and called.

A function that only computes, over numbers, vectors and structs, becomes a function of the IR.  One that touches memory,
draws random numbers or takes arrays or places is traced in place, as a ``@qp.func`` is, with the same results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from quadpy.core.dtypes import Scalar
from quadpy.core.records import Shape
from quadpy.core.source import Span
from quadpy.errors import CompilationError
from quadpy.ir import nodes as ir
from quadpy.ir.printer import print_function
from quadpy.ir.walk import walk
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Method, RealFunc
from quadpy.lang.frames import MutableVar
from quadpy.lang.functions import bind_arguments, inline
from quadpy.lang.lambdas import Lambda
from quadpy.lang.returns import outline_of, rebuilt, scalars_of
from quadpy.lang.scalars import emit_call, to_scalar
from quadpy.lang.trace_state import CalledFunction
from quadpy.lang.values import Record, Value, Vec, is_direct, is_number, is_runtime, parts_of, shaped

_PURE: Final = (
    ir.Block, ir.Let, ir.Assign, ir.AssignOne, ir.If, ir.For, ir.While, ir.Break, ir.Continue, ir.LabelledBlock, ir.Leave, ir.Return, ir.CallMany,
    ir.Const, ir.VarRead, ir.ParamRead, ir.Binary, ir.Unary, ir.Compare, ir.Select, ir.Pick, ir.Cast, ir.BitCast, ir.Intrinsic, ir.Call,
)  # fmt: skip
"""The nodes that a function of the IR may have."""


def call_real(t: Trace, func: RealFunc, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """A call of ``func``."""
    apart = (_is_plain(value) or _is_of_compile_time(value) for value in (*args, *kwargs.values()))
    if t.options.lines or not all(apart):
        return inline(t, func, args, kwargs, span)
    bound = bind_arguments(t, func.source, args, kwargs, span)
    values = {name: to_scalar(t, value, span) if is_number(value) else value for name, value in bound.items()}
    called = _called(t, func, values, span)
    if called is None:
        return inline(t, func, args, kwargs, span)
    scalars = tuple(t.build.let(e) for value in values.values() for e in _elems(value))
    return rebuilt(called.outline, iter(emit_call(t, called.function, scalars, span)))


def _is_plain(value: Value) -> bool:
    return is_runtime(value) or isinstance(value, (Vec, Record))


def _is_of_compile_time(value: Value) -> bool:
    """Whether nothing in ``value`` is a value or a place of the caller's."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if is_direct(item) or isinstance(item, (Lambda, MutableVar)):
            return False
        waiting += [item.instance] if isinstance(item, Method) else parts_of(item)
    return True


def _elems(value: Value) -> Sequence[ir.Expr]:
    return value.elems if isinstance(value, (Vec, Record)) else (value,) if is_runtime(value) else ()


def _called(t: Trace, func: RealFunc, values: Mapping[str, Value], span: Span) -> CalledFunction | None:
    """``func`` for values of these types; None where it must be traced in place."""
    key = id(func.source), tuple((name, *_type_key(value)) for name, value in values.items())
    if key not in t.called:
        t.called[key] = _traced(t, func, values, span)
    return t.called[key]


def _type_key(value: Value) -> tuple[object, ...]:
    if not _is_plain(value):
        return ("static", id(value))
    return value.shape if isinstance(value, (Vec, Record)) else (), tuple(e.type for e in _elems(value))


def _traced(t: Trace, func: RealFunc, values: Mapping[str, Value], span: Span) -> CalledFunction | None:
    sub = t.for_function()
    params: list[ir.Var] = []
    own: dict[str, Value] = {}
    for name, value in values.items():
        own[name] = value
        if _is_plain(value):
            variables = [sub.build.var(name, e.type) for e in _elems(value)]
            params += variables
            shape: Shape = value.shape if isinstance(value, (Vec, Record)) else ()
            own[name] = shaped(shape, [ir.ParamRead(var.name, var.type, span=span) for var in variables])
    try:
        with sub.build.block() as stmts:
            result = inline(sub, func, [], own, span)
            scalars = scalars_of(sub, result, span)
            sub.build.emit(ir.Return(tuple(scalars), span=span))
    except CompilationError:
        return None  # tracing in place reports what is wrong, and where
    except Exception:
        t.trail, t.doing = sub.trail, sub.doing
        raise
    finally:
        t.already_printed = max(t.already_printed, sub.printed)  # tracing in place does not print again
        t.signature.functions.update(sub.signature.functions)  # as in ``called``, even if this fails
    body = ir.Block(tuple(stmts), span=span)
    if not scalars or not sub.signature.is_pure or not all(isinstance(node, _PURE) for node in walk(body)):
        return None
    t.printed = sub.printed
    results = tuple(e.type for e in scalars)
    made = _named(func.source.name, tuple(params), results, body, span)
    t.signature.functions.setdefault(made.name, made)
    return CalledFunction(made, outline_of(result), tuple(values.values()))


def _named(
    name: str, params: tuple[ir.Var, ...], results: tuple[Scalar, ...], body: ir.Block, span: Span
) -> ir.Function:
    """The function under a name that its text determines: fused kernels share it if it is the same, else they have two."""
    made = ir.Function("", params, results, body, is_called=True, span=span)
    digest = hashlib.sha256(print_function(made).encode()).hexdigest()[:16]
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:64])
    return replace(made, name=f"{plain}.{digest}")
