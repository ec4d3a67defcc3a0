"""Arrays of structs with run-time shapes: in memory they are what C and NumPy's aligned structured arrays are."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from quadpy.dtypes import BY_NAME, u8
from quadpy.errors import ArgumentError
from quadpy.hostmath.struct_storage import from_stored, to_stored
from quadpy.hostmath.struct_types import StructType
from quadpy.hostmath.structs import Struct
from quadpy.records import Plain, RecordType
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.foreign_host import HostView, TypeKey, describe_host_array, type_key
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.elements.numpy_types import SCALAR_OF, Numbers, admit, encode, numpy_dtype
from quadpy.runtime.memory.host_storage import HostStorage
from quadpy.runtime.memory.placement import allocate, storage_at

__all__ = ["StructNDArray", "describe_struct_array", "key_of_record", "record_of_key", "struct_ndarray"]

_RECORDS: Final[dict[str, RecordType]] = {}
_KEYS: Final[dict[RecordType, str]] = {}


def key_of_record(record: RecordType) -> str:
    """The name of a struct in type keys: in a process, each struct has its own, which differs from those of scalars."""
    if record not in _KEYS:
        key = f"{record!r}#{len(_KEYS)}"
        _RECORDS[_KEYS.setdefault(record, key)] = record
    return _KEYS[record]


def record_of_key(name: str) -> RecordType | None:
    """The struct of this name; None for the name of a scalar."""
    return None if name in BY_NAME else _RECORDS[name]


class StructNDArray(NDArray):
    """An array of structs; made by ``qp.ndarray``.

    On the host, ``a[i]`` reads a struct, which writes its members back when they are set; ``a[i] = {...}`` writes some or
    all members.  NumPy sees a structured array.
    """

    __slots__ = ("record",)

    record: RecordType

    def __init__(self, type: StructType, shape: tuple[int, ...], stream: object = None) -> None:
        self.record = record = type.record()
        plain = array_layout(u8.name, shape, (record.nbytes,))
        name = key_of_record(record)
        layout = plain._replace(
            on_host=_renamed(plain.on_host, name), aligned=_renamed(plain.aligned, name), unaligned=_renamed(plain.unaligned, name)
        )  # fmt: skip
        super().__init__(u8, shape, (record.nbytes,), storage_at(allocate(plain.nbytes, stream), plain.strided), layout)
        self.dtype = type  # type: ignore[assignment]  # the methods below read it

    @property
    def _struct(self) -> StructType:
        found: object = self.dtype
        assert isinstance(found, StructType)
        return found

    def __getitem__(self, index: object) -> Struct:
        where = self._locate(index)
        stored = np.ascontiguousarray(self._memory().read(where)).view(numpy_dtype(self.record))[0]

        def store(path: tuple[str, ...], value: object) -> None:
            whole: Any = self[where]
            owner = whole
            for name in path[:-1]:
                owner = owner[name]
            owner.items_by_name()[path[-1]] = value
            self[where] = whole

        return from_stored(self._struct, stored, store)

    def __setitem__(self, index: object, value: object) -> None:
        where = self._locate(index)
        if isinstance(value, Mapping):
            value = {**dict(self[where].items()), **value}
        self._memory().write(where, self._bytes_of(value))

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to a struct, or a dict of its members; 0 clears all."""
        self._memory().write(..., self._bytes_of({} if value == 0 else value), stream)

    def _bytes_of(self, value: object) -> Numbers:
        if not isinstance(value, (Struct, Mapping)):
            raise ArgumentError(f"{value!r} is not a struct", hint="assign a struct or a dict")
        one = np.zeros(1, numpy_dtype(self.record))
        to_stored(self._struct(value), one)
        return one.view(np.uint8)

    def copy_from(self, other: object, *, stream: object = None) -> None:
        """Copy all elements of ``other``, which must have the same type and shape."""
        if not isinstance(other, StructNDArray) or (other.record.members, other.shape) != (
            self.record.members,
            self.shape,
        ):
            raise ArgumentError(f"copy_from takes an array like {self!r}, not {other!r}", hint="use from_numpy")
        self._memory().copy_from(other._memory(), stream)  # noqa: SLF001 - of the same class

    def to_numpy(self, dtype: Any = None, *, copy: bool = True, stream: object = None) -> Numbers:
        """The elements as a structured array; ``copy=False`` is a view of the memory, on the host alone."""
        if dtype is not None:
            raise ArgumentError("an array of structs has no other dtype", hint="convert members: a.to_numpy()['m']")
        memory = self._memory()
        if not copy and not isinstance(memory, HostStorage):
            raise ValueError(f"{self!r} cannot be viewed on the host without a copy")
        if not copy and isinstance(memory, HostStorage):
            memory.mark_exported()
        found = memory.read(..., stream).view(numpy_dtype(self.record))[..., 0]
        return found.copy() if copy else found

    def from_numpy(self, array: Any, *, stream: object = None) -> None:
        """Copy a structured array, or a dict of arrays, into this array."""
        values = np.zeros(self.shape, numpy_dtype(self.record))
        _gather(self.record, array, values, self.shape)
        self._memory().write(..., values[..., None].view(np.uint8), stream)

    def to_torch(self, device: Any = None, *, stream: object = None) -> Any:
        raise ArgumentError("torch has no structs", hint="a.to_numpy()['m'] is an array of members")

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device is not None:
            raise AttributeError("the array is on a GPU: a.to_numpy() copies it")
        interface: dict[str, Any] = self.to_numpy(copy=False).__array_interface__
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("an array of structs cannot be passed to other libraries on the GPU")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return self.to_numpy(dtype, copy=self.device is not None if copy is None else copy)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("DLPack has no structs")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._struct, self.shape, self.to_numpy())

    def __repr__(self) -> str:
        return f"ndarray({self._struct!r}, shape={self.shape})"


