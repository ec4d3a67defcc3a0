"""Types of structs."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from quadpy.core.completion import shows
from quadpy.core.dtypes import meant
from quadpy.core.importing import import_late
from quadpy.core.messages import one_of, shown
from quadpy.core.public import public
from quadpy.core.records import Plain, RecordType, function_of
from quadpy.errors import ArgumentError
from quadpy.hostmath.structs import Struct, made_of
from quadpy.runtime.elements.numpy_types import admit, cast, numpy_dtype
from quadpy.runtime.elements.types import CompositeType, DType, element_of, scalar_of
from quadpy.runtime.elements.values import Elements, wrap

_RESERVED = ("to_dict", "keys", "items", "field", "ndarray", "record", "entries", "items_by_name")


@shows("cast", "field", "filled_with_scalar", "members", "methods", "name", "ndarray", "numpy_dtype")
class StructType:
    """The type of structs with these members: scalars, vectors, matrices and structs, in this order.

    Calling it creates a value, from members by position and by name; missing members are 0.
    """

    __slots__ = ("cls", "defaults", "members", "methods", "name")
    __quadpy_constructor__: ClassVar[str] = "struct"  # calls inside kernels are compiled

    members: dict[str, DType | StructType]
    defaults: dict[str, Any]
    methods: dict[str, Any]
    name: str
    cls: type | None
    """The class from which ``qp.dataclass`` made the type."""

    @public
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
        self.cls = None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in StructType.__slots__:
            raise AttributeError(
                f"{name!r} of {self!r} cannot be set: a struct type keeps the members and methods that it was made with. "
                "Write it in the class, or in another class that inherits from this one",
                name=name, obj=self,
            )  # fmt: skip
        object.__setattr__(self, name, value)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """The base classes of ``class Q(P)``."""
        if self.cls is None:
            raise ArgumentError(
                f"a class cannot inherit from {self!r}, which was not made from a class",
                hint="make it with @qp.dataclass, or have it as a member",
            )
        return (self.cls,)

    def record(self, scalar_type: Callable[[Any], Any] = scalar_of) -> RecordType:
        """The struct with all its types known; ``scalar_type`` says what ``float``, ``int`` and ``bool`` mean."""
        methods = {name: method for name, method in self.methods.items() if _is_compiled(method)}
        return RecordType(
            tuple((name, _member_type(dtype, scalar_type)) for name, dtype in self.members.items()),
            tuple(methods.items()),
            self.cls,
        )

    def default(self, name: str) -> Any:
        """The default of a member; None for 0."""
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
            raise ArgumentError(f"{self!r} has no member {min(unknown)!r}", hint=one_of(min(unknown), self.members))
        return made_of(self, {name: self.converted(name, given.get(name, self.default(name))) for name in self.members})

    def missing(self, given: Struct | Mapping[str, Any]) -> str:
        """The first member that ``given`` lacks, with its path; empty if it has all."""
        found = dict(given.items())
        for name, dtype in self.members.items():
            if name not in found:
                return name
            inner = found[name]
            if (
                isinstance(dtype, StructType)
                and isinstance(inner, (Struct, Mapping))
                and (path := dtype.missing(inner))
            ):
                return f"{name}.{path}"
        return ""

    @public
    def cast(self, value: Struct | Mapping[str, Any]) -> Struct:
        """``value``, a struct or a dict with the same members, with its numbers cast to the types of this one."""
        given = _members_of(value)
        if given.keys() != self.members.keys():
            what = f"members {', '.join(map(str, given))}" if given else shown(value)
            raise ArgumentError(f"{self!r} is cast from a struct with the same members, not from {what}")
        return made_of(self, {name: self._cast_member(name, given[name]) for name in self.members})

    def _cast_member(self, name: str, value: Any) -> Any:
        dtype = self.members[name]
        if isinstance(dtype, StructType):
            return dtype.cast(value)
        scalar, shape = element_of(dtype)
        numbers = cast(value.to_numpy() if isinstance(value, Elements) else np.asarray(value), scalar)
        return self.converted(name, wrap(np.broadcast_to(numbers, shape) if numbers.ndim == 0 else numbers, scalar))

    @public
    def filled_with_scalar(self, value: Any) -> Struct:
        """A struct whose numbers all are ``value``."""
        return self({
            name: dtype.filled_with_scalar(value) if isinstance(dtype, StructType) else value
            for name, dtype in self.members.items()
        })  # fmt: skip

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
        """A field of this ``shape`` with elements of this type; ``options`` as in ``qp.field``."""
        make = import_late("quadpy.hostmath.struct_field").struct_field  # which has values of this class
        return make(self, shape, **options)

    def ndarray(self, shape: Any, **options: Any) -> Any:
        """An array of this ``shape`` with elements of this type; ``options`` as in ``qp.ndarray``."""
        return import_late("quadpy.hostmath.struct_ndarray").struct_ndarray(self, shape, **options)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The structured NumPy type with the same memory: natural alignment, as in C."""
        return numpy_dtype(self.record())

    def __quadpy_fingerprint__(self) -> str:
        members = [(name, dtype.__quadpy_fingerprint__() if isinstance(dtype, StructType) else repr(dtype))
                   for name, dtype in self.members.items()]  # fmt: skip
        methods = [(name, _fingerprint(method)) for name, method in self.record().methods]
        return f"struct:{members!r}:{self.defaults!r}:{methods!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        """A class under ``@qp.dataclass`` is pickled like any class, by its name; any other struct by its members."""
        if self.cls is not None and _found_by_name(self.cls.__module__, self.cls.__qualname__) is self:
            return _found_by_name, (self.cls.__module__, self.cls.__qualname__)
        return _restored, (self.members, self.defaults, self.methods, self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructType) and (self.members, self.methods) == (other.members, other.methods)

    def __hash__(self) -> int:
        return hash(tuple(self.members))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}: {_type_text(dtype)}" for name, dtype in self.members.items())
        return f"{self.name}({inner})"


def _members_of(value: object) -> dict[str, Any]:
    return dict(value.items()) if isinstance(value, (Struct, Mapping)) else {}


StructType.cast.__quadpy_constructor__ = "cast"  # type: ignore[attr-defined]  # compiled inside kernels
StructType.filled_with_scalar.__quadpy_constructor__ = "filled"  # type: ignore[attr-defined]  # as above


def struct_type_of(value: Struct) -> StructType:
    found: object = value._type  # noqa: SLF001 - of the other half; a plain name could be that of a member
    assert isinstance(found, StructType)
    return found


@public
def dataclass(cls: type) -> StructType:
    """Makes a struct type of a class: its annotations are the members, its values their defaults, its functions methods.

    Members and methods of a struct that the class inherits from come first, and may be overridden.

    Raises:
        ArgumentError: an annotation is not the type of a member, or a base class is not a struct and has members.
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"{cls!r} is not a class", hint="@qp.dataclass decorates a class")
    bases = [_base(base, cls) for base in reversed(cls.__mro__[1:-1])]
    scope = dict(sys._getframe(1).f_locals)  # noqa: SLF001 - annotations that are text may name what is around the class
    try:
        own = inspect.get_annotations(cls, locals=scope, eval_str=True)
    except NameError as error:
        raise ArgumentError(f"an annotation of {cls.__name__}: {error}") from None
    members = {name: dtype for base in bases if isinstance(base, StructType) for name, dtype in base.members.items()}
    members |= {name: meant(annotation) for name, annotation in own.items()}
    defaults, methods = _attributes(bases, cls, members)
    made = object.__new__(StructType)
    made._make(members, defaults, methods, cls.__name__)
    made.cls = cls
    cls.__quadpy_struct__ = made  # type: ignore[attr-defined]  # for classes that inherit from it
    return made


