"""Views of other libraries' host arrays, as launches need them, and type keys of arrays."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from quadpy.core.dtypes import Scalar, bf16
from quadpy.core.importing import import_late
from quadpy.core.narrow import MOST_NARROW_BYTES
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dlpack_import import ImportedTensor, import_tensor
from quadpy.runtime.arrays.view import TypeKey
from quadpy.runtime.elements.numpy_types import SCALAR_OF, STORAGE, Numbers, decode

ALIGNED: Final = "device"
ALIGNED_ROWS: Final = "device rows"
_UNALIGNED: Final = "unaligned"
DISTRIBUTED: Final = "distributed"
DEVICE_KINDS: Final = (ALIGNED, ALIGNED_ROWS, _UNALIGNED)


class HostView(NamedTuple):
    """What a launch needs from one array; an NDArray has the same attributes.

    ``abi`` is the address of the first element, the extents and, for a strided array, its strides in scalars;
    ``pointer`` and ``nbytes`` are the range of addresses that it occupies.  ``owner`` keeps the memory alive.
    Read-only arrays are not ``writable``, nor are arrays in which several elements share one place in memory.
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
    """The kind of an ndarray in GPU memory with rows of ``row`` bytes, 0 for a single axis.

    It tells whether the array, or each row, begins at a multiple of 16 bytes, the widest load.
    """
    if pointer % 16:
        return _UNALIGNED
    return ALIGNED_ROWS if row and row % 16 == 0 else ALIGNED


def row_bytes(shape: tuple[int, ...], element_bytes: int) -> int:
    """Bytes from one row of the last axis to the next; 0 if there is at most one axis."""
    return shape[-1] * element_bytes if len(shape) > 1 else 0


@cache
def type_key(kind: str, scalar: str, ndim: int, element: tuple[int, ...]) -> TypeKey:
    """The key of a type; equal types get the identical object."""
    return (kind, scalar, ndim, element)


def is_wide(shape: tuple[int, ...], nbytes: int) -> bool:
    """Whether indices need 64 bits: for an extent of at least 2^31, or almost 4 GiB and more."""
    return nbytes > MOST_NARROW_BYTES or any(extent > 0x7FFFFFFF for extent in shape)


def describe_host_array(obj: object, element: tuple[int, ...] = ()) -> HostView:
    """A view of ``obj``'s memory: a NumPy array, a CPU torch tensor, a buffer, or an object with DLPack on the CPU.

    ``element`` is the shape of one element as the kernel declares it: the last axes of ``obj`` must match it.

    Raises:
        ArgumentError: not a host array, an unsupported dtype or byte order, strides that are not multiples of the item
            size, or last axes that do not match ``element``.
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
            raise ArgumentError(
                f"the last axes of an array of shape {shape} do not match elements of shape {element}",
                hint=f"an array of n such elements has shape (n, {', '.join(map(str, element))})",
            )
        shape = shape[:axes]
    key = _key_of(array.dtype, len(shape), element)
    if not flags.c_contiguous:
        return _strided(array, key, shape)
    writable = flags.writeable  # from_buffer needs it, and is six times as fast as __array_interface__
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
    if dtype.kind == "c":
        part = f"float{dtype.itemsize * 4}"
        hint = f"pass x.view(np.{part}).reshape(*x.shape, 2), an array of vectors of two numbers"
        raise ArgumentError(f"kernels have no complex numbers, and this is an array of {dtype}", hint=hint)
    known = ", ".join(map(str, SCALAR_OF))
    raise ArgumentError(f"an array of {dtype} cannot be passed to a kernel", hint=f"convert it to one of {known}")


def _strided(array: Numbers, key: TypeKey, shape: tuple[int, ...]) -> HostView:
    _, scalar, ndim, element = key
    item = array.itemsize
    if any(stride % item for stride in array.strides):
        raise ArgumentError(
            f"the strides {array.strides} of an array are not multiples of its item size, {item} bytes",
            hint="copy it with numpy.ascontiguousarray",
        )
    first_element: tuple[Any, ...] = (*(0,) * ndim, ...)  # a view: the memory may be unreadable
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
    # strides are signed, so 32 bits hold half of what a contiguous array may have
    wide = nbytes > 0x7FFFFFFF or is_wide(shape, nbytes)
    repeats = any(extent > 1 and not stride for extent, stride in zip(shape, array.strides, strict=False))
    writable = array.flags.writeable and not repeats  # else each element would have the last iteration's value
    return HostView(type_key("strided", scalar, ndim, element), abi, low, nbytes, wide, writable, array)


HOST_KINDS: Final = (1, 3, 11, 13)
"""DLPack's kDLCPU, kDLCUDAHost and kDLROCMHost (pinned memory), and kDLCUDAManaged."""


