"""Kernels compiled without a call and without a device, for any target.

``given`` fills in what annotations leave open: it maps an array parameter to a ``qp.types.ndarray(dtype=, ndim=)``, and a
``template()`` parameter or a dataclass to its value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from quadpy.codegen.compile import compile_kernel
from quadpy.core.artifact import CodeObject
from quadpy.core.target import TargetSpec, parse_target, with_waves
from quadpy.errors import ArgumentError
from quadpy.hostmath import NDArrayType, StructType, element_of
from quadpy.hostmath.struct_ndarray import key_of_record
from quadpy.ir.pipeline import Observer
from quadpy.jit.annotations import parameters_of
from quadpy.jit.compilation import Compiled, Request, compile_request
from quadpy.jit.compile_time_parameters import (
    ContainerParameter,
    Declared,
    TemplateParameter,
    TensorParameter,
    is_field,
)
from quadpy.jit.dispatcher import options_of
from quadpy.jit.kernel import Kernel
from quadpy.jit.parameters import Argument, ArrayParameter
from quadpy.lang.arguments import ArgType, ArrayArg, ContainerArg, member_type
from quadpy.lang.members_found import MembersFound
from quadpy.lang.trace import Traced, trace_kernel
from quadpy.runtime.device.current import current_config

T = TypeVar("T")

_CPU: Final = parse_target("cpu")
_MISSING: Final[Any] = object()


def compile_for(kernel: Kernel, target: TargetSpec, given: Mapping[str, Argument]) -> CodeObject:
    """Code of ``kernel`` for ``target``, kept in the cache that launches use.

    It is the code that a launch takes for arrays below 4 GiB that do not overlap and, on a GPU, begin at multiples of 16
    bytes.

    Raises:
        ArgumentError: a type stays open or contradicts its annotation, or there is no such parameter.
        CompilationError: the kernel is at fault, with its line.
    """
    return _complete(kernel, given, target, compile_request).code


def compiled_with_types(
    kernel: Kernel, target: TargetSpec, given: Mapping[str, Argument], **form: Any
) -> tuple[Compiled, Mapping[str, ArgType]]:
    """Like ``compile_for``, without checks; with the types of the arguments, those of their members last.

    ``predicated`` and ``fused`` ask for another form, as in ``Options``.
    """

    def both(request: Request) -> tuple[Compiled, Mapping[str, ArgType]]:
        plain = replace(request.options, debug=False, indices_only=False, **form)
        return compile_request(replace(request, options=plain)), request.args

    return _complete(kernel, given, target, both)


def compile_with_asm(kernel: Kernel, target: TargetSpec, given: Mapping[str, Argument]) -> CodeObject:
    """Like ``compile_for``, with the assembly, which no cache keeps: it is compiled again."""

    def compile_traced(request: Request) -> CodeObject:
        traced = trace_kernel(request.source, request.args, request.options)
        return compile_kernel(traced.kernel, request.target, want_asm=True)

    return _complete(kernel, given, target, compile_traced)


def trace_for(
    kernel: Kernel, given: Mapping[str, Argument], target: TargetSpec = _CPU, observe: Observer | None = None
) -> Traced:
    """The IR of ``kernel`` for ``target``; raises as ``compile_for``, ``observe`` as in ``trace_kernel``."""

    def trace(request: Request) -> Traced:
        return trace_kernel(request.source, request.args, request.options, observe=observe)

    return _complete(kernel, given, target, trace)


def _complete(kernel: Kernel, given: Mapping[str, Argument], target: TargetSpec, use: Callable[[Request], T]) -> T:
    """The result of ``use`` for the kernel, with all members of its arguments that it needs."""
    try:
        types = _arg_types(kernel, given)
    except ArgumentError as error:
        raise kernel.named(error) from None
    target = with_waves(target, kernel.wave_size)
    options = options_of(current_config(), target, given=kernel.options)
    if options.derivative.kind == "grad":
        types |= {f"{name}.grad": arg for name, arg in types.items() if isinstance(arg, ArrayArg) and _has_floats(arg)}
    while True:
        if target.family != "cpu":
            types = {name: _aligned(arg) if isinstance(arg, ArrayArg) else arg for name, arg in types.items()}
        try:
            return use(Request(kernel.source, types, options, target))
        except MembersFound as found:
            types |= {str(path): member_type(types, path) for path in found.paths}


def _has_floats(arg: ArrayArg) -> bool:
    return any(member.scalar.is_float for member in arg.type.layout.members)


def _arg_types(kernel: Kernel, given: Mapping[str, Argument]) -> dict[str, ArgType]:
    parameters = parameters_of(kernel.source, current_config(), checkpoints=kernel.options.checkpoints)
    if kernel.receiver is not None:
        given = {**given, parameters[0].name: kernel.receiver}
    names = [parameter.name for parameter in parameters]
    if unknown := [name for name in given if name not in names]:
        named = "; targets are passed by position" if unknown[0].startswith("target") else ""
        raise ArgumentError(
            f"there is no parameter {unknown[0]!r}", hint=f"it takes {', '.join(names) or 'nothing'}{named}"
        )
    return {each.name: _arg_type(each, given.get(each.name, _MISSING), kernel) for each in parameters}


def _aligned(arg: ArrayArg) -> ArrayArg:
    """As a launch on a GPU finds it: at a multiple of 16 bytes."""
    return replace(arg, type=replace(arg.type, aligned=True))


def _arg_type(parameter: Declared, given: Argument, kernel: Kernel) -> ArgType:
    name = parameter.name
    match parameter:
        case TensorParameter():
            constant = given is None or is_field(given)
            return _arg_type(parameter.constant if constant else parameter.array, given, kernel)
        case ArrayParameter():
            return _array_type(parameter, given)
        case TemplateParameter():
            return parameter.arg_type(_default(kernel, name) if given is _MISSING else given)
        case ContainerParameter():
            return _container_type(parameter, given, kernel)
        case _:
            if given is not _MISSING and name.isidentifier():
                raise ArgumentError(f"the annotation of {name!r} decides its type", hint=f"leave {name!r} out")
            return parameter.arg_type()


def _container_type(parameter: ContainerParameter, given: Argument, kernel: Kernel) -> ArgType:
    """The type of a dataclass that is given, or of its annotations alone."""
    if given is not _MISSING:
        parameter = parameter.of(given)

    def member(name: str) -> ArgType:
        value = _MISSING if given is _MISSING else getattr(given, name)
        return _arg_type(parameter.members[name], value, kernel)

    return ContainerArg(parameter.cls, tuple(parameter.members), member, lambda: None)


def _array_type(parameter: ArrayParameter, given: Argument) -> ArgType:
    name = parameter.name
    if given is _MISSING and (declared := parameter.declared()):
        return declared
    if hasattr(given, "shape") and not isinstance(given, type):  # an array, in a dataclass
        return parameter.arg_type(parameter.view(given))
    if not isinstance(given, NDArrayType) or given.dtype is None or given.ndim is None:
        missing = "nothing" if given is _MISSING else repr(given)
        raise ArgumentError(
            f"{name!r} needs an array type with dtype and ndim; its annotation leaves them open, but {missing} was given",
            hint=f"Kernel.compile(target, {name}=qp.types.ndarray(dtype=qp.f32, ndim=2)), "
            f"or --arg '{name}=f32[2]' on the command line",
        )
    struct: object = given.dtype
    if isinstance(struct, StructType):
        return parameter.type_of(("nd", key_of_record(struct.record()), given.ndim, ()), writable=True)
    dtype, element = element_of(given.dtype)
    return parameter.type_of(("nd", dtype.name, given.ndim, element), writable=True)


def _default(kernel: Kernel, name: str) -> object:
    parameters = inspect.signature(kernel.source.fn).parameters
    value: object = parameters[name].default if name in parameters else inspect.Parameter.empty
    if value is inspect.Parameter.empty:
        raise ArgumentError(
            f"the compile-time parameter {name!r} has no value",
            hint=f"Kernel.compile(target, {name}=3), or --arg {name}=3 on the command line",
        )
    return value