def _base(base: type, cls: type) -> StructType | type:
    """A base of ``cls``: a struct, or a class that only has methods."""
    found = vars(base).get("__quadpy_struct__")
    if isinstance(found, StructType):
        return found
    if inspect.get_annotations(base):
        raise ArgumentError(
            f"{cls.__name__} inherits from {base.__name__}, which has members and is not a struct",
            hint=f"put @qp.dataclass above {base.__name__}, too",
        )
    return base


def _attributes(
    bases: Sequence[StructType | type], cls: type, members: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The defaults and the methods of ``cls`` and its bases."""
    defaults: dict[str, Any] = {}
    methods: dict[str, Any] = {}
    for each in (*bases, cls):
        if isinstance(each, StructType):
            defaults |= each.defaults
            methods |= each.methods
            continue
        for name, value in vars(each).items():
            if name in members:
                defaults[name] = value
            elif not name.startswith("__") and (callable(value) or isinstance(value, property)):
                methods[name] = value
    return defaults, methods


def _is_compiled(method: object) -> bool:
    """Whether kernels may use it: a ``qp.func``, also as a static method, or a property."""
    return isinstance(method, property) or hasattr(function_of(method), "__quadpy_fingerprint__")


def _fingerprint(method: object) -> str:
    function: Any = function_of(method)
    if hasattr(function, "__quadpy_fingerprint__"):
        return f"{type(method).__name__}:{function.__quadpy_fingerprint__()}"
    code = function.__code__  # of a property
    return f"property:{code.co_code.hex()}:{code.co_consts!r}:{code.co_names!r}"


def _member_type(dtype: Any, scalar_type: Callable[[Any], Any]) -> Plain | RecordType:
    if isinstance(dtype, StructType):
        return dtype.record(scalar_type)
    if isinstance(dtype, CompositeType):
        return Plain(scalar_type(dtype.dtype or float), tuple(dtype.element_shape))
    return Plain(scalar_type(dtype))


def _type_text(dtype: object) -> str:
    return dtype.__name__ if isinstance(dtype, type) else repr(dtype)


def _found_by_name(module: str, name: str) -> Any:
    """The object that ``module`` has under this name; None if there is none."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _restored(members: dict[str, Any], defaults: dict[str, Any], methods: dict[str, Any], name: str) -> StructType:
    made = object.__new__(StructType)
    made._make(members, defaults, methods, name)
    return made