def renamed(key: TypeKey, scalar: Scalar) -> TypeKey:
    """``key`` with the scalar type ``scalar``, for a type that NumPy does not have."""
    kind, _, ndim, element = key
    return type_key(kind, scalar.name, ndim, element)


def as_numpy(obj: object) -> Numbers:
    """``obj`` as a NumPy array over the same memory, or a copy for bf16; ArgumentError if that is impossible."""
    array, scalar = _stored(obj)
    return array if scalar is None else decode(array, scalar)


def _stored(obj: Any) -> tuple[Numbers, Scalar | None]:
    """``obj``'s memory as a NumPy array, and its type if NumPy does not have it."""
    if isinstance(obj, np.ndarray):
        return obj.view(np.ndarray), None
    if type(obj).__module__.partition(".")[0] == "torch":
        return _from_torch(obj)
    with refused_if_broken(obj, "__array_interface__"):
        if hasattr(obj, "__array_interface__"):
            return np.asarray(obj), None
    try:
        return np.asarray(memoryview(obj)), None
    except (BufferError, TypeError, ValueError):
        pass  # no buffer, one on a device, or one with a format that NumPy does not have
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        return _from_dlpack(obj)
    if hasattr(obj, "to_numpy"):  # a table or a column of pandas or Polars
        what = f"{type(obj).__module__.partition('.')[0]}'s {type(obj).__name__}"
        raise ArgumentError(
            f"{what} is not an array", hint="pass its .to_numpy(), and copy results back if that is a copy"
        )
    raise ArgumentError(
        f"{type(obj).__name__} is not an array",
        hint="pass a qp.ndarray, a NumPy array, a CPU tensor, or an object with the buffer protocol or DLPack",
    )


@contextlib.contextmanager
def refused_if_broken(obj: object, protocol: str) -> Iterator[None]:
    """Context manager: turns exceptions of ``obj``'s ``protocol``, or of NumPy reading it, into ArgumentError."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"the {protocol} of {type(obj).__name__} cannot be used: {error}",
            hint="pass an array that implements it correctly",
        ) from error


def _from_dlpack(obj: Any) -> tuple[Numbers, Scalar | None]:
    with refused_if_broken(obj, "__dlpack_device__"):
        kind, _ = map(int, obj.__dlpack_device__())
    if kind not in HOST_KINDS:
        raise ArgumentError(
            f"the {type(obj).__name__} is on a device (DLPack's kind {kind}), not on the host",
            hint="copy it to the host first",
        )
    tensor = import_tensor(obj)
    return layout_of(tensor), (bf16 if tensor.scalar == bf16 else None)


def requires_grad(given: object) -> bool:
    """Whether it is a tensor of torch that requires a gradient."""
    return type(given).__module__.partition(".")[0] == "torch" and bool(getattr(given, "requires_grad", False))


def detached(given: Any) -> Any:
    """A tensor of torch that requires a gradient, without it, if a tape takes care of that; other objects as they are."""
    if requires_grad(given):
        taker = import_late("quadpy.runtime.launch.capturing").differentiating_here()  # which knows arrays
        return given.detach() if taker is not None and taker.takes_tensors else given
    return given


def _from_torch(tensor: Any) -> tuple[Numbers, Scalar | None]:
    """A CPU tensor's memory; torch itself refuses tensors on a device and tensors that record gradients."""
    tensor = detached(tensor)
    if str(tensor.dtype) == "torch.bfloat16":
        return _from_dlpack(tensor)
    try:
        return tensor.numpy(), None
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            f"this tensor cannot be shared with the CPU: {error}", hint="pass tensor.detach().cpu()"
        ) from error


_NOWHERE: Final = 1 << 12
"""The address of an empty array without one, as NumPy needs an address."""


class _NumpyFace:
    """Type, shape, strides and address for NumPy, which keeps this object alive, and with it the memory."""

    def __init__(self, tensor: ImportedTensor) -> None:
        dtype = STORAGE[tensor.scalar]
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype.str,
            "shape": tensor.shape,
            "strides": tuple(step * dtype.itemsize for step in tensor.strides),
            "data": (tensor.pointer or _NOWHERE, not tensor.writable),
        }


def layout_of(tensor: ImportedTensor) -> Numbers:
    """The memory of ``tensor`` as a NumPy array; if it is on a device, only shape, strides and address may be read."""
    return np.asarray(_NumpyFace(tensor))
