"""Turns annotations of a kernel's parameters and of dataclasses into parameters."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, Final, get_args, get_origin

import numpy as np

from quadpy.core.artifact import CHECKPOINT
from quadpy.core.dtypes import Scalar, bf16, f16, f32, i32, meant, u1
from quadpy.core.messages import misfit, positional, shown
from quadpy.errors import ArgumentError, KernelTypeError, QuadpyError
from quadpy.hostmath import MatrixType, NDArrayType, StructType, VectorType, element_of, scalar_of
from quadpy.jit.compile_time_parameters import ContainerParameter, Declared, TemplateParameter, TensorParameter
from quadpy.jit.fast_call.arguments import define
from quadpy.jit.parameters import (
    ArrayParameter,
    CheckedParameter,
    ScalarParameter,
    SingleParameter,
    StructParameter,
    VectorParameter,
)
from quadpy.lang.decorators import Template, is_method, is_template
from quadpy.lang.source import FunctionSource
from quadpy.lang.tensors import tensor_annotation
from quadpy.runtime.arrays.buffer_view import BufferView
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import Config
from quadpy.runtime.elements.types import CompositeType

_ARRAYS: Final[dict[object, NDArrayType]] = {
    **dict.fromkeys((NDArrayType, NDArray, Field, np.ndarray), NDArrayType()), BufferView: NDArrayType(None, 1),
}  # fmt: skip
"""Classes that are also annotations, and their meanings."""


def parameters_of(source: FunctionSource, config: Config, *, checkpoints: bool = False) -> tuple[Declared, ...]:
    """The parameters of a kernel, from its annotations; with ``checkpoints`` also the one for their state.

    Raises:
        KernelTypeError: a parameter has no annotation, or one that is not a kernel type.
    """
    made: list[Declared] = []
    for name, parameter in inspect.signature(source.fn).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            stars = (
                "**" if parameter.kind is parameter.VAR_KEYWORD else "*" * (parameter.kind is parameter.VAR_POSITIONAL)
            )
            raise KernelTypeError(f"{source.name}: {stars}{name} cannot be a parameter of a kernel", source.span_of_parameter(name),
                                  hint="name each parameter; a template() parameter takes a tuple")  # fmt: skip
        annotation = source.annotation(name)
        if not made and annotation is None and is_method(source.fn):
            annotation = Template  # self
        found = _declared(name, annotation, source, config)
        if found is None:
            what = (
                "has no annotation"
                if annotation is None
                else f"is annotated with {source.annotation_text(name) or shown(annotation)}"
            )
            raise KernelTypeError(
                f"{source.name}: the parameter {name!r} {what}", source.span_of_parameter(name),
                hint="annotate it: a scalar type such as qp.f32, qp.types.ndarray(dtype=qp.f32, ndim=1), a vector type, "
                "a dataclass, or qp.template()",
            )  # fmt: skip
        made.append(found)
    if checkpoints:
        made.append(ArrayParameter(CHECKPOINT, i32, (), 1))
    return tuple(made)


def arranging(fn: FunctionType, is_bound: bool) -> Callable[..., tuple[Any, ...]]:
    """A function with the parameters and defaults of ``fn``, without its first one if it ``is_bound``.

    It returns its arguments by position; ``inspect.Signature.bind`` takes fifty times as long.
    """
    code, skipped = fn.__code__, int(is_bound)
    names = code.co_varnames[skipped : code.co_argcount + code.co_kwonlyargcount]
    parameters = list(names)
    if code.co_kwonlyargcount:
        parameters.insert(code.co_argcount - skipped, "*")
    made = define([f"def call({', '.join(parameters)}): return ({''.join(f'{name}, ' for name in names)})"], {})
    assert isinstance(made, FunctionType)
    made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    return made


def not_arranged(
    fn: Callable[..., object], names: Sequence[str], by_keyword: Collection[str], args: Sequence[object],
    kwargs: Mapping[str, object],
) -> tuple[str, str]:  # fmt: skip
    """Why arguments do not fit ``fn``, whose parameters are ``names``, and what it takes."""
    signature = inspect.signature(fn)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        shown = [f"{name}=..." if name in by_keyword else name for name in names]
        shown += ["stream=..."] if any("stream" in name for name in kwargs) else []  # such as qd_stream
        why = misfit(names, len(args), kwargs, error, positional(signature))
        return why, f"it takes {', '.join(shown) or 'nothing'}"
    raise AssertionError("the arguments fit")


def _declared(
    name: str, annotation: Any, source: FunctionSource, config: Config, within: tuple[type, ...] = ()
) -> Declared | None:
    """The parameter with this annotation; None for one that is not a kernel type."""
    if get_origin(annotation) in (Field, NDArray):
        annotation = NDArrayType(*get_args(annotation))
    if (scalar := _scalar(annotation, config)) is not None:
        if scalar == f32:
            return SingleParameter(name, scalar)
        return (CheckedParameter if scalar in (u1, f16, bf16) else ScalarParameter)(name, scalar)
    if is_template(annotation):
        return _template(name, annotation if isinstance(annotation, Template) else Template(), config)
    if (given := tensor_annotation(annotation)) is not None:
        array = _array(name, NDArrayType(given.dtype, given.ndim), config, given.rank)  # type: ignore[arg-type]  # the user's own
        return TensorParameter(name, array, _template(name, Template(given.dtype, given.ndim), config))
    known = next((meaning for each, meaning in _ARRAYS.items() if annotation is each), annotation)
    known = getattr(known, "__quadpy_annotation__", known)
    if isinstance(known, NDArrayType):
        return _array(name, known, config)
    if annotation is VectorType or annotation is MatrixType:  # without its arguments
        return None
    if getattr(annotation, "__quadpy_constructor__", None) == "type":
        dtype, shape = element_of(annotation, config)
        return VectorParameter(name, dtype, shape)
    if isinstance(annotation, StructType):
        return StructParameter(name, annotation, annotation.record(lambda dtype: scalar_of(dtype, config)))
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return _container(name, annotation, source, config, within)
    return None


def _scalar(annotation: object, config: Config) -> Scalar | None:
    defaults = ((int, config.default_ip), (float, config.default_fp), (bool, u1))
    found = next((type for python, type in defaults if annotation is python), annotation)
    return found if isinstance(found, Scalar) else None


def _template(name: str, annotation: Template, config: Config) -> TemplateParameter:
    floats = not config.raise_on_templated_floats
    if annotation.dtype is None:
        return TemplateParameter(name, ndim=annotation.ndim, takes_floats=floats)
    dtype, element = _elements(annotation.dtype, config)
    return TemplateParameter(name, dtype, element, annotation.ndim, floats)


def _array(name: str, annotation: NDArrayType, config: Config, rank: int | None = None) -> ArrayParameter:
    struct: object = annotation.dtype
    clamped, splits = annotation.boundary == "clamp", annotation.rank is not None
    rank = annotation.rank if splits else rank
    if isinstance(struct, StructType):
        record = struct.record(lambda dtype: scalar_of(dtype, config))
        return ArrayParameter(name, None, (), annotation.ndim, record, clamped, rank, splits)
    dtype, element = _elements(annotation.dtype, config)
    return ArrayParameter(name, dtype, element, annotation.ndim, None, clamped, rank, splits)


def _elements(dtype: object, config: Config) -> tuple[Scalar | None, tuple[int, ...]]:
    """The type and shape of elements that an annotation says; None for what comes from the argument."""
    if dtype is None:
        return None, ()
    scalar, shape = element_of(dtype, config)
    return None if isinstance(dtype, CompositeType) and dtype.dtype is None else scalar, shape


def _container(
    name: str, cls: type, source: FunctionSource, config: Config, within: tuple[type, ...]
) -> ContainerParameter:
    """A dataclass; members with annotations that are not kernel types are compile-time values.

    ``within`` are the classes of the dataclasses around.
    """
    if cls in within:
        raise ArgumentError(
            f"the dataclass {cls.__name__} contains itself",
            hint="annotate the member with qp.template(), or leave it out",
        )
    members: dict[str, Declared] = {}
    for member, annotation in _annotations(cls, source).items():
        path = f"{name}.{member}"
        try:
            declared = _declared(path, annotation, source, config, (*within, cls))
        except KernelTypeError:
            raise  # the error names the place already
        except QuadpyError as error:
            raise KernelTypeError(
                f"{source.name}: {path}: {error.message}", source.span_of_parameter(path.partition(".")[0]), hint=error.hint
            ) from error.__cause__  # fmt: skip
        members[member] = declared or TemplateParameter(path)
    return ContainerParameter(name, cls, members, lambda derived: _container(name, derived, source, config, ()))


def _annotations(cls: type, source: FunctionSource) -> dict[str, Any]:
    """The annotations of the members of a dataclass, as objects even if they were written as text."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        module = sys.modules.get(base.__module__)
        for name, written in inspect.get_annotations(base).items():
            found[name] = meant(_evaluated(written, module, f"{cls.__name__}.{name}", source))
    return {each.name: found[each.name] for each in dataclasses.fields(cls)}


def _evaluated(written: object, module: ModuleType | None, name: str, source: FunctionSource) -> Any:
    if not isinstance(written, str) or module is None:
        return written
    try:
        return eval(written, vars(module))  # noqa: S307  (the user's own annotation)
    except Exception as error:
        raise KernelTypeError(
            f"{source.name}: the annotation {written!r} of {name} cannot be read: {error}", source.span,
            hint="with `from __future__ import annotations`, annotations can only use names of the module",
        ) from error  # fmt: skip
