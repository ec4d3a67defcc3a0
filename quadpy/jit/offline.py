"""Kernels compiled without a call and without a device, for any target.

``given`` fills in what annotations leave open: it maps an array parameter to a ``qp.types.ndarray(dtype=, ndim=)``, and a
``template()`` parameter to its value.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quadpy.artifact import CodeObject
from quadpy.codegen.compile import compile_kernel
from quadpy.errors import ArgumentError
from quadpy.hostmath import NDArrayType, StructType, element_of
from quadpy.hostmath.struct_ndarray import key_of_record
from quadpy.ir.pipeline import Observer
from quadpy.jit.compilation import Request, compile_request
from quadpy.jit.dispatcher import options_of
from quadpy.jit.kernel import Kernel
from quadpy.jit.parameters import Argument, ArrayParameter, Parameter, TemplateParameter, parameters_of
from quadpy.lang.arguments import ArgType, ArrayArg
from quadpy.lang.trace import Traced, trace_kernel
from quadpy.runtime.device.current import current_config
from quadpy.target import TargetSpec, parse_target

__all__ = ["compile_for", "compile_with_asm", "trace_for"]

_CPU: Final = parse_target("cpu")


def compile_for(kernel: Kernel, target: TargetSpec, given: Mapping[str, Argument]) -> CodeObject:
    """Code of ``kernel`` for ``target``, kept in the cache that launches use.

    It is the code that a launch takes for arrays below 4 GiB that do not overlap and, on a GPU, begin at multiples of 16
    bytes.

    Raises:
        ArgumentError: a type stays open or contradicts its annotation, or there is no such parameter.
        CompilationError: the kernel is at fault, with its line.
    """
    return compile_request(_request(kernel, given, target)).code


def compile_with_asm(kernel: Kernel, target: TargetSpec, given: Mapping[str, Argument]) -> CodeObject:
    """As ``compile_for``, with the assembly, which no cache keeps: it is compiled again."""
    return compile_kernel(trace_for(kernel, given, target).kernel, target, want_asm=True)


def trace_for(
    kernel: Kernel, given: Mapping[str, Argument], target: TargetSpec = _CPU, observe: Observer | None = None
) -> Traced:
    """The IR of ``kernel`` for ``target``; raises as ``compile_for``, ``observe`` as in ``trace_kernel``."""
    request = _request(kernel, given, target)
    return trace_kernel(request.source, request.args, request.options, observe=observe)


def _request(kernel: Kernel, given: Mapping[str, Argument], target: TargetSpec) -> Request:
    try:
        types = _arg_types(kernel, given)
    except ArgumentError as error:
        raise kernel.named(error) from None
    if target.family != "cpu":
        types = {name: _aligned(arg) if isinstance(arg, ArrayArg) else arg for name, arg in types.items()}
    return Request(kernel.source, types, options_of(current_config(), graph=kernel.graph), target)


def _arg_types(kernel: Kernel, given: Mapping[str, Argument]) -> dict[str, ArgType]:
    parameters = parameters_of(kernel.source, current_config())
    names = [parameter.name for parameter in parameters]
    if unknown := [name for name in given if name not in names]:
        raise ArgumentError(f"there is no parameter {unknown[0]!r}", hint=f"it takes {', '.join(names) or 'nothing'}")
    return {parameter.name: _arg_type(kernel, parameter, given) for parameter in parameters}


def _aligned(arg: ArrayArg) -> ArrayArg:
    """As a launch on a GPU finds it: at a multiple of 16 bytes."""
    return replace(arg, type=replace(arg.type, aligned=True))


def _arg_type(kernel: Kernel, parameter: Parameter, given: Mapping[str, Argument]) -> ArgType:
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


def _array_type(parameter: ArrayParameter, given: Argument) -> ArgType:
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
    struct: object = given.dtype
    if isinstance(struct, StructType):
        return parameter.type_of(("nd", key_of_record(struct.record()), given.ndim, ()), writable=True)
    dtype, element = element_of(given.dtype)
    return parameter.type_of(("nd", dtype.name, given.ndim, element), writable=True)


def _default(kernel: Kernel, name: str) -> object:
    value: object = inspect.signature(kernel.source.fn).parameters[name].default
    if value is inspect.Parameter.empty:
        raise ArgumentError(
            f"the compile-time parameter {name!r} has no value",
            hint=f"Kernel.compile(target, {name}=3), or --arg {name}=3 on the command line",
        )
    return value
