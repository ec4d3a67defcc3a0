"""Kernels compiled without a call and without a device, for any target.

Owns: ``arg_types_of``, ``trace_for``, ``compile_for``, ``compile_with_asm``.
Imports: leaves, ``hostmath``, ``lang``, ``codegen``, ``runtime.device.current``; loads LLVM.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from quadpy.artifact import CodeObject
from quadpy.codegen.compile import compile_kernel
from quadpy.errors import ArgumentError
from quadpy.hostmath import NDArrayType, element_of
from quadpy.ir.pipeline import Observer
from quadpy.jit.compilation import Request, compile_request
from quadpy.jit.kernel import Kernel
from quadpy.jit.parameters import ArrayParameter, Parameter, TemplateParameter, parameters_of
from quadpy.lang.arguments import ArgType, ArrayArg, Options
from quadpy.lang.trace import Traced, trace_kernel
from quadpy.runtime.device.current import current_config
from quadpy.target import TargetSpec, parse_target

__all__ = ["arg_types_of", "compile_for", "compile_with_asm", "trace_for"]

_CPU: Final = parse_target("cpu")


def compile_for(kernel: Kernel, target: TargetSpec, given: Mapping[str, Any]) -> CodeObject:
    """Code of ``kernel`` for ``target``, kept in the cache that launches use; ``given`` as in ``arg_types_of``.

    It is the code that a launch takes for arrays below 4 GiB that do not overlap, and begin at multiples of 16 bytes
    on a GPU.

    Raises:
        ArgumentError: ``given`` leaves a type open, or names what is no parameter.
        CompilationError: the kernel is at fault, with its line.
    """
    return compile_request(
        Request(kernel.source, _for_target(arg_types_of(kernel, given), target), _options(kernel), target)
    ).code


def compile_with_asm(kernel: Kernel, target: TargetSpec, given: Mapping[str, Any]) -> CodeObject:
    """As ``compile_for``, with the assembly, which no cache keeps: it is compiled anew."""
    return compile_kernel(trace_for(kernel, given, target).kernel, target, want_asm=True)


def trace_for(
    kernel: Kernel, given: Mapping[str, Any], target: TargetSpec = _CPU, observe: Observer | None = None
) -> Traced:
    """The IR of ``kernel`` for ``target``; ``given`` as in ``arg_types_of``, ``observe`` as in ``trace_kernel``."""
    types = _for_target(arg_types_of(kernel, given), target)
    return trace_kernel(kernel.source, types, _options(kernel), observe=observe)


def _for_target(types: dict[str, ArgType], target: TargetSpec) -> dict[str, ArgType]:
    """As a launch there finds them: arrays of a GPU begin at multiples of 16 bytes."""
    if target.family == "cpu":
        return types
    return {
        name: replace(arg, type=replace(arg.type, aligned=True)) if isinstance(arg, ArrayArg) else arg
        for name, arg in types.items()
    }


def arg_types_of(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, ArgType]:
    """The types of the arguments: from the annotations, and from ``given`` what these leave open.

    ``given`` maps an array parameter to a ``qp.types.ndarray(dtype=, ndim=)``, a ``template()`` parameter to its
    value.

    Raises:
        ArgumentError: a type stays open or contradicts its annotation, or there is no such parameter.
    """
    try:
        return _arg_types(kernel, given)
    except ArgumentError as error:
        raise ArgumentError(f"{kernel.source.name}: {error.message}", kernel.source.span, hint=error.hint) from None


def _options(kernel: Kernel) -> Options:
    config = current_config()
    return Options(config.default_ip, config.default_fp, fast_math=config.fast_math, graph=kernel.graph)


def _arg_types(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, ArgType]:
    parameters = parameters_of(kernel.source, current_config())
    names = [parameter.name for parameter in parameters]
    if unknown := [name for name in given if name not in names]:
        raise ArgumentError(f"there is no parameter {unknown[0]!r}", hint=f"it takes {', '.join(names) or 'nothing'}")
    return {parameter.name: _arg_type(kernel, parameter, given) for parameter in parameters}


def _arg_type(kernel: Kernel, parameter: Parameter, given: Mapping[str, Any]) -> ArgType:
    name = parameter.name
    match parameter:
        case ArrayParameter():
            return _array_type(parameter, given.get(name))
        case TemplateParameter():
            return parameter.arg_type(given[name] if name in given else _default(kernel, name))
        case _:
            if name in given:
                raise ArgumentError(f"the annotation of {name!r} decides its type", hint=f"leave {name!r} out")
            return parameter.arg_type()


def _array_type(parameter: ArrayParameter, given: Any) -> ArgType:
    name = parameter.name
    if given is None and (declared := parameter.declared()):
        return declared
    if not isinstance(given, NDArrayType) or given.dtype is None or given.ndim is None:
        missing = "nothing" if given is None else repr(given)
        raise ArgumentError(
            f"{name!r} needs an array type with dtype and ndim; its annotation leaves them open, and {missing} was given",
            hint=f"Kernel.compile(target, {name}=qp.types.ndarray(dtype=qp.f32, ndim=2)), "
            f"or --arg '{name}=f32[2]' on the command line",
        )
    dtype, element = element_of(given.dtype)
    return parameter.type_of(("nd", dtype.name, given.ndim, element), writable=True)


def _default(kernel: Kernel, name: str) -> Any:
    value = inspect.signature(kernel.source.fn).parameters[name].default
    if value is inspect.Parameter.empty:
        raise ArgumentError(
            f"the compile-time parameter {name!r} has no value",
            hint=f"Kernel.compile(target, {name}=3), or --arg {name}=3 on the command line",
        )
    return value
