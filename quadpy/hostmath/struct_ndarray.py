"""Arrays of structs with run-time shapes; their memory is that of C arrays and of NumPy's aligned structured arrays."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from quadpy.core.completion import shows
from quadpy.core.dtypes import BY_NAME, u8
from quadpy.core.records import Plain, RecordType
from quadpy.errors import ArgumentError
from quadpy.hostmath.struct_access import StructAccess
from quadpy.hostmath.struct_types import StructType
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED
from quadpy.runtime.arrays.foreign_host import HostView, describe_host_array, type_key
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.arrays.view import TypeKey
from quadpy.runtime.elements.numpy_types import SCALAR_OF, Numbers, numpy_dtype
from quadpy.runtime.memory.placement import allocate, storage_at

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


@shows("get_member_field", "keys")
class StructNDArray(StructAccess, NDArray):
    """An array of structs that kernels take as a parameter; made by ``qp.ndarray``."""

    __slots__ = ("record",)

    record: RecordType

    def __init__(self, type: StructType, shape: tuple[int, ...], stream: object = None) -> None:
        self.record = record = type.record()
        plain = array_layout(u8.name, shape, (record.nbytes,))
        name = key_of_record(record)
        layout = plain.with_keys(
            _renamed(plain.on_host, name), _renamed(plain.aligned, name), _renamed(plain.unaligned, name)
        )
        super().__init__(u8, shape, (record.nbytes,), storage_at(allocate(plain.nbytes, stream), plain.strided), layout)
        self._dtype = type  # type: ignore[assignment]  # the methods below read it

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device is not None:
            raise AttributeError("the array is on a GPU: a.to_numpy() copies it")
        interface: dict[str, Any] = self.to_numpy(copy=False).__array_interface__
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("an array of structs cannot be passed to other libraries on the GPU")

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            _restored,
            (
                self._struct,
                self.shape,
                self.to_numpy(),
                None if self.grad is None else self.grad.to_numpy(),
            ),
            self.__dict__ or None,
        )

    def __repr__(self) -> str:
        return f"ndarray({self._struct!r}, shape={self.shape})"


def struct_ndarray(
    type: StructType, shape: object, needs_grad: bool = False, *, needs_dual: bool = False, stream: object = None
) -> StructNDArray:
    """Create an array of zero structs; see ``qp.ndarray``."""
    extents = shape_of(shape)
    made = StructNDArray(type, extents, stream)
    if needs_dual:
        raise ArgumentError("needs_dual=True: arrays of structs have no duals", hint="use a field of structs")
    if needs_grad:
        if not any(scalar.is_float for scalar in made.record.types):
            raise ArgumentError(f"needs_grad=True: {type!r} has no floats", hint="only floats have derivatives")
        made.grad = StructNDArray(type, extents, stream)
        DIFFERENTIATED.add(made)
    return made


def describe_struct_array(array: Numbers, record: RecordType | None) -> HostView:
    """A view of a structured NumPy array for a launch; without ``record``, its own members determine the struct.

    Raises:
        ArgumentError: its members are not laid out as in C, or its strides are not multiples of the largest scalar.
    """
    record = record or _record_of_dtype(array.dtype)
    wanted, key = _dtype_and_key(record)
    if array.dtype is not wanted and array.dtype != wanted:
        raise ArgumentError(
            f"an array of {array.dtype} is not one of {record!r}",
            hint="make it with the numpy_dtype of the struct type, or with numpy.dtype(..., align=True)",
        )
    raw = array[..., None].view(np.uint8)
    view = describe_host_array(raw, (wanted.itemsize,))
    abi, unit = view.abi, record.alignment  # kernels count strides in the largest scalar
    if view.type_key[0] == "strided":
        if any(stride % unit for stride in array.strides):
            raise ArgumentError(
                f"the strides {array.strides} of an array of structs are not multiples of {unit} bytes",
                hint="copy it with numpy.ascontiguousarray",
            )
        abi = (*abi[: 1 + array.ndim], *(stride // unit for stride in array.strides))
    return view._replace(type_key=_renamed(view.type_key, key), abi=abi)


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


def _renamed(key: TypeKey, name: str) -> TypeKey:
    kind, _, ndim, _ = key
    return type_key(kind, name, ndim, ())


def _restored(type: StructType, shape: tuple[int, ...], values: Numbers, grad: Numbers | None = None) -> StructNDArray:
    made = StructNDArray(type, shape)
    made.from_numpy(values)
    made.grad = None if grad is None else _restored(type, shape, grad)
    return made
