"""Types and values of structs on the host."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.errors import ArgumentError
from quadpy.hostmath.descriptors import type_of
from quadpy.hostmath.matrix import Matrix
from quadpy.hostmath.vector import Vector
from quadpy.importing import import_late
from quadpy.records import Plain, RecordType
from quadpy.runtime.elements.numpy_types import STORAGE, admit, decode, encode
from quadpy.runtime.elements.types import CompositeType, DType, element_of, scalar_of
from quadpy.runtime.elements.values import Elements, wrap

__all__ = [
    "Struct",
    "StructType",
    "dataclass",
    "from_stored",
    "made_of",
    "struct_type_of",
    "numpy_dtype",
    "to_stored",
    "type_of_record",
]

_RESERVED = ("to_dict", "keys", "items", "field", "ndarray", "record", "entries", "items_by_name")


class StructType:
    """The type of structs with these members: scalars, vectors, matrices and structs, in this order.

    Calling it makes a value, from members by position and by name; those that are not given are 0.
    """

    __slots__ = ("defaults", "members", "methods", "name")
    __quadpy_constructor__: ClassVar[str] = "struct"  # calls inside kernels are compiled

    members: dict[str, DType | StructType]
    defaults: dict[str, Any]
    methods: dict[str, Any]
    name: str

    def __init__(self, members: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self._make({**(members or {}), **named}, {}, {}, "struct")

    def _make(self, members: dict[Any, Any], defaults: dict[str, Any], methods: dict[str, Any], name: str) -> None:
        found = members.pop("__struct_methods", {})
        if not members:
            raise ArgumentError("a struct has at least one member")
        for member, dtype in members.items():
            if (
                not isinstance(member, str)
                or not member.isidentifier()
                or member.startswith("_")
                or member in _RESERVED
            ):
                raise ArgumentError(f"{member!r} cannot be the name of a member")
            try:
                if not isinstance(dtype, StructType):
                    element_of(dtype)
            except ArgumentError as error:
                raise ArgumentError(
                    f"the member {member!r}: {error.message}",
                    hint="a member is a scalar, a vector, a matrix or a struct",
                ) from None
        self.members, self.defaults, self.methods, self.name = members, defaults, {**found, **methods}, name

    def record(self, scalar_type: Callable[[Any], Any] = scalar_of) -> RecordType:
        """The struct with all its types known; ``scalar_type`` says what ``float``, ``int`` and ``bool`` mean."""
        methods = {name: method for name, method in self.methods.items() if _is_func(method)}
        return RecordType(
            tuple((name, _member_type(dtype, scalar_type)) for name, dtype in self.members.items()),
            tuple(methods.items()),
        )

    def default(self, name: str) -> Any:
        """The value of a member that is not given; None for 0."""
        return self.defaults.get(name)

    def method(self, name: str) -> Any:
        return self.methods.get(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Struct:
        if len(args) == 1 and not kwargs and isinstance(args[0], (Mapping, Struct)):
            given = dict(args[0].items())
        elif len(args) > len(self.members):
            raise ArgumentError(f"{self!r} takes {len(self.members)} members, not {len(args)}")
        else:
            given = dict(zip(self.members, args, strict=False))
            if twice := given.keys() & kwargs.keys():
                raise ArgumentError(f"the member {min(twice)!r} is given twice")
            given |= kwargs
        if unknown := given.keys() - self.members.keys():
            raise ArgumentError(f"{self!r} has no member {min(unknown)!r}", hint=f"there are {', '.join(self.members)}")
        return made_of(self, {name: self.converted(name, given.get(name, self.default(name))) for name in self.members})

    def converted(self, name: str, value: Any) -> Any:
        """``value`` as the member ``name``; None is 0."""
        dtype = self.members[name]
        if isinstance(dtype, StructType):
            return dtype() if value is None else dtype(value)
        scalar, shape = element_of(dtype)
        try:
            numbers = admit(value.to_numpy() if isinstance(value, Elements) else 0 if value is None else value, scalar)
        except ArgumentError as error:
            raise ArgumentError(f"the member {name!r}: {error.message}", hint=error.hint) from None
        if numbers.ndim and numbers.shape != shape:
            raise ArgumentError(f"the member {name!r} takes shape {shape}, not {numbers.shape}")
        return wrap(np.broadcast_to(numbers, shape), scalar)

    def field(self, shape: Any = None, **options: Any) -> Any:
        """A field with elements of this type; ``options`` as in ``qp.field``."""
        make = import_late("quadpy.hostmath.struct_field").struct_field  # which has values of this class
        return make(self, shape, **options)

    def ndarray(self, shape: Any, **options: Any) -> Any:
        """An array with elements of this type."""
        return import_late("quadpy.hostmath.struct_ndarray").struct_ndarray(self, shape, **options)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The structured NumPy type with the same memory: natural alignment, as in C."""
        return numpy_dtype(self.record())

    def __quadpy_fingerprint__(self) -> str:
        methods = [(name, method.__quadpy_fingerprint__()) for name, method in self.record().methods]  # type: ignore[attr-defined]  # of @qp.func
        return f"struct:{self.members!r}:{self.defaults!r}:{methods!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructType) and (self.members, self.methods) == (other.members, other.methods)

    def __hash__(self) -> int:
        return hash(tuple(self.members))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}: {_type_text(dtype)}" for name, dtype in self.members.items())
        return f"{self.name}({inner})"


