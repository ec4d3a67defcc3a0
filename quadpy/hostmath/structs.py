"""Structs on the host."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from quadpy.core.completion import completed, shows
from quadpy.core.dtypes import Scalar
from quadpy.core.importing import import_late
from quadpy.core.messages import one_of
from quadpy.core.public import public
from quadpy.core.records import RecordType
from quadpy.errors import ArgumentError
from quadpy.hostmath.descriptors import type_of
from quadpy.hostmath.matrix import Matrix
from quadpy.hostmath.vector import Vector
from quadpy.runtime.elements.types import CompositeType
from quadpy.runtime.elements.values import Elements


class TypeOfStruct(Protocol):
    """What a value needs from its type, which is a ``StructType``."""

    members: dict[str, Any]
    methods: dict[str, Any]
    name: str

    def record(self) -> RecordType: ...
    def method(self, name: str) -> Any: ...
    def converted(self, name: str, value: Any) -> Any: ...
    def field(self, shape: Any = None, **options: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Struct: ...
    def __quadpy_fingerprint__(self) -> str: ...


@shows("field", "items", "keys", "to_dict")
class Struct:
    """A struct on the host: ``qp.Struct(a=1.0)``, ``qp.Struct({"a": 1.0})``, or a call of a struct type.

    Members are read and set by name.  A struct that was read from an array writes them back.
    """

    __slots__ = ("_store", "_type", "_values")
    __quadpy_value__: ClassVar[bool] = True  # a kernel that names one uses its numbers
    __quadpy_constructor__: ClassVar[str] = "struct value"  # calls of the class inside kernels are compiled

    _type: TypeOfStruct
    _values: dict[str, Any]
    _store: Callable[[tuple[str, ...], Any], None] | None

    @public
    def __init__(self, members: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        values = {name: _value_of(value) for name, value in {**(members or {}), **named}.items()}
        type = _struct_type({name: _type_of(value) for name, value in values.items()})
        made = type(values)
        object.__setattr__(self, "_type", type)
        object.__setattr__(self, "_values", dict(made.items()))
        object.__setattr__(self, "_store", None)

    @staticmethod
    def field(
        members: Mapping[str, Any], methods: Mapping[str, Any] | None = None, shape: Any = None, **options: Any
    ) -> Any:
        """A field of structs with ``members`` and ``methods``; ``shape`` and ``options`` as in ``qp.field``."""
        type = _struct_type(members)
        type.methods.update(methods or {})
        return type.field(shape, **options)

    @property
    def record(self) -> RecordType:
        return self._type.record()

    @property
    def entries(self) -> tuple[Any, ...]:
        """All numbers, in order."""
        found: list[Any] = []
        for value in self._values.values():
            found += value.entries if isinstance(value, (Struct, Elements)) else (value,)
        return tuple(found)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._values)

    def items(self) -> list[tuple[str, Any]]:
        """The members as pairs of name and value."""
        return list(self._values.items())

    def items_by_name(self) -> dict[str, Any]:
        """The members themselves: to set one here does not write it back."""
        return self._values

    def to_dict(self) -> dict[str, Any]:
        """The members by name; structs in it also become dicts."""
        return {name: v.to_dict() if isinstance(v, Struct) else v for name, v in self._values.items()}

    def __dir__(self) -> list[str]:
        return [*completed(self), *self._values]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        method = None if name.startswith("_") else self._type.method(name)
        if isinstance(method, (staticmethod, property)):
            return method.__get__(self)
        if method is not None:
            return functools.partial(method, self)
        raise AttributeError(self._no_member(name))

    def _no_member(self, name: str) -> str:
        return f"a {self._type!r} has no member {name!r}; {one_of(name, self._values)}"

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values:
            raise AttributeError(self._no_member(name))
        current = self._values[name]
        if isinstance(current, Struct) and isinstance(value, Mapping):
            current._set_some(value)  # noqa: SLF001 - of this class
            return
        made = self._type.converted(name, value)
        if isinstance(made, Struct):
            object.__setattr__(made, "_store", inside(self._store, name))
        self._values[name] = made
        if self._store is not None:
            self._store((name,), made)

    def _set_some(self, given: Mapping[str, Any]) -> None:
        """Set the members that ``given`` has; others, which a kernel may have changed meanwhile, stay as they are."""
        self._type(_completed(given, self))  # raises for what does not fit, before the first is set
        for name, value in given.items():
            setattr(self, name, value)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(self._no_member(name))
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            other = self._type(other)
        if not isinstance(other, Struct):
            return NotImplemented
        return self._values.keys() == other._values.keys() and self.entries == other.entries

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __copy__(self) -> Struct:
        return self._type(self)

    def __deepcopy__(self, memo: object) -> Struct:
        return self._type(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._type, self.to_dict())

    def __quadpy_fingerprint__(self) -> str:
        return f"struct value:{self._type.__quadpy_fingerprint__()}:{self.entries!r}"

    def __repr__(self) -> str:
        return f"{self._type.name}({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


def _completed(given: Mapping[str, Any], rest: Struct) -> dict[str, Any]:
    """``given``, with missing members from ``rest``, also in nested structs."""
    found: dict[str, Any] = {**rest.items_by_name(), **given}
    for name, own in rest.items():
        if isinstance(own, Struct) and isinstance(found[name], Mapping):
            found[name] = _completed(found[name], own)
    return found


def made_of(type: TypeOfStruct, values: dict[str, Any], store: Any = None) -> Struct:
    made = object.__new__(Struct)
    for name, value in (("_type", type), ("_values", values), ("_store", store)):
        object.__setattr__(made, name, value)
    return made


def _struct_type(members: Mapping[str, Any]) -> TypeOfStruct:
    """The type with these members, from the module that has values of this class."""
    made: TypeOfStruct = import_late("quadpy.hostmath.struct_types").StructType(members)
    return made


def inside(
    store: Callable[[tuple[str, ...], Any], None] | None, name: str
) -> Callable[[tuple[str, ...], Any], None] | None:
    return None if store is None else lambda path, value: store((name, *path), value)


def _restored(type: TypeOfStruct, values: dict[str, Any]) -> Struct:
    return type(values)


def _value_of(value: Any) -> Any:
    """A member of ``qp.Struct(…)``: lists become vectors and matrices, dicts become structs."""
    if isinstance(value, Mapping):
        return Struct(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return (Matrix if np.ndim(value) == 2 else Vector)(value)
    return value


def _type_of(value: Any) -> Any:
    if isinstance(value, Struct):
        return value._type  # noqa: SLF001 - of this module; a plain name could be that of a member
    if isinstance(value, Elements):
        return type_of(value.dtype, value.shape)
    if (
        isinstance(value, (Scalar, CompositeType))
        or value in (int, float, bool)
        or getattr(value, "__quadpy_constructor__", None) == "struct"
    ):
        raise ArgumentError(f"{value!r} is a type, and qp.Struct takes values", hint="qp.types.struct makes a type")
    return bool if isinstance(value, (bool, np.bool_)) else int if isinstance(value, (int, np.integer)) else float


def type_of_struct(value: Struct) -> TypeOfStruct:
    """The struct type from which ``value`` was made."""
    return value._type  # noqa: SLF001 - of this module's class
