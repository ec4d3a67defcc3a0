"""Parameters that determine the code: compile-time values, dataclasses with arguments in them, fields or arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.core.dtypes import Scalar, element_text, f32, u1
from quadpy.core.light import dataclass
from quadpy.core.messages import counted, shown
from quadpy.errors import ArgumentError
from quadpy.hostmath import Elements, Struct
from quadpy.jit.parameters import (
    Argument,
    ArrayParameter,
    CheckedParameter,
    Parameter,
    ScalarParameter,
    SingleParameter,
)
from quadpy.lang.arguments import ArgType, ContainerArg, StaticArg
from quadpy.lang.decorators import Method
from quadpy.lang.tensors import rank_of
from quadpy.runtime.elements.types import CompositeType, scalar_of

_PRIMITIVES: Final = "__quadpy_template_primitives__"


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A compile-time value; each value has its own specialisation.

    ``type``, ``element`` and ``ndim`` are the required properties of an array or field; None leaves them open.
    ``takes_floats`` is False under ``qp.init(raise_on_templated_floats=True)``.
    """

    name: str
    type: Scalar | None = None
    element: tuple[int, ...] = ()
    ndim: int | None = None
    takes_floats: bool = True

    def key(self, given: Any) -> Hashable:
        """Equal numbers, vectors and matrices share a specialisation; other objects are distinguished by identity.

        Raises:
            ArgumentError: the annotation asks for another field; or it is a float, and ``qp.init`` was told to refuse
            floats.
        """
        if isinstance(given, float) and not self.takes_floats:
            raise ArgumentError(f"{self.name} is a template parameter, and raise_on_templated_floats does not allow the float {given!r}",
                                hint="annotate it with a scalar type: the kernel would be compiled for each float")  # fmt: skip
        if self.type is not None or self.element or self.ndim is not None:
            self.check(given)
        return value_key(given)

    def check(self, given: Any) -> None:
        """Refuses a field or array of another type.

        Raises:
            ArgumentError: it has another type.
        """
        kind = "" if self.type is None else element_text(self.type, self.element)
        if self.type is None and self.element:
            kind = f"of elements with the shape {self.element}"
        axes = "" if self.ndim is None else f"of {counted(self.ndim, 'dimension')}"
        wanted = f"{kind} {axes}".strip()
        if not (is_field(given) or is_array(given)):
            hint = "annotate it with qp.types.ndarray, which takes arrays of other libraries" * hasattr(given, "shape")
            raise ArgumentError(f"{self.name} takes a field {wanted}, not {type(given).__name__}", hint=hint)
        found = given.dtype, tuple(given.element_shape)
        if (self.type or self.element) and found != (self.type or found[0], self.element):
            raise ArgumentError(f"{self.name} takes a field {wanted}, not one of {element_text(*found)}")
        if self.ndim is not None and len(given.shape) != self.ndim:
            raise ArgumentError(
                f"{self.name} takes a field {wanted}, not one of {counted(len(given.shape), 'dimension')}"
            )

    def arg_type(self, given: Any) -> ArgType:
        primitives = primitives_of(given)
        return StaticArg(given, lambda owner, value: _passed_type(owner, value, primitives))


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A field or None, which are compile-time values, or an array; ``constant`` and ``array`` are the parameters."""

    name: str
    array: ArrayParameter
    constant: TemplateParameter

    def chosen(self, given: Any) -> ArrayParameter | TemplateParameter:
        """The parameter that it is in this call.

        Raises:
            ArgumentError: a field has elements of another rank.
        """
        if is_field(given):
            self.array.check_rank(rank_of(given), shown(given))
        return self.constant if given is None or is_field(given) else self.array


@dataclass(frozen=True, slots=True)
class ContainerParameter:
    """A dataclass, whose members are arguments: a launch passes those that the kernel uses.

    ``members`` are parameters by the name of the member; their own names are paths, such as ``p.x``.  ``derived`` gives
    the parameter for a derived class.
    """

    name: str
    cls: type
    members: Mapping[str, Declared]
    derived: Callable[[type], ContainerParameter]

    def of(self, given: Any) -> ContainerParameter:
        """The parameter for the members of ``given``, whose class may be derived.

        Raises:
            ArgumentError: it is not such a dataclass.
        """
        if not isinstance(given, self.cls):
            what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
            raise ArgumentError(f"{self.name} takes a {self.cls.__name__}, not {what}")
        return self if type(given) is self.cls else self.derived(type(given))

    def arg_type(self, given: Any) -> ContainerArg:
        found = self.of(given)
        members = Members(found, given)
        return ContainerArg(found.cls, tuple(found.members), members.type_of, members.release)


Declared: TypeAlias = Parameter | TemplateParameter | ContainerParameter | TensorParameter
"""A parameter as its annotation declares it."""


def value_key(value: Any) -> tuple[Hashable, ...]:
    """Equal for values that are the same to a kernel; for an object that equals only itself, ``id`` comes first."""
    match value:
        case Enum():
            return ("id", id(value))
        case float():
            return (type(value).__name__, value.hex())  # -0.0 is not 0.0, and a NaN is itself
        case None | bool() | int() | str() | Scalar() | CompositeType():
            return (type(value).__name__, value)
        case Elements() | Struct():  # their numbers may change
            return (type(value).__name__, value.__quadpy_fingerprint__())
        case np.generic():
            return (type(value).__name__, value.tobytes())
        case tuple():
            return ("tuple", *map(value_key, value))
        case Method():
            return ("method", id(value.func), id(value.instance))
        case _:
            return ("id", id(value))


class Members:
    """Gives the types of members of ``given``, until that is released."""

    __slots__ = ("_given", "_parameter")

    def __init__(self, parameter: ContainerParameter, given: Any) -> None:
        self._parameter, self._given = parameter, given

    def type_of(self, name: str) -> ArgType:
        parameter = self._parameter.members[name]
        if not hasattr(self._given, name):
            raise ArgumentError(
                f"{parameter.name} is missing: the {type(self._given).__name__} has no attribute {name!r}"
            )
        return type_of_argument(parameter, getattr(self._given, name))

    def release(self) -> None:
        """Releases the arguments: the code is made, and needs no more types."""
        self._given = None


def type_of_argument(parameter: Declared, given: Argument) -> ArgType:
    """The type of ``given`` in a signature.

    Raises:
        ArgumentError: the parameter does not take it.
    """
    found = parameter.chosen(given) if isinstance(parameter, TensorParameter) else parameter
    return found.arg_type(found.view(given) if isinstance(found, ArrayParameter) else given)


def passed_parameter(name: str, owner: Any, value: Any, primitives: bool) -> Parameter | None:
    """The parameter for ``value`` in an object; None for a value known at compile time.

    ``primitives`` says whether numbers are such values if the class of their ``owner`` does not say so.
    """
    if is_array(value):
        return ArrayParameter(name, None, (), None)
    if type(value) in (bool, int, float) and not getattr(type(owner), _PRIMITIVES, primitives):
        scalar = scalar_of(type(value))
        return (
            SingleParameter(name, scalar)
            if scalar == f32
            else CheckedParameter(name, scalar)
            if scalar == u1
            else ScalarParameter(name, scalar)
        )
    return None


def primitives_of(value: Any) -> bool:
    """Whether numbers in an object are compile-time values."""
    return bool(getattr(type(value), _PRIMITIVES, True))


def _passed_type(owner: Any, value: Any, primitives: bool) -> ArgType | None:
    found = passed_parameter("", owner, value, primitives)
    return None if found is None else type_of_argument(found, value)


def is_array(given: object) -> bool:
    """Whether ``given`` is a quadpy array that is not a field."""
    return getattr(type(given), "__quadpy_array__", False) is True


def is_field(given: object) -> bool:
    return getattr(type(given), "__quadpy_field__", False) is True
