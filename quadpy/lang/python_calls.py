"""Calls of Python's own functions.

They may read the structure of a tuple, list or dict that holds run-time values, but reading the values is an error.
"""

from __future__ import annotations

import ast
import builtins
import math
from types import FunctionType, MethodType
from typing import Any, Final, NoReturn

from quadpy.core.source import Span
from quadpy.errors import CompilationError, KernelTypeError
from quadpy.intrinsics import BUILTINS
from quadpy.lang.access import attribute_of, chained
from quadpy.lang.arrays import extent_of
from quadpy.lang.comparisons import truth_of_items
from quadpy.lang.compile_time import evaluated, python_call
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, func_of
from quadpy.lang.dependencies import MISSING
from quadpy.lang.displays import display_items
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.functions import inline
from quadpy.lang.made_objects import is_made_by_kernels, is_taken_over, made_object
from quadpy.lang.marks import mark_breakpoint
from quadpy.lang.operators import sum_of
from quadpy.lang.prints import print_values
from quadpy.lang.ranges import ONLY_IN_LOOPS, Range
from quadpy.lang.replacements import instead_of
from quadpy.lang.scope import import_value
from quadpy.lang.texts import TEXTS, format_text, text_call
from quadpy.lang.values import (
    ArrayRef,
    Container,
    Record,
    Value,
    Vec,
    holds_runtime,
    is_direct,
    is_number,
    is_numeric,
    is_runtime,
    shape_text,
)
from quadpy.lang.vecmethods import METHODS

AT_COMPILE_TIME: Final = (
    range, zip, enumerate, len, tuple, list, reversed, sorted, sum, isinstance, hasattr, getattr, str, type, dict, set,
    repr, ascii, format,
)  # fmt: skip
"""Python's functions that run at compile time."""


_ON_STRUCTURE: Final = (zip, enumerate, len, tuple, list, reversed, isinstance, hasattr, getattr, type)


