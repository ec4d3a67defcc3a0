"""Builtins and functions called outside kernels: each call runs a CPU kernel that contains only that call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.core.target import parse_target
from quadpy.errors import ArgumentError, CompilationError, KernelFault
from quadpy.hostmath import Elements, Struct
from quadpy.hostmath.struct_types import StructType
from quadpy.hostmath.structs import type_of_struct
from quadpy.intrinsics import Builtin
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.dispatcher import options_of
from quadpy.jit.parameters import ScalarParameter, StructParameter, VectorParameter
from quadpy.jit.plan import Values
from quadpy.jit.specialisation import Specialisation
from quadpy.lang.arguments import ArgType, StaticArg
from quadpy.lang.decorators import Func
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import Config, current_config
from quadpy.runtime.elements.numpy_types import SCALAR_OF
from quadpy.runtime.elements.types import scalar_of


def _call0(f: Any) -> Any:
    return f()


def _call1(f: Any, a: Any) -> Any:
    return f(a)


def _call2(f: Any, a: Any, b: Any) -> Any:
    return f(a, b)


def _call3(f: Any, a: Any, b: Any, c: Any) -> Any:
    return f(a, b, c)


def _call4(f: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return f(a, b, c, d)


def _call5(f: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return f(a, b, c, d, e)


def _call6(f: Any, a: Any, b: Any, c: Any, d: Any, e: Any, g: Any) -> Any:
    return f(a, b, c, d, e, g)


def _call7(f: Any, a: Any, b: Any, c: Any, d: Any, e: Any, g: Any, h: Any) -> Any:
    return f(a, b, c, d, e, g, h)


def _call8(f: Any, a: Any, b: Any, c: Any, d: Any, e: Any, g: Any, h: Any, k: Any) -> Any:
    return f(a, b, c, d, e, g, h, k)


_ByValue: TypeAlias = ScalarParameter | VectorParameter | StructParameter

_FORMS: Final[tuple[Callable[..., Any], ...]] = (
    _call0, _call1, _call2, _call3, _call4, _call5, _call6, _call7, _call8,
)  # fmt: skip
_NAMES: Final = ("a", "b", "c", "d", "e", "g", "h", "k")


def call_on_host(called: Builtin | Func, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The value of a builtin or a function, called outside kernels."""
    if isinstance(called, Builtin):
        return _call_ours(called.__name__, called, args, kwargs)
    if is_our_module(called.source.fn.__module__):
        return _call_ours(called.source.name, called, args, kwargs)
    return _call_function(called, args, kwargs)