def struct_ndarray(type: StructType, shape: object, *, stream: object = None) -> StructNDArray:
    """Create an array of zero structs; see ``qp.ndarray``."""
    return StructNDArray(type, shape_of(shape), stream)


def describe_struct_array(array: Numbers, record: RecordType | None) -> HostView:
    """A view of a structured NumPy array for a launch; without ``record``, its own members say what it has.

    Raises:
        ArgumentError: it has gaps between elements, or its members lie elsewhere than in C.
    """
    record = record or _record_of_dtype(array.dtype)
    wanted, key = _dtype_and_key(record)
    if array.dtype is not wanted and array.dtype != wanted:
        raise ArgumentError(
            f"an array of {array.dtype} is not one of {record!r}",
            hint="make it with the numpy_dtype of the struct type, or with numpy.dtype(..., align=True)",
        )
    if not array.flags.c_contiguous:
        raise ArgumentError("an array of structs must be contiguous", hint="copy it with numpy.ascontiguousarray")
    raw = array.reshape((*array.shape, 1)).view(np.uint8)
    view = describe_host_array(raw, (wanted.itemsize,))
    return view._replace(type_key=_renamed(view.type_key, key))


@functools.cache
def _dtype_and_key(record: RecordType) -> tuple[np.dtype[Any], str]:
    return numpy_dtype(record), key_of_record(record)


def _record_of_dtype(dtype: np.dtype[Any]) -> RecordType:
    members: list[tuple[str, Plain | RecordType]] = []
    for name in dtype.names or ():
        part = dtype[name]
        if part.names is not None:
            members.append((name, _record_of_dtype(part)))
        elif part.base in SCALAR_OF and len(part.shape) <= 2:
            members.append((name, Plain(SCALAR_OF[part.base], part.shape)))
        else:
            raise ArgumentError(f"the member {name!r} of an array is {part}, which kernels do not have")
    return RecordType(tuple(members))


def _gather(record: RecordType, source: Any, out: Numbers, shape: tuple[int, ...]) -> None:
    """Writes the members of ``source``, a structured array or a dict of arrays, to ``out``."""
    names = source.dtype.names if isinstance(source, np.ndarray) else tuple(source)
    if set(names or ()) != set(record.names):
        raise ArgumentError(f"from_numpy takes arrays for {', '.join(record.names)}, not for {names!r}")
    for name, member in record.members:
        if isinstance(member, RecordType):
            _gather(member, source[name], out[name], shape)
            continue
        values = encode(admit(source[name], member.scalar), member.scalar)
        if values.shape != shape + member.shape:
            raise ArgumentError(
                f"the member {name!r} takes an array of shape {shape + member.shape}, not {values.shape}"
            )
        out[name] = values


def _renamed(key: TypeKey, name: str) -> TypeKey:
    kind, _, ndim, _ = key
    return type_key(kind, name, ndim, ())


def _restored(type: StructType, shape: tuple[int, ...], values: Numbers) -> StructNDArray:
    made = StructNDArray(type, shape)
    made.from_numpy(values)
    return made
