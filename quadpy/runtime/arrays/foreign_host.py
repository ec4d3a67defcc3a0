"""Arrays of other libraries as a launch sees them.  Owns: HostView and its keys.  Imports: leaves, storage, DLPack, NumPy."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from quadpy.artifact import MOST_NARROW_BYTES
from quadpy.dtypes import Scalar, bf16
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dlpack_import import Taken, take
from quadpy.runtime.elements.numpy_types import SCALAR_OF, STORAGE, Numbers, decode

__all__ = [
    "ALIGNED", "ALIGNED_ROWS", "DEVICE_KINDS", "HOST_KINDS", "HostView", "TypeKey", "as_numpy", "describe_host_array",
    "device_kind", "is_wide", "layout_of", "refused_if_broken", "renamed", "row_bytes", "type_key",
]  # fmt: skip

TypeKey: TypeAlias = tuple[str, str, int, tuple[int, ...]]
"""``(kind, scalar name, ndim, element shape)``; one object for each type, so ``is`` compares.

The kind is ``nd`` or ``strided``; for an ndarray in a GPU's memory one of DEVICE_KINDS.
"""

ALIGNED: Final = "device"
ALIGNED_ROWS: Final = "device rows"
_UNALIGNED: Final = "unaligned"
DEVICE_KINDS: Final = (ALIGNED, ALIGNED_ROWS, _UNALIGNED)


class HostView(NamedTuple):
    """What a launch needs to know of one array; an NDArray has the same attributes.

    ``abi`` is the address of the first element, the extents, and of a strided array its strides in scalars;
    ``pointer`` and ``nbytes`` are the range of addresses that it touches.  ``owner`` keeps the memory alive.
    """

    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    wide: bool
    writable: bool
    owner: Numbers

    @property
    def device(self) -> None:
        """None: the memory is the host's."""

    @property
    def block(self) -> None:
        """None: as ``device``."""


def device_kind(pointer: int, row: int) -> str:
    """The kind of an ndarray in a GPU's memory, whose rows have ``row`` bytes, of one axis 0.

    It says whether the array, or each row, begins at a multiple of the widest load, 16 bytes.
    """
    if pointer % 16:
        return _UNALIGNED
    return ALIGNED_ROWS if row and row % 16 == 0 else ALIGNED


def row_bytes(shape: tuple[int, ...], element_bytes: int) -> int:
    """Bytes from one row of the last axis to the next; 0 where there is one axis, or none."""
    return shape[-1] * element_bytes if len(shape) > 1 else 0


@cache
def type_key(kind: str, scalar: str, ndim: int, element: tuple[int, ...]) -> TypeKey:
    """The one key of a type: equal types have the identical object."""
    return (kind, scalar, ndim, element)


def is_wide(shape: tuple[int, ...], nbytes: int) -> bool:
    """Whether indices need 64 bits: an extent of 2^31 and more, or 4 GiB (less a little) and more."""
    return nbytes > MOST_NARROW_BYTES or any(extent > 0x7FFFFFFF for extent in shape)


def describe_host_array(obj: object, element: tuple[int, ...] = ()) -> HostView:
    """A view of ``obj``'s own memory: a NumPy array, a CPU torch tensor, a buffer, or what has DLPack on the CPU.

    ``element`` is the shape of one element as the kernel declares it: the last axes of ``obj`` must match it.

    Raises:
        ArgumentError: no array of the host, an unsupported dtype or byte order, strides that split a number,
            or last axes that are not ``element``.
    """
    if type(obj) is not np.ndarray:
        stored, scalar = _stored(obj)
        view = describe_host_array(stored, element)
        return view if scalar is None else view._replace(type_key=renamed(view.type_key, scalar))
    array: Numbers = obj
    shape, flags, nbytes = array.shape, array.flags, array.nbytes
    if element:
        axes = len(shape) - len(element)
        if axes < 0 or shape[axes:] != element:
            raise ArgumentError(f"an array of shape {shape} has no elements of shape {element} in its last axes")
        shape = shape[:axes]
    key = _key_of(array.dtype, len(shape), element)
    if not flags.c_contiguous:
        return _strided(array, key, shape)
    writable = flags.writeable  # from_buffer takes nothing else, but is six times as fast as __array_interface__
    pointer = _addressof(_from_buffer(array)) if writable else array.__array_interface__["data"][0]
    wide = not 0 < nbytes <= 0x7FFFFFFF and is_wide(shape, nbytes)
    return _view((key, (pointer, *shape), pointer, nbytes, wide, writable, array))


_from_buffer: Final[Callable[[Any], ctypes.Array[ctypes.c_char]]] = (ctypes.c_char * 0).from_buffer
_addressof: Final = ctypes.addressof
_view: Final[Callable[[tuple[object, ...]], HostView]] = partial(tuple.__new__, HostView)  # skips the keyword handling


@cache
def _key_of(dtype: np.dtype[Any], ndim: int, element: tuple[int, ...]) -> TypeKey:
    if dtype in SCALAR_OF:
        return type_key("nd", SCALAR_OF[dtype].name, ndim, element)
    if not dtype.isnative:
        hint = "convert it with a.astype(a.dtype.newbyteorder('='))"
        raise ArgumentError(f"an array of the foreign byte order {dtype.str!r} cannot be passed to a kernel", hint=hint)
    known = ", ".join(map(str, SCALAR_OF))
    raise ArgumentError(f"an array of {dtype} cannot be passed to a kernel", hint=f"convert it to one of {known}")