def _on_structure(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """Calls a Python function with arguments that may contain run-time values.

    Raises:
        KernelTypeError: the function would need a run-time value at compile time.
    """
    given = [*args, *kwargs.values()]
    if fn is type and len(given) == 1 and t.deps.spot(given[0]) is not None:
        return t.deps.class_of(given[0])
    structural = fn in _ON_STRUCTURE and not any(is_direct(a) for a in given)
    if structural or not any(holds_runtime(a) for a in given):
        made = python_call(t, fn, args, kwargs, span)
        return list(made) if structural and fn in (zip, enumerate, reversed) and holds_runtime(given) else made
    if fn is dict and not args:
        return kwargs
    if fn in (getattr, hasattr) and len(args) == 2 and isinstance(args[1], str) and not kwargs:
        return _attribute_or_not(t, fn, args[0], args[1], span)
    cls = _class_of(args[0]) if args else None
    if fn is type and len(given) == 1 and cls is not None:
        return cls
    if fn is isinstance and len(args) == 2 and cls is not None:
        return python_call(t, issubclass, [cls, args[1]], kwargs, span)
    if (
        fn is isinstance
        and len(args) == 2
        and t.options.as_taichi
        and is_numeric(args[0])
        and not holds_runtime(args[1])
    ):
        return False  # in Taichi, a value of the run time is an expression, of no class that a program has
    if fn is sum and args and not kwargs and isinstance(args[0], (tuple, list, Vec)):
        items = args[0].elems if isinstance(args[0], Vec) else args[0]
        return sum_of(t, [*args[1:2], *items], span)
    if fn in (zip, enumerate, tuple, list, reversed) and not any(
        isinstance(a, ArrayRef) or is_runtime(a) for a in given
    ):
        return _on_structure(t, fn, [list(a.elems) if isinstance(a, Vec) else a for a in args], kwargs, span)
    if any(isinstance(a, ArrayRef) for a in given):
        t.fail_type(f"{fn.__name__} cannot take an array", span, "write a loop over its indices")
    what = next(shape_text(a) for a in given if holds_runtime(a))
    t.fail_type(f"{fn.__name__} runs at compile time and cannot read run-time values: {what}", span)


def _class_of(value: Value) -> object:
    """The Python class of a dataclass or struct; None for all else."""
    return value.arg.type if isinstance(value, Container) else value.shape.cls if isinstance(value, Record) else None


def _attribute_or_not(t: Trace, fn: Any, value: Value, name: str, span: Span) -> Value:
    try:
        found = attribute_of(t, value, name, span)
    except KernelTypeError:
        if fn is getattr:
            raise
        return False
    return found if fn is getattr else True


def takes_a_name(fn: Any, node: ast.Call) -> bool:
    """Whether the call has the form of ``getattr(a, "b")``, ``getattr(a, "b", c)`` or ``hasattr(a, "b")``."""
    plain = not node.keywords and not any(isinstance(arg, ast.Starred) for arg in node.args)
    return plain and len(node.args) in ((2, 3) if fn is getattr else (2,))


def attribute_by_name(t: Trace, fn: Any, node: ast.Call, span: Span) -> Value:
    """``getattr`` and ``hasattr``, which read no more of an object than ``a.b`` does."""
    value, (name, *default) = chained(t, node.args[0]), display_items(t, node.args[1:])
    if holds_runtime(value) or type(name) is not str:
        t.deps.uses(value)
        return t.call(fn, [value, name, *default], {}, span)
    found = t.deps.attribute(value, name)
    if fn is hasattr:
        return found is not MISSING
    if found is MISSING:
        return default[0] if default else attribute_of(t, value, name, span)
    t.deps.uses(found)
    return import_value(t, found)


_PYTHON_NAMES: Final[dict[Any, str]] = {
    builtins.min: "min", builtins.max: "max", builtins.abs: "abs", builtins.pow: "pow", builtins.round: "round",
    **{getattr(math, name): name for name in BUILTINS if callable(getattr(math, name, None))},
}  # fmt: skip
"""What Python's own functions mean in a kernel, by the name of the builtin that does the same."""


def is_pythons_own(fn: Value) -> bool:
    """Whether ``fn`` is a Python function that has an equivalent in the language."""
    return type(fn).__hash__ is not None and fn in _PYTHON_NAMES


def call_pythons_own(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """``min``, ``math.sin``, …: Python's own over compile-time numbers, where it has a result for them."""
    items = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    own = not kwargs and len(items) > 0 and all(map(is_number, items)) and _defined_here(fn, len(args))
    if not own and not holds_runtime(args) and not holds_runtime(kwargs):
        try:
            return python_call(t, fn, args, kwargs, span)
        except CompilationError:
            raise
        except (ValueError, ArithmeticError):
            pass  # the language has a result: inf or NaN
    return t.call(BUILTINS[_PYTHON_NAMES[fn]], args, kwargs, span)


def _defined_here(fn: Any, count: int) -> bool:
    """Whether the language has a result of its own for numbers that are known when compiling."""
    return fn in (builtins.min, builtins.max) or (fn is builtins.pow and count == 2)


def call_at_compile_time(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if fn is builtins.len and len(args) == 1 and isinstance(args[0], (Vec, ArrayRef)):
        return _length(t, args[0], span)
    if getattr(fn, "__quadpy_expand__", False):
        return inline(t, func_of(fn), args, kwargs, span)
    if fn in (builtins.any, builtins.all) and len(args) == 1:
        whole = isinstance(args[0], Vec)
        return METHODS[fn.__name__](t, args[0], span) if whole else truth_of_items(t, fn, args[0], span)
    if t.frame.static and callable(fn) and fn not in AT_COMPILE_TIME and not is_our_module(_module_of(fn)):
        return import_value(t, evaluated(t, fn, args, kwargs, span))
    if fn is builtins.print:
        print_values(t, args, kwargs, span)
        return None
    if fn is builtins.breakpoint or (_module_of(fn) == "pdb" and fn.__name__ == "set_trace"):
        mark_breakpoint(t, fn.__name__, span)
        return None
    if isinstance(template := getattr(fn, "__self__", None), str) and fn.__name__ == "format":
        return format_text(t, template, args, kwargs, span)
    if any(fn is known for known in TEXTS) and not kwargs and holds_runtime(args):
        return text_call(t, fn, args, span)
    if fn is range and holds_runtime(args):
        if t.frame.static:
            t.fail_syntax(ONLY_IN_LOOPS, span, "without qp.static, a for loop runs over it")
        return Range.of(t, [t.build.freeze(arg) if is_runtime(arg) else arg for arg in args], span)
    if _belongs_to_python(fn):
        t.fail_syntax(f"{fn.__name__} cannot be called inside a kernel", span, "call it from Python, outside")
    if fn in AT_COMPILE_TIME or is_our_module(_module_of(fn)):
        return _called_now(t, fn, args, kwargs, span)
    if isinstance(fn, FunctionType) and fn.__code__.co_name == "<lambda>":
        return inline(t, func_of(fn), args, kwargs, span)
    if isinstance(fn, FunctionType) and is_taken_over(t, fn):
        return inline(t, func_of(fn), args, kwargs, span)
    if isinstance(fn, MethodType) and isinstance(fn.__func__, FunctionType) and is_taken_over(t, fn.__func__):
        return inline(t, func_of(fn.__func__), [fn.__self__, *args], kwargs, span)
    if is_made_by_kernels(fn):
        return made_object(t, fn, args, kwargs, span)
    _refuse(t, fn, span, known=not holds_runtime(args) and not holds_runtime(kwargs))


def _length(t: Trace, value: Vec | ArrayRef, span: Span) -> Value:
    if isinstance(value, Vec):
        return value.shape[0]
    if not value.ndim:
        t.fail_type("a 0-d array has no length", span, "its only element is x[None]")
    return extent_of(t, value, 0, span)


def _called_now(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if fn not in AT_COMPILE_TIME:  # makes vectors, with as many components as its arguments say
        t.effort.take(math.prod(a for a in [*args, *kwargs.values()] if isinstance(a, int) and a > 0))
    try:
        return import_value(t, _on_structure(t, fn, args, kwargs, span))
    except CompilationError:
        raise
    except (ValueError, ArithmeticError) as exc:
        t.fail_type(str(exc), span)


def _refuse(t: Trace, fn: Any, span: Span, *, known: bool) -> NoReturn:
    """``known``: all arguments are known at compile time."""
    name, static = getattr(fn, "__name__", ""), "call it in qp.static(…), while compiling" if known else ""
    if isinstance(fn, FunctionType):
        t.fail_syntax(f"{name} is a plain Python function", span,
                      ", or ".join(filter(None, ["decorate it with @qp.func", static])))  # fmt: skip
    if isinstance(fn, type) and isinstance(getattr(fn, "__init__", None), (Func, Method)):
        static = "leave __init__ undecorated: a kernel that calls the class compiles it"
    t.fail_type(f"{name or shape_text(fn)} cannot be called inside a kernel", span,
                instead_of(fn) or (static if callable(fn) else ""))  # fmt: skip


def _belongs_to_python(fn: Any) -> bool:
    """Whether ``fn`` is quadpy's own, and makes or changes objects outside kernels."""
    module = _module_of(fn)
    if getattr(fn, "__quadpy_compile_time__", False):
        return False
    return module.startswith(_OUTSIDE) or (module.startswith("quadpy.hostmath") and fn.__name__ in _ALLOCATING)


def _module_of(fn: Any) -> str:
    return getattr(fn, "__module__", None) or ""


_OUTSIDE: Final = (
    "quadpy.api", "quadpy.graph", "quadpy.jit", "quadpy.runtime.arrays", "quadpy.runtime.device", "quadpy.runtime.streams",
)  # fmt: skip
_ALLOCATING: Final = ("field", "ndarray", "tensor")
