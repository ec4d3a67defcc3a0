"""The host's access to arrays whose elements are structs stored as in C.

Structs are stored as the members of structured NumPy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import numpy as np

from quadpy.core.completion import completed
from quadpy.core.dtypes import u8
from quadpy.core.messages import one_of
from quadpy.core.public import shortened
from quadpy.core.records import Plain, RecordType
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.hostmath.struct_types import StructType, struct_type_of
from quadpy.hostmath.structs import Struct, inside, made_of
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.parts import part_of
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers, address_of, admit, decode, encode, numpy_dtype
from quadpy.runtime.elements.types import element_of
from quadpy.runtime.elements.values import Elements, wrap
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage
from quadpy.runtime.memory.strided_layout import StridedLayout

_MEMBERS_FIRST: Final = ("n", "m", "element_type", "layout", "get_type")
"""Attributes of other arrays that structs have only as members."""
BYTE: Final = np.dtype("u1")
"""The numbers that the memory of structs consists of."""


class StructAccess(DenseArray):
    """An array of structs; its memory is bytes, of shape ``(*shape, bytes of a struct)``.

    ``a[i]`` reads a struct, which writes its members back when they are set; ``a[i] = {...}`` writes some or all members.
    ``a.m`` and ``a["m"]`` are the members ``m`` of all structs, as an array over the same memory.  A part, ``a[1:3]``, and
    ``to_numpy`` are structured NumPy arrays.
    """

    __slots__ = ()

    record: RecordType

    @property
    def _member_first(self) -> NoReturn:
        raise AttributeError  # ``__getattr__`` finds the member of this name, or says that there is none

    n = m = element_type = layout = get_type = _member_first

    @property
    def _struct(self) -> StructType:
        found: object = self.dtype
        assert isinstance(found, StructType)
        return found

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self.record.names)

    def get_member_field(self, key: str) -> ArrayMember | StructMember:
        """The members ``key`` of all structs, over the same memory."""
        found = self.record.window(key)
        if found is None:
            raise ArgumentError(self._no_member(key), hint=one_of(key, self.record.names))
        _, type = found
        storage = self._storage_of(key, type)
        if isinstance(type, Plain):
            return ArrayMember(type, self.shape, storage, key)
        struct = self._struct.members[key]
        assert isinstance(struct, StructType)
        return StructMember(struct, type, self.shape, storage)

    def _storage_of(self, key: str, type: Plain | RecordType) -> Storage:
        """The members ``key`` in memory."""
        whole = self._memory()
        if isinstance(whole, DeviceStorage):
            offset = self.record.offsets()[self.record.names.index(key)]
            start, _, shape, strides = whole.layout
            dtype, tail = (STORAGE[type.scalar], type.shape) if isinstance(type, Plain) else (BYTE, (type.nbytes,))
            inner = tuple(dtype.itemsize * math.prod(tail[k + 1 :]) for k in range(len(tail)))
            layout = StridedLayout(start + offset, dtype, shape[:-1] + tail, strides[:-1] + inner)
            storage: Storage = DeviceStorage(whole.region, layout)
        else:
            assert isinstance(whole, HostStorage)
            members = self._structured(whole.view)[key]
            storage = HostPart(whole, members if isinstance(type, Plain) else members[..., None].view(BYTE))
        storage.name = whole.name
        return storage

    def __dir__(self) -> list[str]:
        return [*completed(self), *self.record.names]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "record":
            raise AttributeError(name)
        if name == "field_dict":
            return {key: self.get_member_field(key) for key in self.record.names}
        if name not in self.record.names:
            raise AttributeError(f"{self._no_member(name)}; {one_of(name, self.record.names)}")
        return self.get_member_field(name)

    def __setattr__(self, name: str, value: object) -> None:
        if (name in _MEMBERS_FIRST or not hasattr(type(self), name)) and name in self.record.names:
            raise AttributeError(
                f"the member {name!r} of {self!r} cannot be replaced: write to its elements, a.{name}[i] = ..."
            )
        super().__setattr__(name, value)

    def _no_member(self, name: str) -> str:
        return f"{self._struct!r} has no member {name!r}"

    def __getitem__(self, index: object) -> Any:
        try:
            if isinstance(index, str):
                return self.get_member_field(index)
            where = self.locate(index)
            if where is None:
                return self._read_part(index)
            stored = self._structured(self._memory().read(where))

            def store(path: tuple[str, ...], value: object) -> None:
                owner: Any = self
                for name in path:
                    owner = owner.get_member_field(name)
                owner[index] = value

            return from_stored(self._struct, stored, store)
        except QuadpyError as error:
            raise shortened(error)

    def _structured(self, stored: Numbers) -> Numbers:
        """Bytes of structs as structs."""
        return stored.view(numpy_dtype(self.record))[..., 0]

    def _read_part(self, index: object) -> Numbers:
        part = part_of(index, self.shape, self._origin(), self)
        found = self._structured(np.ascontiguousarray(self._memory().read(part.where)))[part.turned].copy()
        found.flags.writeable = False  # a part of a struct there would be lost in silence
        return found

    def __setitem__(self, index: object, value: object) -> None:
        try:
            where = self.locate(index)
            if where is not None and isinstance(value, Struct):
                self._memory().write(where, self._bytes_of(value))
                return
            self.require_fits(index, value)  # before the first member is written
            for name, item in self._given(value):
                self.get_member_field(name)[index] = item
        except QuadpyError as error:
            raise shortened(error)

    def require_fits(self, index: object, value: object) -> None:
        for name, item in self._given(value):
            self.get_member_field(name).require_fits(index, item)

    def _given(self, value: object) -> Iterable[tuple[str, Any]]:
        """The members of ``value``, by name; all are members of the struct."""
        if isinstance(value, StructAccess):
            value = value.to_numpy()
        if isinstance(value, np.ndarray) and value.dtype.names is not None:
            found = [(name, value[name]) for name in value.dtype.names]
        elif isinstance(value, (Struct, Mapping)):
            found = list(value.items())
        else:
            raise ArgumentError(f"{value!r} is not a struct", hint="assign a struct or a dict")
        for name, _ in found:
            if name not in self.record.names:
                raise ArgumentError(self._no_member(name), hint=one_of(name, self.record.names))
        return found

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to a struct, or the members that a dict has; a number is the value of all members."""
        if isinstance(value, (int, float, np.number)):
            value = self._struct.filled_with_scalar(value)
        given = dict(self._given(value))
        if not self._struct.missing(given):
            self._memory().write(..., self._bytes_of(given), stream)
            return
        self.require_fits(None, given)
        for name, item in given.items():
            self.get_member_field(name).fill(item, stream=stream)

    def _bytes_of(self, value: object) -> Numbers:
        given = dict(self._given(value))
        one = np.zeros(1, numpy_dtype(self.record))
        to_stored(self._struct(given), one)
        return one.view(BYTE)

    def copy_from(self, other: object, *, stream: object = None) -> None:
        """Copy all elements of ``other``, which must have the same type and shape."""
        if not isinstance(other, StructAccess) or (other.record.members, other.shape) != (
            self.record.members,
            self.shape,
        ):
            raise ArgumentError(f"copy_from takes an array like {self!r}, not {other!r}", hint="use from_numpy")
        self._memory().copy_from(other._memory(), stream)  # noqa: SLF001 - of the same class

    def to_numpy(
        self, dtype: Any = None, *, copy: bool | None = True, keep_dims: bool = False, stream: object = None
    ) -> Numbers:
        """The elements as a structured array; ``copy=False`` is a view of the memory, only on the host.

        ``copy=None`` is a view if that is possible; ``keep_dims`` applies only to members.
        """
        if dtype is not None or keep_dims:
            raise ArgumentError(
                "an array of structs cannot be converted to another dtype, and has no components",
                hint="convert members: a.m.to_numpy(...)",
            )
        memory = self._memory()
        if copy is False and not isinstance(memory, HostStorage):
            raise ValueError(f"{self!r} cannot be viewed on the host without a copy")
        if not copy and isinstance(memory, HostStorage):
            memory.mark_exported()
        found = self._structured(memory.read(..., stream))
        return found.copy() if copy else found

    def from_numpy(self, array: Any, *, stream: object = None) -> None:
        """Copy a structured array, or a dict of arrays, into this array; the rules for members are those of other arrays."""
        values = np.zeros(self.shape, numpy_dtype(self.record))
        raw = values[..., None].view(BYTE)
        on_host = StructMember(self._struct, self.record, self.shape, HostStorage(raw, address_of(raw)))
        on_host._gather(array)  # noqa: SLF001 - of the same class
        self._memory().write(..., raw, stream)

    def _gather(self, source: Any) -> None:
        """Writes all members of ``source``, a structured array or a dict of arrays."""
        names = source.dtype.names if isinstance(source, np.ndarray) else tuple(source)
        if set(names or ()) != set(self.record.names):
            raise ArgumentError(f"from_numpy takes arrays for {', '.join(self.record.names)}, not for {names!r}")
        for name in self.record.names:
            member = self.get_member_field(name)
            if isinstance(member, StructMember):
                member._gather(source[name])  # noqa: SLF001 - of the same class
                continue
            try:
                member.from_numpy(source[name])
            except ArgumentError as error:
                raise ArgumentError(f"the member {name!r}: {error.message}", hint=error.hint) from None

    def to_torch(
        self, device: Any = None, *, copy: bool | None = True, keep_dims: bool = False, stream: object = None
    ) -> dict[str, Any]:
        """A dict with a tensor for each member; the arguments are those of other arrays."""
        members = {name: self.get_member_field(name) for name in self.record.names}
        return {
            name: member.to_torch(device, copy=copy, keep_dims=keep_dims, stream=stream)
            for name, member in members.items()
        }

    def from_torch(self, tensor: Any, *, stream: object = None) -> None:
        """Copy a dict of tensors into this array."""
        for name, item in self._given(tensor):
            self.get_member_field(name).from_torch(item, stream=stream)

    def on_host(self, stream: object = None) -> StructMember:
        """The same structs in memory of the host: a copy if the array is on a GPU."""
        raw = self._memory().read(..., stream)
        return StructMember(self._struct, self.record, self.shape, HostStorage(raw, address_of(raw)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return self.to_numpy(dtype, copy=self.device is not None if copy is None else copy)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("DLPack has no structs: share members, such as a.m")


class ArrayMember(DenseArray):
    """The same member of all structs of an array, in place."""

    __slots__ = ("_storage", "name")

    def __init__(self, type: Plain, shape: tuple[int, ...], storage: Storage, name: str) -> None:
        self._describe(type.scalar, shape, type.shape)
        self._storage, self.name = storage, name

    def _memory(self) -> Storage:
        return self._storage

    def __repr__(self) -> str:
        return f"member {self.name!r} ({self._element()}, shape={self.shape})"


class StructMember(StructAccess):
    """A member that is a struct itself, of all structs of an array."""

    __slots__ = ("_storage", "record")

    record: RecordType

    def __init__(self, type: StructType, record: RecordType, shape: tuple[int, ...], storage: Storage) -> None:
        self._describe(u8, shape, (record.nbytes,))
        self.record, self._storage = record, storage
        self._dtype = type  # type: ignore[assignment]  # as ``StructNDArray`` does

    def _memory(self) -> Storage:
        return self._storage

    def __repr__(self) -> str:
        return f"members ({self._struct!r}, shape={self.shape})"


def members_to_numpy(owner: Any, dtype: Any = None, **options: Any) -> dict[str, Any]:
    """A dict with an array for each member of ``owner``, a field or an array of structs; structs in it also become dicts."""
    found = {}
    for name in owner.keys:
        member = owner.get_member_field(name)
        nested = not isinstance(member, (Field, ArrayMember))
        found[name] = members_to_numpy(member, dtype, **options) if nested else member.to_numpy(dtype, **options)
    return found


def from_stored(type: StructType, stored: Any, store: Callable[[tuple[str, ...], Any], None] | None = None) -> Struct:
    """A value from the stored form of its members, by name; ``store`` writes a member back."""
    values: dict[str, Any] = {}
    for name, dtype in type.members.items():
        if isinstance(dtype, StructType):
            values[name] = from_stored(dtype, stored[name], inside(store, name))
        else:
            scalar, _ = element_of(dtype)
            part = None if store is None else lambda *_, name=name: store((name,), values[name])
            values[name] = wrap(decode(np.asarray(stored[name]), scalar), scalar, part)
    return made_of(type, values, store)


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
