"""Builtins and library functions called outside kernels: each call runs a CPU kernel made of that one call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.errors import ArgumentError, CompilationError
from quadpy.hostmath import Elements
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.dispatcher import options_of
from quadpy.jit.parameters import ScalarParameter, VectorParameter
from quadpy.jit.specialisation import Specialisation
from quadpy.lang.arguments import ArgType, StaticArg
from quadpy.lang.source import FunctionSource
from quadpy.runtime.device.current import Config, current_config
from quadpy.runtime.elements.numpy_types import SCALAR_OF
from quadpy.runtime.elements.types import scalar_of
from quadpy.target import parse_target

__all__ = ["call_on_host"]


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


_ByValue: TypeAlias = ScalarParameter | VectorParameter

_FORMS: Final[tuple[Callable[..., Any], ...]] = (_call0, _call1, _call2, _call3, _call4)
_NAMES: Final = ("a", "b", "c", "d")


def call_on_host(name: str, fn: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The value of ``fn(*args)`` in a kernel, as a Python number, a vector, a matrix or a tuple of these.

    A Python number has the default type of ``qp.init``, a NumPy number or a host vector its own.

    Raises:
        ArgumentError: ``fn`` does not take these arguments.
    """
    if kwargs:
        raise ArgumentError(f"outside kernels {name} takes its arguments by position")
    if len(args) > len(_NAMES):
        raise ArgumentError(f"outside kernels {name} takes up to {len(_NAMES)} arguments, not {len(args)}")
    config = replace(current_config(), arch="cpu", ordinal=0, interpreted=False)
    typed = [_typed(name, parameter, given, config) for parameter, given in zip(_NAMES, args, strict=False)]
    try:
        plan = _plan(fn, tuple(parameter for parameter, _ in typed), tuple(static for _, static in typed), config)
        values = [
            value for (p, _), given in zip(typed, args, strict=True) if p is not None for value in p.values(given)
        ]
    except (ArgumentError, CompilationError) as error:
        raise ArgumentError(f"{name}: {error.message.removeprefix(f'{name}: ')}", hint=error.hint) from None
    launch = plan.prepare(values, [])
    launch.run()
    return None if launch.result is None else launch.result()


def _typed(name: str, parameter: str, given: Any, config: Config) -> tuple[_ByValue | None, Any]:
    """The parameter that takes ``given``; none, and ``given`` itself, where it is a compile-time value."""
    if isinstance(given, Elements):
        return VectorParameter(parameter, given.dtype, given.shape), None
    if isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim):
        raise ArgumentError(
            f"outside kernels {name} takes numbers and vectors, not a {type(given).__name__}",
            hint="make it a qp.Vector or qp.Matrix; for arrays, NumPy has functions of the same names",
        )
    if isinstance(given, (np.generic, np.ndarray)) and given.dtype in SCALAR_OF:
        return ScalarParameter(parameter, SCALAR_OF[given.dtype]), None
    if isinstance(given, (bool, int, float)):
        return ScalarParameter(parameter, scalar_of(type(given), config)), None
    if given is None or isinstance(given, (Scalar, str)) or given in (int, float, bool):
        return None, given
    raise ArgumentError(f"outside kernels {name} takes numbers and vectors, not {type(given).__name__}")


@functools.lru_cache(maxsize=1024)
def _plan(fn: object, parameters: tuple[_ByValue | None, ...], statics: tuple[Any, ...], config: Config) -> CpuPlan:
    """The code of one call, for arguments of these types."""
    types: dict[str, ArgType] = {"f": StaticArg(fn)}
    for name, parameter, static in zip(_NAMES, parameters, statics, strict=False):
        types[name] = StaticArg(static) if parameter is None else parameter.arg_type()
    target = parse_target("cpu")
    made = Specialisation(
        FunctionSource(_FORMS[len(parameters)]), tuple(filter(None, parameters)), types,
        options_of(config, target, graph=False, debug=None), config, target,
    )  # fmt: skip
    plan = made.pick([])
    assert isinstance(plan, CpuPlan)
    return plan
