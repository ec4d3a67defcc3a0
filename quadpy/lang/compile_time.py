"""Calls of Python functions at compile time; each item that they process counts as work of the compiler."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from quadpy.core.messages import shown
from quadpy.core.source import Span
from quadpy.errors import CompilationError, KernelValueError, QuadpyError
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.guard import MOST_BITS, Effort
from quadpy.lang.values import Value, holds_runtime, parts_of, shape_text

_CALLERS: Final = (__name__, Dependencies.__module__, Effort.__module__)

_CONTAINERS: Final = (list, tuple, dict, set, frozenset, str, range)


_GO_THROUGH: Final[tuple[Any, ...]] = (
    sum, sorted, list, tuple, set, frozenset, dict, min, max, any, all, str, zip, enumerate, reversed, operator.contains,
)  # fmt: skip
"""Python functions that process each item of a container."""


def _length(value: Any) -> int:
    """How many items a Python container has; 0 for anything else."""
    try:
        return len(value) if type(value) in _CONTAINERS else 0
    except OverflowError:  # a range
        return sys.maxsize


def _text_length(value: Value, known: dict[int, int] | None = None) -> int:
    """How many items the text of ``value`` shows, each as often as it does."""
    known = {} if known is None else known
    if id(value) not in known:
        inside = parts_of(value)
        known[id(value)] = 1 + sum(_text_length(part, known) for part in inside) if inside else 1
    return known[id(value)]


def check_size(t: Trace, op: type[ast.AST], a: Value, b: Value, span: Span) -> None:
    """Refuses numbers that no type could hold, and counts the items of new containers, before Python computes them."""
    if isinstance(a, int) and isinstance(b, int):
        bits = 0
        if op is ast.Pow:
            bits = a.bit_length() * b
        elif op is ast.LShift:
            bits = a.bit_length() + b
        elif op is ast.Mult:
            bits = a.bit_length() + b.bit_length()
        if bits > MOST_BITS:
            how = "power" if op is ast.Pow else "shift" if op is ast.LShift else "product"
            message = f"the result of this {how} of literals has up to {bits:,} bits and fits no type"
            raise KernelValueError(message, span, hint="use floats: 2.0 ** 1000.0")
    elif op in (ast.Add, ast.Mult):
        sizes = [_length(x) or (x if isinstance(x, int) else 1) for x in (a, b)]
        if any(map(_length, (a, b))):
            t.effort.take(sizes[0] * sizes[1] if op is ast.Mult else sum(sizes))


def python_call(t: Trace, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Any:
    """Calls ``fn``; arguments that it does not accept are an error of the kernel.  Iterators come back as lists."""
    try:
        if any(fn is known for known in _GO_THROUGH):
            through = _iterated(fn, args)
            args = [_counted_items(t, fn, arg) if k < through else arg for k, arg in enumerate(args)]
        made = fn(*args, **kwargs)
        return t.effort.listed(made)
    except CompilationError:
        raise
    except QuadpyError as exc:
        t.fail_type(exc.message, span, exc.hint)
    except (TypeError, LookupError, AttributeError) as exc:
        known = isinstance(exc, KeyError) and exc.args
        t.fail_type(f"there is no key {shown(exc.args[0])}" if known else _in_words(str(exc), args), span)


def _in_words(text: str, args: Sequence[Any]) -> str:
    """A message of Python's, which names arguments by their classes: quadpy's own are named as users know them."""
    for arg in args:
        if is_our_module(type(arg).__module__):
            text = text.replace(f"'{type(arg).__name__}' object", shape_text(arg))
            text = text.replace(f"'{type(arg).__name__}'", shape_text(arg))
    return text


def evaluated(t: Trace, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Any:
    """The result of the user's Python function, which ``qp.static`` calls at compile time; iterators become lists."""
    name = getattr(fn, "__name__", shape_text(fn))
    for value in (*args, *kwargs.values()):
        if holds_runtime(value):
            t.fail_type(f"{name} runs while compiling and cannot take run-time values: {shape_text(value)}", span,
                        "decorate it with @qp.func, and call it outside qp.static")  # fmt: skip
    try:
        if _is_pure(fn):
            return t.effort.listed(fn(*args, **kwargs))
        return t.deps.called(fn, args, kwargs, span.line, t.effort)
    except CompilationError:
        raise
    except Exception as exc:
        found = exc.__traceback__
        while found is not None and found.tb_next is not None:
            found = found.tb_next
        if found is not None and found.tb_frame.f_globals["__name__"] in _CALLERS:  # raised by a function written in C
            t.fail_type(f"{name}: {type(exc).__name__}: {exc}", span)
        raise


def is_called_again(t: Trace, fn: Any) -> bool:
    """Whether ``fn`` is a Python function or class that ``qp.static`` calls: a warm start calls it again."""
    return (
        t.frame.static > 0
        and callable(fn)
        and t.deps.is_opaque(fn)
        and not is_our_module(getattr(fn, "__module__", None))
        and not isinstance(getattr(type(fn), "__call__", None), Func)  # noqa: B004 - what it is, not whether
        and not any(hasattr(fn, f"__quadpy_{mark}__") for mark in ("constructor", "expand", "kernel"))
        and not _is_pure(fn)
    )


def _is_pure(fn: Callable[..., Any]) -> bool:
    """Whether ``fn`` gives the same result for the same arguments in every process, as some functions of Python and NumPy."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and getattr(numpy, getattr(fn, "__name__", ""), None) is fn:
        return isinstance(fn, numpy.ufunc) or (isinstance(fn, type) and issubclass(fn, numpy.generic))
    receiver = getattr(fn, "__self__", None)
    return getattr(fn, "__module__", None) in ("math", "operator", "_operator") or type(receiver) in (
        *_CONTAINERS,
        int,
        float,
    )


def _iterated(fn: Callable[..., Any], args: Sequence[Any]) -> int:
    """How many of the first arguments ``fn`` iterates over; the others, and objects with a method for it, stay whole."""
    if fn is zip:
        return len(args)
    if (fn is min or fn is max) and len(args) > 1:
        return 0
    method = {operator.contains: "__contains__", reversed: "__reversed__"}.get(fn)
    own = method is not None and args and type(args[0]) not in _CONTAINERS and hasattr(type(args[0]), method)
    return 0 if own else min(len(args), 1)


def _counted_items(t: Trace, fn: Callable[..., Any], value: Any) -> Any:
    """``value`` as an argument of a function that iterates over it."""
    plain = type(value) in _CONTAINERS or not hasattr(type(value), "__iter__") or hasattr(type(value), "keys")
    if fn is str or plain:
        t.effort.take(_text_length(value) if fn is str else _length(value))
        return value
    return t.effort.listed(iter(value))