def _strided(array: Numbers, key: TypeKey, shape: tuple[int, ...]) -> HostView:
    _, scalar, ndim, element = key
    item = array.itemsize
    if any(stride % item for stride in array.strides):
        raise ArgumentError(
            f"the strides {array.strides} of an array are no multiples of its item size, {item} bytes",
            hint="copy it with numpy.ascontiguousarray",
        )
    first_element: tuple[Any, ...] = (*(0,) * ndim, ...)  # a view: the memory itself may be out of reach
    inner = array[first_element] if array.size else array
    if array.size and not inner.flags.c_contiguous:
        raise ArgumentError(
            f"the components of an element of shape {element} are not adjacent (strides {array.strides})",
            hint="copy it with numpy.ascontiguousarray",
        )
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    first = array.__array_interface__["data"][0]
    low = first + sum(r for r in reach if r < 0)
    nbytes = sum(abs(r) for r in reach) + item
    abi = (first, *shape, *(stride // item for stride in array.strides[:ndim]))
    # strides count scalars with a sign, so half of what a contiguous array may have fits 32 bits
    wide = nbytes > 0x7FFFFFFF or is_wide(shape, nbytes)
    return HostView(type_key("strided", scalar, ndim, element), abi, low, nbytes, wide, array.flags.writeable, array)


HOST_KINDS: Final = (1, 3, 11, 13)
"""dlpack.h: kDLCPU, the pinned memory kDLCUDAHost and kDLROCMHost, and kDLCUDAManaged."""


def renamed(key: TypeKey, scalar: Scalar) -> TypeKey:
    """``key`` for numbers that are stored as NumPy knows them, and are ``scalar``."""
    kind, _, ndim, element = key
    return type_key(kind, scalar.name, ndim, element)


def as_numpy(obj: object) -> Numbers:
    """``obj`` as a NumPy array over the same memory, of bf16 a copy; ArgumentError where that is impossible."""
    array, scalar = _stored(obj)
    return array if scalar is None else decode(array, scalar)


def _stored(obj: Any) -> tuple[Numbers, Scalar | None]:
    """``obj`` as NumPy sees its memory, and its type where NumPy has none for it."""
    if isinstance(obj, np.ndarray):
        return obj.view(np.ndarray), None
    if type(obj).__module__.partition(".")[0] == "torch":
        return _from_torch(obj)
    with refused_if_broken(obj, "__array_interface__"):
        if hasattr(obj, "__array_interface__"):
            return np.asarray(obj), None
    try:
        return np.asarray(memoryview(obj)), None
    except (TypeError, ValueError):
        pass  # no buffer, or one of a format that NumPy does not have
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        return _from_dlpack(obj)
    raise ArgumentError(
        f"{type(obj).__name__} is no array",
        hint="pass a qp.ndarray, a NumPy array, a CPU tensor, or an object with the buffer protocol or DLPack",
    )


@contextlib.contextmanager
def refused_if_broken(obj: object, protocol: str) -> Iterator[None]:
    """ArgumentError in place of what ``obj``'s own ``protocol``, or NumPy reading it, raises inside the block."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"the {protocol} of {type(obj).__name__} cannot be used: {error}",
            hint="pass an array that it shows rightly",
        ) from error


def _from_dlpack(obj: Any) -> tuple[Numbers, Scalar | None]:
    with refused_if_broken(obj, "__dlpack_device__"):
        kind, _ = map(int, obj.__dlpack_device__())
    if kind not in HOST_KINDS:
        raise ArgumentError(
            f"the {type(obj).__name__} lies on a device (DLPack's kind {kind}), not on the host",
            hint="copy it to the host first",
        )
    taken = take(obj)
    return layout_of(taken), (bf16 if taken.scalar == bf16 else None)


def _from_torch(tensor: Any) -> tuple[Numbers, Scalar | None]:
    """A CPU tensor's memory; torch itself refuses those of a device and those that record gradients."""
    if str(tensor.dtype) == "torch.bfloat16":
        return _from_dlpack(tensor)
    try:
        return tensor.numpy(), None
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            f"this tensor cannot be shared with the CPU: {error}", hint="pass tensor.detach().cpu()"
        ) from error


_NOWHERE: Final = 1 << 12
"""NumPy wants an address of an empty array, too."""


class _Layout:
    """Type, shape, strides and address for NumPy, which keeps this object alive and so the memory."""

    def __init__(self, taken: Taken) -> None:
        dtype = STORAGE[taken.scalar]
        self.taken = taken
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype.str,
            "shape": taken.shape,
            "strides": tuple(step * dtype.itemsize for step in taken.strides),
            "data": (taken.pointer or _NOWHERE, not taken.writable),
        }


def layout_of(taken: Taken) -> Numbers:
    """The memory of ``taken`` as NumPy would see it; of a device, only shape, strides and address may be asked."""
    return np.asarray(_Layout(taken))
