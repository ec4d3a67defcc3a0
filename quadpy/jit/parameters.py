"""What the parameters of a kernel take, and how a call's arguments become values of the argument block.

Owns: the parameter kinds and ``parameters_of``.  Imports: leaves, ``hostmath``, ``lang``, ``runtime``.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from quadpy.dtypes import BY_NAME, Scalar, bf16, f16, f32, rounded_later, u1
from quadpy.errors import ArgumentError, DeviceError, KernelTypeError
from quadpy.hostmath import Elements, NDArrayType, element_of
from quadpy.ir.types import Array
from quadpy.lang.arguments import ArgType, ArrayArg, ScalarArg, StaticArg, VecArg
from quadpy.lang.decorators import Template
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.foreign_device import DeviceView, describe_device_array, lies_on_gpu
from quadpy.runtime.arrays.foreign_host import ALIGNED, ALIGNED_ROWS, DEVICE_KINDS, HostView, describe_host_array
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import Config, current_config
from quadpy.runtime.device.devices import current_device

__all__ = [
    "ArrayParameter", "CheckedParameter", "Parameter", "ScalarParameter", "SingleParameter", "TemplateParameter", "VectorParameter",
    "parameters_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A number by value."""

    name: str
    type: Scalar

    def arg_type(self) -> ArgType:
        return ScalarArg(self.type)

    def value(self, given: Any) -> Any:
        """``given`` as ``struct`` takes it, when the quick way failed.

        Raises:
            ArgumentError: it is no number of this type.
        """
        return _number(given, self.type, self.name)


@dataclass(frozen=True, slots=True)
class CheckedParameter(ScalarParameter):
    """A truth value or a 16-bit float: ``struct`` would take whatever comes for it, so each value is looked at."""

    def values(self, given: Any) -> list[Any]:
        return [self.value(given)]


@dataclass(frozen=True, slots=True)
class SingleParameter(ScalarParameter):
    """A number of type f32: ``struct`` would round large integers twice, so only floats go to it as they are."""

    def value(self, given: Any) -> Any:
        return given if isinstance(given, np.floating) else _number(given, self.type, self.name)