def _call_ours(name: str, fn: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The value of ``fn(*args)`` in a kernel, as a Python number, a vector, a matrix or a tuple of these.

    A Python number has the default type of ``qp.init``, a NumPy number or a host vector its own.

    Raises:
        ArgumentError: ``fn`` does not take these arguments.
    """
    if kwargs:
        raise ArgumentError(f"outside kernels, {name} takes its arguments by position")
    if len(args) > len(_NAMES):
        raise ArgumentError(f"outside kernels, {name} takes up to {len(_NAMES)} arguments, not {len(args)}")
    config = current_config()._replace(arch="cpu", ordinal=0, interpreted=False)
    typed = [_typed(name, parameter, given, config) for parameter, given in zip(_NAMES, args, strict=False)]
    try:
        plan = _plan(fn, tuple(parameter for parameter, _ in typed), tuple(static for _, static in typed), config)
        values = _values(typed, args)
    except (ArgumentError, CompilationError) as error:
        message = error.message if error.message.startswith(name) else f"{name}: {error.message}"
        raise ArgumentError(message, hint=error.hint) from None
    try:
        return _result(plan, values)
    except KernelFault as fault:
        fault.kernel = fault.kernel or name
        raise


def _call_function(func: Func, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The value of a user's function, as a kernel on the CPU has it; as Python code under ``arch=qp.python``.

    Numbers, vectors and structs are passed as in ``_call_ours``; anything else (fields, functions, objects) is a
    compile-time value.

    Raises:
        ArgumentError: the function does not take these arguments; one is an array.
        CompilationError: an error in the function; the message shows its line.
    """
    name = func.source.name
    try:
        bound = func.source.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{name}: {error}", func.source.span) from None
    given = bound.args
    if bound.kwargs or len(given) > len(_NAMES):
        raise ArgumentError(
            f"outside kernels, {name} takes up to {len(_NAMES)} arguments, by position", func.source.span
        )
    config = current_config()._replace(arch="cpu", ordinal=0)
    typed = [
        _typed_for_function(name, parameter, value, config) for parameter, value in zip(_NAMES, given, strict=False)
    ]
    parameters, statics = tuple(parameter for parameter, _ in typed), tuple(static for _, static in typed)
    # Anything but a plain value may change between two calls, and is checked again.
    plain = all(static is None or isinstance(static, (Scalar, str)) for static in statics)
    try:
        plan = (_plan if plain else _plan.__wrapped__)(func, parameters, statics, config)
    except CompilationError as error:
        error.calls = tuple(
            call for call in error.calls if call[1].file != __file__
        )  # the user's, not that of ``_FORMS``
        raise
    return _result(plan, _values(typed, given))


def _values(typed: Sequence[tuple[_ByValue | None, Any]], args: Sequence[Any]) -> Values:
    """The argument block of a call."""
    return [value for (p, _), given in zip(typed, args, strict=True) if p is not None for value in p.values(given)]


def _result(plan: CpuPlan, values: Values) -> Any:
    launch = plan.prepare(values, [])
    launch.run()
    return None if launch.result is None else launch.result()


def _typed_for_function(name: str, parameter: str, given: Any, config: Config) -> tuple[_ByValue | None, Any]:
    """Like ``_typed``, with structs and any compile-time value."""
    if isinstance(given, Struct):
        type = type_of_struct(given)
        assert isinstance(type, StructType)
        return StructParameter(parameter, type, type.record(lambda dtype: scalar_of(dtype, config))), None
    if isinstance(given, NDArray) or (isinstance(given, np.ndarray) and given.ndim):
        raise ArgumentError(
            f"outside kernels, {name} takes no arrays",
            hint="pass a field, or call it from a kernel that takes the array",
        )
    if isinstance(given, (bool, int, float, np.generic, np.ndarray, Elements)):
        return _typed(name, parameter, given, config)
    return None, given


def _typed(name: str, parameter: str, given: Any, config: Config) -> tuple[_ByValue | None, Any]:
    """The parameter that takes ``given``; None, and ``given`` itself, if it is a compile-time value."""
    if isinstance(given, Elements):
        return VectorParameter(parameter, given.dtype, given.shape), None
    if isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim):
        raise ArgumentError(
            f"outside kernels, {name} takes numbers and vectors, not a {type(given).__name__}",
            hint="make it a qp.Vector or qp.Matrix; for arrays, NumPy has functions of the same names",
        )
    if isinstance(given, (np.generic, np.ndarray)) and given.dtype in SCALAR_OF:
        return ScalarParameter(parameter, SCALAR_OF[given.dtype]), None
    if isinstance(given, (bool, int, float)):
        return ScalarParameter(parameter, scalar_of(type(given), config)), None
    if given is None or isinstance(given, (Scalar, str)) or given in (int, float, bool):
        return None, given
    raise ArgumentError(f"outside kernels, {name} takes numbers and vectors, not {type(given).__name__}")


@functools.lru_cache(maxsize=1024)
def _plan(fn: object, parameters: tuple[_ByValue | None, ...], statics: tuple[Any, ...], config: Config) -> CpuPlan:
    """The code of one call, for arguments of these types."""
    types: dict[str, ArgType] = {"f": StaticArg(fn)}
    for name, parameter, static in zip(_NAMES, parameters, statics, strict=False):
        types[name] = StaticArg(static) if parameter is None else parameter.arg_type()
    target = parse_target("cpu")
    # A single function runs as in an iteration of a loop: one thread runs it from the first line to the last.
    options = replace(options_of(config, target), serial=True)
    source = FunctionSource(_FORMS[len(parameters)])
    made = Specialisation(source, tuple(filter(None, parameters)), types, options, config, target)
    plan = made.pick([])
    assert isinstance(plan, CpuPlan)
    return plan
