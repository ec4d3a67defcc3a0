"""Fields of structs: each number, vector or matrix of the struct is a field that shares their memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from quadpy.core.completion import completed, shows
from quadpy.core.importing import import_late
from quadpy.core.messages import one_of
from quadpy.core.public import call_site, public, require_switch
from quadpy.core.records import RecordType
from quadpy.errors import ArgumentError
from quadpy.hostmath.struct_access import StructMember, members_to_numpy
from quadpy.hostmath.struct_layout import StructTree, places_of
from quadpy.hostmath.struct_leaves import OfLeaves
from quadpy.hostmath.struct_types import StructType
from quadpy.hostmath.structs import Struct, made_of
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, KINDS, WITH_SHAPE, needed
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import (
    FieldTree,
    Layout,
    require_layout,
    require_no_layout,
)
from quadpy.runtime.arrays.parts import has_slices
from quadpy.runtime.elements.types import element_of


@shows(
    "copy_from", "device", "dtype", "dual", "fill", "from_numpy", "from_torch", "get_member_field", "grad",
    "has_dual", "has_grad", "keys", "layout", "name", "nbytes", "ndim", "offset", "placed", "shape", "size",
    "parent", "snode", "to_numpy", "to_torch",
)  # fmt: skip
class StructField(OfLeaves):
    """A field whose elements are structs; made by ``qp.field`` and by ``field`` of a struct type.

    ``f.a`` is the field of the members ``a``.  On the host, ``f[i]`` reads a struct, which writes its members back when
    they are set, and ``f[i] = {...}`` writes some or all members.  ``f[1:3]`` reads a dict with an array for each member.
    """

    __slots__ = (
        "__dict__",  # attributes of the user's own
        "__weakref__",
        "_bound",
        "_members",
        "_whole",
        "derivative",
        "derivatives",
        "directions",
        "dtype",
        "follows",
        "is_component",
        "is_member",
        "layout",
        "made",
        "name",
    )
    __quadpy_field__: ClassVar[bool] = True  # a kernel that names one takes it as a parameter

    dtype: StructType
    name: str
    _members: dict[str, Field | StructField]
    _whole: StructMember | None

    def __init__(self, type: StructType, name: str, derivative: str = "") -> None:
        self._whole, self._bound, self.layout = None, False, Layout.AOS
        self.made = call_site()
        self.dtype, self.name, self.derivative = type, name, derivative
        self.derivatives: dict[str, StructField] = {}
        self.directions: int | None = None
        self.follows = self.is_member = self.is_component = False  # as of other fields
        self._members = {
            member: StructField(dtype, f"{name}.{member}" if name else "", derivative) if isinstance(dtype, StructType)
            else Field(*element_of(dtype), f"{name}.{member}" if name else "", derivative)
            for member, dtype in type.members.items()
        }  # fmt: skip
        for each in self._members.values():
            each.is_member = True

    def _unwrap(self) -> StructField:
        """As for other fields."""
        return self

    def leaves(self) -> tuple[Field, ...]:
        """The fields of numbers, vectors and matrices, in order."""
        return tuple(leaf for member in self._members.values() for leaf in member.leaves())

    def span(self, shape: tuple[int, ...], offset: object = None, tree: FieldTree | None = None) -> None:
        """Set the shape, and the tree that will allocate the memory."""
        for leaf in self.leaves():
            leaf.follows = self.follows
            leaf.span(shape, offset, tree)
        self.follows = False
        self._give_derivatives_shape(shape, self.offset)

    def free(self) -> None:
        """Give the memory back: every later use is an error."""
        self._whole, self._bound = None, False
        for leaf in self.leaves():
            leaf.free()

    def follow(self, shape: tuple[int, ...], offset: tuple[int, ...]) -> None:
        record = self.dtype.record()
        self.span(shape, offset, StructTree(self, record, places_of(record, shape, None, Layout.AOS)))
        self.follows = True

    def declare(self, kind: str) -> StructField:
        """The derivative, without a shape if it is new: a field of the same structs, whose members are those of the members."""
        DIFFERENTIATED.add(self)
        if kind not in self.derivatives:
            found = StructField(self.dtype, f"{self.name}.{kind}" if self.name else "", kind)
            self._link(kind, found)
        return self.derivatives[kind]

    def _derivative(self, kind: str) -> Any:
        return self._members[kind] if kind in self._members else super()._derivative(kind)

    def _link(self, kind: str, derivative: StructField) -> None:
        self.derivatives[kind] = derivative
        for name, member in self._members.items():
            theirs = derivative.get_member_field(name)
            if isinstance(member, StructField):
                member._link(kind, theirs)  # noqa: SLF001 - of the same class
            elif member.is_differentiable:
                member.derivatives[kind] = theirs
                DIFFERENTIATED.add(member)

    @property
    def element_shape(self) -> RecordType:
        return self.dtype.record()

    def put_whole(self, whole: StructMember) -> None:
        """Set ``whole``, the same memory as structs of C."""
        self._whole = None if whole.device is None else whole

    def _on_gpu(self) -> StructMember | None:
        """Whole structs, if they are stored as such on a GPU: one copy then replaces a copy for each member."""
        if not self._bound:
            self._bound = self.leaves()[0].storage is not None  # gives the field its memory, or raises
        return self._whole

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    def get_member_field(self, key: str) -> Any:
        """The field of the members ``key``."""
        if key not in self._members:
            raise ArgumentError(f"{self.dtype!r} has no member {key!r}", hint=one_of(key, self._members))
        return self._members[key]

    def __dir__(self) -> list[str]:
        return [*completed(self), *self._members]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._members:
            return self._members[name]
        if name in KINDS:
            raise AttributeError(self.why_none(name))
        if name in ("shape", "ndim", "size", "offset"):  # the property has raised: this says why
            return getattr(self.leaves()[0], name)
        if name == "field_dict":
            return dict(self._members)
        instead = import_late("quadpy.core.elsewhere").INSTEAD.get(name) or one_of(name, self._members)
        raise AttributeError(f"a field of {self.dtype!r} has no member {name!r}; {instead}")

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(type(self), name) and name in self._members:
            raise AttributeError(
                f"the member {name!r} of {self!r} cannot be replaced: write to its elements, f.{name}[i] = ..."
            )
        super().__setattr__(name, value)

    @public
    def __getitem__(self, index: object) -> Struct | dict[str, Any]:
        if has_slices(index):
            return {name: member[index] for name, member in self._members.items()}
        if (whole := self._on_gpu()) is not None:
            found: Struct = whole[self.leaves()[0].locate(index)]
            return found
        values = {name: member[index] for name, member in self._members.items()}

        def store(path: tuple[str, ...], value: object) -> None:
            owner = self
            for name in path[:-1]:
                owner = owner.get_member_field(name)
            owner.get_member_field(path[-1])[index] = value

        return made_of(self.dtype, values, store)

    def require_fits(self, index: object, value: Struct | Mapping[str, Any]) -> None:
        """Raise what ``f[index] = value`` would raise, and write nothing; for an index of None, what ``f.fill`` would."""
        for name, item in self._given(value):
            self._members[name].require_fits(index, item)

    @public
    def __setitem__(self, index: object, value: Struct | Mapping[str, Any]) -> None:
        self.require_fits(index, value)  # before the first member is written
        given = dict(self._given(value))
        if not has_slices(index) and (whole := self._on_gpu()) is not None and not self.dtype.missing(given):
            whole[self.leaves()[0].locate(index)] = self.dtype(given)
            return
        for name, item in given.items():
            self._members[name][index] = item

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to a struct, or the members that a dict has; a number is the value of all members."""
        if not isinstance(value, (Struct, Mapping)):
            value = self.dtype.filled_with_scalar(value)
        self.require_fits(None, value)
        given = dict(self._given(value))
        if (whole := self._on_gpu()) is not None and not self.dtype.missing(given):
            whole.fill(given, stream=stream)
            return
        for name, item in given.items():
            self._members[name].fill(item, stream=stream)

    def copy_from(self, other: object, *, stream: object = None) -> None:
        """Copy all elements of ``other``, a field of structs with the same members."""
        if not isinstance(other, StructField) or other.keys != self.keys:
            raise ArgumentError(f"copy_from takes a field of {self.dtype!r}, not {other!r}")
        mine, theirs = self._on_gpu(), other._on_gpu()  # noqa: SLF001 - of the same class
        if mine is not None and theirs is not None and mine.record.members == theirs.record.members:
            mine.copy_from(theirs, stream=stream)
            return
        for name, member in self._members.items():
            member.copy_from(other.get_member_field(name), stream=stream)

    def to_numpy(self, dtype: Any = None, *, stream: object = None, **options: Any) -> dict[str, Any]:
        """A dict with an array for each member; the arguments are those of other fields."""
        whole = self._on_gpu() if options.get("copy", True) else None
        members = self if whole is None else whole.on_host(stream)
        return members_to_numpy(members, dtype, stream=stream, **options)

    def from_numpy(self, arrays: Mapping[str, Any] | Any, *, stream: object = None) -> None:
        """Copy a dict of arrays, or a structured array, into this field."""
        whole = self._on_gpu()
        given = self._accepted(arrays)  # all members, before the first is written
        if whole is not None:
            whole.from_numpy(given, stream=stream)
            return
        for name, member in self._members.items():
            member.from_numpy(given[name], stream=stream)

    def _accepted(self, arrays: Mapping[str, Any] | Any) -> dict[str, Any]:
        """``arrays`` as values for ``from_numpy``.

        Raises:
            ArgumentError: the members, a shape or a value do not fit.
        """
        names = arrays.dtype.names if isinstance(arrays, np.ndarray) else tuple(arrays)
        if set(names or ()) != set(self._members):
            raise ArgumentError(f"from_numpy takes arrays for {', '.join(self._members)}, not for {names!r}")
        return {name: member._accepted(arrays[name]) for name, member in self._members.items()}  # noqa: SLF001 - of fields

    def to_torch(self, device: Any = None, *, stream: object = None, **options: Any) -> dict[str, Any]:
        """A dict with a tensor for each member; the arguments are those of other fields."""
        return {name: member.to_torch(device, stream=stream, **options) for name, member in self._members.items()}

    def from_torch(self, tensors: Mapping[str, Any], *, stream: object = None) -> None:
        """Copy a dict of tensors into this field."""
        for name, tensor in self._given(tensors):
            self._members[name].from_torch(tensor, stream=stream)

    def _given(self, value: Struct | Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """The members of ``value``; ArgumentError for a member that does not exist."""
        if not isinstance(value, (Struct, Mapping)):
            raise ArgumentError(f"{value!r} is not a struct", hint="assign a struct or a dict")
        items = list(value.items())
        for name, _ in items:
            if name not in self._members:
                raise ArgumentError(f"{self.dtype!r} has no member {name!r}", hint=one_of(name, self._members))
        return items

    def __quadpy_fingerprint__(self) -> str:
        leaves = [leaf.__quadpy_fingerprint__() for leaf in self.leaves()]
        if leaves[0].endswith(":none"):  # it has no memory, or none any more
            return f"field:{self.dtype.__quadpy_fingerprint__()}:none"
        sparse = [node.__quadpy_fingerprint__() for node in self.sparse_nodes]
        return f"field:{self.dtype.__quadpy_fingerprint__()}:{self.shape}:{self.offset}:{self.stored_members()!r}:{self.blocks}:{self.is_member}:{sparse}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles members, shape, offset, name and derivatives; the copy has C order."""
        derivatives = {kind: found.to_numpy() for kind, found in self.derivatives.items() if hasattr(found, "shape")}
        made = self.dtype, self.shape, self.offset, self.name, self.to_numpy(), derivatives
        return _restored, made, self.__dict__ or None

    def _element(self) -> str:
        return repr(self.dtype)


def struct_field(
    type: StructType, shape: object = None, *, order: str | None = None, offset: object = None,
    layout: Layout = Layout.AOS, needs_grad: bool = False, needs_dual: bool = False, name: str = "",
) -> StructField:  # fmt: skip
    """Create a field of zero structs; the arguments are those of ``qp.field``.

    With AOS, an element is a struct as in C; with SOA, each number of it has a separate array.
    """
    made = StructField(type, name)
    require_switch(needs_dual, "needs_dual")
    made.need(needed(made, needs_grad, needs_dual))
    made.need_second(None)
    if shape is None:
        require_no_layout(order, offset, layout)
        return made
    require_layout(layout)
    extents = shape_of(shape)
    record = type.record()
    places = places_of(record, extents, order, layout)
    for each in made.and_derivatives():
        each.span(extents, offset, StructTree(each, record, places))
        each.layout = layout
    WITH_SHAPE.add(made)
    return made


def _restored(
    type: StructType, shape: tuple[int, ...], offset: tuple[int, ...], name: str, arrays: dict[str, Any],
    derivatives: dict[str, Any] | None = None,
) -> StructField:  # fmt: skip
    kinds = derivatives or {}
    made = struct_field(type, shape, offset=offset, name=name, needs_grad="grad" in kinds, needs_dual="dual" in kinds)
    made.from_numpy(arrays)
    for kind, numbers in kinds.items():
        made.declare(kind).from_numpy(numbers)
    return made