@dataclass(frozen=True, slots=True)
class VectorParameter:
    """A vector or matrix by value."""

    name: str
    type: Scalar
    shape: tuple[int, ...]

    def values(self, given: Any) -> list[Any]:
        """The components of ``given``, row-major."""
        flat = np.asarray(given.to_numpy() if isinstance(given, Elements) else given)
        if flat.shape != self.shape:
            raise ArgumentError(f"{self.name} takes shape {self.shape}, not {flat.shape}")
        return [_number(x, self.type, self.name) for x in flat.reshape(-1).tolist()]

    def arg_type(self) -> ArgType:
        return VecArg(self.shape, self.type)


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """An array: quadpy's, NumPy's, a CPU tensor, or whatever shows its memory."""

    name: str
    type: Scalar | None
    element: tuple[int, ...]
    ndim: int | None

    def view(self, given: Any) -> HostView | DeviceView | NDArray:
        """``given`` as a launch sees it.

        Raises:
            ArgumentError: it is no array that the CPU can read.
        """
        if type(given) is NDArray:
            return given
        if isinstance(given, (int, float, str, bytes)) or given is None:
            raise ArgumentError(f"{self.name} takes an array, not {type(given).__name__}")
        try:
            if current_config().arch != "cpu" and lies_on_gpu(given):
                return describe_device_array(given, current_device(), self.element)
            return describe_host_array(given, self.element)
        except ArgumentError as error:
            raise ArgumentError(f"{self.name}: {error.message}", hint=error.hint) from error

    def arg_type(self, key: tuple[str, str, int, tuple[int, ...]], writable: bool) -> ArgType:
        """The type of an argument with this key.

        Raises:
            ArgumentError: the parameter is declared otherwise.
            DeviceError: the array lies where this kernel cannot reach it.
        """
        kind, scalar, ndim, element = key
        if kind in DEVICE_KINDS and current_config().arch == "cpu":
            raise DeviceError(
                f"{self.name} lies in the memory of a GPU, and this kernel runs on the CPU",
                hint="pass x.to_numpy(), or call qp.init with the arch that the array was made under",
            )
        found = (BY_NAME[scalar], element)
        if self.type is not None and found != (self.type, self.element):
            raise ArgumentError(
                f"{self.name} takes elements of {_element_text(self.type, self.element)}, not {_element_text(*found)}",
                hint="NumPy has no bf16: make a qp.ndarray(qp.bf16, shape), and copy by from_numpy and to_numpy"
                if self.type is bf16
                else "convert the array, or change the annotation",
            )
        if self.ndim is not None and ndim != self.ndim:
            raise ArgumentError(f"{self.name} takes {self.ndim} dimensions, not {ndim}")
        rows = kind == ALIGNED_ROWS
        found_type = Array(
            BY_NAME[scalar],
            ndim,
            element,
            strided=kind == "strided",
            aligned=rows or kind == ALIGNED,
            aligned_rows=rows,
        )
        return ArrayArg(found_type, writable)

    def declared(self) -> ArgType | None:
        """The type that the annotation alone gives; None where it leaves something out."""
        if self.type is None or self.ndim is None:
            return None
        return ArrayArg(Array(self.type, self.ndim, self.element))


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A compile-time value: one specialisation for each."""

    name: str

    def key(self, given: Any) -> Hashable:
        """Equal numbers share a specialisation, other objects are told apart by identity."""
        if isinstance(given, float):
            return ("float", given.hex())  # -0.0 is not 0.0, and a NaN is itself
        if given is None or isinstance(given, (bool, int, str, Scalar)):
            return (type(given).__name__, given)
        return ("id", id(given))

    def arg_type(self, given: Any) -> ArgType:
        return StaticArg(given)


Parameter: TypeAlias = ScalarParameter | VectorParameter | ArrayParameter | TemplateParameter


def parameters_of(source: FunctionSource, config: Config) -> tuple[Parameter, ...]:
    """The parameters of a kernel, from its annotations.

    Raises:
        KernelTypeError: a parameter without annotation, or with one that is no kernel type.
    """
    made: list[Parameter] = []
    for name, parameter in inspect.signature(source.fn).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise KernelTypeError(f"{source.name}: *{name} cannot be a parameter of a kernel", source.span)
        made.append(_parameter(name, source.annotation(name), source, config))
    return tuple(made)


def _parameter(name: str, annotation: Any, source: FunctionSource, config: Config) -> Parameter:
    defaults = ((int, config.default_ip), (float, config.default_fp), (bool, u1))
    scalar = next((type for python, type in defaults if annotation is python), annotation)
    if isinstance(scalar, Scalar):
        if scalar == f32:
            return SingleParameter(name, scalar)
        return (CheckedParameter if scalar in (u1, f16, bf16) else ScalarParameter)(name, scalar)
    if isinstance(annotation, Template) or annotation is Template:
        return TemplateParameter(name)
    if annotation is NDArrayType:
        annotation = NDArrayType()
    if isinstance(annotation, NDArrayType):
        dtype, element = element_of(annotation.dtype, config) if annotation.dtype is not None else (None, ())
        return ArrayParameter(name, dtype, element, annotation.ndim)
    if getattr(annotation, "__quadpy_constructor__", None) == "type":
        dtype, shape = element_of(annotation, config)
        return VectorParameter(name, dtype, shape)
    what = "has no annotation" if annotation is None else f"is annotated with {annotation!r}"
    raise KernelTypeError(
        f"{source.name}: the parameter {name!r} {what}", source.span,
        hint="annotate it: a scalar type such as qp.f32, qp.types.ndarray(dtype=qp.f32, ndim=1), a vector type, or qp.template()",
    )  # fmt: skip


def _number(given: Any, type: Scalar, name: str) -> Any:
    if hasattr(given, "item") and getattr(given, "ndim", 1) == 0:
        given = given.item()
    if not isinstance(given, (bool, int, float)):
        if hasattr(given, "ndim") or not hasattr(given, to := "__float__" if type.is_float else "__index__"):
            raise ArgumentError(f"{name} takes a number ({type}), not {given.__class__.__name__}")
        given = getattr(given, to)()  # as ``struct`` takes it
    if type.is_float:
        try:
            return _float_bits(float(given) if type.bits == 64 else rounded_later(given), type)
        except OverflowError:
            raise ArgumentError(f"{name}: an integer this large does not fit {type}") from None
    if isinstance(given, float) and not given.is_integer():
        raise ArgumentError(f"{name} takes an integer ({type}), not {given!r}")
    number = bool(given) if type == u1 else int(given)
    if type != u1 and not type.min_int <= number <= type.max_int:
        raise ArgumentError(f"{name}: {number} does not fit {type}")
    return number


def _float_bits(value: float, type: Scalar) -> Any:
    """What ``struct`` packs: 16-bit floats travel as their bits; what f32 cannot hold is infinite."""
    with np.errstate(over="ignore"):
        if type == f16:
            return int(np.float16(value).view(np.uint16))
        if type == bf16:
            single = float(np.float32(value))
            bits = int.from_bytes(struct.pack("<f", single), "little")
            if single != value and not bits & 1 and abs(single) != np.inf:  # rounded once: its last bit notes the rest
                bits += 1 if abs(value) > abs(single) else -1
            return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if value == value else 0x7FC0
        return float(np.float32(value)) if type.bits == 32 else value


def _element_text(type: Scalar, element: tuple[int, ...]) -> str:
    return type.name + "".join(f"x{n}" for n in element)