class Struct:
    """A struct on the host: ``qp.Struct(a=1.0)``, ``qp.Struct({"a": 1.0})``, or a call of a struct type.

    Members are read and set by name.  A struct that was read from an array writes them back.
    """

    __slots__ = ("_store", "_type", "_values")
    __quadpy_value__: ClassVar[bool] = True  # a kernel that names one uses its numbers
    __quadpy_constructor__: ClassVar[str] = "struct value"  # calls of the class inside kernels are compiled

    _type: StructType
    _values: dict[str, Any]
    _store: Callable[[tuple[str, ...], Any], None] | None

    def __init__(self, members: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        values = {name: _value_of(value) for name, value in {**(members or {}), **named}.items()}
        type = StructType({name: _type_of(value) for name, value in values.items()})
        made = type(values)
        object.__setattr__(self, "_type", type)
        object.__setattr__(self, "_values", dict(made.items()))
        object.__setattr__(self, "_store", None)

    @staticmethod
    def field(
        members: Mapping[str, Any], methods: Mapping[str, Any] | None = None, shape: Any = None, **options: Any
    ) -> Any:
        """A field of structs with ``members``; ``options`` as in ``qp.field``."""
        type = StructType(members)
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
        return list(self._values.items())

    def items_by_name(self) -> dict[str, Any]:
        """The members themselves: to set one here does not write it back."""
        return self._values

    def to_dict(self) -> dict[str, Any]:
        """The members by name; structs in it become dicts, too."""
        return {name: v.to_dict() if isinstance(v, Struct) else v for name, v in self._values.items()}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        method = None if name.startswith("_") else self._type.method(name)
        if method is not None:
            return functools.partial(method, self)
        raise AttributeError(f"a {self._type!r} has no member {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values:
            raise AttributeError(f"a {self._type!r} has no member {name!r}")
        made = self._type.converted(name, value)
        if isinstance(made, Struct):
            object.__setattr__(made, "_store", _inside(self._store, name))
        self._values[name] = made
        if self._store is not None:
            self._store((name,), made)

    def __getitem__(self, name: str) -> Any:
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
        return _restored, (dict(self._type.members), self.to_dict())

    def __quadpy_fingerprint__(self) -> str:
        return f"struct value:{self._type.__quadpy_fingerprint__()}:{self.entries!r}"

    def __repr__(self) -> str:
        return f"{self._type.name}({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


def dataclass(cls: type) -> StructType:
    """Makes a struct type of a class: its annotations are the members, its values their defaults, its functions methods.

    Raises:
        ArgumentError: an annotation is not the type of a member.
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"{cls!r} is not a class", hint="@qp.dataclass stands above a class")
    scope = dict(sys._getframe(1).f_locals)  # noqa: SLF001 - annotations that are text may name what is around the class
    try:
        members = inspect.get_annotations(cls, locals=scope, eval_str=True)
    except NameError as error:
        raise ArgumentError(f"an annotation of {cls.__name__}: {error}") from None
    defaults = {name: vars(cls)[name] for name in members if name in vars(cls)}
    methods = {
        name: value
        for name, value in vars(cls).items()
        if name not in members and not name.startswith("__") and callable(value)
    }
    made = object.__new__(StructType)
    made._make(members, defaults, methods, cls.__name__)
    return made


def type_of_record(record: RecordType) -> StructType:
    """The struct type with these members."""
    members = {
        name: type_of_record(m) if isinstance(m, RecordType) else type_of(m.scalar, m.shape)
        for name, m in record.members
    }
    made = StructType(members)
    made.methods.update(record.methods)
    return made


@functools.cache
def numpy_dtype(record: RecordType) -> np.dtype[Any]:
    """The structured NumPy type with the memory of ``record`` in C; bf16 is stored as uint16."""
    formats = [
        numpy_dtype(m) if isinstance(m, RecordType) else np.dtype((STORAGE[m.scalar], m.shape))
        for _, m in record.members
    ]
    return np.dtype({
        "names": list(record.names), "formats": formats, "offsets": record.offsets(), "itemsize": record.nbytes,
    })  # fmt: skip


def from_stored(type: StructType, stored: Any, store: Callable[[tuple[str, ...], Any], None] | None = None) -> Struct:
    """A value from the stored form of its members, by name; ``store`` writes a member back."""
    values: dict[str, Any] = {}
    for name, dtype in type.members.items():
        if isinstance(dtype, StructType):
            values[name] = from_stored(dtype, stored[name], _inside(store, name))
        else:
            scalar, _ = element_of(dtype)
            part = None if store is None else lambda *_, name=name: store((name,), values[name])
            values[name] = wrap(decode(np.asarray(stored[name]), scalar), scalar, part)
    return made_of(type, values, store)


def struct_type_of(value: Struct) -> StructType:
    return value._type  # noqa: SLF001 - of this module; a plain name could be that of a member


def to_stored(value: Struct, out: Any) -> None:
    """Writes the members of ``value`` to ``out``, a structured array."""
    for name, dtype in struct_type_of(value).members.items():
        part = value[name]
        if isinstance(part, Struct):
            to_stored(part, out[name])
        else:
            scalar, _ = element_of(dtype)
            numbers = part.to_numpy() if isinstance(part, Elements) else part
            out[name] = encode(admit(numbers, scalar), scalar)


def _inside(
    store: Callable[[tuple[str, ...], Any], None] | None, name: str
) -> Callable[[tuple[str, ...], Any], None] | None:
    return None if store is None else lambda path, value: store((name, *path), value)


def made_of(type: StructType, values: dict[str, Any], store: Any = None) -> Struct:
    made = object.__new__(Struct)
    for name, value in (("_type", type), ("_values", values), ("_store", store)):
        object.__setattr__(made, name, value)
    return made


def _restored(members: dict[str, Any], values: dict[str, Any]) -> Struct:
    return StructType(members)(values)


def _is_func(method: object) -> bool:
    return hasattr(method, "__quadpy_fingerprint__")


def _member_type(dtype: Any, scalar_type: Callable[[Any], Any]) -> Plain | RecordType:
    if isinstance(dtype, StructType):
        return dtype.record(scalar_type)
    if isinstance(dtype, CompositeType):
        return Plain(scalar_type(dtype.dtype), tuple(dtype.element_shape))
    return Plain(scalar_type(dtype))


def _value_of(value: Any) -> Any:
    """A member of ``qp.Struct(…)``: lists become vectors and matrices, dicts become structs."""
    if isinstance(value, Mapping):
        return Struct(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return (Matrix if np.ndim(value) == 2 else Vector)(value)
    return value


def _type_of(value: Any) -> Any:
    if isinstance(value, Struct):
        return struct_type_of(value)
    if isinstance(value, Elements):
        return type_of(value.dtype, value.shape)
    if isinstance(value, (Scalar, CompositeType, StructType)) or value in (int, float, bool):
        raise ArgumentError(f"{value!r} is a type, and qp.Struct takes values", hint="qp.types.struct makes a type")
    return bool if isinstance(value, (bool, np.bool_)) else int if isinstance(value, (int, np.integer)) else float


def _type_text(dtype: object) -> str:
    return dtype.__name__ if isinstance(dtype, type) else repr(dtype)
